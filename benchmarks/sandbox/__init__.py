"""What the sandbox costs, beside what others pay for the same: `python -m benchmarks.sandbox`."""
