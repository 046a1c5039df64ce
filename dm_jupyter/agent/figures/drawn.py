"""Series of a figure that came as JSON, in the words used for matplotlib figures.

The JSON comes from a kernel. Covered: whatever it contains, reading takes a bounded time and each
text is short. Not covered: whether it is true.
"""

from __future__ import annotations

import re
from array import array
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import isfinite, nan
from statistics import fmean, median
from sys import byteorder
from typing import Any, Literal

from kernel_sandbox.cells.figures import (
    MOST_AXES,
    MOST_SERIES,
    axes_text,
    axis_text,
    categories_text,
    figure_text,
    pie_text,
    series_text,
    short,
)

__all__ = [
    "MOST_POINTS",
    "Axes",
    "Axis",
    "aggregated",
    "bar_words",
    "drawn_words",
    "items",
    "label_text",
    "named",
    "number",
    "numbers",
    "one_of",
    "pie_words",
    "place",
    "points_words",
    "span_of",
]

MOST_POINTS = 10_000
"""Most points that are read of a series; there are up to 24 series."""
_TEXT_CHARS = 500
_NAME_CHARS = 60
_MOST_CATEGORIES = 200
_MOST_LINES = 5
_TYPES: Mapping[str, Literal["b", "B", "h", "H", "i", "I", "f", "d"]] = {
    "i1": "b", "u1": "B", "uint8c": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I",
    "f4": "f", "f8": "d", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H",
    "int32": "i", "uint32": "I", "float32": "f", "float64": "d",
}  # fmt: skip
"""Map from plotly's names of the items of a base64 array, little-endian, to type codes."""
_TAG = re.compile(r"<[^<>]{0,200}>")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ](\d\d:\d\d)|$)")
_AGGREGATES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "count": len, "sum": sum, "mean": fmean, "average": fmean, "avg": fmean,
    "median": median, "min": min, "max": max,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis."""

    label: str = ""
    span: str = ""
    """Its range, or its categories; empty if the figure leaves it to the page."""


@dataclass(slots=True)
class Axes:
    """A pair of axes with what is drawn on them."""

    x: Axis = field(default_factory=Axis)
    y: Axis = field(default_factory=Axis)
    title: str = ""
    series: list[str] = field(default_factory=list)
    """The words of the first series."""
    count: int = 0
    """The number of all series."""

    @property
    def is_full(self) -> bool:
        """Whether the words of a further series would be dropped."""
        return len(self.series) >= MOST_SERIES

    def add(self, words: str) -> None:
        """Add a series, and its words if there is room."""
        self.count += 1
        if not self.is_full:
            self.series.append(words)


def drawn_words(title: str, axes: Sequence[Axes]) -> str:
    """Return the words of a figure.

    Args:
        title: title of the entire figure; may be empty.
        axes: the axes on which something is drawn.
    """
    told = [
        axes_text(
            one.title,
            [axis_text("x", one.x.label, one.x.span), axis_text("y", one.y.label, one.y.span)],
            one.series,
            one.count,
        )
        for one in axes[:MOST_AXES]
    ]
    return figure_text(title, told, len(axes))


def points_words(head: str, values: Sequence[float], places: Sequence[object], count: int) -> str:
    """Return the words of a series of points.

    Args:
        head: its kind, and its name if it has one.
        values: the first values; nan for anything but a number.
        places: the position of each value; where there is none, its index is used.
        count: the number of all values.
    """
    return _words(head, values, places, count, " points")


def bar_words(head: str, values: Sequence[float], places: Sequence[object], count: int) -> str:
    """Return the words of bars, each with a value; arguments as for `points_words`."""
    return _words(head, values, places, count, "")


def _words(
    head: str, values: Sequence[float], places: Sequence[object], count: int, unit: str
) -> str:
    there = [at for at, value in enumerate(values) if isfinite(value)]
    missing = len(values) - len(there)
    if not there:
        return series_text(head, "", None, None, missing)
    ends = (min(there, key=values.__getitem__), max(there, key=values.__getitem__))
    lowest, highest = ((values[at], place(places[at] if at < len(places) else at)) for at in ends)
    total = count - missing
    seen = f", the first {len(values):,} of which" if count > len(values) else ""
    return series_text(head, f"{total}{unit}{seen}", lowest, highest, missing)


def pie_words(names: Sequence[object], values: Sequence[float]) -> str:
    """Return the words of a pie, the largest wedges first.

    Args:
        names: names of the wedges.
        values: sizes of the wedges.
    """
    whole = sum(value for value in values if value > 0)
    pairs = zip(names, values, strict=False)
    parts = [(place(name), value) for name, value in pairs if value > 0]
    parts.sort(key=lambda part: part[1], reverse=True)
    if not isfinite(whole) or not parts:
        return "pie: no point"
    return pie_text([(name, 100 * value / whole) for name, value in parts], len(parts))


def aggregated(
    how: str, places: Sequence[object], values: Sequence[float]
) -> tuple[list[object], list[float]] | None:
    """Return one value for each position, in order; `None` if the aggregate is unknown.

    Args:
        how: the name of the aggregate.
        places: the position of each value.
        values: the values; nan is left out, unless rows are counted.
    """
    aggregate = _AGGREGATES.get(how)
    if aggregate is None:
        return None
    groups: dict[object, tuple[object, list[float]]] = {}
    for where, value in zip(places, values, strict=False):
        key = where if isinstance(where, str) else place(where)
        _, group = groups.setdefault(key, (where, []))
        if how == "count" or isfinite(value):
            group.append(value)
    try:
        found = [float(aggregate(group)) if group else nan for _, group in groups.values()]
    except (OverflowError, ValueError):
        return None
    return [where for where, _ in groups.values()], found


def span_of(values: Iterable[object]) -> str:
    """Return the range or the categories of some values; "" for no values.

    Args:
        values: the positions of the points, of which the first are read.
    """
    looked = [value for value in islice(values, MOST_POINTS) if value is not None]
    found = [number(value) for value in looked]
    ends = [value for value in found if isfinite(value)]
    if ends and len(ends) >= len(looked) / 2:
        return f"{short(min(ends))} to {short(max(ends))}"
    words = list(dict.fromkeys(islice(filter(None, map(place, looked)), MOST_POINTS)))
    if words and all(_DATE.match(word) for word in words):
        return f"{min(words)} to {max(words)}"
    return categories_text(words[:_MOST_CATEGORIES]) if words else ""


def number(value: object) -> float:
    """Return a value as a number, or nan if it is not one."""
    if type(value) is float:  # most of them are
        return value if isfinite(value) else nan
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            return nan
        if isinstance(value, str) and (len(value) > _NAME_CHARS or "_" in value):
            return nan
        found = float(value)
    except (ValueError, OverflowError):
        return nan
    return found if isfinite(found) else nan


def numbers(raw: object) -> tuple[list[float], int]:
    """Return the first values of an array as numbers, and how many values it has.

    Args:
        raw: a list, or plotly's typed array in base64.
    """
    found, count = items(raw)
    return [number(value) for value in found], count


def items(raw: object) -> tuple[Sequence[object], int]:
    """Return the first values of an array, and how many it has; arguments as for `numbers`."""
    if isinstance(raw, list):
        return raw[:MOST_POINTS], len(raw)
    if not isinstance(raw, Mapping):
        return (), 0
    kind, data = raw.get("dtype"), raw.get("bdata")
    code = _TYPES.get(kind) if isinstance(kind, str) else None
    if code is None or not isinstance(data, str):
        return (), 0
    found: array[Any] = array(code)
    chars = -(-MOST_POINTS * found.itemsize // 3) * 4
    try:
        part = b64decode(data[:chars], validate=True)
    except ValueError:
        return (), 0
    found.frombytes(part[: min(len(part) // found.itemsize, MOST_POINTS) * found.itemsize])
    if byteorder == "big":
        found.byteswap()
    padding = data[-2:].count("=")
    count = (len(data) * 3 // 4 - padding) // found.itemsize if len(data) > chars else len(found)
    return found.tolist(), count


def place(value: object) -> str:
    """Return the position of a point as a short text."""
    if isinstance(value, str):
        date = _DATE.match(value)
        if date is not None:
            return value[:10] if date[1] in (None, "00:00") else value[:16].replace("T", " ")
        return label_text(value)[:_NAME_CHARS]
    if isinstance(value, list):
        return " / ".join(map(place, (one for one in value[:3] if not isinstance(one, list))))
    if isinstance(value, bool):
        return str(value)
    found = number(value)
    return short(found) if isfinite(found) else ""


def label_text(raw: object) -> str:
    """Return a label as plain text on one line; "" if it is not one.

    Args:
        raw: a text, a list of its lines, or an object with the text as `text`.
    """
    if isinstance(raw, Mapping):
        raw = raw.get("text")
    if isinstance(raw, list):
        raw = " ".join(one for one in raw[:_MOST_LINES] if isinstance(one, str))
    if not isinstance(raw, str):
        return place(raw) if isinstance(raw, int | float) else ""
    return " ".join(_TAG.sub(" ", raw[:_TEXT_CHARS]).split())


def named(kind: str, name: str) -> str:
    """Return the beginning of a series' words.

    Args:
        kind: a line, bars, ….
        name: name of the series; may be empty.
    """
    return f"{kind} '{name[:_NAME_CHARS]}'" if name else kind


def one_of(raw: object, *path: str) -> Any:
    """Return the value at the end of a path through objects; `None` if it does not exist."""
    for name in path:
        raw = raw.get(name) if isinstance(raw, Mapping) else None
    return raw
