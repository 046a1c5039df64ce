"""Frame in, column profiles out."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
from pandas.api import types

from dm_jupyter.agent.profile.dates import iso_range
from dm_jupyter.agent.profile.model import ColumnProfile, Scalar
from dm_jupyter.agent.profile.values import indexed

__all__ = ["profile_columns", "sample_rows", "scalar"]

LONGEST_VALUE_CHARS = 80
FEW_VALUES = 6
_EXAMPLES = 3
_SMALL_CELLS = 300
_DETAILED = 1_000
"""Columns that are looked into: more than a prompt has room for, few enough to take no time."""


def profile_columns(frame: pd.DataFrame) -> tuple[ColumnProfile, ...]:
    """Returns one profile a column, in order; duplicate names are kept apart by position.

    Of the columns after the first thousand, names and types are all that is looked at.
    """
    detailed = frame.iloc[:, :_DETAILED]
    missing = detailed.isna().to_numpy().sum(axis=0)
    profiles = [
        _profile_column(column_name(label), values, int(missing[position]))
        for position, (label, values) in enumerate(detailed.items())
    ]
    others = zip(frame.columns[_DETAILED:], frame.dtypes.iloc[_DETAILED:], strict=True)
    return (*profiles, *(ColumnProfile(column_name(label), str(dtype)) for label, dtype in others))


def sample_rows(frame: pd.DataFrame) -> tuple[tuple[Scalar, ...], ...]:
    """Returns all rows of a small table, else the first two, one from the middle and the last.

    Of a row, at most the first thousand values.
    """
    count = len(frame)
    shown = frame.iloc[:, :_DETAILED]
    if frame.size > _SMALL_CELLS:
        shown = shown.iloc[sorted({p for p in (0, 1, count // 2, count - 1) if 0 <= p < count})]
    rows = shown.itertuples(index=False, name=None)
    return tuple(tuple(scalar(value) for value in row) for row in rows)


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


def _profile_column(name: str, values: pd.Series[Any], missing: int) -> ColumnProfile:
    dtype = values.dtype
    unique, examples = _distinct(values.dropna() if missing else values)
    if types.is_bool_dtype(dtype):
        return ColumnProfile(name, str(dtype), missing, unique, examples=examples)
    if types.is_numeric_dtype(dtype) or types.is_datetime64_any_dtype(dtype):
        few = examples if unique is not None and unique <= FEW_VALUES else ()
        low, high = scalar(values.min()), scalar(values.max())
        return ColumnProfile(name, str(dtype), missing, unique, low, high, few)
    counts = list(values.value_counts().items()) if unique else []
    first, last = iso_range(value for value, _ in counts) or (None, None)
    return ColumnProfile(
        name,
        _object_dtype(values),
        missing,
        unique,
        first,
        last,
        examples=examples,
        frequent=tuple((scalar(value), int(count)) for value, count in counts[:FEW_VALUES]),
        values=indexed(counts),
    )


def _distinct(present: pd.Series[Any]) -> tuple[int | None, tuple[Scalar, ...]]:
    """Returns how many distinct values there are, and all of a few or some of many."""
    try:
        distinct = present.unique()
        unique = len(distinct)
    except (TypeError, ValueError, NotImplementedError):  # lists and dictionaries have no hash
        return None, tuple(scalar(value) for value in present.iloc[:_EXAMPLES])
    shown = distinct if unique <= FEW_VALUES else distinct[:_EXAMPLES]
    return unique, tuple(scalar(value) for value in shown)


def _object_dtype(values: pd.Series[Any]) -> str:
    """Returns the dtype, for `object` with the Python types that are inside."""
    if str(values.dtype) != "object":
        return str(values.dtype)
    kinds = sorted({type(value).__name__ for value in values.dropna().head(1000)})
    return f"object ({', '.join(kinds[:3])})" if kinds else "object"
