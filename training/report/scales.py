"""Axes of plots: where a value lies, and the ticks beside it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from training.report.svg import add

__all__ = ["LogScale", "ShareScale", "share_axis"]


@dataclass(frozen=True, slots=True)
class ShareScale:
    """Places shares between 0 and 1 from left to right."""

    left: float
    width: float

    def place(self, share: float) -> float:
        """Returns where a share lies, in pixels."""
        return self.left + self.width * share


@dataclass(frozen=True, slots=True)
class LogScale:
    """Places counts from left to right, each doubling as wide as the next."""

    left: float
    width: float
    low: float
    """The smallest count there is, at least 1."""
    high: float
    """The largest."""

    def place(self, count: float) -> float:
        """Returns where a count lies, in pixels; what is below 1 lies at 1."""
        low, high = self._ends()
        inside = min(max(count, low), high)
        return self.left + self.width * math.log(inside / low) / math.log(high / low)

    def ticks(self) -> Iterator[int]:
        """Yields round counts: 1, 2 and 5 times each power of ten."""
        low, high = self._ends()
        for power in range(math.floor(math.log10(high)) + 1):
            for step in (1, 2, 5):
                if low <= step * 10**power <= high:
                    yield step * 10**power

    def _ends(self) -> tuple[float, float]:
        low = max(1.0, self.low)
        return low, max(2 * low, self.high)


def share_axis(svg: Element, scale: ShareScale, top: float, bottom: float) -> None:
    """Draws a line at each quarter, and its per cent below.

    Args:
        svg: where it is drawn.
        scale: of the shares.
        top: where the lines begin, in pixels.
        bottom: where they end.
    """
    for quarter in range(5):
        x = scale.place(quarter / 4)
        add(svg, "line", css="grid", x1=x, x2=x, y1=top, y2=bottom)
        words = f"{25 * quarter} %"
        add(svg, "text", words, css="tick", x=x, y=bottom + 16, text_anchor="middle")
