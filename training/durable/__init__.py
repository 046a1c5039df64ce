"""What long work stands on: logs, locks, manifests, whole files, progress, budgets, kept calls."""
