"""Execution of untrusted cells under hard limits, independent of agents."""
