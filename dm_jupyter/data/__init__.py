"""What the model is shown of the data, and the code that loads it."""
