"""Training of the analyst: tasks, scoring, rollouts and losses. Runs only from a checkout."""
