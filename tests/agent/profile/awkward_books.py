"""Builds the workbooks of the awkward files: what stands in their cells can be read here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

BOOKS: dict[str, Callable[[Path], None]] = {}
