"""One cell: what is sent to a kernel, what comes back, what of it is believed."""
