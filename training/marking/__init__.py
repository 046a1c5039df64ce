"""A model that marks answers: asked, remembered, read."""
