"""Data files: drawn from a domain, made dirty, written the same on every machine."""
