"""What is counted over the records of a run: pure functions, one idea a file."""
