"""Scores of answers: pure functions, no model and no kernel."""
