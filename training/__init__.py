"""Training of the analyst: suites, scoring, rollouts and losses. Runs only from a checkout."""
