"""A restricted kernel as Jupyter starts it, and the notebook's own kernel."""
