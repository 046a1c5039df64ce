"""Descriptions in words of plotly figures, from their JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from math import isfinite, nan
from statistics import median
from typing import Any

from dm_jupyter.agent.figures.drawn import (
    MOST_POINTS,
    Axes,
    Axis,
    aggregated,
    bar_words,
    drawn_words,
    items,
    label_text,
    named,
    number,
    numbers,
    one_of,
    pie_words,
    place,
    points_words,
    span_of,
)
from kernel_sandbox.cells.figures import MOST_AXES, heat_map_text, short

__all__ = ["plotly_words"]

_Trace = Mapping[str, Any]
_MOST_TRACES, _MOST_ANNOTATIONS = 500, 200
_EDGE = 0.1
"""Fraction of the figure's height within which a title is above its axes."""
_BARS = {"bar": "bars", "funnel": "funnel", "waterfall": "waterfall"}
_PILED = (*_BARS, "histogram")
_BOXES = ("box", "violin")
_HEAT_MAPS = ("heatmap", "contour", "surface", "heatmapgl")
_PIES = ("pie", "funnelarea")
_VALUES: Mapping[str, tuple[str, str]] = {
    "candlestick": ("close", "x"), "ohlc": ("close", "x"), "choropleth": ("z", "locations"),
    "choroplethmapbox": ("z", "locations"), "choroplethmap": ("z", "locations"),
    "scatterpolar": ("r", "theta"), "scatterpolargl": ("r", "theta"), "barpolar": ("r", "theta"),
    "treemap": ("values", "labels"), "sunburst": ("values", "labels"),
    "icicle": ("values", "labels"), "scatter3d": ("z", "x"),
    "densitymapbox": ("z", "lat"), "densitymap": ("z", "lat"),
}  # fmt: skip
"""Keys of value and position, for kinds with values on no axis, or on more than two."""
_OWN_ARRAYS = ("lat", "x", "y", "z", "values", "labels", "a", "dimensions")


def plotly_words(raw: object) -> str:
    """Return title, axes and series of a figure, in the words used for matplotlib.

    Args:
        raw: content of the type `application/vnd.plotly.v1+json`.
    """
    layout, traces = one_of(raw, "layout"), one_of(raw, "data")
    found = traces[:_MOST_TRACES] if isinstance(traces, list) else []
    shown = [one for one in found if isinstance(one, Mapping) and one.get("visible") is not False]
    groups: dict[tuple[str, str], list[_Trace]] = {}
    for trace in shown:
        groups.setdefault(_axes_of(trace), []).append(trace)
    axes = [_axes(names, group, layout) for names, group in islice(groups.items(), MOST_AXES)] + [
        Axes()
    ] * (len(groups) - MOST_AXES)
    words = drawn_words(label_text(one_of(layout, "title")), axes)
    frames = one_of(raw, "frames")
    is_moving = isinstance(frames, list) and bool(frames)
    return f"{words}. This is the first of its {len(frames)} frames" if is_moving else words


def _axes_of(trace: _Trace) -> tuple[str, str]:
    """Return the names of a trace's axes; "" for a pie or another kind without axes."""
    kind = _kind(trace)
    if kind in _PIES or kind in _VALUES or (kind not in _BARS and not _has_axes(trace)):
        return ("", "") if kind not in ("candlestick", "ohlc") else ("x", "y")
    names = (trace.get("xaxis", "x"), trace.get("yaxis", "y"))
    return (names[0] if isinstance(names[0], str) else "x")[:10], (
        names[1] if isinstance(names[1], str) else "y"
    )[:10]


def _has_axes(trace: _Trace) -> bool:
    return any(name in trace for name in ("x", "y", "z", "xaxis"))


def _axes(names: tuple[str, str], traces: Sequence[_Trace], layout: object) -> Axes:
    axes = Axes()
    x, y = (one_of(layout, name[:1] + "axis" + name[1:]) if name else None for name in names)
    for trace in traces:
        axes.add("" if axes.is_full else _series(trace))
    axes.title = _title_above(x, y, layout) if names != ("", "") else ""
    seen = traces[:MOST_AXES]
    axes.x = Axis(label_text(one_of(x, "title")), _span(x, seen, "x"))
    axes.y = Axis(label_text(one_of(y, "title")), _span(y, seen, "y"))
    return axes


def _span(axis: object, traces: Sequence[_Trace], name: str) -> str:
    """Return the range that was set for an axis, else that of the drawn values.

    The page stacks bars and counts what is in a bin: how far they reach is not in the JSON.
    """
    ends = one_of(axis, "range")
    if isinstance(ends, list) and len(ends) == 2:
        low, high = ends
        if one_of(axis, "type") == "log":
            low, high = (_power(end) for end in ends)
        words = [place(low), place(high)]
        return " to ".join(words) if all(words) else ""
    if any(_kind(one) in _PILED and name == _value_axis(one) for one in traces):
        return ""
    drawn = (value for trace in traces if name in trace for value in _places(trace, name)[0])
    return span_of(islice(drawn, MOST_POINTS))


def _power(exponent: object) -> float:
    found = number(exponent)
    return 10**found if abs(found) < 300 else nan


def _title_above(x: object, y: object, layout: object) -> str:
    """Return the note above a pair of axes, with which plotly titles each of several."""
    notes = one_of(layout, "annotations")
    if not isinstance(notes, list) or not isinstance(one_of(x, "domain"), list):
        return ""
    left, right = _ends(one_of(x, "domain"))
    top = _ends(one_of(y, "domain"))[1]
    for note in notes[:_MOST_ANNOTATIONS]:
        if one_of(note, "showarrow") is not False or one_of(note, "yref") != "paper":
            continue
        at, height = number(one_of(note, "x")), number(one_of(note, "y"))
        if left <= at <= right and top <= height <= top + _EDGE:
            return label_text(note)
    return ""


def _ends(domain: object) -> tuple[float, float]:
    ends = domain if isinstance(domain, list) and len(domain) == 2 else [0, 1]
    return number(ends[0]), number(ends[1])


def _kind(trace: _Trace) -> str:
    kind = trace.get("type", "scatter")
    return kind[:40] if isinstance(kind, str) else "scatter"


def _series(trace: _Trace) -> str:
    words = _told(trace)
    return f"{words} (hidden)" if trace.get("visible") == "legendonly" else words


def _told(trace: _Trace) -> str:
    kind, name = _kind(trace), label_text(trace.get("name"))
    tell = _TELLERS.get(kind)
    return tell(trace, name) if tell is not None else _other(trace, name)


def _other(trace: _Trace, name: str) -> str:
    kind = _kind(trace)
    value, where = _VALUES.get(kind, ("", ""))
    if value in trace:
        values, count = numbers(trace[value])
        return points_words(named(kind, name), values, items(trace.get(where))[0], count)
    counts = [items(trace[key])[1] for key in _OWN_ARRAYS if key in trace]
    return f"{named(kind, name)} of {max(counts)} points" if counts else named(kind, name)


def _mark(trace: _Trace) -> str:
    fill, mode = trace.get("fill"), trace.get("mode")
    if trace.get("stackgroup") or (isinstance(fill, str) and fill != "none"):
        return "area"
    if not isinstance(mode, str) or "lines" in mode:
        return "line"
    return "scatter" if "markers" in mode else "text"


def _value_axis(trace: _Trace) -> str:
    """Return the axis of the values: y, unless it is horizontal, or only x has numbers."""
    is_binned = _kind(trace) == "histogram"
    if trace.get("orientation") == "h" or ("x" if is_binned else "y") not in trace:
        return "x"
    if is_binned or "x" not in trace or _any_number(_places(trace, "y")[0]):
        return "y"
    return "x" if _any_number(_places(trace, "x")[0]) else "y"


def _pairs(trace: _Trace) -> tuple[list[float], Sequence[object], int]:
    """Return the values, their positions, and how many there are."""
    along = _value_axis(trace)
    drawn, count = _places(trace, along)
    where, _ = _places(trace, "y" if along == "x" else "x")
    return [number(value) for value in drawn], where, count


def _any_number(values: Sequence[object]) -> bool:
    return any(isfinite(number(value)) for value in values)


def _places(trace: _Trace, name: str) -> tuple[Sequence[object], int]:
    """Return the positions of the points on an axis, whose categories may have two levels."""
    found, count = items(trace.get(name))
    if _kind(trace) in _HEAT_MAPS or not (found and all(isinstance(one, list) for one in found)):
        return found, count
    levels = [items(one)[0] for one in found[:3]]
    return [list(one) for one in zip(*levels, strict=False)], min(map(len, levels))


def _points(trace: _Trace, name: str) -> str:
    head = named(_mark(trace), name)
    values, where, count = _pairs(trace)
    drawn, _ = _places(trace, _value_axis(trace))
    if any(one is not None for one in drawn) and not _any_number(values):
        return f"{head} of {count} points"  # dates or categories along both axes
    return points_words(head, values, where, count)


def _bars(trace: _Trace, name: str) -> str:
    head = named(_BARS[_kind(trace)], name)
    values, where, count = _pairs(trace)
    if isinstance(trace.get("base"), list):
        return f"{head} of {count}, each from a start to an end"
    summed = aggregated("sum", where, values)
    if summed is None or len(summed[0]) in (0, len(values)):
        return bar_words(head, values, where, count)
    return f"{bar_words(head, summed[1], summed[0], len(summed[0]))}, each of them a sum"


def _histogram(trace: _Trace, name: str) -> str:
    """Return the words of a histogram; the page computes bins, so numbers give only a range."""
    across = _value_axis(trace)
    along = "y" if across == "x" else "x"
    where, count = items(trace.get(along))
    head = named("histogram", name)
    if where and not _any_number(where):
        how = trace.get("histfunc", "sum" if across in trace else "count")
        values = numbers(trace[across])[0] if across in trace else [nan] * len(where)
        found = aggregated(how, where, values) if isinstance(how, str) else None
        if found is not None and count <= MOST_POINTS:
            return bar_words(named("bars", name), found[1], found[0], len(found[0]))
    span = span_of(where)
    return f"{head} of {count} values: {span}" if span else f"{head}: no point"


def _box(trace: _Trace, name: str) -> str:
    values, where, count = _pairs(trace)
    there = [value for value in values if isfinite(value)]
    words = points_words(named(_kind(trace), name), values, where, count)
    return f"{words}, median {short(median(there))}" if there else words


def _pie(trace: _Trace, _name: str) -> str:
    names = items(trace.get("labels"))[0]
    values = numbers(trace["values"])[0] if "values" in trace else [nan] * len(names)
    how = "sum" if "values" in trace else "count"
    found = aggregated(how, names or list(range(len(values))), values)
    return pie_words(*found) if found is not None else "pie"


def _table(trace: _Trace, name: str) -> str:
    columns, count = items(one_of(trace, "cells", "values"))
    rows = max((len(column) for column in columns if isinstance(column, list)), default=0)
    return f"{named('table', name)} of {rows} rows, {count} columns"


def _indicator(trace: _Trace, name: str) -> str:
    return (
        f"{named('indicator', label_text(trace.get('title')) or name)}: {place(trace.get('value'))}"
    )


def _heat_map(trace: _Trace, _name: str) -> str:
    """Return the words for a table of numbers, with the highest's position if named."""
    values, sizes = _grid(trace.get("z"))
    there = [at for at, value in enumerate(values) if isfinite(value)]
    if not there:
        return heat_map_text((), None, None)
    low, high = (end(there, key=values.__getitem__) for end in (min, max))
    text = heat_map_text(sizes, values[low], values[high])
    x, y = (items(trace.get(name))[0] for name in ("x", "y"))
    row, column = divmod(high, sizes[1])
    if column < len(x) and row < len(y):
        text += f", highest at {place(x[column])}, {place(y[row])}"
    cut = sizes[0] * sizes[1] > len(values)
    return f"{text} (its first {len(values):,} cells)" if cut else text


def _grid(z: object) -> tuple[list[float], tuple[int, int]]:
    """Return the first cells of a table, row by row, and its counts of rows and columns.

    Args:
        z: a list of rows, or plotly's array in base64 with its shape.

    Returns:
        The cells, and both counts, each at least 1.
    """
    rows, count = items(z)
    shape = one_of(z, "shape")
    if isinstance(shape, str):
        width = number(shape[:40].rpartition(",")[2])
        columns = int(width) if width >= 1 else 1
        return [number(value) for value in rows], (max(1, count // columns), columns)
    columns = max((len(row) for row in rows if isinstance(row, list)), default=0) or 1
    values: list[float] = []
    for row in rows:
        cells = row[: MOST_POINTS - len(values)] if isinstance(row, list) else []
        values += [number(value) for value in cells]
        missing = min(columns - len(cells), MOST_POINTS - len(values))
        values += [nan] * missing
        if len(values) == MOST_POINTS:
            break
    return values, (max(1, count), columns)


_TELLERS: Mapping[str, Callable[[_Trace, str], str]] = {
    **dict.fromkeys(("scatter", "scattergl"), _points),
    **dict.fromkeys(_BARS, _bars),
    **dict.fromkeys(_BOXES, _box),
    **dict.fromkeys(_PIES, _pie),
    **dict.fromkeys(_HEAT_MAPS, _heat_map),
    "histogram": _histogram,
    "indicator": _indicator,
    "table": _table,
}
