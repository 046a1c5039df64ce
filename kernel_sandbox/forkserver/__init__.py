"""Workers: processes forked from a warm one, and the states that are forked from them."""
