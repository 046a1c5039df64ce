"""Figures of columns in plain Python: the second, independent version, called from SQL.

Each is written from its definition and uses the standard library alone. Missing values never reach
a figure: a row with a missing value is skipped.
"""

from __future__ import annotations

import math
import sqlite3
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

from training.suites.generated.programs.special import shapiro_wilk, two_sided_t

__all__ = ["register"]

Columns = Sequence[Sequence[Any]]
Plain = Callable[[Columns], float]


def register(database: sqlite3.Connection) -> None:
    """Register an aggregate function in a database for each figure, named `f_` plus its name."""
    for name, (count, function) in _PLAIN.items():
        database.create_aggregate(f"f_{name}", count, _collector(function))


def _collector(function: Plain) -> Any:
    """Return a class that collects the rows of a group for one function."""

    class Collected:
        def __init__(self) -> None:
            self._rows: list[tuple[Any, ...]] = []

        def step(self, *row: Any) -> None:
            if None not in row:
                self._rows.append(row)

        def finalize(self) -> float | None:
            if not self._rows:
                return None
            try:
                return float(function(list(zip(*self._rows, strict=True))))
            except (ValueError, ZeroDivisionError, statistics.StatisticsError):
                return None  # NULL: not defined for these rows

    return Collected


def _moment(x: Sequence[float], power: int) -> float:
    middle = math.fsum(x) / len(x)
    return math.fsum((value - middle) ** power for value in x) / len(x)


def _spread(x: Sequence[float], lost: int) -> float:
    """Return the variance with the number of values minus `lost` as divisor."""
    return _moment(x, 2) * len(x) / (len(x) - lost)


def _skew(columns: Columns) -> float:
    (x,) = columns
    n = len(x)
    third: float = _moment(x, 3) / _moment(x, 2) ** 1.5
    return math.sqrt(n * (n - 1)) / (n - 2) * third


def _kurtosis(columns: Columns) -> float:
    (x,) = columns
    n = len(x)
    raw = _moment(x, 4) / _moment(x, 2) ** 2
    return (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * raw - 3 * (n - 1))


def _quantile(x: Sequence[float], share: float) -> float:
    """Return the point at `share` of the sorted values, interpolated linearly."""
    ordered = sorted(x)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def _ranks(x: Sequence[float]) -> list[float]:
    """Return the rank of each value from 1; equal values share the mean of their ranks."""
    ordered = sorted(range(len(x)), key=x.__getitem__)
    ranks = [0.0] * len(x)
    start = 0
    while start < len(ordered):
        end = start
        while end + 1 < len(ordered) and x[ordered[end + 1]] == x[ordered[start]]:
            end += 1
        for place in ordered[start : end + 1]:
            ranks[place] = (start + end) / 2 + 1
        start = end + 1
    return ranks


def _products(x: Sequence[float], y: Sequence[float]) -> tuple[float, float, float]:
    """Return the sums of squares and of products around the means."""
    a, b = math.fsum(x) / len(x), math.fsum(y) / len(y)
    return (
        math.fsum((one - a) ** 2 for one in x),
        math.fsum((one - a) * (two - b) for one, two in zip(x, y, strict=True)),
        math.fsum((two - b) ** 2 for two in y),
    )


def _pearson(columns: Columns) -> float:
    xx, xy, yy = _products(*columns)
    return xy / math.sqrt(xx * yy)


def _partial(columns: Columns) -> float:
    x, y, z = columns
    xy, xz, yz = _pearson((x, y)), _pearson((x, z)), _pearson((y, z))
    return (xy - xz * yz) / math.sqrt((1 - xz**2) * (1 - yz**2))


def _slope(columns: Columns) -> float:
    xx, xy, _ = _products(*columns)
    return xy / xx


def _intercept(columns: Columns) -> float:
    x, y = columns
    return statistics.fmean(y) - _slope(columns) * statistics.fmean(x)


def _weighted_mean(columns: Columns) -> float:
    x, weight = columns
    return math.fsum(a * b for a, b in zip(x, weight, strict=True)) / math.fsum(weight)


def _adjusted(columns: Columns) -> float:
    """Return the second column's coefficient, by Frisch and Waugh: without the third's part."""
    y, flag, control = columns
    line, base = _slope((control, flag)), _intercept((control, flag))
    rest = [one - base - line * two for one, two in zip(flag, control, strict=True)]
    return _slope((rest, y))


def _stratified(columns: Columns) -> float:
    sums: dict[Any, dict[Any, list[float]]] = defaultdict(lambda: defaultdict(list))
    for y, flag, stratum in zip(*columns, strict=True):
        sums[stratum][int(flag)].append(y)
    rows = len(columns[0])
    return math.fsum(
        (len(parts[0]) + len(parts[1]))
        / rows
        * (statistics.fmean(parts[1]) - statistics.fmean(parts[0]))
        for parts in sums.values()
    )


def _explained(columns: Columns) -> float:
    groups: dict[Any, list[float]] = defaultdict(list)
    for y, label in zip(*columns, strict=True):
        groups[label].append(y)
    middle = statistics.fmean(columns[0])
    between = math.fsum(len(one) * (statistics.fmean(one) - middle) ** 2 for one in groups.values())
    return between / math.fsum((y - middle) ** 2 for y in columns[0])


def _parted(columns: Columns) -> tuple[list[float], list[float]]:
    x, flags = columns
    pairs = list(zip(x, flags, strict=True))
    return [a for a, flag in pairs if flag], [a for a, flag in pairs if not flag]


def _welch(columns: Columns) -> tuple[float, float]:
    """Return Welch's t and its degrees of freedom."""
    first, second = _parted(columns)
    a, b = _spread(first, 1) / len(first), _spread(second, 1) / len(second)
    t = (statistics.fmean(first) - statistics.fmean(second)) / math.sqrt(a + b)
    return t, (a + b) ** 2 / (a**2 / (len(first) - 1) + b**2 / (len(second) - 1))


def _u(columns: Columns) -> float:
    """Return how often a value of the first group exceeds one of the second; a tie is a half."""
    first, second = _parted(columns)
    return math.fsum((a > b) + (a == b) / 2 for a in first for b in second)


def _u_p(columns: Columns) -> float:
    """Return U's two-sided p-value: normal distribution, corrected for ties and continuity."""
    first, second = _parted(columns)
    n, m = len(first), len(second)
    ties = sum(count**3 - count for count in Counter([*first, *second]).values())
    variance = n * m / 12 * (n + m + 1 - ties / ((n + m) * (n + m - 1)))
    u = _u(columns)
    z = (max(u, n * m - u) - n * m / 2 - 0.5) / math.sqrt(variance)
    return min(1.0, 2 * (1 - statistics.NormalDist().cdf(z)))


def _span_days(columns: Columns) -> float:
    days = [date.fromisoformat(day).toordinal() for day in columns[0]]
    return max(days) - min(days)


def _mad(columns: Columns) -> float:
    middle = statistics.median(columns[0])
    return float(statistics.median(abs(value - middle) for value in columns[0]))


def _cv(columns: Columns) -> float:
    return math.sqrt(_spread(columns[0], 1)) / statistics.fmean(columns[0]) * 100


_PLAIN: Mapping[str, tuple[int, Plain]] = {
    "median": (1, lambda c: statistics.median(c[0])),
    "skew": (1, _skew),
    "kurtosis": (1, _kurtosis),
    "mad": (1, _mad),
    "span_days": (1, _span_days),
    "std": (1, lambda c: math.sqrt(_spread(c[0], 1))),
    "pstd": (1, lambda c: math.sqrt(_spread(c[0], 0))),
    "var": (1, lambda c: _spread(c[0], 1)),
    "sem": (1, lambda c: math.sqrt(_spread(c[0], 1) / len(c[0]))),
    "cv": (1, _cv),
    "iqr": (1, lambda c: _quantile(c[0], 0.75) - _quantile(c[0], 0.25)),
    "quantile": (2, lambda c: _quantile(c[0], c[1][0])),
    "shapiro_w": (1, lambda c: shapiro_wilk(c[0])[0]),
    "shapiro_p": (1, lambda c: shapiro_wilk(c[0])[1]),
    "pearson": (2, _pearson),
    "spearman": (2, lambda c: _pearson((_ranks(c[0]), _ranks(c[1])))),
    "slope": (2, _slope),
    "intercept": (2, _intercept),
    "r2": (2, lambda c: _pearson(c) ** 2),
    "weighted_mean": (2, _weighted_mean),
    "partial": (3, _partial),
    "adjusted": (3, _adjusted),
    "stratified": (3, _stratified),
    "explained": (2, _explained),
    "welch_t": (2, lambda c: _welch(c)[0]),
    "welch_p": (2, lambda c: two_sided_t(*_welch(c))),
    "u": (2, _u),
    "u_p": (2, _u_p),
}
"""Number of columns and function of each figure, by name."""
