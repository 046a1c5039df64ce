"""The log of groups: rewards, faults, and where the sampled ids are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dm_jupyter.agent.candidates import Candidate
from dm_jupyter.core.errors import EndpointUnreachableError
from dm_jupyter.core.trajectory import Trajectory
from dm_jupyter.search.groups import GroupMember
from tests.training.tokens.test_store import FIRST, SECOND, held, trajectory
from training.records.groups import GroupLog, GroupRecord
from training.tokens.store import TokenStore


def test_a_group_is_read_as_it_was_written_with_its_sampled_ids(tmp_path: Path) -> None:
    ended = trajectory(FIRST, SECOND)
    without = replace(ended, steps=())
    members = [
        GroupMember(Candidate(ended), None, 1.0, None),
        GroupMember(None, None, None, EndpointUnreachableError("gone")),
        GroupMember(Candidate(without), None, 0.0, None),
    ]
    store, log = TokenStore(tmp_path / "tokens"), GroupLog(tmp_path / "groups.jsonl")
    written = GroupRecord.of("q/7", members, store)
    log.append(written)
    (read,) = log.read()
    assert read == written
    assert log.ids() == {"q/7"}
    first, broken, last = read.members
    assert (first.reward, last.reward, last.tokens) == (1.0, 0.0, None)
    assert (broken.trajectory, broken.reward, broken.tokens) == (None, None, None)
    assert broken.fault == "EndpointUnreachableError: gone"
    assert first.tokens is not None
    assert first.trajectory is not None
    again = store.restored(Trajectory.from_json(first.trajectory), first.tokens)
    assert held(again) == [FIRST, SECOND]


def test_a_group_without_a_store_keeps_text_alone(tmp_path: Path) -> None:
    group = GroupRecord.of("q", [GroupMember(Candidate(trajectory(FIRST)), None, 1.0, None)])
    GroupLog(tmp_path / "groups.jsonl").append(group)
    assert GroupLog(tmp_path / "groups.jsonl").read() == [group]
    assert group.members[0].tokens is None
