"""Hostile code: what it tries, where it is tried, and how it is judged."""
