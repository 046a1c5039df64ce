"""The memory of earlier runs that a notebook's next question gets, with what changed since.

It is written beside each run's journal at the run's end, and read without the journal, because a
question waits for it. Covered: questions, code, answers and figures of earlier runs; a restarted
kernel, a changed data file, a cell that a person edited. Not covered: what the person ran in
between.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dm_jupyter.agent.notebook_context import TOLD, ContextPart, NotebookCell, without_secrets
from dm_jupyter.agent.notebook_file import replace_text
from dm_jupyter.agent.observe import figures_in, shorten
from dm_jupyter.core.codec import decode_json, encode_json
from dm_jupyter.core.trajectory import Trajectory
from dm_jupyter.server.history.summaries import Summary

__all__ = [
    "MOST_TOLD",
    "Memory",
    "WrittenCell",
    "before",
    "figures_shown",
    "read_memory",
    "tables_told",
    "without_told",
]

FILE_NAME = "memory.json"
MOST_TOLD = 3
"""Most runs that a question's prompt describes."""
_FIGURES, _QUESTION_CHARS = 6, 200
_MOST_CHARS = 200_000
"""Most characters of a run's code; of a run with more, nothing is kept."""


@dataclass(frozen=True, slots=True)
class WrittenCell:
    """A code cell that a run has written."""

    id: str
    source: str


@dataclass(frozen=True, slots=True)
class Memory:
    """What is kept of a run for later questions."""

    cells: tuple[WrittenCell, ...] = ()
    figures: tuple[str, ...] = ()
    """What each figure shows, in a line."""
    kernel: str = ""
    """The process in which they ran, as `KernelRegistry.process_of` names it."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Each data file's size and modification time, which show whether it was written since."""

    def keep(self, folder: Path) -> None:
        """Write the memory into the run's folder.

        Raises:
            OSError: the folder can't be written.
        """
        kept = self if sum(len(cell.source) for cell in self.cells) <= _MOST_CHARS else Memory()
        replace_text(folder / FILE_NAME, encode_json(kept))


def read_memory(folder: Path) -> Memory:
    """Return what is kept of a run; empty if it was cut off, or is older than this file."""
    try:
        return decode_json(Memory, (folder / FILE_NAME).read_bytes(), FILE_NAME)
    except (OSError, ValueError):
        return Memory()


def figures_shown(trajectory: Trajectory) -> tuple[str, ...]:
    """Return what the last figures of a run show, a line each.

    Args:
        trajectory: the trajectory of the run.
    """
    results = [step.result for step in trajectory.steps if step.result is not None]
    return tuple(figure for result in results for figure in figures_in(result))[-_FIGURES:]


def before(
    earlier: Iterable[tuple[Summary, Memory]],
    now: Memory,
    cells: Sequence[NotebookCell],
    chars: int,
) -> tuple[ContextPart, ...]:
    """Return the prompt's parts on earlier runs: one on all runs, one on changes since the last.

    Args:
        earlier: the notebook's runs with what is kept of them, newest first.
        now: the kernel and the files of the question, as they are.
        cells: the cells of the notebook, as the person sees them.
        chars: most characters of all runs together; the last run has half of them.
    """
    answered = [(run, memory) for run, memory in earlier if run.answer][:MOST_TOLD]
    if not answered:
        return ()
    told = [_run(*answered[0], chars // 2)]
    told += [_run(*one, chars // 2 // (MOST_TOLD - 1)) for one in answered[1:]]
    text = "\n\n".join(["Asked before in this notebook:", *reversed(told)])
    changes = _changes(answered, now, cells)
    parts = [ContextPart("changes", "\n".join(["Since then:", *changes]))] if changes else []
    return (ContextPart("earlier", text), *parts)


def without_told(
    cells: Iterable[NotebookCell], earlier: Iterable[tuple[Summary, Memory]]
) -> list[NotebookCell]:
    """Return the cells, with those marked that `before` shows already.

    Args:
        cells: the cells of the notebook.
        earlier: the earlier runs, as for `before`.
    """
    ids = {cell.id for _, memory in earlier for cell in memory.cells}
    return [replace(cell, role=TOLD) if cell.id in ids else cell for cell in cells]


def tables_told(tables: Iterable[Mapping[str, Any]]) -> tuple[ContextPart, ...]:
    """Return the prompt's parts on the kernel's tables that a question names."""
    return tuple(ContextPart("data", _table(table)) for table in tables)


def _run(summary: Summary, memory: Memory, chars: int) -> str:
    """Describe a run within `chars`; the answer has priority, then its figures, then its code."""
    answer = shorten(str(summary.answer), chars // 2)
    text = f"Q: {summary.question}\nA: {answer}"
    text += "".join(f"\nIts figure: {figure}" for figure in memory.figures)
    code = without_secrets("\n\n".join(cell.source.strip() for cell in memory.cells))
    room = chars - len(text)
    return f"{text}\nIts code:\n{shorten(code, room)}" if code and room > 100 else text


def _changes(
    runs: Sequence[tuple[Summary, Memory]], now: Memory, cells: Sequence[NotebookCell]
) -> list[str]:
    """Return what changed since the runs, a line or more each; the runs are newest first."""
    memories = [memory for _, memory in reversed(runs)]
    known = {name: state for memory in memories for name, state in memory.files.items()}
    changes = _restarts(runs, now.kernel)
    changes += [
        f"- The file {posixpath.basename(name)} was changed: what was read of it before, into "
        "variables too, is out of date."
        for name, state in now.files.items()
        if known.get(name, state) != state
    ]
    written = {cell.id: cell.source for memory in memories for cell in memory.cells}
    for cell in cells:
        if cell.id in written and not _is_same(cell.source, written[cell.id]):
            source = shorten(without_secrets(cell.source.strip()), 600)
            ran = "" if cell.count is not None else " It has not been run since."
            changes.append(f"- The person edited a cell of these runs.{ran} It is now:\n{source}")
    return changes


def _restarts(runs: Sequence[tuple[Summary, Memory]], kernel: str) -> list[str]:
    """Return a line on the runs whose kernel is gone: on all of them, or on each."""
    gone = [run for run, memory in runs if memory.kernel not in ("", kernel)]
    rest = "are gone, unless they are listed as alive."
    if len(gone) == len(runs):
        return [f"- The kernel was restarted: variables of these runs {rest}"]
    return [
        f'- The kernel was restarted after "{shorten(run.question, _QUESTION_CHARS)}": variables '
        f"of that run {rest}"
        for run in reversed(gone)
    ]


def _is_same(shown: str, written: str) -> bool:
    """Whether a cell is unchanged; a tab cuts the middle out of a long one."""
    head, _, tail = shown.strip().partition("\n…\n")
    written = written.strip()
    return shown.strip() == written or (
        bool(tail) and written.startswith(head) and written.endswith(tail)
    )


def _table(table: Mapping[str, Any]) -> str:
    shape = " x ".join(str(size) for size in table["shape"])
    lines = [f"The kernel holds the {table['kind']} `{table['name']}` ({shape}); do not load it:"]
    for column in table["columns"]:
        samples = ", ".join(column["samples"])
        lines.append(f"- {column['name']} ({column['dtype']}): {samples}")
    return "\n".join(lines)
