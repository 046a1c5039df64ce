"""The path of an environment's added packages, for callers that only need the folder's name."""

from __future__ import annotations

from pathlib import Path

from kernel_sandbox.packages.pip_child import environment_name

__all__ = ["overlay_site"]


def overlay_site(root: Path, name: str = "") -> Path:
    """Return the folder for the end of a kernel's `sys.path`; it need not exist.

    Args:
        root: the folder of the overlays of all environments.
        name: the name of the environment; empty for that of the current interpreter.
    """
    return root.expanduser().resolve() / (name or environment_name()) / "site"
