"""The tries of a vote, each scored as if it had been alone."""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import StopReason, Trajectory
from tests.training.outcomes import tried, write_run
from training import revote as votes
from training.evaluation.scoring import ScoringPool
from training.records.records import EvalRecord, RecordLog, RunError, read_run
from training.suites.dabench import DABench
from training.suites.registry import find_suite
from training.suites.suite import ItemScore, Outcome, Sample

QUESTION = {
    "id": "dabench-1", "question": "How many?", "constraints": "", "format": "@n[n]",
    "file": "tables/a.csv", "level": "easy", "concepts": [], "label_pairs": [["n", "3"]],
}  # fmt: skip


def _vote(answers: list[str | None], chosen: int = 0) -> EvalRecord:
    task = Task("dabench-1", "How many?", answer_format="@n[n]", metadata={"suite": "dabench"})
    runs = [
        Trajectory(task, "markdown", stop=StopReason.ANSWERED, answer=answer).to_json()
        for answer in answers
    ]
    search = {"kind": "vote", "groups": [], "chosen": chosen, "runs": runs}
    right = answers[chosen] == "@n[3]"
    return replace(tried("dabench-1", right), trajectory=runs[chosen], search=search)


@pytest.fixture
def split(tmp_path: Path) -> Path:
    folder = tmp_path / "split"
    (folder / "tables").mkdir(parents=True)
    (folder / "tables" / "a.csv").write_text("n\n1\n2\n3\n")
    (folder / "questions.jsonl").write_text(json.dumps(QUESTION) + "\n")
    return folder


def _main(monkeypatch: pytest.MonkeyPatch, *arguments: Path | str) -> int:
    monkeypatch.setattr(sys, "argv", ["votes", *map(str, arguments)])
    return votes.main()


def test_a_suite_of_somebody_else_is_named(
    tmp_path: Path, split: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "run", [_vote(["@n[3]"])])
    theirs = ("--split", split, "--suite", "training.suites.dabench:DABench")
    assert _main(monkeypatch, run, *theirs) == 0
    assert _main(monkeypatch, run, "--split", split, "--suite", "absent") == 1
    assert "revote: no suite is called 'absent'" in capsys.readouterr().err


def test_each_try_becomes_a_record_and_the_first_is_the_single_try(
    tmp_path: Path, split: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "run", [_vote(["@n[4]", "@n[3]", None], chosen=1)])
    assert _main(monkeypatch, run, "--split", split) == 0
    found = [read_run(run / "tries" / f"{place}.jsonl")[0] for place in range(3)]
    assert [(one.strict_correct, one.answer) for one in found] == [
        (False, "@n[4]"), (True, "@n[3]"), (False, None),
    ]  # fmt: skip
    printed = capsys.readouterr().out
    assert [line.split()[-2] for line in printed.splitlines() if "%" in line][1:] == [
        "0.0%", "100.0%", "0.0%", "0.0%", "100.0%", "100.0%",
    ]  # fmt: skip
    # Of three different answers a vote takes the first, whatever this one was said to have taken.
    assert [one.answer for one in read_run(run / "tries" / "vote.jsonl")] == ["@n[4]"]
    assert "as it was run" in printed


def test_a_vote_costs_what_all_of_its_tries_cost(
    tmp_path: Path, split: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent = {"tokens": 70, "prompt_tokens": 900, "sampled_cells": 5, "seconds": 12.5}
    run = write_run(tmp_path / "run", [replace(_vote(["@n[3]", "@n[3]"]), **spent)])
    for _ in range(2):  # the second time from what the first has written
        assert _main(monkeypatch, run, "--split", split) == 0
        (vote,) = read_run(run / "tries" / "vote.jsonl")
        assert {name: getattr(vote, name) for name in spent} == spent
        (compact,) = [record.compacted() for record in read_run(run)]
        (run / "records.jsonl").unlink()
        RecordLog(run / "records.jsonl").append(compact)


def test_a_question_whose_data_could_not_be_read_is_wrong_in_every_row(
    tmp_path: Path, split: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    vote = _vote(["@n[4]", "@n[3]"], chosen=1)
    unread = replace(vote, trial=1, strict_correct=False, correct=False, failure="fault", search={})
    run = write_run(tmp_path / "run", [vote, unread])
    assert _main(monkeypatch, run, "--split", split) == 0
    printed = capsys.readouterr().out
    assert [line.split()[-3] for line in printed.splitlines() if "%" in line][1:] == [
        "0", "1", "0", "1", "1",
    ]  # fmt: skip


def test_files_that_are_gone_are_named_where_they_are_what_is_scored(
    tmp_path: Path, split: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    unlike = replace(_vote(["@n[4]", "@n[4]"]), correct=True, strict_correct=True)
    run = write_run(tmp_path / "run", [unlike])
    assert _main(monkeypatch, run, "--split", split) == 1
    assert "its files are gone, so it can't be scored again" in capsys.readouterr().err


def test_a_run_that_went_on_from_compact_records_keeps_the_tries_of_those(
    tmp_path: Path, split: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vote = _vote(["@n[4]", "@n[3]"], chosen=1)
    run = write_run(tmp_path / "run", [vote])
    assert _main(monkeypatch, run, "--split", split) == 0
    before = (run / "tries" / "1.jsonl").read_bytes()
    (run / "tries" / "vote.jsonl").unlink()  # an older release wrote none
    (run / "records.jsonl").unlink()
    RecordLog(run / "records.jsonl").append(vote.compacted())
    RecordLog(run / "records.jsonl").append(replace(vote, trial=1))
    assert _main(monkeypatch, run, "--split", split) == 0
    after = (run / "tries" / "1.jsonl").read_bytes()
    assert after.startswith(before)
    assert [record.trial for record in read_run(run / "tries" / "0.jsonl")] == [0, 1]


def _node(number: int, parent: int | None, said: str | None = None) -> dict[str, object]:
    text = "x" if said is None else f"Final Answer: {said}"
    return {
        "id": number, "parent": parent, "status": None, "answer": said,
        "stop": None if said is None else "answered",
        "messages": [{"role": "assistant", "content": text}],
    }  # fmt: skip


def test_the_answers_of_a_search_are_put_to_the_vote_again(
    tmp_path: Path, split: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Of the root's two children one says 3; of the other's three children two say 4.
    three = [_node(2, 1, "@n[4]"), _node(3, 1, "@n[4]"), _node(4, 1)]
    tree = [_node(0, None), _node(1, 0), *three, _node(5, 0, "@n[3]")]
    record = _vote(["@n[4]"])
    search = replace(record, search={"kind": "search", "nodes": tree}, tokens=99)
    none = tried("dabench-1", False, 1, trajectory=record.trajectory,
                 search={"kind": "search", "nodes": [_node(0, None)]})  # fmt: skip
    run = write_run(tmp_path / "run", [search, none])
    for _ in range(2):  # the second time from what the first has written
        assert _main(monkeypatch, run, "--split", split) == 0
        assert sorted(one.name for one in (run / "tries").iterdir()) == ["any.jsonl", "vote.jsonl"]
        for name in ("any", "vote"):
            found = read_run(run / "tries" / f"{name}.jsonl")
            assert [(one.answer, one.strict_correct, one.tokens) for one in found] == [
                ("@n[3]", True, 99), ("x", False, 100),
            ]  # fmt: skip
        assert "as it was run" in capsys.readouterr().out
        (run / "records.jsonl").unlink()
        for one in (search, none):
            RecordLog(run / "records.jsonl").append(one.compacted())


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (tried("dabench-1", True, trajectory={"task": {"metadata": {"suite": "dabench"}}}),
         "holds neither votes nor a tree"),
        (tried("dabench-1", True), "compact records"),
        (tried("dabench-1", True, trajectory={"steps": []}), "it is; add --suite"),
        (tried("dabench-1", True, trajectory={"task": {"metadata": {}}}), "it is; add --suite"),
        (replace(_vote(["@n[3]"]), id="dabench-2"), "is not in"),
    ],
)  # fmt: skip
def test_what_is_no_vote_is_refused(
    tmp_path: Path, split: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], record: EvalRecord, told: str,
) -> None:  # fmt: skip
    run = write_run(tmp_path / "run", [record])
    assert _main(monkeypatch, run, "--split", split) == 1
    assert told in capsys.readouterr().err
    assert not list(run.glob("tries/*"))


def test_a_try_that_is_not_whole_is_named(split: Path) -> None:
    record = _vote(["@n[3]"])
    del record.search["runs"][0]["steps"]
    suite = find_suite("dabench")
    with (
        closing(ScoringPool(suite, 30)) as scorer,
        pytest.raises(RunError, match=r"dabench-1, try 0: .*steps"),
    ):
        votes.revote(record, suite.load(split)[0], scorer, split)


class Hostile(DABench):
    """A suite that one of the answers ends the process of."""

    def score(self, item: Sample, outcome: Outcome) -> ItemScore:
        if outcome.answer == "@n[5]":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().score(item, outcome)

    def agree(self, item: Sample, one: Outcome, other: Outcome) -> bool:
        if other.answer == "@n[6]":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().agree(item, one, other)


def test_answers_that_end_their_process_get_no_verdict(
    tmp_path: Path, split: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = [replace(_vote(["@n[3]", "@n[6]"]), trial=1), replace(_vote(["@n[5]"] * 2), trial=2)]
    run = write_run(tmp_path / "run", [_vote(["@n[3]", "@n[3]"]), *hostile])
    assert _main(monkeypatch, run, "--split", split, "--suite", f"{__name__}:Hostile") == 0
    first, vote = (read_run(run / "tries" / f"{name}.jsonl") for name in ("0", "vote"))
    assert [one.failure for one in first] == ["", "", "unscored"]
    assert [one.failure for one in vote] == ["", "fault", "unscored"]
    assert "to compare two answers to dabench-1" in vote[1].fault
    assert not vote[1].correct


def test_votes_of_different_numbers_of_tries_are_scored_as_far_as_they_go(
    tmp_path: Path, split: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = replace(_vote(["@n[3]", "@n[3]"]), trial=1)
    run = write_run(tmp_path / "run", [_vote(["@n[4]", "@n[3]", "@n[4]"]), short])
    for _ in range(2):  # the second time beside what the first has written
        assert _main(monkeypatch, run, "--split", split) == 0
        rows = [read_run(run / "tries" / f"{place}.jsonl") for place in range(3)]
        assert [[one.answer for one in row] for row in rows] == [
            ["@n[4]", "@n[3]"], ["@n[3]", "@n[3]"], ["@n[4]"],
        ]  # fmt: skip
        (run / "records.jsonl").unlink()
        for one in (_vote(["@n[4]", "@n[3]", "@n[4]"]), short):
            RecordLog(run / "records.jsonl").append(one.compacted())


def test_the_mode_counts_answers_whatever_their_form(
    tmp_path: Path, split: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "run", [_vote(["@n[nan]", "@n[nan]", "@n[3]"])])
    assert _main(monkeypatch, run, "--split", split) == 0
    assert _main(monkeypatch, run, "--split", split, "--choose", "mode") == 0
    assert "the mode" in capsys.readouterr().out
    (voted,), (most,) = (read_run(run / "tries" / f"{name}.jsonl") for name in ("vote", "mode"))
    assert (voted.answer, most.answer) == ("@n[3]", "@n[nan]")
    assert _main(monkeypatch, run, "--split", split, "--choose", "value") == 1
    assert "have no values: run the search with --value-model" in capsys.readouterr().err
