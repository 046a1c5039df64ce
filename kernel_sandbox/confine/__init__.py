"""The mechanisms that confine a kernel, one a file."""
