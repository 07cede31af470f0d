"""What git, and later editors, start by themselves. Installed as the package `openmemex_hooks`."""
