"""Figures of columns, with pandas, NumPy and SciPy: the first of two independent versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from training.suites.generated.programs.steps import Reading, StepError, UnfitError

__all__ = ["measure"]

Measure = Callable[..., float]


def measure(
    frame: pd.DataFrame, how: str, of: Sequence[str], q: float | None, reading: Reading
) -> float:
    """Return a figure of some columns of a frame.

    Args:
        frame: the rows; missing values are ignored.
        how: the name of the figure.
        of: the columns, in the order that the figure needs.
        q: the share of a quantile.
        reading: the interpretation of what the figure leaves open.

    Raises:
        StepError: there is no such figure.
        UnfitError: the figure is not defined for these rows.
    """
    if how == "rows":
        return len(frame)
    columns = [frame[name] for name in of]
    if len(of) == 1 and how in _SINGLE:
        value = _SINGLE[how](columns[0].dropna())
    elif how in _SPREADS:
        name = _SPREADS[how] if reading.population else how
        value = _SPREAD[name](columns[0].dropna())
    elif how in _QUANTILES:
        way: Any = "lower" if reading.nearest_quantile else "linear"
        value = _QUANTILES[how](columns[0].dropna(), q, way)
    elif how in _JOINT:
        value = _JOINT[how](*[frame[list(of)].dropna()[name] for name in of])
    else:
        raise StepError(f"there is no figure {how!r} of {len(of)} columns")
    number = float(value)
    if not np.isfinite(number):
        raise UnfitError("undefined")
    return number


_SINGLE: Mapping[str, Measure] = {
    "mean": lambda x: x.mean(),
    "sum": lambda x: x.sum(),
    "min": lambda x: x.min(),
    "max": lambda x: x.max(),
    "median": lambda x: x.median(),
    "count": lambda x: x.size,
    "distinct": lambda x: x.nunique(),
    "range": lambda x: x.max() - x.min(),
    "skew": lambda x: x.skew(),
    "kurtosis": lambda x: x.kurt(),
    "mad": lambda x: (x - x.median()).abs().median(),
    "span_days": lambda x: (x.max() - x.min()).days,
    "shapiro_w": lambda x: _stats().shapiro(x).statistic,
    "shapiro_p": lambda x: _stats().shapiro(x).pvalue,
    "share_yes": lambda x: (x == "yes").mean() * 100,
}
_SPREAD: Mapping[str, Measure] = {
    "std": lambda x: x.std(ddof=1),
    "pstd": lambda x: x.std(ddof=0),
    "var": lambda x: x.var(ddof=1),
    "pvar": lambda x: x.var(ddof=0),
    "sem": lambda x: x.sem(ddof=1),
    "psem": lambda x: x.sem(ddof=0),
    "cv": lambda x: x.std(ddof=1) / x.mean() * 100,
    "pcv": lambda x: x.std(ddof=0) / x.mean() * 100,
}
_SPREADS = {
    **{name: f"p{name}" for name in ("std", "var", "sem", "cv")},
    **{f"p{name}": name for name in ("std", "var", "sem", "cv")},
}
"""Each figure of spread, and the same figure with the other divisor."""
_QUANTILES: Mapping[str, Measure] = {
    "quantile": lambda x, q, way: x.quantile(q, interpolation=way),
    "iqr": lambda x, _, way: (
        x.quantile(0.75, interpolation=way) - x.quantile(0.25, interpolation=way)
    ),
}


def _stats() -> Any:
    from scipy import stats  # type: ignore[import-untyped]  # noqa: PLC0415  (optional, slow)

    return stats


def _parted(x: pd.Series[Any], flag: pd.Series[Any]) -> tuple[Any, Any]:
    """Return the values where the flag is 1, and those where it is 0."""
    return x[flag == 1], x[flag == 0]


def _partial(x: pd.Series[Any], y: pd.Series[Any], z: pd.Series[Any]) -> float:
    """Return the correlation of the residuals of `x` and `y` after linear fits on `z`."""
    left = [one - np.polyval(np.polyfit(z, one, 1), z) for one in (x, y)]
    return float(np.corrcoef(left[0], left[1])[0, 1])


def _adjusted(y: pd.Series[Any], flag: pd.Series[Any], control: pd.Series[Any]) -> float:
    """Return a flag's coefficient in a least squares fit with one control and an intercept."""
    design = np.column_stack([np.ones(len(y)), flag, control])
    return float(np.linalg.lstsq(design, y.to_numpy(float), rcond=None)[0][1])


def _stratified(y: pd.Series[Any], flag: pd.Series[Any], stratum: pd.Series[Any]) -> float:
    """Return the mean of the differences within strata, weighted by the rows of each."""
    frame = pd.DataFrame({"y": y, "flag": flag, "stratum": stratum})
    means = frame.pivot_table(index="stratum", columns="flag", values="y", aggfunc="mean")
    if means.isna().any(axis=None) or means.shape[1] != 2:
        raise UnfitError("too few rows")
    difference = means[1] - means[0]
    return float(np.average(difference, weights=stratum.value_counts()[difference.index]))


def _explained(y: pd.Series[Any], label: pd.Series[Any]) -> float:
    """Return the share of the sum of squares between the means of the labels."""
    fitted = y.groupby(label).transform("mean")
    return float(1 - ((y - fitted) ** 2).sum() / ((y - y.mean()) ** 2).sum())


def _line(x: pd.Series[Any], y: pd.Series[Any]) -> Any:
    return _stats().linregress(x, y)


_JOINT: Mapping[str, Measure] = {
    "pearson": lambda x, y: x.corr(y),
    "spearman": lambda x, y: _stats().spearmanr(x, y).statistic,
    "slope": lambda x, y: _line(x, y).slope,
    "intercept": lambda x, y: _line(x, y).intercept,
    "r2": lambda x, y: _line(x, y).rvalue ** 2,
    "weighted_mean": lambda x, weight: np.average(x, weights=weight),
    "partial": _partial,
    "adjusted": _adjusted,
    "stratified": _stratified,
    "explained": _explained,
    "welch_t": lambda x, flag: _stats().ttest_ind(*_parted(x, flag), equal_var=False).statistic,
    "welch_p": lambda x, flag: _stats().ttest_ind(*_parted(x, flag), equal_var=False).pvalue,
    "u": lambda x, flag: _stats().mannwhitneyu(*_parted(x, flag), method="asymptotic").statistic,
    "u_p": lambda x, flag: _stats().mannwhitneyu(*_parted(x, flag), method="asymptotic").pvalue,
}
