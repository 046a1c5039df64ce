"""Models behind an HTTP endpoint, and the model that this machine serves."""
