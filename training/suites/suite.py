"""The seam between a set of tasks and whatever runs and scores an agent on it."""

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
    """A task and what is expected of it. The agent gets the task and never the label."""

    task: Task
    """Its `metadata` may say: `format`, the kind of answer asked for; `evaluation_only`, where the
    licence forbids to learn from it; `licence`, its SPDX identifier; `draw_group`, for a draw of
    equal shares."""
    label: Any
    """In the form of the suite that loaded it."""


@dataclass(frozen=True, slots=True)
class ItemScore:
    """The verdict on one answer."""

    correct: bool
    """By our rules."""
    strict_correct: bool
    """By the benchmark's own rules, or the narrowest where it has none."""
    parts: Mapping[str, bool] = field(default_factory=dict)
    """What the verdict is made of; the suite says what each name means."""
    strict_parts: Mapping[str, bool] = field(default_factory=dict)
    """The same by the strict rules; empty where the suite does not tell them apart."""
    grades: Mapping[str, float] = field(default_factory=dict)
    """Graded scores by name, where the benchmark has such; the suite says their range."""
    has_sub_answers: bool = False
    """Whether the parts are answers of which all must be right, and not ways to be right."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run left."""

    answer: str
    """The agent's last answer; empty where it gave none."""
    folder: Path
    """The agent's working folder, as the run left it."""


@runtime_checkable
class Suite(Protocol):
    """A set of tasks. An implementation holds no state: it may be shared between threads.

    `score` and `agree` run in a process of their own, which gets the suite and its items as copies:
    both must be what `pickle` takes, so a suite's class stands in a module, not in a function.
    """

    @property
    def name(self) -> str:
        """The name to ask for it by, in lower case; the registry reads it."""
        ...

    def load(self, split: Path) -> list[Sample]:
        """Returns the items of a split in the file's order; called once before a run.

        It may not assume that any other split exists, and reads nothing outside the folder.

        Args:
            split: the folder of the split.

        Raises:
            RecordError: a record is not as it should be; the message names file, row and field.
        """
        ...

    def score(self, item: Sample, outcome: Outcome) -> ItemScore:
        """Returns the verdict; called once for each run that ended, with or without an answer.

        A wrong, empty or malformed answer is a score, never an exception, and so is an empty
        folder. It may not run what the agent wrote.

        Args:
            item: an item that this suite loaded.
            outcome: what the run left.
        """
        ...

    def agree(self, item: Sample, one: Outcome, other: Outcome) -> bool:
        """Returns whether two runs say the same by the rules of `score`; votes are counted by it.

        It may not look at the label. Two empty answers do not agree.

        Args:
            item: an item that this suite loaded.
            one: what a run left.
            other: what another run left.
        """
        ...


@runtime_checkable
class JudgedSuite(Suite, Protocol):
    """A suite whose verdict needs a model: `score` alone is what can be said without one."""

    async def judge(self, item: Sample, outcome: Outcome, judge: Judge) -> ItemScore:
        """Returns the verdict with the grades of a judge; called instead of `score`.

        Args:
            item: an item that this suite loaded.
            outcome: what the run left.
            judge: the model that is asked.

        Raises:
            JudgeError: the judge could not be asked, or its words are no verdict.
        """
        ...


def draw(
    items: Sequence[Sample], limit: int | None, seed: int, levels: Collection[str] = ()
) -> list[Sample]:
    """Return `limit` items in their order: the same ones for the same items, levels and seed.

    Items that name a group in `metadata["draw_group"]` are drawn so that each group gets the same
    share; what a small group can't fill goes to the others, and what does not come out even to
    any of those that have more, by chance. Items without a group form
    one of their own, and where there is one group only, all items have the same chance.

    Args:
        items: what to draw from.
        limit: how many; None, or more than there are, means all.
        seed: of the draw.
        levels: items of other levels are left out; empty takes all.

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
        chance.shuffle(names)  # a share that does not come out even is nobody's by right
    shares = _equal_shares([len(groups[name]) for name in names], limit)
    places = [
        place
        for name, share in zip(names, shares, strict=True)
        for place in chance.sample(groups[name], share)
    ]
    return [items[place] for place in sorted(places)]


def _equal_shares(sizes: Sequence[int], total: int) -> list[int]:
    """How many to take of each: as equal as the sizes allow, the rest to the first ones."""
    shares = list(sizes)
    waiting = sorted(range(len(sizes)), key=sizes.__getitem__)
    left = total
    while waiting and sizes[waiting[0]] <= left // len(waiting):
        left -= sizes[waiting.pop(0)]
    for turn, place in enumerate(sorted(waiting)):
        shares[place] = left // len(waiting) + (turn < left % len(waiting))
    return shares
