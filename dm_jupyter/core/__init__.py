"""Tasks, trajectories, dialects, events and prompts: values and text."""
