"""Facts of one column, gathered piece by piece from its values, each as JSON can represent it."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from dm_jupyter.data.profile.distinct import DistinctCounter, HashRoom, hashes_of
from dm_jupyter.data.profile.model import ColumnProfile, Scalar
from dm_jupyter.data.profile.values import indexed

__all__ = ["FEW_VALUES", "ColumnFacts", "column_name", "scalar"]

FEW_VALUES = 6
_EXAMPLES = 3
_FREQUENT = 6
_FEW_NUMBERS = 50
"""Numbers with no more distinct values than this are codes or grades, and are counted."""
_COUNTED_VALUES = 10_000
_COUNTED_CHARS = 2 << 20
_SPREAD_TEXTS = 2000
_ISO = re.compile(r"\d{4}([-/])\d{2}\1\d{2}([T ]\d.*)?")
_MEASURES = frozenset({"number", "time", "date", "decimal"})
"""Kinds of values that have a smallest and a largest one."""
LONGEST_VALUE_CHARS = 80


class ColumnFacts:
    """Facts of a column, gathered from its pieces in constant memory.

    One load call returns the pieces, so their types may differ: integers in one, decimals in the
    next.
    """

    def __init__(self, name: str, room: HashRoom, counted_values: int = _COUNTED_VALUES) -> None:
        """Start without values.

        Args:
            name: name of the column.
            room: for hashes, shared with the other columns.
            counted_values: how many distinct values are counted one by one.
        """
        self.name = name
        self.rows = self.missing = 0
        self.kinds: set[str] = set()
        """Kinds of the pieces with a value: number, bool, time, date, decimal, text or other."""
        self._dtypes: dict[str, Any] = {}
        self._types: set[str] = set()
        self._first: list[Any] = []
        self._counts: Counter[Any] | None = Counter()
        self._counted_values = counted_values
        self._counted_chars = 0
        self._distinct: DistinctCounter | None = DistinctCounter(room)
        self._low: Any = None
        self._high: Any = None
        self._apart: int | None = 0
        self._is_iso: bool | None = None
        self._texts: list[str] = []

    def add(self, values: pd.Series[Any]) -> pd.Index[Any] | None:
        """Add the next piece and return its distinct values, `None` if they can't be determined.

        Values are distinguished as pandas does it; lists and dictionaries are not.
        """
        self.rows += len(values)
        try:
            codes, found = pd.factorize(values)
        except (TypeError, ValueError, NotImplementedError):  # lists and dictionaries have no hash
            self._add_unhashable(values)
            return None
        counts = np.bincount(codes + 1, minlength=len(found) + 1)
        self.missing += int(counts[0])
        uniques: pd.Index[Any] = pd.Index(found)
        kind = _kind(values.dtype, uniques)
        self._note_type(values, kind, is_empty=not len(uniques))
        if not len(uniques):
            return uniques
        self.kinds.add(kind)
        if len(self._first) <= FEW_VALUES and self._distinct is not None:
            known = set(self._first)
            self._first += [value for value in uniques[: FEW_VALUES + 1] if value not in known]
        self._bounds(uniques, kind)
        if self._distinct is not None:
            self._count(uniques, counts[1:])
        return uniques

    def add_absent(self, rows: int) -> None:
        """Add rows that do not have the column."""
        self.rows += rows
        self.missing += rows

    def profile(self) -> ColumnProfile:
        """Return the facts so far."""
        unique, is_estimated = self._unique()
        is_few = unique is not None and not is_estimated and unique <= FEW_VALUES
        examples = tuple(scalar(x) for x in self._first[: FEW_VALUES if is_few else _EXAMPLES])
        is_measure = bool(self.kinds) and self.kinds <= _MEASURES
        is_text = "text" in self.kinds
        dtype = self.dtype
        low, high = self._low, self._high
        if dtype.startswith("float") and low is not None:
            low, high = float(low), float(high)
        return ColumnProfile(
            self.name,
            dtype,
            self.missing,
            unique,
            scalar(low),
            scalar(high),
            () if is_measure and not is_few else examples,
            frequent=self._frequent(),
            is_unique_estimated=is_estimated,
            values=indexed(self._counts.most_common()) if self._counts and is_text else (),
        )

    def texts(self) -> list[str]:
        """Return up to 2,000 distinct texts, spread over all that were seen; empty for numbers."""
        if "text" not in self.kinds:
            return []
        known = self._texts if self._counts is None else list(self._counts)
        found = [text for text in known if isinstance(text, str)]
        if len(found) <= _SPREAD_TEXTS:
            return found
        return [found[at] for at in np.linspace(0, len(found) - 1, _SPREAD_TEXTS, dtype=int)]

    def counts(self) -> Counter[Any] | None:
        """Return the count of each value; `None` if there are too many values."""
        return self._counts if self._distinct is not None else None

    def _add_unhashable(self, values: pd.Series[Any]) -> None:
        self.missing += int(values.isna().sum())
        present = values.dropna()
        self._note_type(values, "other", is_empty=not len(present))
        if len(present):
            self.kinds.add("other")
        if self._distinct is not None:
            self._distinct = self._counts = self._apart = None
            self._first = []
        self._first += list(present.iloc[: max(0, _EXAMPLES - len(self._first))])

    def _note_type(self, values: pd.Series[Any], kind: str, *, is_empty: bool) -> None:
        if is_empty and kind == "number" and self.rows > len(values):
            # No value: it only shows that integers can't stay integers.
            return
        self._dtypes.setdefault(str(values.dtype), values.dtype)
        if str(values.dtype) == "object":
            self._types |= {type(value).__name__ for value in values.dropna().head(1000)}

    def _bounds(self, uniques: pd.Index[Any], kind: str) -> None:
        if self.kinds != {kind} or kind not in _MEASURES | {"text"}:
            # Values of two kinds have no order.
            self._apart = self._low = self._high = None
            self._is_iso = False
            return
        if kind == "text":
            self._text_bounds(uniques)
            return
        low, high = uniques.min(), uniques.max()
        if self._low is None:
            self._low, self._high, self._apart = low, high, len(uniques)
            return
        if self._apart is not None:
            is_apart = low >= self._high or high <= self._low
            touches = low == self._high or high == self._low
            self._apart = self._apart + len(uniques) - touches if is_apart else None
        self._low, self._high = min(self._low, low), max(self._high, high)

    def _text_bounds(self, uniques: pd.Index[Any]) -> None:
        """Keep first and last of texts if all are ISO dates of one length, which sort correctly."""
        self._apart = None
        if self._is_iso is False:
            return
        first = uniques[0]
        if isinstance(first, str) and _ISO.fullmatch(first):
            texts = uniques.tolist()
            if _are_iso(texts) and (self._low is None or len(first) == len(self._low)):
                low, high = min(texts), max(texts)
                self._is_iso = True
                self._low = low if self._low is None else min(self._low, low)
                self._high = high if self._high is None else max(self._high, high)
                return
        self._is_iso, self._low, self._high = False, None, None

    def _count(self, uniques: pd.Index[Any], counts: np.ndarray[Any, Any]) -> None:
        if self._counts is not None and len(uniques) <= self._counted_values:
            keys = uniques.tolist()
            before = len(self._counts)
            if not before:
                self._counts.update(dict(zip(keys, counts.tolist(), strict=True)))
            else:
                for key, count in zip(keys, counts.tolist(), strict=True):
                    self._counts[key] += count
            self._counted_chars += sum(len(x) for x in keys if isinstance(x, str))
            if len(self._counts) <= self._counted_values and (
                self._counted_chars <= _COUNTED_CHARS or self._is_short()
            ):
                return
            uniques = self._give_up_counts()
        elif self._counts is not None:
            self._give_up_counts(uniques)
        if self._distinct is not None:
            self._distinct.add(hashes_of(uniques))
            self._keep_texts(uniques)

    def _is_short(self) -> bool:
        """Return whether the counted texts take little memory; pieces repeat, so sum them again."""
        self._counted_chars = sum(len(key) for key in self._counts or () if isinstance(key, str))
        return self._counted_chars <= _COUNTED_CHARS

    def _give_up_counts(self, following: pd.Index[Any] | None = None) -> pd.Index[Any]:
        """Continue with hashes alone, and return the values counted so far."""
        known: pd.Index[Any] = pd.Index(list(self._counts or ()))
        self._counts = None
        if following is not None and len(known) and self._distinct is not None:
            self._distinct.add(hashes_of(known))
            self._keep_texts(known)
        return known

    def _keep_texts(self, uniques: pd.Index[Any]) -> None:
        if len(self._texts) < 10 * _SPREAD_TEXTS and "text" in self.kinds:
            step = max(1, len(uniques) // 200)
            self._texts += [str(value)[:1000] for value in uniques[::step]]

    def _unique(self) -> tuple[int | None, bool]:
        if self._distinct is None:
            return None, False
        if self._counts is not None:
            return len(self._counts), False
        count = self._distinct.count()
        if self._distinct.is_estimate and self._apart is not None:
            # The pieces have ever larger (or smaller) values: their own counts add up.
            return self._apart, False
        return count, self._distinct.is_estimate

    def _frequent(self) -> tuple[tuple[Scalar, int], ...]:
        counts = self.counts()
        if not counts or (self.kinds <= _MEASURES and len(counts) > _FEW_NUMBERS):
            return ()
        top = counts.most_common(_FREQUENT)
        return tuple((scalar(value), count) for value, count in top) if top[0][1] > 1 else ()

    @property
    def dtype(self) -> str:
        """The combined type of the pieces."""
        if self.kinds == {"bool"} and self.missing and set(self._dtypes) <= {"bool", "float64"}:
            return "object (bool)"
        if self.kinds <= {"number"}:
            parts = list(self._dtypes.values())
            if all(isinstance(part, np.dtype) for part in parts) and parts:
                if self.missing and all(part.kind in "iu" for part in parts):
                    return "float64"
                return str(np.result_type(*parts))
        return self._other_dtype()

    def _other_dtype(self) -> str:
        known = [name for name in self._dtypes if name != "float64" or "number" in self.kinds]
        if len(known) == 1 and known[0] != "object":
            return known[0]
        if not known:
            return next(iter(self._dtypes), "object")
        names = self._types | ({*known} - {"object"})
        return f"object ({', '.join(sorted(names)[:3])})" if names else "object"


def _are_iso(texts: list[Any]) -> bool:
    """Return whether all are texts of one length that `_ISO` matches."""
    try:
        joined = "".join(texts)
    except TypeError:
        return False
    size = len(texts[0])
    if not joined.isascii() or "\n" in joined or set(map(len, texts)) != {size}:
        return False
    letters = np.frombuffer(joined.encode("ascii"), dtype=np.uint8).reshape(-1, size)
    digits = letters[:, [0, 1, 2, 3, 5, 6, 8, 9, *([11] if size > 10 else [])]]
    mark = letters[:, 4]
    is_date = bool((digits - np.uint8(48) < 10).all() and (mark == letters[:, 7]).all())
    is_marked = bool(np.isin(mark, [45, 47]).all())
    return is_date and is_marked and (size == 10 or bool(np.isin(letters[:, 10], [32, 84]).all()))


def _kind(dtype: Any, uniques: pd.Index[Any]) -> str:
    if types.is_bool_dtype(dtype):
        return "bool"
    if types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype):
        return "number"
    if types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype):
        return "time"
    if types.is_object_dtype(dtype):
        return _kind_of_objects(uniques.tolist())
    return "text" if types.is_string_dtype(dtype) else "other"


def _kind_of_objects(values: list[Any]) -> str:
    if any(isinstance(value, str) for value in values):
        return "text"
    if all(isinstance(value, bool) for value in values):
        return "bool"
    if all(type(value) is dt.date for value in values):
        return "date"
    return "decimal" if all(isinstance(value, Decimal) for value in values) else "other"


def scalar(value: object) -> Scalar:
    """Return a cell as JSON can represent it: text cut, times as ISO text, missing as `None`."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"<{len(value):,} bytes>"
    return _scalar_number(value)


def column_name(label: object) -> str:
    """Return a frame's column label as text."""
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
