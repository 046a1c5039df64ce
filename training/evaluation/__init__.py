"""A suite run through the product's own loop: what is kept of it, and what it says."""
