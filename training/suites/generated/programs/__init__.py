"""Two independent ways to compute an answer from a file: pandas, and SQL with plain Python."""
