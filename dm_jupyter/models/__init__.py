"""Models behind an HTTP endpoint, and the one that this machine serves."""
