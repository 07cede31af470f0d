"""Pure values: what a memory is, how it reads and writes, how it lives. No input or output here."""
