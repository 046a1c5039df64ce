"""The parts of the pool that spans machines."""
