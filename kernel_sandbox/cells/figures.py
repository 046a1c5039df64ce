"""Descriptions of figures in words, beside the picture, for readers of text alone.

A restricted kernel imports this module. Any other kernel runs it as source, so that it imports
nothing of ours. It does not load matplotlib: IPython calls it once a figure is shown. Figures that
come as JSON are described in the same words, outside of the kernel.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

__all__ = [
    "MOST_AXES",
    "MOST_SERIES",
    "axes_text",
    "axis_text",
    "categories_text",
    "describe_figure",
    "figure_text",
    "heat_map_text",
    "pie_text",
    "quoted",
    "series_text",
    "short",
    "tell_figures",
]

MOST_AXES, MOST_SERIES = 4, 6
_NAME_CHARS, _MOST_CHARS, _MOST_WORDS = 60, 1_200, 8
_Extreme = tuple[float, str]
"""A value and its position; the position is empty for an only value."""


def tell_figures(formatter: Any) -> None:
    """Make IPython show a description instead of a figure's `repr`, beside its picture.

    A formatter of the type would not do: matplotlib's own backend removes those.

    Args:
        formatter: IPython's `DisplayFormatter`.
    """
    formatted = formatter.format

    def with_words(shown: object, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        data, metadata = formatted(shown, *args, **kwargs)
        is_figure = type(shown).__module__ == "matplotlib.figure" and hasattr(shown, "axes")
        if is_figure and any(kind.startswith("image/") for kind in data):
            with suppress(Exception):  # whatever a person has done to it
                data["text/plain"] = describe_figure(shown)
        return data, metadata

    formatter.format = with_words


def describe_figure(figure: Any) -> str:
    """Return the title, the axes with labels and ranges, and each series with its extremes.

    Args:
        figure: a figure of matplotlib.
    """
    title = figure.get_suptitle() if hasattr(figure, "get_suptitle") else ""
    axes = [one for one in figure.axes if one.get_label() != "<colorbar>"]
    return figure_text(title, [_axes_text(one) for one in axes[:MOST_AXES]], len(axes))


def figure_text(title: object, axes: Sequence[str], count: int) -> str:
    """Return the description of a figure.

    Args:
        title: its title; may be empty.
        axes: the descriptions of its first axes.
        count: the number of its axes.
    """
    parts = [*axes, f"and {count - len(axes)} more axes"] if count > len(axes) else list(axes)
    head = f"Figure {quoted(title)}" if title else "Figure"
    return f"{head}: {'. Next: '.join(parts) or 'nothing is drawn in it'}"[:_MOST_CHARS]


def axes_text(title: object, labels: Sequence[str], series: Sequence[str], count: int) -> str:
    """Return the description of one pair of axes.

    Args:
        title: the title above it; may be empty.
        labels: what `axis_text` returned.
        series: the descriptions of its first series.
        count: the number of its series.
    """
    shown = [*series, f"and {count - len(series)} more"] if count > len(series) else series
    drawn = "; ".join(shown) or "nothing is drawn in it"
    return "; ".join([*filter(None, (quoted(title), *labels)), drawn])


def axis_text(name: str, label: object, span: str) -> str:
    """Return the description of an axis; empty if it has neither label nor range."""
    head = f"{name} {quoted(label)}".strip()
    return f"{head}: {span}" if span else head if label else ""


def categories_text(words: Sequence[str]) -> str:
    """Return the range of an axis whose ticks are words."""
    more = ", …" if len(words) > _MOST_WORDS else ""
    return f"{len(words)} ticks ({', '.join(words[:_MOST_WORDS])}{more})"


def series_text(
    head: str, count: str, lowest: _Extreme | None, highest: _Extreme | None, missing: int = 0
) -> str:
    """Return the description of a series.

    Args:
        head: its kind, and its name if it has one.
        count: how many values it has.
        lowest: `None` for a series without any value.
        highest: as `lowest`.
        missing: how many values are missing.
    """
    if lowest is None or highest is None:
        return f"{head}: all {missing} values are missing" if missing else f"{head}: no point"
    ends = [
        f"{name} {short(value)} at {place}" if place else f"{name} {short(value)}"
        for name, (value, place) in (("lowest", lowest), ("highest", highest))
    ]
    text = f"{head} of {count}: {', '.join(ends)}"
    return f"{text}, {missing} missing" if missing else text


def heat_map_text(shape: Sequence[int], lowest: float | None, highest: float | None) -> str:
    """Return the description of a heat map; both extremes are `None` if it has no value."""
    if lowest is None or highest is None:
        return "heat map: all values are missing"
    return f"heat map of {' x '.join(map(str, shape))}: {short(lowest)} to {short(highest)}"


def pie_text(shares: Sequence[tuple[str, float]], count: int) -> str:
    """Return the description of a pie.

    Args:
        shares: names of its first wedges and their shares, in percent.
        count: the number of its wedges.
    """
    told = (f"{name} {share:.1f} %".strip() for name, share in shares[:_MOST_WORDS])
    return f"pie of {count}: {', '.join(told)}"


def _axes_text(axes: Any) -> str:
    series = list(_series(axes))
    labels = [_axis_text(axes.xaxis, "x"), _axis_text(axes.yaxis, "y")]
    return axes_text(axes.get_title(), labels, series[:MOST_SERIES], len(series))


def _axis_text(axis: Any, name: str) -> str:
    """Return the axis's label and range, in words if it has categories; empty without ticks."""
    words = _categories(axis)
    if words:
        span = categories_text(words)
    else:
        low, high = (_end(axis, end) for end in axis.get_view_interval())
        # The ends are not values: a small model mistook the upper one for the highest bar.
        span = f"axis from {low} to {high}" if low and high else ""
    return axis_text(name, axis.get_label_text(), span)


def _end(axis: Any, value: float) -> str:
    formatter = axis.get_major_formatter()
    if type(formatter).__name__ == "ScalarFormatter":
        return short(value)
    return str(formatter.format_data_short(value)).strip().replace("\N{MINUS SIGN}", "-")


def _categories(axis: Any) -> list[str]:
    """Return the words below the ticks, or nothing if they are numbers."""
    words = [" ".join(tick.get_text().split())[:_NAME_CHARS] for tick in axis.get_ticklabels()]
    words = [word for word in words if word]
    return words if words and not any(map(_is_number, words)) else []


def _is_number(text: str) -> bool:
    try:
        float(text.replace("\N{MINUS SIGN}", "-").replace(",", ""))
    except ValueError:
        return False
    return True


def _series(axes: Any) -> Iterator[str]:
    bars = [one for one in axes.containers if getattr(one, "patches", None)]
    boxes, of_boxes = _boxes(axes)
    yield from boxes
    for line in axes.lines:
        if line in of_boxes or (boxes and not _values(line.get_ydata(orig=False))[1]):
            continue
        # seaborn draws a line for each error that it has not computed.
        if not bars or _values(line.get_ydata(orig=False))[1]:
            yield _points(axes, "line", line, line.get_xdata(orig=True), line.get_ydata(orig=False))
    for one in bars:
        yield _bars(axes, one)
    for drawn in axes.collections:
        if type(drawn).__name__ == "PathCollection":
            offsets = drawn.get_offsets()
            yield _points(axes, "scatter", drawn, offsets[:, 0], offsets[:, 1])
        elif type(drawn).__name__ == "QuadMesh":
            yield _heat_map(drawn)
    for image in axes.images:
        yield _heat_map(image)
    wedges = [patch for patch in axes.patches if type(patch).__name__ == "Wedge"]
    if wedges:
        yield _pie(wedges)


def _points(axes: Any, kind: str, drawn: Any, x: Any, y: Any) -> str:
    head = f"{kind} {quoted(_name(drawn))}".strip()
    values, there = _values(y)
    missing = len(values) - there
    if not there:
        return series_text(head, "", None, None, missing)
    low, high = int(_numpy().nanargmin(values)), int(_numpy().nanargmax(values))
    lowest, highest = ((values[end], _place(axes, x[end])) for end in (low, high))
    return series_text(head, f"{there} points", lowest, highest, missing)


def _boxes(axes: Any) -> tuple[list[str], set[Any]]:
    """Return the boxes of a box plot, and their lines, which mean nothing alone."""
    told: list[str] = []
    used: set[Any] = set()
    for is_flat in (False, True):
        at: dict[float, list[Any]] = {}
        for line in axes.lines:
            place, _ = _box_line(line, is_flat)
            if place is not None:
                at.setdefault(round(place, 6), []).append(line)
        for place, lines in at.items():
            if box := _box(lines, is_flat):
                told.append(f"box {quoted(_tick(axes, place, is_flat))}".strip() + f": {box}")
                used.update(lines)
    return told, used


def _box_line(line: Any, is_flat: bool) -> tuple[float | None, Any]:
    """Return the centre position of a line, if it may belong to a box, and its values."""
    places, there = _values(line.get_ydata(orig=False) if is_flat else line.get_xdata(orig=False))
    values, known = _values(line.get_xdata(orig=False) if is_flat else line.get_ydata(orig=False))
    is_short = len(places) in (2, 5) or len(set(places)) == 1
    if not there or there != len(places) or known != there or not is_short:
        return None, values
    return float((min(places) + max(places)) / 2), values


def _box(lines: Sequence[Any], is_flat: bool) -> str:
    """Return the box of the lines around one position; empty if they form none."""
    whiskers, across, beside = list[list[float]](), list[float](), list[float]()
    for line in lines:
        places = line.get_ydata(orig=False) if is_flat else line.get_xdata(orig=False)
        values = [float(one) for one in _box_line(line, is_flat)[1]]
        is_line = len(values) == 2 and str(line.get_linestyle()) != "None"
        if is_line and places[0] == places[1]:
            whiskers.append(sorted(values))
        elif is_line and values[0] == values[1]:
            across.append(values[0])
        elif len(values) != 5 or values[0] != values[4]:
            beside = values  # means are drawn before the points beyond
    if len(whiskers) != 2 or not across:
        return ""
    (low, first), (third, high) = sorted(whiskers)
    median = sorted(across)[len(across) // 2]
    if not first <= median <= third:
        return ""
    ends = f"middle half {short(first)} to {short(third)}, whiskers {short(low)} to {short(high)}"
    beyond = sum(not low <= value <= high for value in beside)
    points = f", {beyond} point{'s' if beyond > 1 else ''} beyond" if beyond else ""
    return f"median {short(median)}, {ends}{points}"


def _tick(axes: Any, place: float, is_flat: bool) -> str:
    """Return the words below a position; empty if they only number the boxes."""
    axis = axes.yaxis if is_flat else axes.xaxis
    named = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=False)
    text = next((one.get_text() for at, one in named if math.isclose(at, place)), "")
    return "" if text == short(place) else text


def _bars(axes: Any, bars: Any) -> str:
    is_flat = getattr(bars, "orientation", "vertical") == "horizontal"
    sizes = [one.get_width() if is_flat else one.get_height() for one in bars.patches]
    words = _categories(axes.yaxis if is_flat else axes.xaxis)
    names = words if len(words) == len(sizes) else [_middle(one, is_flat) for one in bars.patches]
    head = f"bars {quoted(_name(bars))}".strip()
    pairs = zip(map(float, sizes), names, strict=True)
    told = [(size, name) for size, name in pairs if math.isfinite(size)]
    if not told:
        return series_text(head, "", None, None, len(sizes))
    return series_text(head, str(len(sizes)), min(told), max(told))


def _middle(bar: Any, is_flat: bool) -> str:
    if is_flat:
        return short(bar.get_y() + bar.get_height() / 2)
    return short(bar.get_x() + bar.get_width() / 2)


def _heat_map(drawn: Any) -> str:
    array = drawn.get_array()
    values, there = _values(array.ravel())
    if not there:
        return heat_map_text((), None, None)
    low, high = _numpy().nanmin(values), _numpy().nanmax(values)
    return heat_map_text(array.shape[:2], low, high)


def _pie(wedges: list[Any]) -> str:
    shares = [(_name(one), (one.theta2 - one.theta1) / 3.6) for one in wedges]
    return pie_text(shares, len(wedges))


def _name(drawn: Any) -> str:
    label = str(drawn.get_label() or "")
    return "" if label.startswith("_") else label


def quoted(text: object) -> str:
    """Return a name on one line and in quotes, or nothing for an empty name."""
    words = " ".join(str(text).split())[:_NAME_CHARS]
    return f"'{words}'" if words else ""


def short(value: Any) -> str:
    """Return a number in few characters."""
    value = float(value)
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"


def _place(axes: Any, value: Any) -> str:
    """Return a point's position; pandas numbers the days of a series, and its axis names them."""
    frequency = getattr(axes, "freq", None)
    if frequency is not None and not hasattr(value, "isoformat"):
        pandas = sys.modules["pandas"]
        ordinal = getattr(value, "ordinal", value)
        return str(pandas.Period(ordinal=int(ordinal), freq=frequency))
    if hasattr(value, "isoformat") or "datetime" in str(getattr(value, "dtype", "")):
        return str(value)[:10]
    try:
        return short(value)
    except (TypeError, ValueError):
        return str(value)[:_NAME_CHARS]


def _values(values: Any) -> tuple[Any, int]:
    """Return the values, nan where masked or not a number, and how many are finite."""
    numpy = _numpy()
    array = numpy.ma.filled(numpy.ma.asarray(values, dtype=float), numpy.nan)
    return array, int(numpy.isfinite(array).sum())


def _numpy() -> Any:
    return sys.modules["numpy"]  # matplotlib has loaded it
