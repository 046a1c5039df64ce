"""Advice that some questions and files need and that would mislead all others.

A small model does what its prompt mentions. When advised on missing values for every file, the
local model dropped rows in 31 of 32 first cells. In 23 of these, the file had no missing values.
Eight questions were about files with gaps. The model answered three of them correctly if the advice
also required a question about missing values. With the advice for every file with gaps, it answered
five correctly.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from dm_jupyter.core.dialects import dialect_named
from dm_jupyter.core.request_kind import RequestKind
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import DataContext, Trajectory

__all__ = ["PROMPTS", "advice_on", "advised", "needs_frames", "needs_scipy"]

PROMPTS = ("advice_tests", "advice_missing", "advice_population")
"""Names of the prompts of the rule `advice`."""
_ENDINGS: Mapping[RequestKind, str] = {
    "plot": "advice_plot",
    "clean": "advice_clean",
    "explain": "advice_explain",
    "report": "advice_report",
}
"""Names of the prompts of the rule `ending`."""

_NUMPY = "import numpy as np\n"
_STATS, _PLOTS = "from scipy import stats\n", "import matplotlib.pyplot as plt\n"
_TEST = re.compile(
    r"correlat|p[-_ ]?values?\b|significan|hypothes|normality|normally distributed|shapiro|anova"
    r"|chi-?\s?squared?|mann-whitney|wilcoxon|kruskal|kolmogorov|anderson|levene|statistical test"
    r"|\b[tzf]-(?:test|statistic)|\btest (?:for|if|whether)\b",
    re.IGNORECASE,
)
_STATISTIC = re.compile(r"z[-_ ]?score|skew|kurto|confidence interval", re.IGNORECASE)
_NOT_IN_SQLITE = re.compile(
    r"\bmedian|quartil|quantil|percentile|standard deviation|\bvariance|\boutlier"
    r"|coefficient of variation|regression|least squares|straight line|standardi[sz]e|\bwinsori"
    r"|min-max|one-hot|moving average|perzentil|standardabweichung|varianz|ausreißer|korrel",
    re.IGNORECASE,
)
_COUNTS_GAPS = re.compile(
    r"\b(?:how many|number of|counts?|share|percent\w*|which|any|are there)\b[^.?!]{0,60}"
    r"\b(?:missing|null|nan|empty|incomplete|complete)\b"
    r"|\b(?:not|never) (?:recorded|measured|known)\b",
    re.IGNORECASE,
)
"""A question about gaps: a model advised how to drop them drops them first, and finds none."""
_POPULATION = re.compile(r"population (?:standard deviation|std|variance)", re.IGNORECASE)


def advised(trajectory: Trajectory) -> Trajectory:
    """Return the trajectory with the advice that its task needs, if that rule is on.

    The kind of request has its own advice, of the rule `ending`.

    If the task mentions a test, the code that loads the data also imports scipy's statistics. If it
    asks for a chart, the code imports matplotlib's plots. A table of the person with the same name
    prevents the import. If all data is in small databases and the task mentions a statistic that
    SQLite lacks, code begins with their tables in pandas and not with a query: a small model takes
    `AVG` for a median.

    Args:
        trajectory: without a step yet, or advised before.
    """
    data_context, dialect = trajectory.data_context, dialect_named(trajectory.dialect)
    ending = _ENDINGS.get(trajectory.kind, "")
    if data_context.databases and not data_context.preamble:
        is_advised = trajectory.assists.advice and set(PROMPTS) <= set(dialect.prompts)
        if not (is_advised and data_context.whole_tables and needs_frames(trajectory.task)):
            return trajectory  # it begins with a query
        data_context = replace(data_context, preamble=data_context.whole_tables)
    of_kind = (ending,) if ending in dialect.prompts else ()
    if of_kind and trajectory.kind == "plot":
        data_context = _importing(data_context, _PLOTS, "plt")
    if not (trajectory.assists.advice and set(PROMPTS) <= set(dialect.prompts)):
        return replace(trajectory, advice=of_kind, data_context=data_context)
    names = (*advice_on(trajectory.task, data_context), *of_kind)
    if needs_scipy(trajectory.task):
        data_context = _importing(data_context, _STATS, "stats")
    return replace(trajectory, advice=names, data_context=data_context)


def _importing(data_context: DataContext, line: str, name: str) -> DataContext:
    """Return it with an import in its loading code, unless a table of the person has that name."""
    preamble = data_context.preamble
    if name in data_context.variables or line in preamble:
        return data_context
    return replace(data_context, preamble=preamble.replace(_NUMPY, _NUMPY + line, 1))


def needs_scipy(task: Task) -> bool:
    """Whether a task mentions a test or another statistic that scipy computes."""
    words = _words(task)
    return bool(_TEST.search(words) or _STATISTIC.search(words))


def needs_frames(task: Task) -> bool:
    """Whether a task mentions a statistic for which SQLite has no function."""
    return needs_scipy(task) or bool(_NOT_IN_SQLITE.search(_words(task)))


def advice_on(task: Task, data_context: DataContext) -> tuple[str, ...]:
    """Return the names of the prompts that help with a task, in their order.

    Args:
        task: the task.
        data_context: what is known of the data files.
    """
    words = _words(task)
    wanted = (
        bool(_TEST.search(words)),
        bool(data_context.incomplete) and not _COUNTS_GAPS.search(task.question),
        bool(_POPULATION.search(words)),
    )
    return tuple(name for name, is_wanted in zip(PROMPTS, wanted, strict=True) if is_wanted)


def _words(task: Task) -> str:
    return f"{task.question}\n{task.constraints}\n{task.answer_format}"
