"""The pool that spans several machines."""
