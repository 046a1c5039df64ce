"""The command line, `dm-jupyter`. Subcommands import what they need when they run."""

from __future__ import annotations

from dm_jupyter.cli.app import main

__all__ = ["main"]
