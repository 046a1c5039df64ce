"""Packages that cells lack: found, downloaded and installed beside the environment."""
