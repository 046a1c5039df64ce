"""Where the added packages of an environment lie: for whoever only has to name the folder."""

from __future__ import annotations

from pathlib import Path

from kernel_sandbox.packages.pip_child import environment_name

__all__ = ["overlay_site"]


def overlay_site(root: Path, name: str = "") -> Path:
    """Returns the folder for the end of a kernel's `sys.path`; it need not exist.

    Args:
        root: where the overlays of all environments lie.
        name: of the environment; empty for the one of the interpreter that runs this.
    """
    return root.expanduser().resolve() / (name or environment_name()) / "site"
