"""How many examples a property is tried with."""

from __future__ import annotations

from collections.abc import Collection

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
