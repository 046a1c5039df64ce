"""Cost of an evaluation apart from the model: trajectories, resuming, bookkeeping."""
