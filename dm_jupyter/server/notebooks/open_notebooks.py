"""Open notebooks, their tabs and locks, and the journals not yet fully saved to their files.

One of a notebook's tabs owns it and writes it.

A journal is followed from its run's start until the file contains it. Meanwhile every new tab gets
what it missed. When no tab is left to write the notebook, the server writes the file.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import nbformat
from jupyter_core.utils import ensure_async
from nbformat.corpus.words import generate_corpus_id
from tornado.web import HTTPError

from dm_jupyter.agent.notebook_context import PartKind
from dm_jupyter.core.errors import NotebookError
from dm_jupyter.server.background import Tasks
from dm_jupyter.server.history.journal import Journal
from dm_jupyter.server.notebooks.shared_document import SharedDocuments
from dm_jupyter.server.protocol import (
    Ack,
    Attach,
    Attached,
    FileWritten,
    Operated,
    Renamed,
    RunOpened,
    ServerMessage,
    Tells,
)
from dm_jupyter.server.protocol.operations import apply

__all__ = ["NotebookLocks", "OpenNotebook", "OpenNotebooks", "Reservation", "Tab", "write_file"]

_log = logging.getLogger(__name__)
_LEAST_WAIT_S = 0.5
"""Least time between two writes of a notebook that no tab shows."""


@dataclass(slots=True)
class Tab:
    """One browser tab that has the notebook open; it may lose its connection and come back."""

    client_id: str
    send: Callable[[ServerMessage], None]
    seen: dict[str, int] = field(default_factory=dict)
    """The last `seq` that it has, by run id."""
    withheld: tuple[PartKind, ...] | None = None
    """Parts that its settings keep from the model; `None` before it has sent them."""


class OpenNotebook:
    """One notebook and its tabs. The first tab owns it: it applies operations and saves."""

    def __init__(self, notebook_path: str) -> None:
        """Start without tabs.

        Args:
            notebook_path: the path below the server's root, as the contents API names it.
        """
        self.notebook_path = notebook_path
        self.tabs: dict[str, Tab] = {}
        self.owner: str | None = None
        """The client id of the owner; `None` if there is no tab to write."""
        self.last_owner: str | None = None
        """The client id of the last owner, for a tab that comes back."""

    def enter(self, tab: Tab) -> bool:
        """Add a tab, or one that came back, and return whether it owns the notebook now."""
        self.tabs[tab.client_id] = tab
        if self.owner is None:
            self.own(tab.client_id)
        return self.owner == tab.client_id

    def own(self, client_id: str) -> None:
        """Make a tab the owner."""
        self.owner = self.last_owner = client_id

    def leave(self, client_id: str) -> Tab | None:
        """Remove a tab; if it was the owner, return the new one, if there is one."""
        self.tabs.pop(client_id, None)
        if self.owner != client_id:
            return None
        self.owner = None
        new_owner = next(iter(self.tabs.values()), None)
        if new_owner is not None:
            self.own(new_owner.client_id)
        return new_owner

    def publish(self, message: ServerMessage) -> None:
        """Send a message to every tab."""
        for tab in list(self.tabs.values()):
            tab.send(message)


@dataclass(slots=True)
class _Followed:
    """A journal, and the notebook that its run writes."""

    notebook_path: str
    journal: Journal


class OpenNotebooks:
    """All open notebooks of one server."""

    def __init__(self, contents: Any, reconnect_grace_s: float) -> None:
        """Start without notebooks.

        Args:
            contents: the server's contents manager.
            reconnect_grace_s: seconds that a notebook waits for a tab that lost its connection
                before the server writes its file.
        """
        self._reconnect_grace_s = reconnect_grace_s
        self.contents = contents
        self.shared: SharedDocuments | None = None
        """The shared documents, if collaboration is on: runs write to them, not to tabs or files.
        """
        self._tasks = Tasks()
        self._open_notebooks: dict[str, OpenNotebook] = {}
        self._followed: dict[str, _Followed] = {}
        self._lay: dict[str, str] = {}
        """The real path of each notebook's file when a tab or a run first used it."""
        self._writing = asyncio.Lock()
        self._withheld: tuple[PartKind, ...] = ()
        """Parts that the tab that reported last keeps from the model."""

    def __iter__(self) -> Iterator[OpenNotebook]:
        """Iterate over the open notebooks that have a tab."""
        return iter(
            [open_notebook for open_notebook in self._open_notebooks.values() if open_notebook.tabs]
        )

    def publish(self, path: str, message: ServerMessage) -> None:
        """Send a message to every tab of a notebook."""
        open_notebook = self._open_notebooks.get(path)
        if open_notebook is not None:
            open_notebook.publish(message)

    def tell(self, message: Tells, tab: Tab) -> None:
        """Record what a tab's settings keep from the model."""
        self._withheld = tab.withheld = message.withheld

    def withheld(self, path: str) -> tuple[PartKind, ...]:
        """Return the parts that settings keep from the model, for a question that no tab sends.

        These are the parts that any tab of the notebook withholds. Without a tab, they are those
        that some tab reported last.
        """
        open_notebook = self._open_notebooks.get(path)
        said = (
            [tab.withheld for tab in open_notebook.tabs.values()]
            if open_notebook is not None
            else []
        )
        known = [parts for parts in said if parts is not None]
        found = [part for parts in known for part in parts] if known else self._withheld
        return tuple(dict.fromkeys(found))

    def attach(self, message: Attach, tab: Tab) -> OpenNotebook:
        """Attach a tab to a notebook, send it what it missed, and return the open notebook."""
        path = message.notebook_path
        open_notebook = self._open_notebooks.setdefault(path, OpenNotebook(path))
        if not open_notebook.tabs and not self._journals(path):
            self._lay.pop(path, None)  # nobody works on it: trust where it is now
        self._lay.setdefault(path, self._lies(path))
        tab.seen = dict(message.seen)
        is_owner = open_notebook.enter(tab)
        journals = self._whole_journals(path)
        tab.send(self._attached(path, is_owner))
        for journal in journals:
            _send(tab, path, journal, after=tab.seen.get(journal.run_id, 0))
        return open_notebook

    def rename(self, message: Renamed, tab: Tab) -> None:
        """Move a notebook's runs, and the tab that renamed it, to its new path."""
        for followed in self._followed.values():
            if followed.notebook_path == message.old_path:
                followed.notebook_path = message.new_path
        open_notebook = self._open_notebooks.get(message.old_path)
        if open_notebook is not None and tab.client_id in open_notebook.tabs:
            self._open_notebooks.setdefault(message.new_path, OpenNotebook(message.new_path)).enter(
                tab
            )
            self.leave(message.old_path, tab.client_id)

    def leave(self, path: str, client_id: str) -> None:
        """Remove a tab; another one owns the notebook now, or the server writes its file."""
        open_notebook = self._open_notebooks.get(path)
        if open_notebook is None or client_id not in open_notebook.tabs:
            return
        new_owner = open_notebook.leave(client_id)
        if new_owner is not None:
            self._hand_over(path, new_owner)
        elif open_notebook.owner is None and self.shared is None and self._journals(path):
            self._tasks.spawn(self._write_while_abandoned(open_notebook))

    def disconnected(self, tab: Tab) -> None:
        """Remove a tab whose connection is gone, unless it is back on another connection."""
        for open_notebook in list(self):
            if open_notebook.tabs.get(tab.client_id) is tab:
                self.leave(open_notebook.notebook_path, tab.client_id)

    def take_over(self, path: str, client_id: str) -> None:
        """Make another tab the owner."""
        open_notebook = self._open_notebooks.get(path)
        if open_notebook is None or client_id not in open_notebook.tabs:
            return
        open_notebook.own(client_id)
        for tab in open_notebook.tabs.values():
            if tab.client_id == client_id:
                self._hand_over(path, tab)
            else:
                tab.send(self._attached(path, is_owner=False))

    def acknowledge(self, message: Ack) -> None:
        """Record what the owner has saved."""
        followed = self._followed.get(message.run_id)
        if followed is not None and message.is_saved:
            with contextlib.suppress(NotebookError):
                followed.journal.mark_in_file(message.seq)
            self._forget_saved()

    def follow(self, path: str, journal: Journal) -> Journal:
        """Follow a journal: its messages go to the notebook's tabs, its operations to the file.

        Return the journal that is already followed, if there is one for this run.

        Raises:
            ValueError: the journal is damaged; it is not followed, so that it stops no other run.
        """
        if journal.run_id in self._followed:
            return self._followed[journal.run_id].journal
        _check(journal)
        followed = self._followed[journal.run_id] = _Followed(path, journal)
        self._lay.setdefault(path, self._lies(path))
        journal.listen(lambda message: self.publish(followed.notebook_path, message))
        if self.shared is not None:
            self._tasks.spawn(self._share(self.shared, followed))
        return journal

    def drop(self, journal: Journal) -> None:
        """Stop following a journal that is damaged, or whose run was refused.

        No later tab gets it.
        """
        self._followed.pop(journal.run_id, None)

    async def _share(self, shared: SharedDocuments, followed: _Followed) -> None:
        await shared.write(lambda: followed.notebook_path, followed.journal)
        self._forget_saved()

    def is_elsewhere(self, path: str) -> bool:
        """Whether a link replaced the notebook since a tab or a run first used it.

        A kernel that may write to the folder can create one, and the contents manager would follow
        it.
        """
        return self._lay.get(path, lies := self._lies(path)) != lies

    def _lies(self, path: str) -> str:
        """Return the real path of a notebook; the name itself if files are not in a folder."""
        root = getattr(self.contents, "root_dir", "")
        return os.path.realpath(os.path.join(root, path.lstrip("/"))) if root else path  # noqa: PTH118

    def settle(self, path: str) -> None:
        """Write the file if nobody else will; called when a run has ended or was undone."""
        open_notebook = self._open_notebooks.get(path)
        if self.shared is None and (open_notebook is None or open_notebook.owner is None):
            self._tasks.spawn(self._write(path))

    async def close(self) -> None:
        """Write every file that is behind its journals; called at the server's end."""
        await self._tasks.close()
        for path in {followed.notebook_path for followed in self._followed.values()}:
            try:
                await self._write(path)
            except Exception:  # noqa: BLE001  (the boundary of one notebook of many)
                _log.exception("%s was not written at the server's end", path)

    def _hand_over(self, path: str, tab: Tab) -> None:
        """Make a watching tab the writer, and send it what its document does not contain."""
        tab.send(self._attached(path, is_owner=True))
        for journal in self._journals(path):
            _send(tab, path, journal, after=journal.applied_for_sure())

    def _attached(self, path: str, is_owner: bool) -> Attached:
        in_file = {journal.run_id: journal.applied_for_sure() for journal in self._journals(path)}
        return Attached(path, is_owner, is_shared=self.shared is not None, in_file=in_file)

    def _journals(self, path: str) -> list[Journal]:
        return [
            followed.journal
            for followed in self._followed.values()
            if followed.notebook_path == path
        ]

    def _whole_journals(self, path: str) -> list[Journal]:
        """Return a notebook's journals; one that was damaged is dropped, and stops no other run."""
        for journal in self._journals(path):
            try:
                _check(journal)
            except ValueError as error:
                _log.warning("a run of %s is no longer followed: %s", path, error)
                self.drop(journal)
        return self._journals(path)

    async def _write_while_abandoned(self, open_notebook: OpenNotebook) -> None:
        await asyncio.sleep(self._reconnect_grace_s)
        while open_notebook.owner is None and self._journals(open_notebook.notebook_path):
            await self._write(open_notebook.notebook_path)
            if all(journal.is_closed for journal in self._journals(open_notebook.notebook_path)):
                return
            await asyncio.sleep(max(self._reconnect_grace_s, _LEAST_WAIT_S))

    async def _write(self, path: str) -> None:
        async with self._writing:
            if self.is_elsewhere(path):
                _log.warning("%s is not written: a link replaced the notebook", path)
                return
            journals = self._whole_journals(path)
            if not await write_file(self.contents, path, journals):
                return
        in_file = {journal.run_id: journal.in_file for journal in journals}
        self.publish(path, FileWritten(path, in_file))
        self._forget_saved()

    def _forget_saved(self) -> None:
        for run_id, followed in list(self._followed.items()):
            journal = followed.journal
            if journal.is_closed and journal.in_file >= journal.last:
                del self._followed[run_id]


def _check(journal: Journal) -> None:
    """Read a journal.

    Raises:
        ValueError: it is damaged.
    """
    for _ in journal.messages():
        pass


def _send(tab: Tab, path: str, journal: Journal, after: int) -> None:
    """Send what a tab missed of a run, with the current path of the notebook."""
    for message in journal.messages(after=after):
        if isinstance(message, RunOpened):
            message = message.replaced(notebook_path=path)  # noqa: PLW2901
        tab.send(message)


async def write_file(contents: Any, notebook_path: str, journals: Iterable[Journal]) -> bool:
    """Apply what the file does not contain yet, in one read and one write; return whether it did.

    A notebook that was moved or deleted is left alone: the journal keeps everything until a tab
    opens it again.

    Args:
        contents: the server's contents manager.
        notebook_path: the path as the contents API names it.
        journals: the journals of the notebook's runs, oldest first.
    """
    behind = [(journal, journal.last) for journal in journals if journal.in_file < journal.last]
    if not behind:
        return False
    try:
        model = await ensure_async(contents.get(notebook_path, content=True, type="notebook"))
        document = _with_ids(model["content"])
        for journal, _ in behind:
            for message in journal.messages(after=journal.applied_for_sure()):
                if isinstance(message, Operated):
                    apply(message.operation, document)
        nbformat.validate(document)
        saved = {"type": "notebook", "format": "json", "content": document}
        await ensure_async(contents.save(saved, notebook_path))
    except (HTTPError, OSError, nbformat.ValidationError) as error:
        _log.warning("%s can't be written now: %s", notebook_path, error)
        return False
    for journal, last in behind:
        journal.mark_in_file(last)
    return True


def _with_ids(document: Any) -> Any:
    """Return the document with an id for every cell, in format 4.5 or later."""
    if (document["nbformat"], document["nbformat_minor"]) < (4, 5):
        document["nbformat_minor"] = 5
    for cell in document["cells"]:
        cell.setdefault("id", generate_corpus_id())
    return document


@dataclass(eq=False, slots=True)
class Reservation:
    """One notebook, reserved against all other work."""

    path: str
    """Its current path; a rename changes it."""


class NotebookLocks:
    """All reservations; each notebook has one at most."""

    def __init__(self) -> None:
        self._held: list[Reservation] = []

    def __contains__(self, path: str) -> bool:
        """Whether the notebook is reserved."""
        return any(one.path == path for one in self._held)

    @contextmanager
    def hold(self, path: str) -> Iterator[Reservation]:
        """Reserve a notebook until the block ends; callers check first that it is free."""
        held = Reservation(path)
        self._held.append(held)
        try:
            yield held
        finally:
            self._held.remove(held)

    def rename(self, old_path: str, new_path: str) -> None:
        """Move the reservation to the notebook's new path."""
        for one in self._held:
            if one.path == old_path:
                one.path = new_path
