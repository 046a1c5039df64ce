"""Several turns, each asked for by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from dm_jupyter.core.errors import PolicyError, first_fault
from dm_jupyter.core.trajectory import Completion
from dm_jupyter.models.protocols import SampleRequest

__all__ = ["sample_each", "with_seed_of"]

_SEED_STRIDE = 7_919
"""Between the seeds of two turns: far from those of later turns of the same run."""


async def sample_each(
    sample: Callable[[SampleRequest], Coroutine[Any, Any, Completion]],
    request: SampleRequest,
    count: int,
) -> list[Completion]:
    """Returns `count` turns drawn at the same time, each with a seed of its own.

    Args:
        sample: draws one.
        request: what is asked.
        count: how many.

    Raises:
        PolicyError: the model can't be sampled.
    """
    requests = [with_seed_of(place, request) for place in range(count)]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(sample(one)) for one in requests]
    except* PolicyError as faults:
        raise first_fault(faults) from faults
    return [task.result() for task in tasks]


def with_seed_of(place: int, request: SampleRequest) -> SampleRequest:
    """Returns the request of one of several turns.

    Args:
        place: of the turn, from 0.
        request: what is asked for all of them.
    """
    return replace(request, seed=request.seed + _SEED_STRIDE * place)
