"""The agent loop and its parts: turns, notebooks, rollouts, observations and figures in words."""
