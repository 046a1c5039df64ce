"""Several turns, each sampled in a separate request."""

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
"""Step between the seeds of two turns: far from those of later turns of the same run."""


async def sample_each(
    sample: Callable[[SampleRequest], Coroutine[Any, Any, Completion]],
    request: SampleRequest,
    count: int,
) -> list[Completion]:
    """Return `count` turns sampled at the same time, each with its own seed.

    Args:
        sample: samples one turn.
        request: the request for all of them.
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
    """Return the request for one of several turns.

    Args:
        place: index of the turn, from 0.
        request: the request for all of them.
    """
    return replace(request, seed=request.seed + _SEED_STRIDE * place)
