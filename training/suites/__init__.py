"""Sets of tasks with labels: one file a set, all behind the `Suite` protocol."""
