"""Selection of correct runs: few per question, no category too large, some held back."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from training.collect.examining import CollectedRun

__all__ = [
    "Balance",
    "Selection",
    "balance_of",
    "first_of_each_question",
    "held_ids",
    "in_one_dialect",
    "shortest_of_equals",
]


def shortest_of_equals(runs: Iterable[CollectedRun]) -> list[CollectedRun]:
    """Return the shortest run of each question and program, in question order."""
    shortest: dict[tuple[str, str], CollectedRun] = {}
    for run in sorted(runs, key=_by_question):
        shortest.setdefault((run.record.id, run.program), run)
    return list(shortest.values())


def first_of_each_question(runs: Iterable[CollectedRun], most: int) -> list[CollectedRun]:
    """Return the shortest runs of each question, at most `most` per question."""
    found = groupby(sorted(runs, key=_by_question), key=lambda run: run.record.id)
    return [run for _, mine in found for run in list(mine)[:most]]


def _by_question(run: CollectedRun) -> tuple[str, tuple[int, int, int]]:
    return run.record.id, run.length


@dataclass(frozen=True, slots=True)
class Balance:
    """Remaining runs when the share of each category is limited."""

    runs: list[CollectedRun]
    share: float
    """Largest share of a category."""
    limit: int
    """Most runs of a category."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The runs of a dataset."""

    balance: Balance
    held: set[str]
    """Ids of the questions whose runs are held back."""
    variants: list[CollectedRun]
    """Added to the runs, at most one of a kind for each question."""


def balance_of(runs: Sequence[CollectedRun], share: float, seed: int) -> Balance:
    """Return the runs that remain when no category may exceed a share of them.

    Every category has the same limit, the largest number L with L at most the share of all that
    remain. With few categories, the share is at least twice an even one, because otherwise no L
    might exist. A category over the limit loses second runs of a question first, then random ones.

    Args:
        runs: of all categories.
        share: the largest share of a category, above 0.
        seed: of the random choice.
    """
    sizes = Counter(run.category for run in runs)
    share = max(share, 2 / max(1, len(sizes)))
    limits = range(max(sizes.values(), default=0), 0, -1)
    limit = next((one for one in limits if one <= share * _left(sizes, one)), 0)
    rank: Counter[str] = Counter()
    order: dict[tuple[str, int], tuple[int, str]] = {}
    for run in sorted(runs, key=_by_question):
        order[run.key] = rank[run.record.id], _chance(seed, *map(str, run.key))
        rank[run.record.id] += 1
    taken: Counter[str] = Counter()
    kept = set()
    for run in sorted(runs, key=lambda one: order[one.key]):
        if taken[run.category] < limit:
            taken[run.category] += 1
            kept.add(run.key)
    return Balance([run for run in runs if run.key in kept], min(share, 1.0), limit)


def _left(sizes: Mapping[str, int], limit: int) -> int:
    return sum(min(size, limit) for size in sizes.values())


def held_ids(runs: Sequence[CollectedRun], share: float, seed: int) -> set[str]:
    """Return the ids of the questions whose runs are held back, to measure the held loss.

    Questions that share a data file stay on one side. If all share one file, the split is by
    question. At most the share is held back, but at least one group if there are several.

    Args:
        runs: that were selected.
        share: of the runs, from 0 to 1.
        seed: of the random choice.
    """
    groups = _groups(runs)
    if len(groups) < 2:
        groups = {run.record.id: {run.record.id} for run in runs}
    if not share or len(groups) < 2:
        return set()
    sizes = Counter(run.record.id for run in runs)
    chance = sorted(groups, key=lambda name: _chance(seed, name))
    held: set[str] = set()
    most = share * len(runs)
    for name in chance[:-1]:
        if sum(sizes[one] for one in held | groups[name]) <= most:
            held |= groups[name]
    if held:
        return held
    return min((groups[name] for name in chance), key=lambda ids: sum(sizes[one] for one in ids))


def in_one_dialect(runs: Sequence[CollectedRun], seed: int) -> list[CollectedRun]:
    """Return the runs, each in one of its dialects, drawn at random with even shares.

    Args:
        runs: that were selected.
        seed: of the random choice.
    """
    chance = [_chance(seed, *map(str, run.key)) for run in runs]
    found = list(runs)
    for place, at in enumerate(sorted(range(len(runs)), key=chance.__getitem__)):
        exported = list(runs[at].exported.items())
        found[at] = replace(runs[at], exported=dict([exported[place % len(exported)]]))
    return found


def _groups(runs: Iterable[CollectedRun]) -> dict[str, set[str]]:
    """Return groups of questions that share data files, directly or through others, by name."""
    groups: list[tuple[set[str], set[str]]] = []
    by_question: defaultdict[str, set[str]] = defaultdict(set)
    for run in runs:
        by_question[run.record.id] |= run.tables or {run.record.id}
    for name, tables in by_question.items():
        mine, files = {name}, set(tables)
        apart = []
        for others, theirs in groups:
            if theirs & files:
                mine |= others
                files |= theirs
            else:
                apart.append((others, theirs))
        groups = [*apart, (mine, files)]
    return {min(files): mine for mine, files in groups}


def _chance(seed: int, *names: str) -> str:
    return hashlib.sha256("\n".join([str(seed), *names]).encode()).hexdigest()
