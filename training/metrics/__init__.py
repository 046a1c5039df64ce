"""Figures computed from the records of a run: pure functions, one idea a file."""
