"""Exact tokens: policies that work on token ids, and the store of the sampled ids."""
