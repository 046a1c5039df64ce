"""Open notebooks: their tabs, and how cells are written into them."""
