"""Frame in, column profiles out."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
from pandas.api import types

from dm_jupyter.agent.profile.model import ColumnProfile, Scalar

__all__ = ["profile_columns", "sample_rows", "scalar"]

LONGEST_VALUE_CHARS = 80
FEW_VALUES = 6
_EXAMPLES = 3


def profile_columns(frame: pd.DataFrame) -> tuple[ColumnProfile, ...]:
    """Returns one profile a column, in order; duplicate names are kept apart by position."""
    return tuple(
        _profile_column(column_name(label), frame.iloc[:, position])
        for position, label in enumerate(frame.columns)
    )


def sample_rows(frame: pd.DataFrame) -> tuple[tuple[Scalar, ...], ...]:
    """Returns the first two rows, one from the middle and the last: at most four, in order."""
    count = len(frame)
    positions = sorted({p for p in (0, 1, count // 2, count - 1) if 0 <= p < count})
    picked = frame.iloc[positions]
    columns = [list(picked.iloc[:, position]) for position in range(picked.shape[1])]
    return tuple(tuple(scalar(value) for value in row) for row in zip(*columns, strict=True))


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


def _profile_column(name: str, values: pd.Series[Any]) -> ColumnProfile:
    missing = int(values.isna().sum())
    unique = _distinct(values)
    if types.is_bool_dtype(values.dtype):
        return ColumnProfile(name, str(values.dtype), missing, unique, examples=_examples(values))
    if types.is_numeric_dtype(values.dtype) or types.is_datetime64_any_dtype(values.dtype):
        low, high = scalar(values.min()), scalar(values.max())
        few = _examples(values) if unique is not None and unique <= FEW_VALUES else ()
        return ColumnProfile(name, str(values.dtype), missing, unique, low, high, few)
    dtype = _object_dtype(values)
    return ColumnProfile(name, dtype, missing, unique, examples=_examples(values))


def _distinct(values: pd.Series[Any]) -> int | None:
    try:
        return int(values.nunique())
    except (TypeError, ValueError, NotImplementedError):  # lists and dicts have no hash
        return None


def _object_dtype(values: pd.Series[Any]) -> str:
    """Returns the dtype, for `object` with the Python types that are inside."""
    if str(values.dtype) != "object":
        return str(values.dtype)
    kinds = sorted({type(value).__name__ for value in values.dropna().head(1000)})
    return f"object ({', '.join(kinds[:3])})" if kinds else "object"


def _examples(values: pd.Series[Any]) -> tuple[Scalar, ...]:
    present = values.dropna()
    try:
        distinct = list(present.drop_duplicates().iloc[: FEW_VALUES + 1])
    except (TypeError, ValueError, NotImplementedError):
        distinct = list(present.iloc[:_EXAMPLES])
    shown = distinct if len(distinct) <= FEW_VALUES else distinct[:_EXAMPLES]
    return tuple(scalar(value) for value in shown)
