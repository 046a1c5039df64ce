"""The model that the panel has chosen: endpoints, keys, downloads."""
