"""How many examples a property is tried with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

USUAL_EXAMPLES = 100
"""For a property that names no number, in the thorough profile."""


def examples(count: int, suppressed: Collection[HealthCheck] = ()) -> settings:
    """Returns the settings of a property that needs more, or fewer, examples than is usual.

    Args:
        count: of the examples in the thorough profile; any other takes its share of them.
        suppressed: the health checks to leave out.
    """
    share = settings.default.max_examples / USUAL_EXAMPLES
    return settings(max_examples=max(5, round(count * share)), suppress_health_check=suppressed)


def some_quick(
    values: Iterable[Any], one_in: int, name: Callable[[Any], str] | None = None
) -> list[Any]:
    """Returns the values as parameters: one in so many is always tried, the others are slow tests.

    Args:
        values: of the parameter.
        one_in: how many of them stand for one that is always tried.
        name: the id of a value; None leaves that to pytest.
    """
    return [
        pytest.param(
            value,
            id=name(value) if name else None,
            marks=[pytest.mark.slow] if number % one_in else [],
        )
        for number, value in enumerate(values)
    ]
