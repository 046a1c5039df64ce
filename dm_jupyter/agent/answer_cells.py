"""The cells that a run's answer needs, and those that may fold away once the answer exists.

An answer needs the cells that its numbers come from, the cells that draw figures or write files,
and their dependencies in earlier cells. If a number has no known source, or an answer has no
numbers, the last cell that showed something counts as well.

The dependencies are a backward slice over names, objects and files. Covered: names that cells
read, objects that they change in place under any name, functions that read or change globals,
files that one cell writes and another reads, options, seeds and magics. If in doubt, a cell is
needed. Not covered: effects visible only at run time. Run the needed cells and compare.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from dm_jupyter.agent.figures.figure_words import is_figure
from dm_jupyter.assist.cell_effects import EarlierCell, Effects, KnownNames, effects_of
from dm_jupyter.core.grounded import Verdict
from dm_jupyter.core.trajectory import Step, StopReason, Trajectory
from kernel_sandbox.types import Display, Output

__all__ = [
    "AnswerLink",
    "ShownCell",
    "answer_cells",
    "made_files",
    "makes_files",
    "needed_cells",
    "needed_for",
    "needless_cells",
]

_MOST_CELLS = 2_000
"""Longest notebook that is sliced; in a longer one all cells are needed."""


@dataclass(frozen=True, slots=True)
class ShownCell:
    """A code cell that has run, with what it showed."""

    source: str
    outputs: Sequence[Output]
    is_whole: bool = True
    """Whether it ran to its end."""

    @property
    def draws(self) -> bool:
        """Whether it shows a figure."""
        return any(isinstance(one, Display) and is_figure(one.data) for one in self.outputs)


@dataclass(frozen=True, slots=True)
class AnswerLink:
    """A number of an answer, and the cell that it comes from."""

    verdict: str
    """A `Verdict`."""
    cell: int | None
    """The index of the cell; `None` if the source is unknown."""


def answer_cells(
    cells: Sequence[ShownCell], links: Iterable[AnswerLink], first: int = 0
) -> frozenset[int]:
    """Return the indices of the cells whose outputs an answer rests on.

    Args:
        cells: all cells that ran up to the answer, in order.
        links: the numbers of the answer.
        first: the index of the first cell of the answer's own run.
    """
    whole = [at for at, cell in enumerate(cells) if cell.is_whole]
    own = [at for at in whole if at >= first]
    numbers = [one for one in links if one.verdict != Verdict.RESTATED]
    found = {one.cell for one in numbers if one.cell is not None} & set(whole)
    if not found or any(one.cell is None for one in numbers):
        found |= set([at for at in own if cells[at].outputs][-1:] or own[-1:])
    written = makes_files(_plain(cells))
    return frozenset(found | {at for at in own if cells[at].draws or at in written})


def needed_for(cells: Sequence[ShownCell], shown: frozenset[int]) -> frozenset[int]:
    """Return the indices of the cells that must run to reproduce the outputs of others.

    Args:
        cells: as for `answer_cells`.
        shown: the indices of the others.
    """
    return needed_cells(_plain(cells), shown)


def needless_cells(trajectory: Trajectory, sources: Sequence[str]) -> frozenset[int]:
    """Return the indices, among the cells of a run, of those that may fold away.

    These are failed attempts, once another cell has run, and cells that the answer doesn't need.
    A cell that a person has changed never folds, nor does any cell of a run without an answer.

    Args:
        trajectory: the run, which has ended.
        sources: the code of the cells that ran, as in the notebook, in order.
    """
    if trajectory.stop is not StopReason.ANSWERED:
        return frozenset()
    steps = [(at, step) for at, step in enumerate(trajectory.steps) if step.result is not None]
    places = {at: place for place, (at, _) in enumerate(steps)}
    cells = [
        ShownCell(source, step.result.outputs if step.result else (), not _has_failed(step))
        for (_, step), source in zip(steps, sources, strict=False)
    ]
    links = [
        AnswerLink(one.verdict, None if one.cell is None else places.get(one.cell))
        for one in trajectory.grounding
    ]
    needed = needed_for(cells, answer_cells(cells, links))
    return frozenset(
        at
        for at, (cell, (_, step)) in enumerate(zip(cells, steps, strict=False))
        if not step.is_edited
        and (at not in needed if cell.is_whole else at < len(cells) - 1)
        and not _says(step, trajectory.answer)
    )


def _plain(cells: Iterable[ShownCell]) -> list[EarlierCell]:
    return [EarlierCell(cell.source, cell.is_whole) for cell in cells]


def _has_failed(step: Step) -> bool:
    """Whether the cell failed, or was sent back and so replaced by the next one."""
    return bool(step.critique) or step.result is None or not step.result.ok


def _says(step: Step, answer: str | None) -> bool:
    """Whether the cell printed the answer itself, as a cell that was sent back may have."""
    said = (answer or "").strip()
    return bool(said) and step.result is not None and said in step.result.stdout


def needed_cells(cells: Sequence[EarlierCell], wanted: Collection[int]) -> frozenset[int]:
    """Return the indices of the cells that must run to reproduce the wanted outputs.

    Args:
        cells: the cells in the order in which they ran, from an empty kernel on.
        wanted: indices of the cells whose outputs are wanted; the result includes them.
    """
    last = max(wanted, default=-1)
    if len(cells) > _MOST_CELLS:
        return frozenset(range(last + 1))
    effects = _effects(cells)
    objects = _Objects(effects)
    slice_, needed = _Slice(), set[int]()
    for place in range(last, -1, -1):
        if place in wanted or slice_.needs(effects[place], objects):
            needed.add(place)
            slice_.take(effects[place], is_whole=cells[place].is_whole)
    return frozenset(needed)


def makes_files(cells: Sequence[EarlierCell]) -> frozenset[int]:
    """Return the indices of the cells that write files by a call made for that purpose."""
    return frozenset(place for place, one in enumerate(_effects(cells)) if one.makes_files)


def made_files(cells: Sequence[EarlierCell]) -> frozenset[str]:
    """Return the base names of files that the cells write before they name them."""
    known, made = set[str](), set[str]()
    for one in _effects(cells):
        made |= one.writes - known
        known |= one.names_files
    return frozenset(made - {"*"})


def _effects(cells: Iterable[EarlierCell]) -> list[Effects]:
    known = KnownNames()
    return [effects_of(cell.source, known) for cell in cells]


class _Objects:
    """Names that may refer to the same object, over the entire notebook."""

    def __init__(self, effects: Iterable[Effects]) -> None:
        self._parent: dict[str, str] = {}
        for one in effects:
            for group in one.shared:
                first, *others = sorted(group) or [""]
                for name in others:
                    self._parent[self._top(name)] = self._top(first)

    def of(self, names: Iterable[str]) -> set[str]:
        """Return the objects of some names."""
        return {self._top(name) for name in names}

    def _top(self, name: str) -> str:
        while (above := self._parent.get(name, name)) != name:
            name = above
        return name


@dataclass(slots=True)
class _Slice:
    """The dependencies of the cells that are needed so far."""

    names: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)
    reads_files: bool = False
    takes_all: bool = False

    def needs(self, before: Effects, objects: _Objects) -> bool:
        """Whether an earlier cell provides something that they depend on."""
        if self.takes_all or before.sets or before.is_opaque:
            return True
        if (before.binds | before.may_bind) & self.names:
            return True
        if objects.of(before.changes) & objects.of(self.names):
            return True
        is_unknown = "*" in before.writes and self.reads_files
        return is_unknown or bool(before.writes & self.files)

    def take(self, needed: Effects, *, is_whole: bool) -> None:
        """Add a cell.

        Args:
            needed: the effects of the cell.
            is_whole: whether it ran to its end, and so bound all of its names.
        """
        if is_whole:
            self.names -= needed.binds
        self.names |= needed.reads
        self.files |= needed.names_files
        self.reads_files |= needed.reads_files
        self.takes_all |= needed.is_opaque
