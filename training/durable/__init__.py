"""Support for long work: logs, locks, manifests, atomic files, progress, budgets, kept calls."""
