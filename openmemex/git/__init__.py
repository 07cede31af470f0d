"""The GitProvider: the only door to git."""
