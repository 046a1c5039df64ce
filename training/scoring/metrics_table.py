"""Metrics of submissions: a column of predictions against a column of truths, both as text.

A closed list by name; metrics that scikit-learn has come from there. If a competition asks for
several columns, its score is the mean over them: mean columnwise RMSE, RMSLE, AUC and rank
correlation are defined that way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import StatisticsError, correlation, fmean
from typing import Any

from kernel_sandbox.packages.commands import install_extra
from training.scoring.lists import folded_text
from training.scoring.reader import exact_number

__all__ = ["METRICS", "MetricError", "score_columns"]

MAX_SIZE = 1e100
"""Numbers further from 0 than this are refused: their squares would overflow a float."""
MAX_RATINGS = 1000
"""Ratings further apart than this are refused: their table would fill the memory."""

Column = Sequence[str]
_Numbers = Sequence[float]


class MetricError(ValueError):
    """Predictions that a metric can't score; the message says why."""


def score_columns(metric: str, truth: Sequence[Column], said: Sequence[Column]) -> float:
    """Return the mean of a metric over columns in the same order, with rows in the same order.

    Raises:
        MetricError: the columns differ in number or length, or the metric can't read a value.
        KeyError: no metric has that name.
    """
    measure = METRICS[metric]
    if not truth or len(truth) != len(said):
        raise MetricError(f"expected {len(truth)} columns, found {len(said)}")
    for one, other in zip(truth, said, strict=True):
        if not one or len(one) != len(other):
            raise MetricError(f"expected {len(one)} rows, found {len(other)}")
    score = fmean(measure(one, other) for one, other in zip(truth, said, strict=True))
    if not math.isfinite(score):
        raise MetricError(f"{metric} is not defined for these values")
    return score


def _numbers(column: Column) -> list[float]:
    values = []
    for text in column:
        number = exact_number(text)
        try:
            value = math.nan if number is None else float(number)
        except OverflowError:  # an int beyond every float
            value = math.inf
        if not abs(value) <= MAX_SIZE:
            raise MetricError(f"{text[:40]!r} is no number")
        values.append(value)
    return values


def _classes(column: Column) -> list[str]:
    """Return the names of classes; `1` and `1.0` are one class, as are `True` and `true`."""
    names = []
    for text in column:
        number = exact_number(text)
        is_whole = number is not None and number == round(_numbers([text])[0])
        names.append(str(round(number or 0)) if is_whole else folded_text(text))
    return names


def _sklearn(function: str, *values: object, **options: object) -> float:
    try:
        import numpy as np  # noqa: PLC0415  (heavy)
        from sklearn import metrics  # type: ignore[import-untyped]  # noqa: PLC0415  (heavy)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"scoring submissions needs scikit-learn: {install_extra('analysis')}"
        ) from error
    measure: Callable[..., Any] = getattr(metrics, function)
    try:
        with np.errstate(all="ignore"):  # an overflow is not finite, and refused later
            return float(measure(*values, **options))
    except ValueError as error:
        raise MetricError(f"{function}: {error}") from error


def _of_numbers(function: str) -> Callable[[Column, Column], float]:
    return lambda truth, said: _sklearn(function, _numbers(truth), _numbers(said))


def _binary(truth: Column) -> list[int]:
    numbers = _numbers(truth)
    if set(numbers) != {0.0, 1.0}:
        raise MetricError("the truth needs both classes, written 0 and 1")
    return [int(number) for number in numbers]


def _auc(truth: Column, said: Column) -> float:
    return _sklearn("roc_auc_score", _binary(truth), _numbers(said))


def _gini(truth: Column, said: Column) -> float:
    """Return the normalised Gini coefficient, which is 2 AUC - 1 if no two predictions tie."""
    return 2 * _auc(truth, said) - 1


def _log_loss(truth: Column, said: Column) -> float:
    shares = _numbers(said)
    if not all(0 <= share <= 1 for share in shares):
        raise MetricError("a probability lies outside 0 to 1")
    return _sklearn("log_loss", _binary(truth), shares, labels=[0, 1])


def _accuracy(truth: Column, said: Column) -> float:
    return _sklearn("accuracy_score", _classes(truth), _classes(said))


def _f1(average: str) -> Callable[[Column, Column], float]:
    return lambda truth, said: _sklearn(
        "f1_score", _classes(truth), _classes(said), average=average, zero_division=0.0
    )


def _f1_of_ones(truth: Column, said: Column) -> float:
    return _sklearn(
        "f1_score", _binary(truth), _whole_numbers(said), labels=[1], average="macro",
        zero_division=0.0,
    )  # fmt: skip


def _whole_numbers(column: Column) -> list[int]:
    numbers = _numbers(column)
    if any(number != round(number) for number in numbers):
        raise MetricError("expected whole numbers")
    return [round(number) for number in numbers]


def _qwk(truth: Column, said: Column) -> float:
    """Return quadratic weighted kappa over all integers from the least to the greatest rating."""
    one, other = _whole_numbers(truth), _whole_numbers(said)
    values = {*one, *other}
    if max(values) - min(values) > MAX_RATINGS:
        raise MetricError(f"the ratings span more than {MAX_RATINGS}")
    if len(values) == 1:
        return 1.0
    scale = list(range(min(values), max(values) + 1))
    return _sklearn("cohen_kappa_score", one, other, labels=scale, weights="quadratic")


def _rmsle(truth: Column, said: Column) -> float:
    return math.sqrt(_sklearn("mean_squared_log_error", *_not_negative(truth, said)))


def _not_negative(truth: Column, said: Column) -> tuple[_Numbers, _Numbers]:
    one, other = _numbers(truth), _numbers(said)
    if min(one) < 0 or min(other) < 0:
        raise MetricError("a logarithm is asked of a negative number")
    return one, other


def _rmse(truth: Column, said: Column) -> float:
    return math.sqrt(_sklearn("mean_squared_error", _numbers(truth), _numbers(said)))


def _r2(truth: Column, said: Column) -> float:
    numbers = _numbers(truth)
    if len(set(numbers)) < 2:
        raise MetricError("r2 needs two different values")
    return _sklearn("r2_score", numbers, _numbers(said))


def _smape(truth: Column, said: Column) -> float:
    """Return the symmetric mean absolute percentage error, 0 to 200; 0 against 0 is no error."""
    pairs = zip(_numbers(truth), _numbers(said), strict=True)
    sizes = [(abs(one - other), abs(one) + abs(other)) for one, other in pairs]
    return fmean(200 * miss / size if size else 0.0 for miss, size in sizes)


def _pearson(truth: Column, said: Column) -> float:
    return _correlation(_numbers(truth), _numbers(said))


def _spearman(truth: Column, said: Column) -> float:
    return _correlation(_ranks(_numbers(truth)), _ranks(_numbers(said)))


def _correlation(one: _Numbers, other: _Numbers) -> float:
    if len(set(one)) < 2 or len(set(other)) < 2:
        raise MetricError("a correlation needs two different values")
    try:
        return correlation(one, other)
    except (ArithmeticError, StatisticsError) as error:
        raise MetricError(f"no correlation: {error}") from error


def _ranks(values: _Numbers) -> list[float]:
    """Return ranks from 1; equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    for place, index in enumerate(order):
        is_last = place + 1 == len(order) or values[order[place + 1]] != values[index]
        if is_last:
            for tied in order[start : place + 1]:
                ranks[tied] = (start + place) / 2 + 1
            start = place + 1
    return ranks


METRICS: dict[str, Callable[[Column, Column], float]] = {
    "accuracy": _accuracy,
    "auc": _auc,
    "f1": _f1_of_ones,
    "f1_macro": _f1("macro"),
    "f1_micro": _f1("micro"),
    "gini": _gini,
    "logloss": _log_loss,
    "mae": _of_numbers("mean_absolute_error"),
    "medae": _of_numbers("median_absolute_error"),
    "mse": _of_numbers("mean_squared_error"),
    "pearson": _pearson,
    "qwk": _qwk,
    "r2": _r2,
    "rmse": _rmse,
    "rmsle": _rmsle,
    "smape": _smape,
    "spearman": _spearman,
}
"""Metrics by the names that splits use."""
