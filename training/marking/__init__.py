"""A model that marks answers: its requests, cached replies, and scores."""
