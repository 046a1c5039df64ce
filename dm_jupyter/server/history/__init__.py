"""Runs as files: the journal of each, and what later runs remember."""
