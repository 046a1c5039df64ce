"""The interface between a set of tasks and whatever runs and scores an agent on it."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from dm_jupyter.core.task import Task

if TYPE_CHECKING:
    from training.marking.judge import Judge

__all__ = ["ItemScore", "JudgedSuite", "Outcome", "Sample", "Suite", "draw"]


@dataclass(frozen=True, slots=True)
class Sample:
    """A task and its label, the expected answer. The agent gets the task and never the label."""

    task: Task
    """The task. Its `metadata` may contain `format`, the kind of answer asked for, and
    `evaluation_only`, if the licence forbids learning from it. It may also contain `licence`, the
    SPDX identifier, and `draw_group`, for a draw in equal shares."""
    label: Any
    """Label in the form of the suite that loaded it."""

    @property
    def category(self) -> str:
        """Category of the question: its group in a draw, else its first concept, else `all`."""
        group = str(self.task.metadata.get("draw_group", ""))
        return group or next(iter(self.task.concepts), "all")


@dataclass(frozen=True, slots=True)
class ItemScore:
    """The verdict on one answer."""

    correct: bool
    """Verdict by our rules."""
    strict_correct: bool
    """Verdict by the benchmark's own rules, or by the narrowest if it has none."""
    parts: Mapping[str, bool] = field(default_factory=dict)
    """Parts of the verdict; the suite defines what each name means."""
    strict_parts: Mapping[str, bool] = field(default_factory=dict)
    """Parts by the strict rules; empty if the suite does not distinguish them."""
    grades: Mapping[str, float] = field(default_factory=dict)
    """Graded scores by name, if the benchmark has any; the suite defines their range."""
    has_sub_answers: bool = False
    """Whether the parts are answers that must all be correct, not alternative ways to succeed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a run: its answer and its files."""

    answer: str
    """The agent's last answer; empty if it gave none."""
    folder: Path
    """The agent's working folder, as the run left it."""


@runtime_checkable
class Suite(Protocol):
    """A set of tasks. An implementation has no state, so threads may share it.

    `score` and `agree` run in a process of their own, which gets copies of the suite and its
    samples. `pickle` must be able to store both, so a suite's class is defined in a module, not in
    a function.
    """

    @property
    def name(self) -> str:
        """Name of the suite in lower case, as the registry uses it."""
        ...

    def load(self, split: Path) -> list[Sample]:
        """Return the samples of a split in the file's order; called once before a run.

        An implementation must not assume that any other split exists, and reads nothing outside
        the folder.

        Args:
            split: the folder of the split.

        Raises:
            RecordError: a record is invalid; the message names file, row and field.
        """
        ...

    def score(self, item: Sample, outcome: Outcome) -> ItemScore:
        """Return the verdict; called once for each run that ended, with or without an answer.

        A wrong, empty or malformed answer gives a score, never an exception, and so does an empty
        folder. An implementation must not run what the agent wrote.

        Args:
            item: a sample that this suite loaded.
            outcome: the result of the run.
        """
        ...

    def agree(self, item: Sample, one: Outcome, other: Outcome) -> bool:
        """Return whether two runs agree by the rules of `score`; votes are counted with it.

        An implementation must not look at the label. Two empty answers do not agree.

        Args:
            item: a sample that this suite loaded.
            one: the result of a run.
            other: the result of another run.
        """
        ...


@runtime_checkable
class JudgedSuite(Suite, Protocol):
    """A suite whose verdict needs a model; `score` gives only what can be judged without one."""

    async def judge(self, item: Sample, outcome: Outcome, judge: Judge) -> ItemScore:
        """Return the verdict with the grades of a judge; called instead of `score`.

        Args:
            item: a sample that this suite loaded.
            outcome: the result of the run.
            judge: the model that marks the answer.

        Raises:
            NoReplyError: the judge could not be asked, or its reply is not a verdict.
        """
        ...


def draw(
    items: Sequence[Sample], limit: int | None, seed: int, levels: Collection[str] = ()
) -> list[Sample]:
    """Return `limit` samples in their order: the same for the same samples, levels and seed.

    Each group in `metadata["draw_group"]` gets the same share. What a small group can't fill goes
    to the others, and the remainder of the division to random groups that have more. Samples
    without a group form one group. With a single group, all samples have the same chance.

    Args:
        items: the samples to draw from.
        limit: the number to draw; `None`, or more than there are, means all.
        seed: the seed of the draw.
        levels: samples of other levels are left out; empty means all.

    Raises:
        ValueError: the limit is below zero, or no item has one of the levels.
    """
    if levels:
        known = sorted({item.task.level for item in items if item.task.level})
        items = [item for item in items if item.task.level in levels]
        if not items:
            raise ValueError(
                f"No question has the level {' or '.join(sorted(levels))}. "
                f"Levels of this split: {', '.join(known) or 'none'}."
            )
    if limit is not None and limit < 0:
        raise ValueError(f"can't draw {limit} items: the limit must be 0 or more")
    if limit is None or limit >= len(items):
        return list(items)
    chance = random.Random(seed)  # noqa: S311  (no secret)
    groups: dict[str, list[int]] = {}
    for place, item in enumerate(items):
        groups.setdefault(str(item.task.metadata.get("draw_group", "")), []).append(place)
    names = list(groups)
    if len(names) > 1:
        chance.shuffle(names)  # so that the remainder of an uneven division goes to random groups
    shares = _equal_shares([len(groups[name]) for name in names], limit)
    places = [
        place
        for name, share in zip(names, shares, strict=True)
        for place in chance.sample(groups[name], share)
    ]
    return [items[place] for place in sorted(places)]


def _equal_shares(sizes: Sequence[int], total: int) -> list[int]:
    """Return how many to take of each: as equal as sizes allow, the rest to the first ones."""
    shares = list(sizes)
    waiting = sorted(range(len(sizes)), key=sizes.__getitem__)
    left = total
    while waiting and sizes[waiting[0]] <= left // len(waiting):
        left -= sizes[waiting.pop(0)]
    for turn, place in enumerate(sorted(waiting)):
        shares[place] = left // len(waiting) + (turn < left % len(waiting))
    return shares
