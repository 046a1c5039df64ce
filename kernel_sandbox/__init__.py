"""Runs untrusted cells under hard limits. Knows nothing of agents."""
