"""The records of a run by level, concept, format or file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from training.records.records import EvalRecord

__all__ = ["UNGROUPED", "by_group", "group_names"]

UNGROUPED = "(none)"
"""Where records stand that have no value of a group that others have."""

_LEVELS = ("easy", "simple", "medium", "moderate", "hard", "challenging")


def group_names(records: Sequence[EvalRecord]) -> list[str]:
    """Returns what the records can be grouped by, in the order in which it first stands."""
    return list(dict.fromkeys(name for record in records for name in record.groups))


def by_group(records: Sequence[EvalRecord], name: str) -> dict[str, list[EvalRecord]]:
    """Returns the records of each value of a group: levels from easy to hard, others by size.

    A record with several values, such as concepts, stands under each; one with none, under
    `UNGROUPED`.
    """
    found: dict[str, list[EvalRecord]] = defaultdict(list)
    for record in records:
        for value in dict.fromkeys(record.groups.get(name, ())) or (UNGROUPED,):
            found[value].append(record)
    return {value: found[value] for value in sorted(found, key=lambda v: _place(v, found))}


def _place(value: str, found: dict[str, list[EvalRecord]]) -> tuple[bool, int, int, str]:
    level = _LEVELS.index(value.lower()) if value.lower() in _LEVELS else len(_LEVELS)
    return value == UNGROUPED, level, -len(found[value]), value
