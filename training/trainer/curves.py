"""Page of a training: curves of its numbers, and what the model wrote at each evaluation.

The model's turns are shown as text. The page has no script, and its policy loads nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from training.report.page import inline_hash, templates
from training.report.svg import add, drawing, to_markup

__all__ = ["curves_page"]

_FOLDER: Final = Path(__file__).parent
_STYLES: Final = ("../report/page.css", "../report/plots.css", "curves.css")
_WIDTH: Final = 760.0
_HEIGHT: Final = 220.0
_LEFT: Final = 64.0
_RIGHT: Final = 24.0
_AXIS: Final = 26.0
_TICKS: Final = 4
_FEW: Final = 60
"""Most points of a curve at which each point still has a marker."""

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class _Curve:
    title: str
    svg: Markup
    legend: tuple[tuple[str, str], ...]


def curves_page(records: Sequence[Mapping[str, Any]], title: str) -> str:
    """Return the page as HTML.

    Args:
        records: of the log, in order.
        title: of the page.
    """
    style = "\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in _STYLES)
    updates = [one for one in records if one["kind"] == "update"]
    evaluations = [one for one in records if one["kind"] == "evaluation"]
    notebooks = [one for one in records if one["kind"] == "notebooks"]
    samples = [one for one in records if one["kind"] == "sample"]
    policy = f"style-src '{inline_hash(style)}'; base-uri 'none'; form-action 'none'"
    page = templates(_FOLDER / "templates").get_template("curves.html")
    return page.render(
        title=title,
        policy=f"default-src 'none'; {policy}",
        style=Markup(style),  # noqa: S704  (our own files)
        facts=_facts(updates, evaluations),
        curves=_curves(updates, evaluations, notebooks),
        notebooks=notebooks,
        samples=[(step, list(group)) for step, group in groupby(samples, lambda one: one["step"])],
    )


def _facts(
    updates: Sequence[Mapping[str, Any]], evaluations: Sequence[Mapping[str, Any]]
) -> list[tuple[str, str]]:
    facts = []
    if updates:
        facts += [
            ("updates", f"{updates[-1]['step']:,}"),
            ("tokens forwarded", f"{sum(one['tokens'] for one in updates):,}"),
            ("tokens learned", f"{sum(one['learned'] for one in updates):,}"),
            ("loss of the last update", f"{updates[-1]['loss']:.4f}"),
        ]
    if evaluations:
        best = min(evaluations, key=lambda one: float(one["held_loss"]))
        facts += [
            ("held loss, first", f"{evaluations[0]['held_loss']:.4f}"),
            ("held loss, smallest", f"{best['held_loss']:.4f} after update {best['step']}"),
        ]
    return facts


def _curves(
    updates: Sequence[Mapping[str, Any]],
    evaluations: Sequence[Mapping[str, Any]],
    notebooks: Sequence[Mapping[str, Any]],
) -> list[_Curve]:
    losses = {
        "loss of an update": _points(updates, "loss"),
        "held loss": _points(evaluations, "held_loss"),
    }
    shares = [(float(one["step"]), one["right"] / max(1, one["asked"])) for one in notebooks]
    found = [
        _curve("Loss", losses),
        _curve("Share of questions answered right", {"right": shares}, (0.0, 1.0)),
        _curve("Learning rate", {"learning rate": _points(updates, "rate")}),
        _curve("Norm of the gradient, before clipping", {"norm": _points(updates, "norm")}),
        _curve("Tokens per second", {"tokens": _points(updates, "tokens_per_s")}),
    ]
    return [one for one in found if one is not None]


def _points(records: Iterable[Mapping[str, Any]], name: str) -> Points:
    return [(float(one["step"]), float(one[name])) for one in records if name in one]


def _curve(
    title: str, lines: Mapping[str, Points], span: tuple[float, float] | None = None
) -> _Curve | None:
    lines = {name: points for name, points in lines.items() if points}
    every = [point for points in lines.values() for point in points]
    if not every:
        return None
    last = max(1.0, *(x for x, _ in every))
    low, high = span or (min(y for _, y in every), max(y for _, y in every))
    if high - low < 1e-12:
        low, high = low - abs(low) / 2 - 1e-9, high + abs(high) / 2 + 1e-9
    svg = drawing(title, _WIDTH, _HEIGHT + _AXIS)

    def at(x: float, y: float) -> tuple[float, float]:
        across = _LEFT + x / last * (_WIDTH - _LEFT - _RIGHT)
        return across, 8 + (high - y) / (high - low) * (_HEIGHT - 16)

    for number in range(_TICKS + 1):
        value = low + (high - low) * number / _TICKS
        y = at(0, value)[1]
        add(svg, "line", css="grid", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y)
        add(svg, "text", _short(value), css="tick", x=_LEFT - 8, y=y + 4, text_anchor="end")
    for step in _round_steps(last):
        x = at(step, low)[0]
        add(svg, "text", f"{step:,}", css="tick", x=x, y=_HEIGHT + 16, text_anchor="middle")
    for number, points in enumerate(lines.values()):
        places = [at(x, y) for x, y in points]
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        add(svg, "polyline", css=f"curve c{number}", points=joined)
        if len(places) <= _FEW:
            for x, y in places:
                add(svg, "circle", css=f"knot c{number}", cx=x, cy=y, r=3)
    legend = tuple((f"c{number}", name) for number, name in enumerate(lines))
    return _Curve(title, to_markup(svg), legend if len(legend) > 1 else ())


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _round_steps(last: float) -> list[int]:
    """Return about five round numbers of updates, from 0 to the last."""
    raw = max(1.0, last / 5)
    unit = 10 ** math.floor(math.log10(raw))
    gap = int(next(unit * many for many in (1, 2, 5, 10) if unit * many >= raw))
    return list(range(0, int(last) + 1, gap))
