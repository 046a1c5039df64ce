"""Layouts of a table in a JSON document: as records, by column, by row, or as pandas writes it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from pandas.api import types

from dm_jupyter.data.profile.literals import text_literal

__all__ = ["JsonLayout", "find_json_layout", "is_same"]

_DEPTH = 3
_CLOSE = 1e-12


@dataclass(frozen=True)
class JsonLayout:
    """One reading of a document, as source code and as a function."""

    build: Callable[[Any], pd.DataFrame]
    """Function from the parsed document to its exact frame, which checks any shorter code."""
    code: str
    """Expression for `df`, in terms of `data`."""
    orient: str | None = None
    """Orient by which `pd.read_json` may read it; empty for its default, `None` if it can't."""
    warnings: tuple[str, ...] = ()


def find_json_layout(data: object) -> JsonLayout | None:
    """Return the layout of the table in a parsed document; `None` if it has none."""
    if isinstance(data, dict):
        return _of_pandas(data) or _of_maps(data) or _of_lists(data) or _records(data)
    if isinstance(data, list) and data and all(isinstance(row, list) for row in data):
        return _rows(data)
    return _records(data)


def is_same(frame: pd.DataFrame, exact: pd.DataFrame) -> bool:
    """Return whether a frame contains what the document says, all values compared.

    ISO dates may have been parsed. A text that became a number has lost its zeros, so it differs.
    """
    if frame.shape != exact.shape or list(map(str, frame.columns)) != list(map(str, exact.columns)):
        return False
    if list(map(str, frame.index)) != list(map(str, exact.index)):
        return False
    return all(
        _is_same_column(frame.iloc[:, place], exact.iloc[:, place])
        for place in range(frame.shape[1])
    )


def _is_same_column(got: pd.Series[Any], exact: pd.Series[Any]) -> bool:
    if types.is_datetime64_any_dtype(got.dtype):
        if not all(isinstance(value, str) for value in exact.dropna()):
            return False  # a guess at what a number counts
        parsed = pd.to_datetime(exact, format="ISO8601", errors="coerce", utc=got.dt.tz is not None)
        return bool(((got == parsed) | (got.isna() & exact.isna())).all())
    pairs = zip(got.tolist(), exact.tolist(), strict=True)
    return all(_is_same_value(one, other) for one, other in pairs)


def _is_same_value(got: Any, exact: Any) -> bool:
    if isinstance(got, float) and isinstance(exact, (int, float)):
        if math.isnan(got):
            return isinstance(exact, float) and math.isnan(exact)
        return math.isclose(got, exact, rel_tol=_CLOSE)
    is_missing = got is None or got is pd.NA
    if is_missing or exact is None:
        return (is_missing or got != got) and (exact is None or exact != exact)  # noqa: PLR0124
    return isinstance(got, str) == isinstance(exact, str) and bool(got == exact or got is exact)


def _of_pandas(data: dict[str, Any]) -> JsonLayout | None:
    """Return the layout of what `DataFrame.to_json` writes with orient `split` or `table`."""
    rows, names = data.get("data"), data.get("columns")
    if not isinstance(rows, list):
        return None
    if isinstance(data.get("schema"), dict) and set(data) == {"schema", "data"}:
        return JsonLayout(lambda data: pd.DataFrame(data["data"]), 'pd.DataFrame(data["data"])',
                          "table")  # fmt: skip
    is_split = set(data) <= {"columns", "index", "data", "name"} and isinstance(names, list)
    if not is_split or not all(isinstance(row, list) for row in rows):
        return None
    index = ', index=data["index"]' if "index" in data else ""
    return JsonLayout(
        lambda data: pd.DataFrame(data["data"], index=data.get("index"), columns=data["columns"]),
        f'pd.DataFrame(data["data"]{index}, columns=data["columns"])',
        "split",
    )


def _of_maps(data: dict[str, Any]) -> JsonLayout | None:
    """Return the layout of a dictionary of dictionaries: rows by name, or columns by name."""
    outer = list(data.values())
    if len(outer) < 1 or not all(isinstance(inner, dict) and inner for inner in outer):
        return None
    inner_keys = [list(inner) for inner in outer]
    shared = set(inner_keys[0]).intersection(*inner_keys)
    every = {key for keys in inner_keys for key in keys}
    if len(outer) == 1 or len(shared) < len(every) / 2:
        return None
    by_row, reason = _is_by_row(data, every)
    if not by_row:
        other = (f"{reason}: df.T has rows and columns the other way round",) if reason else ()
        return JsonLayout(pd.DataFrame, "pd.DataFrame(data)", "", other)
    told: tuple[str, ...] = ("rows are named by the outer keys of the JSON: df.index",)
    told += (f"{reason}: df.T has rows and columns the other way round",) if reason else ()
    if any(isinstance(value, dict) for inner in outer for value in inner.values()):
        code = "pd.json_normalize(list(data.values())).set_axis(list(data))"
        return JsonLayout(
            lambda data: pd.json_normalize(list(data.values())).set_axis(list(data)),
            code,
            warnings=told,
        )
    return JsonLayout(
        lambda data: pd.DataFrame.from_dict(data, orient="index"),
        'pd.DataFrame.from_dict(data, orient="index")',
        "index",
        told,
    )


def _is_by_row(data: dict[str, Any], every: set[str]) -> tuple[bool, str]:
    """Return whether outer keys name rows, and the reason if the values can't decide it."""
    if any(isinstance(value, (dict, list)) for inner in data.values() for value in inner.values()):
        return True, ""
    if all(key.isdecimal() for key in every):
        return False, ""
    if all(key.isdecimal() for key in data):
        return True, ""
    within = all(_is_one_kind(list(inner.values())) for inner in data.values())
    across = all(_is_one_kind([inner.get(key) for inner in data.values()]) for key in every)
    if within != across:
        return across, ""
    return len(data) > len(
        every
    ), "the JSON does not say whether its outer keys are rows or columns"


def _is_one_kind(values: Sequence[Any]) -> bool:
    kinds = {_kind(value) for value in values if value is not None}
    return len(kinds) <= 1


def _kind(value: Any) -> type:
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)


def _of_lists(data: dict[str, Any]) -> JsonLayout | None:
    """Return the layout of a dictionary of columns."""
    columns = list(data.values())
    if not columns or not all(isinstance(column, list) for column in columns):
        return None
    if len({len(column) for column in columns}) > 1:
        return None
    if any(isinstance(item, (dict, list)) for column in columns for item in column):
        return None
    return JsonLayout(pd.DataFrame, "pd.DataFrame(data)", "")


def _rows(data: list[Any]) -> JsonLayout | None:
    """Return the layout of a list of rows, of which the first contains the names if it can."""
    first, *others = data
    if not first or any(isinstance(value, (dict, list)) for row in data for value in row):
        return None
    widths = {len(row) for row in data}
    is_named = all(isinstance(name, str) for name in first) and len(set(first)) == len(first)
    if is_named and others and len(widths) == 1:
        told = () if _has_figures(others) else ("the first row is taken for the names",)
        return JsonLayout(
            lambda data: pd.DataFrame(data[1:], columns=data[0]),
            "pd.DataFrame(data[1:], columns=data[0])",
            warnings=told,
        )
    return JsonLayout(pd.DataFrame, "pd.DataFrame(data)", warnings=("the columns have no names",))


def _has_figures(rows: list[list[Any]]) -> bool:
    return any(isinstance(value, (int, float)) for row in rows for value in row)


def _records(data: object) -> JsonLayout | None:
    """Return the layout of the longest list of records within three levels."""
    records, steps, others = _longest(data)
    if not records:
        return None
    told: tuple[str, ...] = ()
    if others:
        told = (f"other lists of records in the file are not read: {', '.join(others[:5])}",)
    path = "".join(f"[{text_literal(step)}]" for step in steps)
    is_flat = not any(isinstance(value, dict) for record in records for value in record.values())

    def build(data: Any) -> pd.DataFrame:
        for step in steps:
            data = data[step]
        return pd.json_normalize(data)

    orient = "" if is_flat and not steps and isinstance(data, list) else None
    return JsonLayout(build, f"pd.json_normalize(data{path})", orient, told)


def _longest(data: object) -> tuple[list[dict[str, Any]], list[str], list[str]]:
    """Return the longest list of records, the keys that lead to it, and those of the others."""
    found: list[tuple[list[dict[str, Any]], list[str]]] = []
    waiting: list[tuple[object, list[str]]] = [(data, [])]
    while waiting:
        value, steps = waiting.pop(0)
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            found.append((value, steps))
        elif isinstance(value, dict) and len(steps) < _DEPTH:
            waiting += [(inner, [*steps, key]) for key, inner in value.items()]
    if not found:
        return ([data], [], []) if isinstance(data, dict) else ([], [], [])
    best = max(found, key=lambda pair: len(pair[0]))
    others = [".".join(steps) for records, steps in found if records is not best[0]]
    return *best, others
