"""The plots of the page, and their axes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from markupsafe import Markup

from training.records.failures import Failure
from training.report.figures import Figures, ShownShare
from training.report.svg import add, cut, drawing, to_markup
from training.report.tables import merged_groups

__all__ = [
    "Legend",
    "LogScale",
    "Plot",
    "ShareScale",
    "accuracy_plot",
    "failure_plot",
    "pass_plot",
    "token_plot",
]

Legend = tuple[tuple[str, str], ...]
"""Class of each colour, and its meaning."""
COLOURS = 9
_WIDTH = 760
_LABELS = 210
"""Width of the labels on the left."""
_RIGHT = 24
_AXIS = 26
"""Height of the axis at the bottom."""
_LABEL_CHARS = 26
_KINDS = [kind.value for kind in Failure]


@dataclass(frozen=True, slots=True)
class Plot:
    """A drawing with its title and its legend."""

    title: str
    svg: Markup
    legend: Legend = ()


def accuracy_plot(runs: Sequence[Figures]) -> Plot:
    """Return correct answers by group: a dot for the share, a bar for its 95 % interval."""
    rows = list(_group_rows(runs))
    pitch = 12 * len(runs) + 12
    height = pitch * len(rows) + _group_gaps(rows)
    title = "Right answers by group, by the benchmark's rules, with 95 % intervals"
    svg = drawing(title, _WIDTH, height + _AXIS)
    scale = _share_scale()
    _share_axis(svg, scale, 0, height)
    y = 0.0
    for label, group, shares in rows:
        y += _heading(svg, y, group)
        _row_label(svg, label, y + pitch / 2)
        for place, share in enumerate(shares):
            if share:
                _interval(svg, scale, y + 12 + 12 * place, (share, place, runs[place].name))
        y += pitch
    return Plot(title, to_markup(svg), _run_legend(runs))


def failure_plot(runs: Sequence[Figures]) -> Plot:
    """Return failures by kind, stacked: each run in total and by level if it has several levels."""
    rows = list(_failure_rows(runs))
    kinds = sorted({kind for _, _, counts in rows for kind in counts}, key=_kind_place)
    pitch = 26
    title = "Failures by kind, as shares of the tries; what is left blank is right"
    svg = drawing(title, _WIDTH, pitch * len(rows) + _AXIS)
    scale = _share_scale()
    _share_axis(svg, scale, 0, pitch * len(rows))
    for number, (label, tries, counts) in enumerate(rows):
        _row_label(svg, f"{label} ({tries})", number * pitch + pitch / 2)
        _stack(svg, scale, number * pitch, _segments(kinds, counts, tries))
    legend = tuple((_colour(kind), kind) for kind in kinds)
    return Plot(title, to_markup(svg), legend)


def token_plot(runs: Sequence[Figures]) -> Plot:
    """Return the tokens sampled by correct and by wrong attempts."""
    rows = list(_token_rows(runs))
    every = [count for _, _, counts in rows for count in counts]
    pitch = 34
    height = pitch * len(rows)
    title = "Tokens sampled by right and by wrong tries; a bar marks the median"
    svg = drawing(title, _WIDTH, height + _AXIS)
    scale = LogScale(_LABELS, _WIDTH - _LABELS - _RIGHT, min(every), max(every))
    for tick in scale.ticks():
        x = scale.place(tick)
        add(svg, "line", css="grid", x1=x, x2=x, y1=0, y2=height)
        add(svg, "text", f"{tick:,}", css="tick", x=x, y=height + 16, text_anchor="middle")
    for number, (label, css, counts) in enumerate(rows):
        middle = number * pitch + pitch / 2
        _row_label(svg, f"{label} ({len(counts)})", middle)
        _dots(svg, scale.place, middle, (css, counts))
    return Plot(title, to_markup(svg))


def pass_plot(runs: Sequence[Figures]) -> Plot | None:
    """Return pass@k over k; `None` if no run has several attempts at each question."""
    lines = [(place, run.passes("strict")) for place, run in enumerate(runs)]
    lines = [(place, passes) for place, passes in lines if passes]
    if not lines:
        return None
    title = "pass@k: the chance that one of k tries is right, by the benchmark's rules"
    height = 240.0
    svg = drawing(title, _WIDTH, height + 2 * _AXIS)
    ks = sorted({k for _, passes in lines for k in passes})
    scale = LogScale(60, _WIDTH - 120, ks[0], ks[-1])
    for quarter in range(5):
        y = _height_of(quarter / 4, height)
        add(svg, "line", css="grid", x1=60, x2=_WIDTH - 60, y1=y, y2=y)
        add(svg, "text", f"{25 * quarter} %", css="tick", x=52, y=y + 4, text_anchor="end")
    for k in ks:
        x = scale.place(k)
        add(svg, "text", f"k = {k}", css="tick", x=x, y=height + 28, text_anchor="middle")
    for place, passes in lines:
        points = [(scale.place(k), _height_of(one.share, height)) for k, one in passes.items()]
        _line(svg, points, f"c{place % COLOURS}")
    return Plot(title, to_markup(svg), _run_legend(runs))


def _share_scale() -> ShareScale:
    return ShareScale(_LABELS, _WIDTH - _LABELS - _RIGHT)


def _run_legend(runs: Sequence[Figures]) -> Legend:
    if len(runs) == 1:
        return ()
    return tuple((f"c{place % COLOURS}", run.name) for place, run in enumerate(runs))


def _row_label(svg: Element, words: str, y: float) -> None:
    label = add(
        svg, "text", cut(words, _LABEL_CHARS), css="label", x=_LABELS - 12, y=y + 4,
        text_anchor="end",
    )  # fmt: skip
    if len(words) > _LABEL_CHARS:
        add(label, "title", words)


def _group_rows(runs: Sequence[Figures]) -> Iterator[tuple[str, str, list[ShownShare | None]]]:
    """Yield a row for all, then one for each value of a group; a group's first row names it."""
    yield "all", "", [run.right("strict") for run in runs]
    for name, values in merged_groups(runs).items():
        for place, value in enumerate(values):
            shares = [run.group_right(name, value, "strict") for run in runs]
            yield value, name if place == 0 else "", shares


def _group_gaps(rows: Sequence[tuple[str, str, Sequence[ShownShare | None]]]) -> float:
    return 24.0 * sum(bool(group) for _, group, _ in rows)


def _heading(svg: Element, y: float, group: str) -> float:
    """Draw the name of a group and return its height."""
    if not group:
        return 0.0
    add(svg, "text", f"by {group}", css="group", x=0, y=y + 18)
    return 24.0


def _interval(
    svg: Element, scale: ShareScale, y: float, share_of: tuple[ShownShare, int, str]
) -> None:
    share, place, name = share_of
    mark = add(svg, "g", css=f"c{place % COLOURS}")
    said = f"{name}: {share.share:.1%} ({share.low:.0%} to {share.high:.0%})"
    add(mark, "title", said)
    low, high = scale.place(share.low), scale.place(share.high)
    add(mark, "line", css="interval", x1=low, x2=high, y1=y, y2=y)
    for end in (low, high):
        add(mark, "line", css="interval", x1=end, x2=end, y1=y - 3, y2=y + 3)
    add(mark, "circle", css="dot", cx=scale.place(share.share), cy=y, r=4.5)


def _failure_rows(runs: Sequence[Figures]) -> Iterator[tuple[str, int, Mapping[str, int]]]:
    """Yield the label, the number of attempts, and the failures among them."""
    for run in runs:
        prefix = f"{run.name}: " if len(runs) > 1 else ""
        yield f"{prefix}all", run.tries, run.failures
        levels = run.group_failures("level")
        if len(levels) > 1:
            for level, (tries, counts) in levels.items():
                yield f"{prefix}{level}", tries, counts


def _segments(
    kinds: Sequence[str], counts: Mapping[str, int], tries: int
) -> Iterator[tuple[str, int, float]]:
    """Return the kind, count and share of each failure that occurs."""
    return ((kind, counts[kind], counts[kind] / tries) for kind in kinds if counts.get(kind))


def _stack(
    svg: Element, scale: ShareScale, y: float, segments: Iterator[tuple[str, int, float]]
) -> None:
    start = 0.0
    for kind, count, share in segments:
        left, right = scale.place(start), scale.place(start + share)
        mark = add(svg, "g", css=_colour(kind))
        add(mark, "title", f"{kind}: {count} ({share:.1%})")
        width = max(right - left - 1, 1)
        add(mark, "rect", css="bar", x=left, y=y + 4, width=width, height=18)
        if width > 18:
            middle = (left + right) / 2
            add(mark, "text", str(count), css="on", x=middle, y=y + 17, text_anchor="middle")
        start += share


def _kind_place(kind: str) -> tuple[int, str]:
    return _KINDS.index(kind) if kind in _KINDS else len(_KINDS), kind


def _colour(kind: str) -> str:
    """Return the class of a failure's colour, the same on every page."""
    place = _KINDS.index(kind) if kind in _KINDS else sum(kind.encode())
    return f"c{place % COLOURS}"


def _token_rows(runs: Sequence[Figures]) -> Iterator[tuple[str, str, list[int]]]:
    """Yield label, colour and token counts of each run's correct attempts and of its wrong ones."""
    for run in runs:
        prefix = f"{run.name}: " if len(runs) > 1 else ""
        for is_right, words in ((True, "right"), (False, "wrong")):
            counts = [one.tokens for one in run.records if one.strict_correct is is_right]
            if counts:
                yield prefix + words, words, counts


def _dots(
    svg: Element,
    place: Callable[[float], float],
    middle: float,
    marks: tuple[str, list[int]],
) -> None:
    """Draw a dot for each count, spread over the row by number to keep equal counts visible."""
    css, counts = marks
    group = add(svg, "g", css=css)
    for number, count in enumerate(counts):
        offset = (number * 0.618034 % 1 - 0.5) * 20
        add(group, "circle", css="speck", cx=place(count), cy=middle + offset, r=3)
    x = place(statistics.median(counts))
    median = add(group, "line", css="median", x1=x, x2=x, y1=middle - 14, y2=middle + 14)
    add(median, "title", f"median {statistics.median(counts):,.0f} tokens")


def _height_of(share: float, height: float) -> float:
    return 10 + height * (1 - share)


def _line(svg: Element, points: Sequence[tuple[float, float]], css: str) -> None:
    group = add(svg, "g", css=css)
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    add(group, "polyline", css="curve", points=path)
    for x, y in points:
        add(group, "circle", css="dot", cx=x, cy=y, r=4.5)


@dataclass(frozen=True, slots=True)
class ShareScale:
    """A linear scale for shares between 0 and 1, from left to right."""

    left: float
    width: float

    def place(self, share: float) -> float:
        """Return the x coordinate of a share, in pixels."""
        return self.left + self.width * share


@dataclass(frozen=True, slots=True)
class LogScale:
    """A logarithmic scale for counts, from left to right: each doubling is equally wide."""

    left: float
    width: float
    low: float
    """The smallest count; the scale starts at 1 or above."""
    high: float
    """The largest count."""

    def place(self, count: float) -> float:
        """Return the x coordinate of a count, in pixels; counts below 1 are at 1."""
        low, high = self._ends()
        inside = min(max(count, low), high)
        return self.left + self.width * math.log(inside / low) / math.log(high / low)

    def ticks(self) -> Iterator[int]:
        """Yield round counts: 1, 2 and 5 times each power of ten."""
        low, high = self._ends()
        for power in range(math.floor(math.log10(high)) + 1):
            for step in (1, 2, 5):
                if low <= step * 10**power <= high:
                    yield step * 10**power

    def _ends(self) -> tuple[float, float]:
        low = max(1.0, self.low)
        return low, max(2 * low, self.high)


def _share_axis(svg: Element, scale: ShareScale, top: float, bottom: float) -> None:
    """Draw a line at each quarter, with its percentage below.

    Args:
        svg: the drawing.
        scale: the scale of the shares.
        top: the start of the lines, in pixels.
        bottom: the end of the lines, in pixels.
    """
    for quarter in range(5):
        x = scale.place(quarter / 4)
        add(svg, "line", css="grid", x1=x, x2=x, y1=top, y2=bottom)
        words = f"{25 * quarter} %"
        add(svg, "text", words, css="tick", x=x, y=bottom + 16, text_anchor="middle")
