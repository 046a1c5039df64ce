"""Two independent ways to compute an answer from a written file: pandas, and SQL with plain Python."""
