"""The models of the panel: endpoints, keys, downloads."""
