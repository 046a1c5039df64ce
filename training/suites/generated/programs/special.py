"""Two statistical functions that the standard library lacks, from their published formulas."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

__all__ = ["shapiro_wilk", "two_sided_t"]

_ITERATIONS = 300
_TINY = 1e-300
_PRECISION = 1e-15


def two_sided_t(t: float, freedom: float) -> float:
    """Return the two-sided p-value of a t statistic.

    Args:
        t: the statistic.
        freedom: the degrees of freedom, not necessarily an integer.
    """
    return _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularized incomplete beta function, by continued fraction (Lentz's method)."""
    if x <= 0 or x >= 1:
        return max(0.0, min(1.0, x))
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast on this side only
        return 1 - front * _fraction(b, a, 1 - x) / b
    return front * _fraction(a, b, x) / a


def _fraction(a: float, b: float, x: float) -> float:
    upper, lower = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    value = lower
    for step in range(1, _ITERATIONS):
        even = step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step))
        lower = 1 / _away(1 + even * lower)
        upper = _away(1 + even / upper)
        value *= lower * upper
        odd = -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1))
        lower = 1 / _away(1 + odd * lower)
        upper = _away(1 + odd / upper)
        value *= lower * upper
        if abs(lower * upper - 1) < _PRECISION:
            break
    return value


def _away(value: float) -> float:
    """Return the value, or a tiny one instead of 0."""
    return value if abs(value) > _TINY else _TINY


_FIRST = (0.0, 0.221157, -0.147981, -2.07119, 4.434685, -2.706056)
_SECOND = (0.0, 0.042981, -0.293762, -1.752461, 5.682633, -3.582633)
_MEAN = (-1.5861, -0.31082, -0.083751, 0.0038915)
_SPREAD = (-0.4803, -0.082676, 0.0030302)


def shapiro_wilk(sample: Sequence[float]) -> tuple[float, float]:
    """Return W and the p-value of the Shapiro-Wilk test.

    Royston's approximation (Applied Statistics 44, 1995, algorithm AS R94), for 12 values or more.

    Raises:
        ValueError: there are fewer than 12 values, or all are equal.
    """
    x = sorted(sample)
    n = len(x)
    if n < 12 or x[0] == x[-1]:
        raise ValueError("the test needs 12 values or more that are not all equal")
    scores = [NormalDist().inv_cdf((place - 0.375) / (n + 0.25)) for place in range(1, n + 1)]
    square = math.fsum(score * score for score in scores)
    root = 1 / math.sqrt(n)
    last = scores[-1] / math.sqrt(square) + _polynomial(_FIRST, root)
    other = scores[-2] / math.sqrt(square) + _polynomial(_SECOND, root)
    rest = (square - 2 * scores[-1] ** 2 - 2 * scores[-2] ** 2) / (1 - 2 * last**2 - 2 * other**2)
    weights = [score / math.sqrt(rest) for score in scores]
    weights[0], weights[1], weights[-2], weights[-1] = -last, -other, other, last
    middle = math.fsum(x) / n
    total = math.fsum((value - middle) ** 2 for value in x)
    found = math.fsum(a * value for a, value in zip(weights, x, strict=True))
    w = found * found / total
    size = math.log(n)
    z = (math.log(1 - w) - _polynomial(_MEAN, size)) / math.exp(_polynomial(_SPREAD, size))
    return w, 1 - NormalDist().cdf(z)


def _polynomial(factors: Sequence[float], x: float) -> float:
    value = 0.0
    for factor in reversed(factors):
        value = value * x + factor
    return value
