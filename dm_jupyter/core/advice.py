"""Advice that some questions need and that would lead all others astray.

A small model does what its prompt speaks of. Told of tests and of missing values whatever the
question was, the local one dropped rows in 30 of 31 first cells and correlated something in nine,
mostly where nothing was missing and nobody had asked for it.
"""

from __future__ import annotations

import re

from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Brief

__all__ = ["PROMPTS", "advice_on", "asks_for_a_test"]

PROMPTS = ("advice_tests", "advice_missing")
"""Names of the prompts it uses."""

_TEST = re.compile(
    r"correlat|p[-_ ]?values?\b|significan|hypothes|normality|normally distributed|shapiro|anova"
    r"|chi-?\s?squared?|mann-whitney|wilcoxon|kruskal|kolmogorov|anderson|levene|statistical test"
    r"|\b[tzf]-(?:test|statistic)|\btest (?:for|if|whether)\b",
    re.IGNORECASE,
)
_MISSING = re.compile(
    r"\bmissing|\bnulls?\b|\bnan\b|\bblank|\bempty\b|dropn?a?\b|imput", re.IGNORECASE
)


def asks_for_a_test(task: Task) -> bool:
    """Whether a task speaks of a correlation or a statistical test."""
    return bool(_TEST.search(_words(task)))


def advice_on(task: Task, brief: Brief) -> tuple[str, ...]:
    """Returns the names of the prompts that help with a task, in their order.

    Args:
        task: what is asked.
        brief: what is known of the data files.
    """
    is_test = asks_for_a_test(task)
    is_about_missing = is_test or bool(_MISSING.search(_words(task)))
    wanted = (is_test, is_about_missing and bool(brief.incomplete))
    return tuple(name for name, is_wanted in zip(PROMPTS, wanted, strict=True) if is_wanted)


def _words(task: Task) -> str:
    return f"{task.question}\n{task.constraints}\n{task.answer_format}"
