"""Benchmark of answers to questions about data that do not exist."""
