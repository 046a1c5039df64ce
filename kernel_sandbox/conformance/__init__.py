"""Hostile code: its attempts, the range in which they run, and how they are judged."""
