"""Records of groups of rollouts: each trajectory with its reward, or its fault."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from dm_jupyter.search.groups import GroupMember
from training.durable.log import DurableLog
from training.tokens.store import StoredTokens, TokenStore

__all__ = ["GroupLog", "GroupRecord", "MemberRecord"]

_WAY_OUT = "Remove the line: its group is then sampled again."


@dataclass(frozen=True, slots=True)
class MemberRecord:
    """One rollout of a group."""

    trajectory: Mapping[str, Any] | None
    """`None` if it broke off."""
    reward: float | None
    """`None` if there is a fault, which is not a reward of 0."""
    fault: str
    """What failed; empty if nothing did."""
    tokens: StoredTokens | None = None
    """Reference to the sampled ids; `None` if none were stored."""

    @classmethod
    def of(cls, member: GroupMember, tokens: StoredTokens | None = None) -> Self:
        """Return the record of a rollout that ended."""
        trajectory = member.trajectory.to_json() if member.trajectory else None
        fault = f"{type(member.fault).__name__}: {member.fault}" if member.fault else ""
        return cls(trajectory, member.reward, fault, tokens)


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """The rollouts of one task."""

    id: str
    """Unique id of the group: of the task, and of the round if there are several."""
    members: tuple[MemberRecord, ...]

    @classmethod
    def of(cls, name: str, members: Sequence[GroupMember], store: TokenStore | None = None) -> Self:
        """Return the record of a group.

        Args:
            name: its id.
            members: in order.
            store: receives the sampled ids before the record exists; `None` stores none.

        Raises:
            OSError: the ids can't be written.
        """
        records = []
        for place, member in enumerate(members):
            ended = member.trajectory
            tokens = store.write(f"{name}:{place}", ended) if store and ended else None
            records.append(MemberRecord.of(member, tokens))
        return cls(name, tuple(records))


class GroupLog(DurableLog[str, GroupRecord]):
    """Append-only file of groups, one JSON object per line."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _encoded, _decoded, lambda group: group.id, _WAY_OUT)

    def ids(self) -> set[str]:
        """Return the ids of the groups so far; only one group at a time is in memory.

        Raises:
            LogError: a line other than the last is not a group.
            OSError: the file can't be read.
        """
        return {group.id for group in self.each()}


def _encoded(group: GroupRecord) -> str:
    return json.dumps(asdict(group), ensure_ascii=False)


def _decoded(line: bytes) -> GroupRecord:
    row = json.loads(line)
    return GroupRecord(row["id"], tuple(map(_member, row["members"])))


def _member(raw: Mapping[str, Any]) -> MemberRecord:
    tokens = raw.get("tokens")
    return MemberRecord(**{**raw, "tokens": StoredTokens.from_json(tokens) if tokens else None})
