"""Workers, forked from a warm process, and the states that are forked from them."""
