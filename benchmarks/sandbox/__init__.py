"""Cost of the sandbox, compared with other approaches: `python -m benchmarks.sandbox`."""
