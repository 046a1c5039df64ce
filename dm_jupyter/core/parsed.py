"""A cell as a syntax tree."""

from __future__ import annotations

import ast

__all__ = ["parsed"]


def parsed(source: str) -> ast.Module | None:
    """Returns the tree of a cell, or nothing where it is no plain Python."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
