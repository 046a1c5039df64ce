"""Data context: what the model sees of the data, and the code that loads it."""
