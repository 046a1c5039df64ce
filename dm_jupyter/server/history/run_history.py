"""Past runs, on disk in the person's own data folder: listed, searched, deleted.

All servers of an account share that folder by default. Each lists the runs of its own root, and
those without one: runs of older versions, which kept none, and of folders that were moved or
deleted. Only the former belong to a notebook.

Trajectories for training are written without secrets and folders of this machine.
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_notebook

from dm_jupyter.agent.notebook_file import replace_text
from dm_jupyter.core.errors import NotebookError
from dm_jupyter.core.trajectory import StopReason, Trajectory
from dm_jupyter.server.history.journal import Journal
from dm_jupyter.server.history.memory import MOST_TOLD, Memory, read_memory
from dm_jupyter.server.history.summaries import (
    FILE_NAME,
    Summary,
    read_summaries,
    read_summary,
)
from dm_jupyter.server.protocol import CellOpened, Operated, RunClosed, operations
from dm_jupyter.server.protocol.operations import SetExecution

__all__ = ["Redaction", "RunHistory"]

_log = logging.getLogger(__name__)
_CUT_OFF = "the server stopped during the run. Ask again to continue"
_NO_ROOT = (
    "An older version kept no folder of this run, so its notebook is not written: "
    "export the run from the history"
)
_SHORTEST_SECRET = 8
_SECRETS = re.compile(
    r"""(?x)
    \b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}            # keys of model providers
    | \bgh[pousr]_[A-Za-z0-9]{20,}               # tokens of code hosts
    | \bAKIA[0-9A-Z]{16}\b                       # keys of clouds
    | \bxox[abprs]-[A-Za-z0-9-]{10,}             # tokens of chats
    | \beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+   # signed web tokens
    | -----BEGIN[ A-Z]*PRIVATE[ ]KEY-----.*?-----END[ A-Z]*PRIVATE[ ]KEY-----
    | (?<=://)[^/\s:@]+:[^/\s:@]+(?=@)           # user and password in an address
    """,
    re.DOTALL,
)


class RunHistory:
    """A folder with one folder for each run, which no other account may read."""

    def __init__(
        self, folder: Path, root: Path, redaction: Redaction, training_file: Path | None = None
    ) -> None:
        """Open the folder, which need not exist yet.

        Args:
            folder: the folder of the runs.
            root: the real path of the server's folder, below which its notebooks are.
            redaction: removes what a trajectory must not contain.
            training_file: the file to which every trajectory is added as a line; `None` for none.
        """
        self.folder = folder
        self.root = root
        self._redaction = redaction
        self._training_file = training_file

    def begin(self) -> Journal:
        """Return the journal of a new run, held until the caller releases it.

        Raises:
            OSError: the folder can't be written.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        folder = self.folder / f"{stamp}-{secrets.token_hex(4)}"
        folder.mkdir(mode=0o700)
        journal = Journal(folder)
        journal.hold()
        return journal

    def journal(self, run_id: str) -> Journal:
        """Return the journal of a past run.

        Raises:
            KeyError: there is no such run.
        """
        folder = self.folder / run_id
        if Path(run_id).name != run_id or not folder.is_dir() or run_id in ("", ".", ".."):
            raise KeyError(run_id)
        return Journal(folder)

    def summaries(self, notebook_path: str = "", query: str = "") -> list[Summary]:
        """Return the runs of a notebook, or all, whose text contains all words of the query."""
        words = query.casefold().split()
        runs = self._runs_in(notebook_path) if notebook_path else self._listed()
        return [
            run
            for run in runs
            if all(
                word in f"{run.question} {run.answer or ''} {' '.join(run.files)}".casefold()
                for word in words
            )
        ]

    def memories(self, notebook_path: str) -> list[tuple[Summary, Memory]]:
        """Return the last answered runs of a notebook with what is kept of them, newest first."""
        answered = (run for run in self._runs_in(notebook_path) if run.answer)
        return [(run, read_memory(self.folder / run.run_id)) for run in islice(answered, MOST_TOLD)]

    def summary(self, run_id: str) -> Summary:
        """Return the summary of a run of this root's notebooks.

        Raises:
            KeyError: there is no such run, or its root is another one, or not known.
        """
        found = read_summary(self.journal(run_id).folder)
        if found is None or found.root != str(self.root):
            raise KeyError(run_id)
        return found

    def _listed(self) -> Iterator[Summary]:
        is_there = cache(os.path.isdir)
        return (
            run
            for run in read_summaries(self.folder)
            if run.may_end_in(self.root) or not is_there(run.root)
        )

    def _runs_in(self, notebook_path: str) -> Iterator[Summary]:
        """Yield the runs of a notebook of this server, newest first."""
        where = (str(self.root), notebook_path)
        runs = read_summaries(self.folder)
        return (run for run in runs if (run.root, run.notebook_path) == where)

    def keep(self, summary: Summary) -> None:
        """Write a run's summary.

        Raises:
            OSError: the folder can't be written.
        """
        replace_text(self.folder / summary.run_id / FILE_NAME, json.dumps(summary.to_json()))

    def rename(self, old_path: str, new_path: str) -> None:
        """List the runs of a notebook under another path from now on.

        Raises:
            OSError: the folder can't be written.
        """
        for summary in self._runs_in(old_path):
            self.keep(replace(summary, notebook_path=new_path))

    def keep_trajectory(self, journal: Journal, trajectory: Trajectory) -> None:
        """Write the run as a trajectory, without secrets and folders of this machine.

        A line of the training file that a full disk cut short stays apart from the next one.

        Raises:
            OSError: the folder can't be written.
        """
        text = json.dumps(self._redaction.applied_to(trajectory.to_json()), ensure_ascii=False)
        replace_text(journal.folder / "trajectory.json", text + "\n")
        if self._training_file is not None:
            with self._training_file.open("a+b") as file:
                if file.tell():
                    file.seek(-1, os.SEEK_END)
                    text = text if file.read(1) == b"\n" else "\n" + text
                file.write(f"{text}\n".encode())

    def trajectory_line(self, run_id: str) -> str:
        """Return the run's trajectory as one line of JSON.

        Raises:
            KeyError: there is no such run, or it has not ended.
        """
        try:
            return (self.journal(run_id).folder / "trajectory.json").read_text("utf-8")
        except FileNotFoundError as error:
            raise KeyError(run_id) from error

    def notebook(self, run_id: str) -> str:
        """Return what the run wrote, as the text of a separate notebook.

        Raises:
            KeyError: there is no such run.
        """
        document = new_notebook()
        for message in self.journal(run_id).messages():
            if isinstance(message, RunClosed):  # later messages undo the run
                break
            if isinstance(message, Operated):
                operations.apply(message.operation, document)
        whole = nbformat.from_dict(document)
        nbformat.validate(whole)
        return str(nbformat.writes(whole))

    def is_active(self, run_id: str) -> bool:
        """Whether a server works on a run, this one or another.

        Raises:
            KeyError: there is no such run.
        """
        journal = self.journal(run_id)
        is_free = journal.hold()
        journal.release()
        return not is_free

    def delete(self, run_id: str) -> None:
        """Delete all that is kept of a run.

        Raises:
            KeyError: there is no such run.
        """
        shutil.rmtree(self.journal(run_id).folder)

    def close_cut_off(self) -> list[Summary]:
        """End the runs that a server's end cut off, and return those of this root's notebooks.

        A run of an older version, which kept no root, ends without being returned: nobody knows
        which notebook it worked in. So does a run whose journal is damaged; the log names the file.
        A run on which a server still works is left alone, and so is one of another root.
        """
        runs = (run for run in read_summaries(self.folder) if run.may_end_in(self.root))
        ended = [self._end_cut_off(run.run_id) for run in runs if run.stop is None]
        return [run for run in ended if run is not None and run.root]

    def _end_cut_off(self, run_id: str) -> Summary | None:
        """End a run; return its summary unless a server works on it, has ended it, or it broke."""
        try:
            journal = self.journal(run_id)
        except (KeyError, OSError) as error:  # another server has deleted it, or the disk fails
            _log.warning("run %s was cut off, and can't be ended now: %r", run_id, error)
            return None
        if not journal.hold():
            return None
        try:
            summary = read_summary(journal.folder)
            if summary is None or summary.stop is not None:
                return None
            try:
                closed = _closed(journal, summary)
            except ValueError as error:
                _log.warning("a run was cut off, and its journal is damaged: %s", error)
                self.keep(replace(summary, stop=StopReason.FAULT.value))
                return None
            self.keep(summary.closed(closed))
            return summary.closed(closed)
        except (OSError, NotebookError) as error:
            _log.warning("run %s was cut off, and can't be ended now: %s", run_id, error)
            return None
        finally:
            journal.release()


def _closed(journal: Journal, summary: Summary) -> RunClosed:
    """Return the end of a run, which is written now if the journal has none.

    Raises:
        NotebookError: the journal can't be written.
        ValueError: the journal is damaged; the text says where.
    """
    if not journal.is_closed:
        _close(journal, summary)
    for message in journal.messages():
        if isinstance(message, RunClosed):
            return message
    raise ValueError(f"{journal.folder}: the run's end can't be read")


def _close(journal: Journal, summary: Summary) -> None:
    running: set[str] = set()
    turns = cells = 0
    for message in journal.messages():
        if isinstance(message, Operated) and isinstance(message.operation, SetExecution):
            change = running.add if message.operation.is_running else running.discard
            change(message.operation.cell_id)
        if isinstance(message, CellOpened):
            cells, turns = cells + 1, message.step
    for cell_id in sorted(running):
        journal.operate(SetExecution(cell_id, is_running=False))
    journal.add(
        RunClosed,
        stop=StopReason.FAULT.value,
        detail=_CUT_OFF if summary.root else f"{_CUT_OFF}. {_NO_ROOT}",
        answer=None,
        unsupported=(),
        turns=turns,
        cells=cells,
        tokens=0,
        seconds=max(0.0, time.time() - summary.at),
    )


class Redaction:
    """Replacement of known secrets, of texts that look like one, and of known folders.

    Covered: the texts given, and secrets of common shapes. Not covered: anything in the data
    itself, such as the names of people.
    """

    def __init__(self, folders: Iterable[Path], secrets: Iterable[str]) -> None:
        """Prepare the replacements.

        Args:
            folders: folders of this machine; the longest match is replaced.
            secrets: texts that must not appear anywhere, such as keys and tokens in use.
        """
        paths = {str(folder) for folder in folders if len(folder.parts) > 1}
        self._folders = sorted(paths, key=len, reverse=True)
        self._secrets = [secret for secret in secrets if len(secret) >= _SHORTEST_SECRET]

    def add_secret(self, secret: str) -> None:
        """Add a text that must not appear anywhere from now on."""
        if len(secret) >= _SHORTEST_SECRET and secret not in self._secrets:
            self._secrets.append(secret)

    def applied_to(self, value: Any) -> Any:
        """Return a JSON value with every text in it cleaned."""
        if isinstance(value, str):
            return self._clean(value)
        if isinstance(value, dict):
            return {self._clean(str(key)): self.applied_to(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.applied_to(item) for item in value]
        return value

    def _clean(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "[secret]")
        text = _SECRETS.sub("[secret]", text)
        for folder in self._folders:
            text = text.replace(folder, "[folder]")
        return text
