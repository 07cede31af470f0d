"""Markdown files on disk: the truth that everything else is made from."""
