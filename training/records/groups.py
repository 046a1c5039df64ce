"""What is kept of a group of rollouts: each trajectory with its reward, or its fault."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from dm_jupyter.search.groups import GroupMember
from training.durable.log import DurableLog

__all__ = ["GroupLog", "GroupRecord", "MemberRecord"]


@dataclass(frozen=True, slots=True)
class MemberRecord:
    """One rollout of a group."""

    trajectory: Mapping[str, Any] | None
    """`None` where it broke off."""
    reward: float | None
    """`None` where there is a fault: that is no reward of 0."""
    fault: str
    """What broke; empty where nothing did."""

    @classmethod
    def of(cls, member: GroupMember) -> Self:
        """Returns the record of a rollout that ended."""
        trajectory = member.trajectory.to_json() if member.trajectory else None
        fault = member.fault
        return cls(trajectory, member.reward, f"{type(fault).__name__}: {fault}" if fault else "")


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """The rollouts of one task."""

    id: str
    """What tells the group from all others: of the task, and of the round where there are many."""
    members: tuple[MemberRecord, ...]

    @classmethod
    def of(cls, name: str, members: Sequence[GroupMember]) -> Self:
        """Returns the record of a group."""
        return cls(name, tuple(map(MemberRecord.of, members)))


class GroupLog(DurableLog[str, GroupRecord]):
    """A file of groups, one JSON object a line, only ever appended to."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _encoded, _decoded, lambda group: group.id)

    def ids(self) -> set[str]:
        """Returns the ids of the groups so far; memory holds one group at a time.

        Raises:
            LogError: a line other than the last is no group.
            OSError: the file can't be read.
        """
        return {group.id for group in self.each()}


def _encoded(group: GroupRecord) -> str:
    return json.dumps(asdict(group), ensure_ascii=False)


def _decoded(line: bytes) -> GroupRecord:
    row = json.loads(line)
    return GroupRecord(row["id"], tuple(MemberRecord(**one) for one in row["members"]))
