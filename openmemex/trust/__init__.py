"""What may be stored, and what may be believed."""
