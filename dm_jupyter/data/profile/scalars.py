"""Cells as JSON can hold them."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from dm_jupyter.data.profile.model import Scalar

__all__ = ["column_name", "scalar"]

LONGEST_VALUE_CHARS = 80


def scalar(value: object) -> Scalar:
    """Returns a cell as JSON can hold it: text cut, times as ISO text, missing as None."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"<{len(value):,} bytes>"
    return _scalar_number(value)


def column_name(label: object) -> str:
    """Returns a frame's column label as text."""
    return label if isinstance(label, str) else str(label)


def _scalar_number(value: Any) -> Scalar:
    if value is pd.NA or value is pd.NaT:
        return None
    if hasattr(value, "isoformat"):
        return _time_text(value)
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None if math.isnan(value) else str(value)
    if isinstance(value, (int, bool)):
        # A number of hundreds of digits is legal in JSON and useless in a prompt.
        return value if abs(value) < 10**30 else _cut(f"{value:.6e}" if value < 10**300 else "huge")
    return _cut(_shown(value))


def _time_text(value: Any) -> str:
    text = str(value.isoformat(sep=" ") if isinstance(value, pd.Timestamp) else value)
    return text.removesuffix(" 00:00:00")


def _shown(value: Any) -> str:
    return repr(value.tolist()) if hasattr(value, "tolist") else str(value)


def _cut(text: str) -> str:
    if len(text) <= LONGEST_VALUE_CHARS:
        return text
    return f"{text[:LONGEST_VALUE_CHARS]}… ({len(text):,} characters)"
