"""Data files: drawn from a domain, made dirty, and written identically on every machine."""
