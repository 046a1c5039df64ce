"""Sets of tasks with labels: one module per set, all behind the `Suite` protocol."""
