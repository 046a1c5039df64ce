"""Open notebooks: who shows them, how cells are written into them."""
