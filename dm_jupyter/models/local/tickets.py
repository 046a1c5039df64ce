"""The order of requests among all users of one server.

Each request takes a ticket: a file in the folder shared by users and server. It is locked with
`flock`, so the kernel releases it if its holder dies. Its name contains all that others must know.
There is no central scheduler. Every user reads the tickets under `tickets.lock` and reaches the
same result.

- A person's question goes before a search, and a search before background work.
- Within one urgency, requests run in order of arrival. None overtakes one that waits for more room.
- One prompt is read at a time: two that are read together are both read at half the speed.
- Background work waits while others wait or run. When another request arrives, background work
  yields in the middle of an answer, and is repeated later.

*Not covered*: a program that calls the server directly, with the key of `model serve`. It shares
the engine's slots without a ticket.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import IO, Any, Final, TypeVar

from dm_jupyter.models.local.runtime import try_lock

__all__ = ["Need", "RequestQueue", "Ticket", "Urgency", "tokens_of"]

_POLL_S: Final = 0.1
_LOCK_POLL_S: Final = 0.01
_NOTICE_S: Final = 1.5
"""Time until the engine notices that nobody waits any more for the prompt it is reading.

A request before that gets another slot, and the prefix read for the cancelled one is read again.
"""
T = TypeVar("T")
_CHARS_PER_TOKEN: Final = 3
_MARGIN: Final = 1.1
_TEMPLATE_TOKENS: Final = 32
_WAITING, _READING, _WRITING = "waiting", "reading", "writing"


class Urgency(IntEnum):
    """The party that waits for a turn of the model; the smallest number goes first."""

    QUESTION = 0
    """A person, for this turn."""
    SEARCH = 1
    """A person, for one of the many turns of a search."""
    BACKGROUND = 2
    """Nobody: an evaluation, or a prefetched prompt."""


@dataclass(frozen=True, slots=True)
class Need:
    """The resources that a request takes of the server."""

    urgency: Urgency
    slots: int
    """Turns that it samples at the same time."""
    tokens: int
    """Upper limit of tokens, prompt and turns together."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A ticket, as parsed from its file's name."""

    path: Path
    state: str
    urgency: int
    order: int
    slots: int
    tokens: int
    pid: int

    @classmethod
    def of(cls, path: Path) -> _Entry:
        state, *numbers = path.name.split("-")[:6]
        return cls(path, state, *map(int, numbers))

    def goes_before(self, other: _Entry) -> bool:
        """Whether the other ticket waits for this one."""
        if self.state == _WAITING or self.urgency == Urgency.BACKGROUND:
            return (self.urgency, self.order) < (other.urgency, other.order)
        return True


class Ticket:
    """One request's own ticket. Only the queue creates it and lets it begin."""

    def __init__(self, folder: Path, need: Need) -> None:
        """Take a ticket; the caller holds `tickets.lock`."""
        # One clock for all processes of the machine.
        numbers = (int(need.urgency), time.monotonic_ns(), need.slots, need.tokens, os.getpid())
        name = "-".join([_WAITING, *map(str, numbers), secrets.token_hex(4)])
        self._path = folder / name
        self._handle: IO[str] = self._path.open("w", encoding="utf-8")
        fcntl.flock(self._handle, fcntl.LOCK_EX)
        self.is_broken_off = False
        """Whether nobody waits any more for the answer to its request."""

    @property
    def entry(self) -> _Entry:
        """The ticket as others see it."""
        return _Entry.of(self._path)

    @property
    def mark(self) -> str:
        """Random end of its name, which stays the same while its state changes."""
        return _mark_of(self._path)

    def begins(self) -> None:
        """Record that its prompt is being read."""
        self._become(_READING)

    def writes(self) -> None:
        """Record that the first token has arrived; a second call has no effect."""
        if not self._path.name.startswith(_WRITING):
            self._become(_WRITING)

    def release(self) -> None:
        """Release the ticket; a second call has no effect."""
        if self._handle.closed:
            return
        # Unlocked explicitly, not only closed: a forked child may still hold the same open file.
        fcntl.flock(self._handle, fcntl.LOCK_UN)
        self._handle.close()
        self._path.unlink(missing_ok=True)

    def _become(self, state: str) -> None:
        self._path = self._path.rename(
            self._path.with_name("-".join([state, *self._path.name.split("-")[1:]]))
        )


class RequestQueue:
    """The tickets of one server, for one of its users."""

    def __init__(self, folder: Path, slots: int, context_tokens: int) -> None:
        """Create the queue without taking a ticket.

        Args:
            folder: Shared by users and server; private to this account.
            slots: Turns that the server samples at the same time.
            context_tokens: Its memory, shared by all turns that are being sampled.
        """
        self._lock = folder / "tickets.lock"
        self._folder = folder / "tickets"
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self.slots = slots
        self._context_tokens = context_tokens
        self._own = set[str]()
        """Marks of the tickets of this queue, which are held while they are here."""

    async def answered(
        self,
        need: Need,
        ask: Callable[[Ticket], Coroutine[Any, Any, T]],
        on_wait: Callable[[int], None] = lambda _: None,
    ) -> T:
        """Wait for the turn of a request, send it, and return the result of `ask`.

        Background work that is in the way is cancelled, and repeated when its turn comes again.

        Args:
            need: What the request takes; one that needs more than the server has runs alone.
            ask: Sends the request, and records the first token on the ticket.
            on_wait: Called with the number of requests ahead at each change, and with 0 once its
                turn has come.
        """
        while True:
            async with self._turn(need, on_wait) as ticket:
                if need.urgency < Urgency.BACKGROUND:
                    return await ask(ticket)
                asking = asyncio.create_task(ask(ticket))
                if await self._is_left_alone(asking):
                    return asking.result()
                ticket.is_broken_off = True

    @asynccontextmanager
    async def _turn(self, need: Need, on_wait: Callable[[int], None]) -> AsyncIterator[Ticket]:
        async with self._locked():
            ticket = Ticket(self._folder, need)
            self._own.add(ticket.mark)
        try:
            told = 0
            while (before := await self._before(ticket)) is not None:
                if before != told:
                    on_wait(before)
                    told = before
                await asyncio.sleep(_POLL_S)
            if told:
                on_wait(0)
            yield ticket
        except asyncio.CancelledError:
            ticket.is_broken_off = True
            raise
        finally:
            if ticket.is_broken_off and ticket.entry.state == _READING:
                asyncio.get_running_loop().call_later(_NOTICE_S, self._release, ticket)
            else:
                self._release(ticket)

    def _release(self, ticket: Ticket) -> None:
        ticket.release()
        self._own.discard(ticket.mark)

    async def _before(self, ticket: Ticket) -> int | None:
        """Count the requests before a ticket; None if its turn has just come."""
        async with self._locked():
            mine = ticket.entry
            others = [one for one in self._live() if one.path != mine.path]
            before = [one for one in others if one.goes_before(mine)]
            if self._has_room(mine, others) and all(one.state != _WAITING for one in before):
                ticket.begins()
                return None
        return len(before)

    def _has_room(self, mine: _Entry, others: list[_Entry]) -> bool:
        running = [one for one in others if one.state != _WAITING]
        if mine.urgency == Urgency.BACKGROUND and any(one.urgency < mine.urgency for one in others):
            return False
        if any(one.state == _READING for one in running):
            return False
        slots = mine.slots + sum(one.slots for one in running)
        tokens = mine.tokens + sum(one.tokens for one in running)
        return not running or (slots <= self.slots and tokens <= self._context_tokens)

    async def _is_left_alone(self, asking: asyncio.Task[Any]) -> bool:
        """Wait for background work; return False if it was cancelled for another request."""
        try:
            while not asking.done():
                await asyncio.wait([asking], timeout=_POLL_S)
                if not asking.done() and await self._is_wanted():
                    asking.cancel()
                    await asyncio.wait([asking])
                    return not asking.cancelled()
        finally:
            if not asking.done():  # we are cancelled ourselves
                asking.cancel()
                await asyncio.wait([asking])
        return True

    async def _is_wanted(self) -> bool:
        """Whether a request other than background work wants the server."""
        async with self._locked():
            return any(one.urgency < Urgency.BACKGROUND for one in self._live())

    def _live(self) -> list[_Entry]:
        """Return the tickets of live, running holders; the caller holds `tickets.lock`.

        Those of this queue are not examined: many of them wait at once, and each looks often.
        """
        while True:
            found = []
            # A missing one may only have been renamed: list the folder again.
            with suppress(FileNotFoundError):
                for path in list(self._folder.iterdir()):
                    entry = _Entry.of(path)
                    if _mark_of(path) in self._own:
                        found.append(entry)
                    elif not _is_held(path):
                        path.unlink()
                    elif not _is_stopped(entry.pid):
                        found.append(entry)
                return found

    @asynccontextmanager
    async def _locked(self) -> AsyncIterator[None]:
        while (handle := try_lock(self._lock)) is None:  # noqa: ASYNC110 another process holds it
            await asyncio.sleep(_LOCK_POLL_S)
        try:
            yield
        finally:
            handle.close()


def tokens_of(messages: Iterable[Mapping[str, Any]]) -> int:
    """Return an estimate of a conversation's tokens, rather too many than too few.

    Concurrent requests must fit into the shared context, or the engine ends all of them. Digits and
    non-ASCII characters are often separate tokens.

    Args:
        messages: As they are sent.
    """
    text = "".join(str(message.get("content")) for message in messages)
    single = sum(not char.isascii() or char.isdigit() for char in text)
    return _TEMPLATE_TOKENS + int(_MARGIN * (single + (len(text) - single) / _CHARS_PER_TOKEN))


def _mark_of(path: Path) -> str:
    return path.name.rpartition("-")[2]


def _is_held(path: Path) -> bool:
    """Whether a process holds the lock of an existing file; never creates the file.

    Raises:
        FileNotFoundError: There is no such file.
    """
    with path.open("rb") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _is_stopped(pid: int) -> bool:
    """Whether a process is stopped, as with Ctrl-Z; nobody waits for a stopped process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return False
