"""Models of an evaluation: a policy with a limit of concurrent turns, and a value model.

A value model is reached at an address and estimates the values of a search's states.
The protocol is one request: `POST URL` with `{"states": [[{"role": …, "content": …}, …], …]}`. Each
state is the conversation that `training.collect_values` writes as `messages`. The reply is
`{"values": [v, …]}`: one number for each state, from -1 (will fail) to 1 (will be correct).

*Covered*: a reply of another shape, of another length or out of range is refused. *Not covered*:
the states contain the questions and the cells' outputs, and go to whoever owns the address.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

import httpx2

from dm_jupyter.core.errors import PolicyError
from dm_jupyter.core.plain_text import shown_address
from dm_jupyter.core.trajectory import Completion, Trajectory
from dm_jupyter.models.protocols import Policy, SampleRequest
from dm_jupyter.models.sample_each import with_seed_of
from dm_jupyter.search.presampled import sample_many
from dm_jupyter.search.states import shown_state

__all__ = ["BoundedPolicy", "ValueModel", "ValueModelError"]

_TIMEOUT_S = 300.0
_TRIES = 3
_PAUSE_S = 1.0
"""Pause before the second request; twice as long before the third."""


class BoundedPolicy:
    """A `BatchPolicy` with a limit of concurrent turns; a larger batch is split."""

    def __init__(self, policy: Policy, at_once: int) -> None:
        """Wrap a policy.

        Args:
            policy: the model.
            at_once: turns that are sampled at the same time.
        """
        self._policy = policy
        self._at_once = at_once
        self._slots = asyncio.Semaphore(at_once)
        self._door = asyncio.Lock()  # else two batches, each with half of the slots, deadlock

    @property
    def name(self) -> str:
        """The model's name."""
        return self._policy.name

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        """Return one turn, sampled once a slot is free."""
        async with self._taken(1):
            return await self._policy.sample(request, on_text)

    async def sample_many(self, request: SampleRequest, count: int) -> list[Completion]:
        """Return `count` turns, as many at a time as there are slots."""
        drawn: list[Completion] = []
        while len(drawn) < count:
            some = min(self._at_once, count - len(drawn))
            async with self._taken(some):
                drawn += await sample_many(self._policy, with_seed_of(len(drawn), request), some)
        return drawn

    @asynccontextmanager
    async def _taken(self, count: int) -> AsyncIterator[None]:
        taken = 0
        try:
            async with self._door:
                for _ in range(count):
                    await self._slots.acquire()
                    taken += 1
            yield
        finally:
            for _ in range(taken):
                self._slots.release()


class ValueModelError(PolicyError):
    """The value model can't be reached, or its reply is not a list of values."""


class ValueModel:
    """Values of states, for `Search.values`; an async context manager."""

    def __init__(self, url: str) -> None:
        """Create the client without connecting.

        Args:
            url: the address that states are posted to, `http://…` or `https://…`.
        """
        self._url = url
        self._client = httpx2.AsyncClient(timeout=_TIMEOUT_S, trust_env=False)

    async def __aenter__(self) -> Self:
        """Return the model."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connections."""
        await self._client.aclose()

    @property
    def name(self) -> str:
        """The address, without what may be secret in it."""
        return shown_address(self._url)

    async def __call__(self, trajectories: Sequence[Trajectory]) -> list[float]:
        """Return a value for each state, from -1 to 1.

        Raises:
            ValueModelError: the model can't be reached, refuses, or replies with no such values.
        """
        states = [[one.to_json() for one in shown_state(state)] for state in trajectories]
        response = await self._posted({"states": states})
        if response.status_code != httpx2.codes.OK:
            raise self._fault(f"answers {response.status_code} {response.reason_phrase}")
        return self._values(response, len(states))

    async def _posted(self, body: dict[str, Any]) -> httpx2.Response:
        for number in range(1, _TRIES + 1):
            try:
                return await self._client.post(self._url, json=body)
            except httpx2.HTTPError as error:
                if number == _TRIES:
                    why = str(error) or type(error).__name__
                    raise self._fault(f"can't be reached: {why}") from error
            await asyncio.sleep(_PAUSE_S * number)
        raise AssertionError

    def _values(self, response: httpx2.Response, count: int) -> list[float]:
        try:
            values = response.json()["values"]
        except (ValueError, KeyError, TypeError) as error:
            raise self._fault('did not reply with {"values": […]}') from error
        if not isinstance(values, list) or len(values) != count:
            raise self._fault(f"was asked for {count} values and replied with another number")
        for value in values:
            if (
                isinstance(value, bool)
                or not isinstance(value, int | float)
                or not -1 <= value <= 1
            ):
                raise self._fault(f"replied with {value!r}, which is not a number from -1 to 1")
        return [float(value) for value in values]

    def _fault(self, what: str) -> ValueModelError:
        return ValueModelError(f"the value model at {self.name} {what}; see --value-model")
