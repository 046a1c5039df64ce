"""The models that answer: opened on first use, kept while in use, closed when idle."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from dm_jupyter.config import ModelChoice
from dm_jupyter.core.errors import EndpointUnreachableError, LocalModelError, StreamBrokenError
from dm_jupyter.core.plain_text import shown_address, shown_host
from dm_jupyter.models.http_policy import HttpPolicy
from dm_jupyter.models.opening import open_policy
from dm_jupyter.models.protocols import Policy

__all__ = ["ModelPool", "kept_name"]

_AT = " @ "
"""Separator between a kept endpoint's model and address; no model's own name contains it."""


_LEAST_WAIT_S = 0.5
"""Least time between two looks at whether a model is idle."""
_Key = tuple[ModelChoice, str]
"""A choice, and the name of its server: a replaced file is a different model."""


@dataclasses.dataclass(slots=True, eq=False)
class _Open:
    """A model that is open, owned by the task that opened it."""

    ready: asyncio.Future[HttpPolicy]
    task: asyncio.Task[None] | None = None
    users: int = 0
    idle_since: float = 0.0
    leave: asyncio.Event = dataclasses.field(default_factory=asyncio.Event)

    @property
    def is_served(self) -> bool:
        """Whether it can answer, or is being opened; false if its local server ended."""
        if not self.ready.done() or self.ready.cancelled() or self.ready.exception() is not None:
            return True
        return self.ready.result().is_served


class ModelPool:
    """A pool of open policies; runs with the same model share one."""

    def __init__(self, default: ModelChoice, idle_s: float = 600.0) -> None:
        """Start without open models.

        Args:
            default: the model for questions that choose none.
            idle_s: seconds that an unused model stays open; a local one occupies memory. With 0
                it is closed as soon as nobody uses it.
        """
        self.default = default
        self.kept: tuple[ModelChoice, ...] = ()
        """The endpoints that were set in the panel; the default may be one of them."""
        self._idle_s = idle_s
        self._open: dict[_Key, _Open] = {}
        """Models that a question can get."""
        self._held: set[_Open] = set()
        """All open models, including those that no question gets any more, until they close."""

    def choice(self, name: str) -> ModelChoice:
        """Return the choice that a name means; the default for an empty one.

        A kept endpoint has the name that `kept_name` returns, or that of its model if nothing else
        has it. Any other name that is not a local model's means another model at the server's
        endpoint, if it has one.
        """
        from dm_jupyter.models.local.catalogue import is_local_name  # noqa: PLC0415

        named = next((one for one in self.kept if kept_name(one) == name), None)
        if named is not None:
            return named
        # A forgotten endpoint is treated as local: its questions go to no other endpoint.
        is_local = is_local_name(name) or _AT in name
        is_own = name == self.default.model and not (is_local and self.default in self.kept)
        if is_own or not name:
            return self.default
        if is_local:
            return ModelChoice(model=name)
        alike = [one for one in self.kept if one.model == name]
        if len(alike) == 1:
            return alike[0]
        if self.default.is_local:
            return ModelChoice(model=name)
        return dataclasses.replace(self.default, model=name)

    def obstacle(self, name: str) -> str:
        """Return what keeps a model from answering, and what to do; empty if it can answer."""
        # Not at the start of the server: a panel's request needs it.
        from dm_jupyter.models.local.engine import obstacles  # noqa: PLC0415

        choice = self.choice(name)
        return str(next(obstacles(choice.model), "")) if choice.is_local else ""

    def refuse_unlisted(self, name: str) -> None:
        """Refuse a name that code must not choose: only the default and listed local models pass.

        Others may cost more, or be a file: the code may have written it, and the engine would read
        it with the server's rights.

        Raises:
            ValueError: the name means another model at the server's endpoint, another endpoint
                that was set in the panel, or a file.
        """
        from dm_jupyter.models.local.catalogue import LARGEST, MODELS  # noqa: PLC0415

        listed = {"local", LARGEST, *(model.name for model in MODELS)}
        choice = self.choice(name)
        if choice != self.default and not (choice.is_local and name in listed):
            raise ValueError(
                f"a cell can't choose {name!r}: leave --model and --adapter out, name a local "
                "model of the list, choose the model in JupyterLab's settings, or add --into output"
            )

    def listed(self) -> list[dict[str, Any]]:
        """Return the entries of the panel's picker, the default first."""
        # Not at the start of the server: a panel's request needs it.
        from dm_jupyter.models.local.cache import is_present  # noqa: PLC0415
        from dm_jupyter.models.local.catalogue import DEFAULT_MODEL, MODELS  # noqa: PLC0415

        names = [model.name for model in MODELS if model.fits_here or is_present(model)]
        kept = _kept_entries(sorted(self.kept, key=lambda one: one != self.default))
        if self.default in self.kept:
            return [*kept, *map(_local_entry, names)]
        if not self.default.is_local:
            own = _endpoint_entry(self.default.model, f"{self.default.model} (endpoint)")
            return [own, *map(_local_entry, names)]
        first = DEFAULT_MODEL if self.default.model == "local" else self.default.model
        return [*map(_local_entry, dict.fromkeys([first, *names])), *kept]

    @asynccontextmanager
    async def use(
        self, choice: ModelChoice, on_progress: Callable[[str], None]
    ) -> AsyncIterator[Policy]:
        """Yield the model's policy.

        Raises:
            LocalModelError: the local model is missing or can't start.
        """
        key = _key_of(choice)
        entry = self._open.get(key)
        if entry is not None and not entry.is_served:
            self._drop(key, entry)
            if not entry.users:
                entry.leave.set()
            entry = None
        if entry is None:
            entry = _Open(asyncio.get_running_loop().create_future())
            entry.task = asyncio.create_task(self._hold(key, entry, on_progress))
            self._open[key] = entry
            self._held.add(entry)
        entry.users += 1
        try:
            yield await asyncio.shield(entry.ready)
        except (EndpointUnreachableError, StreamBrokenError):
            if choice.is_local:  # its server may be gone: the next question starts another
                self._drop(key, entry)
            raise
        finally:
            entry.users -= 1
            entry.idle_since = time.monotonic()
            if not entry.users and not self._idle_s:
                self._drop(key, entry)
            if not entry.users and self._open.get(key) is not entry:
                entry.leave.set()

    def _drop(self, key: _Key, entry: _Open) -> None:
        """Stop handing out this model to new questions."""
        if self._open.get(key) is entry:
            del self._open[key]

    async def _hold(self, key: _Key, entry: _Open, on_progress: Callable[[str], None]) -> None:
        """Open and close the model in one task, as its context manager requires."""
        try:
            async with open_policy(key[0], on_progress) as policy:
                entry.ready.set_result(policy)
                while not entry.leave.is_set():
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(max(self._idle_s / 10, _LEAST_WAIT_S)):
                            await entry.leave.wait()
                    if not entry.users and time.monotonic() - entry.idle_since > self._idle_s:
                        break
                self._drop(key, entry)  # closing it takes a while
        except BaseException as error:
            if not entry.ready.done():
                entry.ready.set_exception(error)
                entry.ready.exception()  # waiters get it; it is no fault if there are none
                return
            raise
        finally:
            self._drop(key, entry)
            self._held.discard(entry)

    async def close(self) -> None:
        """Close all models."""
        entries = list(self._held)
        for entry in entries:
            entry.leave.set()
            if entry.task is not None and not entry.ready.done():
                entry.task.cancel()
        tasks = [entry.task for entry in entries if entry.task is not None]
        if tasks:
            await asyncio.wait(tasks)


def _key_of(choice: ModelChoice) -> _Key:
    if not choice.is_local:
        return choice, ""
    # Not at the start of the server: a panel's request needs it.
    from dm_jupyter.models.local.catalogue import resolve  # noqa: PLC0415

    try:
        return choice, resolve(choice.model).served_name
    except LocalModelError:
        return choice, ""  # whoever opens it says why it can't be


def kept_name(choice: ModelChoice) -> str:
    """Return the unique name of a kept endpoint: model and address, without possible secrets."""
    return f"{choice.model}{_AT}{_address(choice)}"


def _address(choice: ModelChoice) -> str:
    """Return the address as it is shown, without `https://`."""
    return shown_address(choice.base_url).removeprefix("https://")


def _kept_entries(kept: list[ModelChoice]) -> list[dict[str, Any]]:
    """Return the entries of kept endpoints; two that look alike get their full addresses."""
    short = [f"{one.model} ({shown_host(one.base_url)})" for one in kept]
    return [
        _endpoint_entry(
            kept_name(one), label if short.count(label) == 1 else f"{one.model} ({_address(one)})"
        )
        for one, label in zip(kept, short, strict=True)
    ]


def _endpoint_entry(name: str, label: str) -> dict[str, Any]:
    return {"name": name, "label": label, "is_local": False, "is_present": True, "detail": ""}


def _local_entry(name: str) -> dict[str, Any]:
    """Return the entry of a local model; if it can't answer yet, with what to do first."""
    from dm_jupyter.models.local.catalogue import resolve  # noqa: PLC0415
    from dm_jupyter.models.local.engine import obstacles  # noqa: PLC0415

    obstacle = next(obstacles(name), None)
    label = name
    with contextlib.suppress(LocalModelError):
        if resolve(name).adapter is not None:  # its name may be the path of a file
            label = resolve(name).name
    return {
        "name": name,
        "label": f"{label} (local)",
        "is_local": True,
        "is_present": obstacle is None,
        "detail": str(obstacle or ""),
    }
