"""Hostile inputs for all that the server reads from a kernel; `benchmarks.fuzz_kernel_inputs`."""
