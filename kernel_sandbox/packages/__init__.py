"""Packages that cells lack: found, fetched and laid beside the environment."""
