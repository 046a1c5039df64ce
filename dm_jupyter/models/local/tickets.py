"""Whose request the model works on next, among all who share its server.

Each request takes a ticket: a file in the folder where users and server meet, locked with `flock`,
so that the kernel takes it back from whoever dies. Its name says all that others must know. Nobody
hands out turns: everybody looks at the tickets under `tickets.lock` and comes to the same result.

- A person's question goes before a search, and a search before background work.
- Within one urgency, who came first goes first; nobody overtakes one who waits for more room.
- One prompt is read at a time: two that are read together are both read at half the speed.
- Background work waits while others wait or run. When one comes, it gives its turn back in the
  middle of an answer, and asks again later.

*Not covered*: a program that asks the server directly, with the key of `model serve`. It shares the
engine's slots without a ticket.
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
"""Until the engine has noticed that nobody waits any more for a prompt that it reads.

Who asks before that gets another slot, and all that was read for the one before is read again.
"""
T = TypeVar("T")
_CHARS_PER_TOKEN: Final = 3
_MARGIN: Final = 1.1
_TEMPLATE_TOKENS: Final = 32
_WAITING, _READING, _WRITING = "waiting", "reading", "writing"


class Urgency(IntEnum):
    """Who waits for a turn of the model; the smallest number goes first."""

    QUESTION = 0
    """A person, for this turn."""
    SEARCH = 1
    """A person, for one of the many turns of a search."""
    BACKGROUND = 2
    """Nobody: an evaluation, a prompt that is read ahead."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a request takes of the server."""

    urgency: Urgency
    slots: int
    """Turns that it draws at the same time."""
    tokens: int
    """At most, prompt and turns together."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A ticket, as its file's name tells it."""

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
        """Whether the other one waits for this one."""
        if self.state == _WAITING or self.urgency == Urgency.BACKGROUND:
            return (self.urgency, self.order) < (other.urgency, other.order)
        return True


class Ticket:
    """One request's own ticket. Made, and told to begin, by the queue alone."""

    def __init__(self, folder: Path, need: Need) -> None:
        """Take a ticket. The caller holds `tickets.lock`."""
        # One clock for all processes of the machine.
        numbers = (int(need.urgency), time.monotonic_ns(), need.slots, need.tokens, os.getpid())
        name = "-".join([_WAITING, *map(str, numbers), secrets.token_hex(4)])
        self._path = folder / name
        self._handle: IO[str] = self._path.open("w", encoding="utf-8")
        fcntl.flock(self._handle, fcntl.LOCK_EX)
        self.is_broken_off = False
        """Whether nobody waits any more for what was asked with it."""

    @property
    def entry(self) -> _Entry:
        """What others see of it."""
        return _Entry.of(self._path)

    def begins(self) -> None:
        """Say that its prompt is being read."""
        self._become(_READING)

    def writes(self) -> None:
        """Say that the first word has come; twice does no harm."""
        if not self._path.name.startswith(_WRITING):
            self._become(_WRITING)

    def release(self) -> None:
        """Give it back; once is enough, twice does no harm."""
        if self._handle.closed:
            return
        # Unlocked by name, not only closed: a forked child may still hold the same open file.
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
        """Take no ticket yet.

        Args:
            folder: Where users and server meet; private to this account.
            slots: Turns that the server draws at the same time.
            context_tokens: Its memory, shared by all turns that are being drawn.
        """
        self._lock = folder / "tickets.lock"
        self._folder = folder / "tickets"
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self.slots = slots
        self._context_tokens = context_tokens

    async def answered(
        self,
        need: Need,
        ask: Callable[[Ticket], Coroutine[Any, Any, T]],
        on_wait: Callable[[int], None] = lambda _: None,
    ) -> T:
        """Return what `ask` returns, once its turn has come.

        Background work that is in the way is cancelled and, when its turn comes again, asked again.

        Args:
            need: What the request takes; more than the server has waits until it is alone.
            ask: Sends the request; says on the ticket when the first word has come.
            on_wait: Told how many requests go before this one, each time that it changes, and 0
                once its turn has come.
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
                asyncio.get_running_loop().call_later(_NOTICE_S, ticket.release)
            else:
                ticket.release()

    async def _before(self, ticket: Ticket) -> int | None:
        """Count those that go before a ticket; None when its turn has just come."""
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
        """Wait for background work; False once somebody else came and it was cancelled."""
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
        """Whether somebody who is no background work wants the server."""
        async with self._locked():
            return any(one.urgency < Urgency.BACKGROUND for one in self._live())

    def _live(self) -> list[_Entry]:
        """The tickets whose holder lives and goes on. The caller holds `tickets.lock`."""
        while True:
            found = []
            # One that is gone may only have another name now: then look again.
            with suppress(FileNotFoundError):
                for path in list(self._folder.iterdir()):
                    entry = _Entry.of(path)
                    if not _is_held(path):
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
    """Return about how many tokens a conversation has, rather too many than too few.

    What runs together must fit into the shared context: where it does not, the engine ends all of
    it. Digits and what is not ASCII are often tokens of their own.

    Args:
        messages: As they are sent.
    """
    text = "".join(str(message.get("content")) for message in messages)
    single = sum(not char.isascii() or char.isdigit() for char in text)
    return _TEMPLATE_TOKENS + int(_MARGIN * (single + (len(text) - single) / _CHARS_PER_TOKEN))


def _is_held(path: Path) -> bool:
    """Whether somebody holds the lock of a file that is there; makes none, as opening one would.

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
    """Whether a process was stopped, as with Ctrl-Z: nobody waits for one that does not go on."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return False
