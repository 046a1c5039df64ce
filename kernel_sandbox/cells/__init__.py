"""One cell: what is sent to a kernel, what comes back, and what of it is trusted."""
