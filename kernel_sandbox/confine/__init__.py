"""The mechanisms that confine a kernel, one per file."""
