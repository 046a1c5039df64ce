"""Rejection sampling: correct runs of a model on a training split, exported as conversations."""
