"""`python -m openmemex` is `open-memex`."""

from openmemex.cli.fast import run

if __name__ == "__main__":
    run()
