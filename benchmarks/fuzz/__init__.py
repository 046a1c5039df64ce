"""Hostile inputs for everything the server reads from a kernel: `benchmarks.fuzz_kernel_inputs`."""
