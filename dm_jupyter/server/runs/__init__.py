"""A run in an open notebook, from the question to the answer."""
