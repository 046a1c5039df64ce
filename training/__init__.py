"""Training of the analyst: tasks, scoring, rollouts and losses. Run from a checkout."""
