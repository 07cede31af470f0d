"""The shared set of use cases, one a file; every surface calls these."""
