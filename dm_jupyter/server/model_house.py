"""The models that answer: opened when first needed, kept while in use, closed when idle."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from dm_jupyter.agent.models import open_policy
from dm_jupyter.agent.protocols import Policy
from dm_jupyter.config import ModelChoice
from dm_jupyter.core.errors import EndpointUnreachableError, StreamBrokenError

__all__ = ["ModelHouse"]


@dataclasses.dataclass(slots=True, eq=False)
class _Open:
    """A model that is open, owned by the task that opened it."""

    ready: asyncio.Future[Policy]
    task: asyncio.Task[None] | None = None
    users: int = 0
    idle_since: float = 0.0
    leave: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)


class ModelHouse:
    """Shares one open policy among the runs that want the same model."""

    def __init__(self, default: ModelChoice, idle_s: float = 600.0) -> None:
        """Opens nothing yet.

        Args:
            default: the model of whoever chooses none.
            idle_s: how long a model stays open unused, seconds; a local one holds memory.
        """
        self.default = default
        self._idle_s = idle_s
        self._open: dict[ModelChoice, _Open] = {}
        """What a question gets."""
        self._held: set[_Open] = set()
        """Those too that no question gets any more, until they are closed."""

    def choice(self, name: str) -> ModelChoice:
        """Returns the choice that a name stands for; the default for an empty one.

        What is no model of this machine is another one at the server's endpoint, where it has one.
        """
        from dm_jupyter.agent.local_model.catalogue import is_local_name  # noqa: PLC0415

        if not name or name == self.default.model:
            return self.default
        if self.default.is_local or is_local_name(name):
            return ModelChoice(model=name)
        return dataclasses.replace(self.default, model=name)

    def obstacle(self, name: str) -> str:
        """Returns what keeps a model from answering, and what to do; empty for one that can."""
        # Not at the start of the server: it is needed when a panel asks.
        from dm_jupyter.agent.local_model.readiness import obstacles  # noqa: PLC0415

        choice = self.choice(name)
        return str(next(obstacles(choice.model), "")) if choice.is_local else ""

    def refuse_unlisted(self, name: str) -> None:
        """Lets code choose among the server's model and local ones: others may cost more.

        Raises:
            ValueError: the name stands for another model at the server's endpoint.
        """
        choice = self.choice(name)
        if not choice.is_local and choice != self.default:
            raise ValueError(
                f"a cell can't choose {name!r}: leave --model out, name a local model, or choose "
                "the model in JupyterLab's settings"
            )

    def listed(self) -> list[dict[str, Any]]:
        """Returns what the panel's picker shows, the default first."""
        # Not at the start of the server: it is needed when a panel asks.
        from dm_jupyter.agent.local_model.cache import is_present  # noqa: PLC0415
        from dm_jupyter.agent.local_model.catalogue import DEFAULT_MODEL, MODELS  # noqa: PLC0415

        names = [model.name for model in MODELS if model.fits_here or is_present(model)]
        if not self.default.is_local:
            return [_endpoint_entry(self.default.model), *map(_local_entry, names)]
        first = DEFAULT_MODEL if self.default.model == "local" else self.default.model
        return [*map(_local_entry, dict.fromkeys([first, *names]))]

    @asynccontextmanager
    async def use(
        self, choice: ModelChoice, on_progress: Callable[[str], None]
    ) -> AsyncIterator[Policy]:
        """Yields the model's policy.

        Raises:
            LocalModelError: the local model is missing or can't start.
        """
        entry = self._open.get(choice)
        if entry is None:
            entry = _Open(asyncio.get_running_loop().create_future())
            entry.task = asyncio.create_task(self._hold(choice, entry, on_progress))
            self._open[choice] = entry
            self._held.add(entry)
        entry.users += 1
        try:
            yield await asyncio.shield(entry.ready)
        except (EndpointUnreachableError, StreamBrokenError):
            if choice.is_local:  # its server may be gone: the next question starts another
                self._drop(choice, entry)
            raise
        finally:
            entry.users -= 1
            entry.idle_since = time.monotonic()
            if not entry.users and self._open.get(choice) is not entry:
                entry.leave.set()

    def _drop(self, choice: ModelChoice, entry: _Open) -> None:
        """Has no further question get this one."""
        if self._open.get(choice) is entry:
            del self._open[choice]

    async def _hold(
        self, choice: ModelChoice, entry: _Open, on_progress: Callable[[str], None]
    ) -> None:
        """Opens and closes the model in one task, as its context manager asks."""
        try:
            async with open_policy(choice, on_progress) as policy:
                entry.ready.set_result(policy)
                while not entry.leave.is_set():
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(self._idle_s / 10):
                            await entry.leave.wait()
                    if not entry.users and time.monotonic() - entry.idle_since > self._idle_s:
                        break
                self._drop(choice, entry)  # closing it takes a while
        except BaseException as error:
            if not entry.ready.done():
                entry.ready.set_exception(error)
                entry.ready.exception()  # whoever waits gets it; nobody waiting is no fault
                return
            raise
        finally:
            self._drop(choice, entry)
            self._held.discard(entry)

    async def close(self) -> None:
        """Closes all models."""
        entries = list(self._held)
        for entry in entries:
            entry.leave.set()
            if entry.task is not None and not entry.ready.done():
                entry.task.cancel()
        tasks = [entry.task for entry in entries if entry.task is not None]
        if tasks:
            await asyncio.wait(tasks)


def _endpoint_entry(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": f"{name} (endpoint)",
        "is_local": False,
        "is_present": True,
        "detail": "",
    }


def _local_entry(name: str) -> dict[str, Any]:
    """The entry of a model of this machine; where it can't answer yet, with what to do first."""
    from dm_jupyter.agent.local_model.readiness import obstacles  # noqa: PLC0415

    obstacle = next(obstacles(name), None)
    return {
        "name": name,
        "label": f"{name} (local)",
        "is_local": True,
        "is_present": obstacle is None,
        "detail": str(obstacle or ""),
    }
