"""The commands, by what they are for: each parses, calls one operation, and shows its result."""
