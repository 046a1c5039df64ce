"""What an evaluation costs apart from the model: trajectories, resuming, bookkeeping."""
