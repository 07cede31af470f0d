"""The memory index: a cache of the files, rebuilt from them at any time."""
