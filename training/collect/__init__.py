"""Rejection sampling: runs of a model at a training split, and the right ones as conversations."""
