"""What a figure shows, in words: put beside its picture, for whoever reads text alone.

A restricted kernel imports this; in any other it is run as source, so that it imports nothing of
ours. matplotlib is not loaded by it: IPython calls it once a figure is shown.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

__all__ = ["describe_figure", "tell_figures"]

_MOST_AXES, _MOST_SERIES = 4, 6
_NAME_CHARS, _MOST_CHARS = 60, 1_200


def tell_figures(formatter: Any) -> None:
    """Has IPython put the words in place of a figure's `repr`, beside its picture.

    Not by a formatter of the type: matplotlib's own backend takes those away.

    Args:
        formatter: IPython's `DisplayFormatter`.
    """
    formatted = formatter.format

    def with_words(shown: object, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        data, metadata = formatted(shown, *args, **kwargs)
        is_figure = type(shown).__module__ == "matplotlib.figure" and hasattr(shown, "axes")
        if is_figure and any(kind.startswith("image/") for kind in data):
            with suppress(Exception):  # whatever a person has made of it
                data["text/plain"] = describe_figure(shown)
        return data, metadata

    formatter.format = with_words


def describe_figure(figure: Any) -> str:
    """Returns title, axes with their labels and ranges, and each series with its extremes.

    Args:
        figure: of matplotlib.
    """
    title = figure.get_suptitle() if hasattr(figure, "get_suptitle") else ""
    axes = [one for one in figure.axes if one.get_label() != "<colorbar>"]
    parts = [_axes_text(one) for one in axes[:_MOST_AXES]]
    if len(axes) > _MOST_AXES:
        parts.append(f"and {len(axes) - _MOST_AXES} more axes")
    head = f"Figure {_quoted(title)}" if title else "Figure"
    return f"{head}: {'. Next: '.join(parts) or 'nothing is drawn in it'}"[:_MOST_CHARS]


def _axes_text(axes: Any) -> str:
    series = list(_series(axes))
    more = len(series) - _MOST_SERIES
    shown = series[:_MOST_SERIES] + ([f"and {more} more"] if more > 0 else [])
    title = _quoted(axes.get_title())
    parts = [title, _axis_text(axes.xaxis, "x"), _axis_text(axes.yaxis, "y")]
    drawn = "; ".join(shown) or "nothing is drawn in it"
    return "; ".join([*filter(None, parts), drawn])


def _axis_text(axis: Any, name: str) -> str:
    """The axis's label, and its range: in words where it has categories; empty without ticks."""
    words = _categories(axis)
    if words:
        span = f"{len(words)} ticks ({', '.join(words[:8])}{', …' if len(words) > 8 else ''})"
    else:
        ends = [
            axis.get_major_formatter().format_data_short(end) for end in axis.get_view_interval()
        ]
        low, high = (end.strip().replace("\N{MINUS SIGN}", "-") for end in ends)
        span = f"{low} to {high}" if low and high else ""
    label = _quoted(axis.get_label_text())
    return f"{name} {label}: {span}".replace(" :", ":") if span or label else ""


def _categories(axis: Any) -> list[str]:
    """The words below the ticks; none where they are numbers."""
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
    for line in axes.lines:
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
    head = f"{kind} {_quoted(_name(drawn))}".strip()
    values, there = _values(y)
    missing = len(values) - there
    if not there:
        return f"{head}: all {missing} values are missing" if missing else f"{head}: no point"
    low, high = int(_numpy().nanargmin(values)), int(_numpy().nanargmax(values))
    text = f"{head} of {there} points: lowest {_short(values[low])} at {_place(axes, x[low])}, "
    text += f"highest {_short(values[high])} at {_place(axes, x[high])}"
    return f"{text}, {missing} missing" if missing else text


def _bars(axes: Any, bars: Any) -> str:
    is_flat = getattr(bars, "orientation", "vertical") == "horizontal"
    sizes = [one.get_width() if is_flat else one.get_height() for one in bars.patches]
    words = _categories(axes.yaxis if is_flat else axes.xaxis)
    names = words if len(words) == len(sizes) else [_middle(one, is_flat) for one in bars.patches]
    head = f"bars {_quoted(_name(bars))}".strip()
    pairs = zip(map(float, sizes), names, strict=True)
    told = [(size, name) for size, name in pairs if math.isfinite(size)]
    if not told:
        return f"{head}: all {len(sizes)} values are missing"
    low, high = min(told), max(told)
    text = f"{head} of {len(sizes)}: lowest {_short(low[0])} at {low[1]}, "
    return f"{text}highest {_short(high[0])} at {high[1]}"


def _middle(bar: Any, is_flat: bool) -> str:
    if is_flat:
        return _short(bar.get_y() + bar.get_height() / 2)
    return _short(bar.get_x() + bar.get_width() / 2)


def _heat_map(drawn: Any) -> str:
    array = drawn.get_array()
    values, there = _values(array.ravel())
    if not there:
        return "heat map: all values are missing"
    shape = " x ".join(map(str, array.shape[:2]))
    low, high = _numpy().nanmin(values), _numpy().nanmax(values)
    return f"heat map of {shape}: {_short(low)} to {_short(high)}"


def _pie(wedges: list[Any]) -> str:
    shares = (f"{_name(one)} {(one.theta2 - one.theta1) / 3.6:.1f} %".strip() for one in wedges[:8])
    return f"pie of {len(wedges)}: {', '.join(shares)}"


def _name(drawn: Any) -> str:
    label = str(drawn.get_label() or "")
    return "" if label.startswith("_") else label


def _quoted(text: object) -> str:
    words = " ".join(str(text).split())[:_NAME_CHARS]
    return f"'{words}'" if words else ""


def _short(value: Any) -> str:
    value = float(value)
    return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def _place(axes: Any, value: Any) -> str:
    """Where a point stands; pandas numbers the days of a series, which its axis knows to name."""
    frequency = getattr(axes, "freq", None)
    if frequency is not None and not hasattr(value, "isoformat"):
        pandas = sys.modules["pandas"]
        ordinal = getattr(value, "ordinal", value)
        return str(pandas.Period(ordinal=int(ordinal), freq=frequency))
    if hasattr(value, "isoformat") or "datetime" in str(getattr(value, "dtype", "")):
        return str(value)[:10]
    try:
        return _short(value)
    except (TypeError, ValueError):
        return str(value)[:_NAME_CHARS]


def _values(values: Any) -> tuple[Any, int]:
    """The numbers, those that are masked or no numbers as nan, and how many there are."""
    numpy = _numpy()
    array = numpy.ma.filled(numpy.ma.asarray(values, dtype=float), numpy.nan)
    return array, int(numpy.isfinite(array).sum())


def _numpy() -> Any:
    return sys.modules["numpy"]  # matplotlib has loaded it
