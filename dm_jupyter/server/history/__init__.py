"""Runs as files: the journal of each, and the memory for later runs."""
