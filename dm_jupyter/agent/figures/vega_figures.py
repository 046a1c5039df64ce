"""Descriptions in words of Altair, Vega-Lite and Vega figures, from their JSON.

Simple computations of the page are repeated here: sums, means and other aggregates of categories
and dates. Filters, bins and fits are only named, and no extremes are given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from math import isfinite
from typing import Any

from dm_jupyter.agent.figures.drawn import (
    MOST_POINTS,
    Axes,
    Axis,
    aggregated,
    bar_words,
    drawn_words,
    label_text,
    named,
    number,
    one_of,
    pie_words,
    place,
    points_words,
    span_of,
)
from kernel_sandbox.cells.figures import MOST_AXES, heat_map_text

__all__ = ["vega_lite_words", "vega_words"]

_Object = Mapping[str, Any]
_MOST_VIEWS, _MOST_DEPTH, _MOST_NAMES = 40, 8, 200
_MARKS = {
    "bar": "bars", "line": "line", "trail": "line", "point": "scatter", "circle": "scatter",
    "square": "scatter", "arc": "pie", "boxplot": "box", "rect": "heat map",
}  # fmt: skip
_VEGA_MARKS = {"rect": "bars", "symbol": "scatter", "line": "line", "area": "area", "arc": "pie"}
_SPLITTERS = ("color", "fill", "stroke", "shape", "strokeDash", "detail", "xOffset", "yOffset",
              "row", "column", "facet")  # fmt: skip
"""Channels that split one series into several."""
_DATES = {"year": 4, "yearmonth": 7, "yearmonthdate": 10}
"""Map from a time unit to the number of characters of a date that it keeps."""
_ALL = "all rows"
_MOST_ROWS = 40_000
"""Most rows that are read, of all views together."""


@dataclass(frozen=True, slots=True)
class _View:
    """A mark with everything that it inherits."""

    mark: str
    encoding: _Object
    rows: Sequence[object] | None
    """The data; `None` if the figure does not contain them."""
    changes: tuple[str, ...] = ()
    """Names of the transforms that the rows go through before they are drawn."""
    title: str = ""
    most: int = MOST_POINTS
    """Most rows that are read."""


@dataclass(frozen=True, slots=True)
class _Around:
    """The context that a view inherits."""

    datasets: object
    data: object = None
    encoding: _Object = field(default_factory=dict)
    changes: tuple[str, ...] = ()
    title: str = ""


def vega_lite_words(raw: object) -> str:
    """Return title, axes and series of a figure, in the words used for matplotlib.

    Args:
        raw: content of a type such as `application/vnd.vegalite.v5+json`.
    """
    groups = list(islice(_groups(raw, _Around(one_of(raw, "datasets")), 0), _MOST_VIEWS))
    most = min(MOST_POINTS, _MOST_ROWS // max(1, sum(map(len, groups[:MOST_AXES]))))
    axes = [_axes([replace(view, most=most) for view in views]) for views in groups[:MOST_AXES]]
    axes += [Axes()] * (len(groups) - len(axes))
    is_one = len(groups) == 1
    title = label_text(one_of(raw, "title")) or (axes[0].title if is_one else "")
    if is_one:
        axes[0].title = ""
    return drawn_words(title, axes)


def _groups(raw: object, around: _Around, depth: int) -> Iterator[list[_View]]:
    """Yield the groups of views that share their axes."""
    if not isinstance(raw, Mapping) or depth > _MOST_DEPTH:
        return
    around = _inherited(raw, around)
    for name in ("hconcat", "vconcat", "concat"):
        for child in _list(raw.get(name)):
            yield from _groups(child, around, depth + 1)
    inner = raw.get("spec")
    if isinstance(inner, Mapping):
        facet = raw.get("facet")
        if isinstance(facet, Mapping):
            own = {"facet": facet} if "field" in facet else facet
            around = replace(around, encoding={**around.encoding, **own})
        yield from _groups(inner, around, depth + 1)
    elif views := list(islice(_views(raw, around, depth), _MOST_VIEWS)):
        yield views


def _views(raw: _Object, around: _Around, depth: int) -> Iterator[_View]:
    """Yield a mark, or those of the layers."""
    mark = raw.get("mark")
    kind = mark.get("type") if isinstance(mark, Mapping) else mark
    if isinstance(kind, str):
        rows = _rows(around.data, around.datasets)
        yield _View(kind[:40], around.encoding, rows, around.changes, around.title)
    if depth <= _MOST_DEPTH:
        for layer in _list(raw.get("layer")):
            if isinstance(layer, Mapping):
                yield from _views(layer, _inherited(layer, around), depth + 1)


def _inherited(raw: _Object, around: _Around) -> _Around:
    encoding = raw.get("encoding")
    own = encoding if isinstance(encoding, Mapping) else {}
    return replace(
        around,
        data=raw.get("data", around.data),
        encoding={**around.encoding, **own},
        changes=(*around.changes, *map(_change, _list(raw.get("transform"))))[:_MOST_VIEWS],
        title=label_text(raw.get("title")) or around.title,
    )


def _change(transform: object) -> str:
    names = transform if isinstance(transform, Mapping) else {}
    return next((name[:20] for name in names if isinstance(name, str)), "")


def _rows(data: object, datasets: object) -> Sequence[object] | None:
    found = one_of(data, "values")
    if found is None and isinstance(name := one_of(data, "name"), str):
        found = one_of(datasets, name)
    return found if isinstance(found, list) else None


def _list(raw: object) -> list[object]:
    return raw[:_MOST_VIEWS] if isinstance(raw, list) else []


def _axes(views: Sequence[_View]) -> Axes:
    axes = Axes(title=views[0].title)
    for view in views:
        for words in ("",) if axes.is_full else _series(view):
            axes.add(words)
    axes.x, axes.y = (_axis(views, name) for name in ("x", "y"))
    return axes


def _axis(views: Sequence[_View], name: str) -> Axis:
    """Return an axis's label with the range that was set, or else that of the drawn values."""
    for view in views:
        channel = view.encoding.get(name)
        if not isinstance(channel, Mapping) or not (_field(channel) or "aggregate" in channel):
            continue
        ends = one_of(channel, "scale", "domain")
        if isinstance(ends, list) and ends:
            return Axis(_label(channel), span_of(ends))
        is_known = not view.changes and _how(channel) == "" and not _is_piled(view, name)
        return Axis(_label(channel), span_of(_values(view, channel)[0]) if is_known else "")
    return Axis()


def _is_piled(view: _View, name: str) -> bool:
    """Whether the page stacks the values along an axis, so that their range is another."""
    return view.mark in ("bar", "area") and _value_channel(view)[0] == name


def _label(channel: object) -> str:
    for title in (one_of(channel, "axis", "title"), one_of(channel, "title")):
        if text := label_text(title):
            return text
    name, how = _field(channel), _how(channel)
    if how == "count":
        return "count of rows"
    return f"{how} of {name}" if how else name


def _field(channel: object) -> str:
    found = one_of(channel, "field")
    return found[:200].replace("\\", "") if isinstance(found, str) else ""


def _how(channel: object) -> str:
    """Return the name of the computation on a channel's values; "" if there is none."""
    aggregate, unit = one_of(channel, "aggregate"), one_of(channel, "timeUnit")
    unit = one_of(unit, "unit") if isinstance(unit, Mapping) else unit
    if isinstance(aggregate, Mapping):
        return next((str(name)[:20] for name in aggregate), "")
    if one_of(channel, "bin"):
        return "bins"
    return next((found[:40] for found in (aggregate, unit) if isinstance(found, str)), "")


def _values(view: _View, channel: object) -> tuple[list[object], int]:
    """Return the first rows' values along a channel, and how many rows there are."""
    rows, name = view.rows or [], _field(channel)
    found = [_at(row, name) for row in rows[: view.most]]
    unit = _DATES.get(_how(channel))
    if unit is not None:
        found = [value[:unit] if isinstance(value, str) else value for value in found]
    return found, len(rows)


def _at(row: object, name: str) -> object:
    if not isinstance(row, Mapping):
        return row if name == "data" else None
    if name in row or "." not in name:
        return row.get(name)
    return one_of(row, *name.split(".")[:_MOST_DEPTH])


def _value_channel(view: _View) -> tuple[str, str]:
    """Return the channels of the values and of their positions; "" for none."""
    if view.mark == "arc":
        return "theta", "color"
    if view.mark == "rect":
        return "color", ""
    if view.mark == "geoshape":
        return "color", "shape"
    for value, where in (("y", "x"), ("x", "y")):
        channel = view.encoding.get(value)
        if _is_number(channel) and (one_of(channel, "aggregate") or not _is_turned(view, value)):
            return value, where
    return "", ""


def _is_number(channel: object) -> bool:
    if isinstance(one_of(channel, "aggregate"), str):
        return True
    return one_of(channel, "type") == "quantitative" and not one_of(channel, "bin")


def _is_turned(view: _View, value: str) -> bool:
    """Whether the other axis has an aggregate, which is then the value."""
    return value == "y" and bool(one_of(view.encoding, "x", "aggregate"))


def _series(view: _View) -> Iterator[str]:
    kind = _MARKS.get(view.mark, view.mark)
    value, where = _value_channel(view)
    channel, stand = view.encoding.get(value), view.encoding.get(where)
    if view.rows is None:
        if value or view.encoding.get("x") or view.encoding.get("y"):
            yield f"{kind}, whose data are not in the figure"
        return
    if view.changes:
        names = ", ".join(dict.fromkeys(filter(None, view.changes)))
        yield f"{kind} of what is computed first ({names}) from {len(view.rows)} rows"
        return
    if view.mark == "rect":
        yield _heat_map(view, channel)
        return
    values, count = _values(view, channel)
    places, _ = _values(view, stand)
    if not value or _is_beyond(stand):
        binned = next((one for one in (stand, *view.encoding.values()) if _is_beyond(one)), None)
        by = f", drawn by {_label(binned)}" if binned is not None else ""
        yield f"{kind} of {count} rows{by}"
        return
    yield from _split(view, kind, channel, (values, places, count))


def _is_beyond(channel: object) -> bool:
    """Whether the page combines the rows in a way that is not computed here."""
    how = _how(channel)
    return bool(how) and how not in _DATES and not isinstance(one_of(channel, "aggregate"), str)


def _split(
    view: _View, kind: str, channel: object, drawn: tuple[list[object], list[object], int]
) -> Iterator[str]:
    """Yield the words of each series."""
    values, places, count = drawn
    groups: dict[str, list[int]] = {}
    for at, name in enumerate(_names(view, len(values))):
        groups.setdefault(name, []).append(at)
    is_one = len(groups) <= 1
    for name, members in islice(groups.items(), _MOST_NAMES):
        head = named(kind, "" if name == _ALL else name)
        some = [number(values[at]) for at in members], [places[at] for at in members]
        yield _told(view, head, channel, some, count if is_one else len(members))
    if not groups:
        yield f"{kind}: no point"


def _names(view: _View, count: int) -> Iterator[str]:
    """Yield the name of the series that each row belongs to."""
    channels = [
        view.encoding[name]
        for name in _SPLITTERS
        if name in view.encoding and name not in _value_channel(view)
    ]
    split = [
        _values(view, one)[0]
        for one in channels
        if _field(one) and one_of(one, "type") in ("nominal", "ordinal", None)
    ]
    if not split:
        yield from [_ALL] * count
        return
    for parts in zip(*split, strict=False):
        yield " / ".join(dict.fromkeys(map(place, parts)))


def _told(
    view: _View,
    head: str,
    channel: object,
    drawn: tuple[list[float], list[object]],
    count: int,
) -> str:
    values, places = drawn
    how = _how(channel) or ("sum" if view.mark in ("bar", "arc", "area") else "")
    found = aggregated(how, places, values) if how else None
    is_same = found is None or len(found[0]) == len(values)
    if _how(channel) and found is None:
        return f"{head}: {_label(channel)}, of {count} rows"
    if view.mark == "arc" and found is not None:
        return pie_words(*found)
    if found is None or (is_same and not _how(channel)):
        tell = bar_words if view.mark == "bar" else points_words
        return tell(head, values, places, count)
    tell = bar_words if view.mark == "bar" else points_words
    words = tell(head, found[1], found[0], len(found[0]))
    rows = f"{count} rows" if count <= view.most else f"the first {view.most:,} rows"
    return f"{words}, each the {how} of its part of {rows}"


def _heat_map(view: _View, channel: object) -> str:
    """Return the words for the cells of x and y, with the position of the highest."""
    x, y = (_values(view, view.encoding.get(name))[0] for name in ("x", "y"))
    if channel is None or any(_is_beyond(view.encoding.get(name)) for name in ("x", "y")):
        return f"heat map of {len(view.rows or [])} rows"
    values = [number(value) for value in _values(view, channel)[0]]
    places = [[place(one), place(other)] for one, other in zip(x, y, strict=False)]
    found = aggregated(_how(channel) or "max", places, values)
    there = [(value, where) for where, value in zip(*found, strict=False)] if found else []
    there = [one for one in there if isfinite(one[0])]
    shape = (len(set(map(place, y))), len(set(map(place, x))))
    if not there:
        return heat_map_text((), None, None)
    low, high = (end(there, key=lambda one: one[0]) for end in (min, max))
    where = ", ".join(high[1]) if isinstance(high[1], list) else ""
    return f"{heat_map_text(shape, low[0], high[0])}, highest at {where}"


def vega_words(raw: object) -> str:
    """Return the title, the labels and the marks of a figure, with their rows.

    Args:
        raw: content of a type such as `application/vnd.vega.v5+json`, to which Vega-Lite compiles.
    """
    tables = {
        name: one
        for one in _list(one_of(raw, "data"))
        if isinstance(name := one_of(one, "name"), str)
    }
    axes = Axes()
    labels = {
        "x" if one_of(one, "orient") in ("top", "bottom") else "y": label_text(one_of(one, "title"))
        for one in _list(one_of(raw, "axes"))
        if one_of(one, "title")
    }
    axes.x, axes.y = Axis(labels.get("x", "")), Axis(labels.get("y", ""))
    for mark in _list(one_of(raw, "marks")):
        axes.add(_mark(mark, tables))
    return drawn_words(label_text(one_of(raw, "title")), [axes] if axes.count else [])


def _mark(mark: object, tables: Mapping[str, object]) -> str:
    kind = one_of(mark, "type")
    head = _VEGA_MARKS.get(kind, kind)[:40] if isinstance(kind, str) else "mark"
    table = tables.get(name) if isinstance(name := one_of(mark, "from", "data"), str) else None
    rows = one_of(table, "values")
    if not isinstance(rows, list):
        return head
    if one_of(table, "transform"):
        return f"{head} of what is computed first from {len(rows)} rows"
    view = _View(head, {}, rows)
    x, y = (_drawn(mark, name) for name in ("x", "y"))
    values = [number(value) for value in _values(view, y)[0]]
    if not any(map(isfinite, values)):
        return f"{head} of {len(rows)} rows"
    return points_words(head, values, _values(view, x)[0], len(rows))


def _drawn(mark: object, channel: str) -> object:
    """Return the channel of a mark that is drawn from a field of its rows, or `None`."""
    for state in ("update", "enter"):
        found = one_of(mark, "encode", state, channel)
        if _field(found):
            return found
    return None
