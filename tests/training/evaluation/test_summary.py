from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.training.outcomes import tried, tries
from training.durable.atomic import write_json
from training.durable.budget import Price
from training.evaluation.summary import print_summary, summary_of, write_summary
from training.metrics.intervals import wilson
from training.records.records import EvalRecord

EASY, HARD = {"level": ["easy"], "file": ["csv"]}, {"level": ["hard"], "file": ["csv"]}


def _one_try() -> list[EvalRecord]:
    """Three questions: right, right by our rules alone, and not answered."""
    parts = {"n": True, "m": True}
    return [
        tried("a", True, groups=EASY, parts=parts, strict_parts=parts),
        tried("b", True, groups=HARD, parts=parts, strict_correct=False, failure="wrong value",
              strict_parts={"n": True, "m": False}, self_corrected=True),
        tried("c", False, groups=HARD, parts={"n": False}, answer=None, failure="turn limit",
              self_corrected=False),
    ]  # fmt: skip


def test_the_summary_keeps_every_question_in_the_denominator() -> None:
    summary = summary_of(_one_try())
    every = summary["all"]
    assert (every["questions"], every["runs"], every["answered"]) == (3, 3, 2)
    assert (every["strict"]["right"], every["ours"]["right"]) == (1, 2)
    assert every["strict"]["share"] == pytest.approx(1 / 3, abs=1e-6)
    assert every["strict"]["interval"] == pytest.approx(wilson(1, 3), abs=1e-6)


def test_every_group_has_its_shares() -> None:
    levels = summary_of(_one_try())["groups"]["level"]
    assert list(levels) == ["easy", "hard"]
    assert (levels["hard"]["questions"], levels["hard"]["ours"]["share"]) == (2, 0.5)


def test_sub_answers_by_both_rules() -> None:
    parts = summary_of(_one_try())["sub_answers"]
    assert parts["ours"] == {**parts["ours"], "pasq": pytest.approx(2 / 3, abs=1e-6), "uasq": 0.8}
    assert parts["strict"] == {**parts["strict"], "pasq": 0.5, "uasq": 0.6}
    assert parts["strict"]["abq"] == pytest.approx(1 / 3, abs=1e-6)


def test_failures_mending_and_costs() -> None:
    summary = summary_of(_one_try(), Price(1.0, 10.0))
    assert summary["failures"] == {"wrong value": 1, "turn limit": 1}
    assert (summary["self_debugging"]["right"], summary["self_debugging"]["runs"]) == (1, 2)
    # 1,000 tokens read at 1.00 and 100 sampled at 10.00 a million, three times
    assert summary["costs"]["dollars"] == {"mean": 0.002, "median": 0.002, "total": 0.006}
    assert "dollars" not in summary_of(_one_try())["costs"]


def test_several_tries_have_passes_and_one_has_none() -> None:
    records = [*tries("a", [True, False]), *tries("b", [False, False])]
    summary = summary_of(records)
    passes = summary["pass_at"]["strict"]
    assert {k: one["share"] for k, one in passes.items()} == {"1": 0.25, "2": 0.5}
    assert passes["2"]["interval"] == summary["any_try"]["strict"]["interval"]
    assert summary["any_try"]["strict"]["share"] == 0.5
    assert summary["all"]["questions"] == 2
    single = summary_of(_one_try())
    assert (single["pass_at"], single["any_try"]) == ({}, {})


def test_ways_to_be_right_are_counted_one_by_one() -> None:
    ways = [{"by_result": True, "by_file": False}, {"by_result": True, "by_file": True}, {}]
    records = [
        tried(str(place), False, parts=parts, has_sub_answers=False)
        for place, parts in enumerate(ways)
    ]
    summary = summary_of(records)
    assert {name: one["share"] for name, one in summary["parts"].items()} == {
        "by_result": pytest.approx(2 / 3, abs=1e-6),
        "by_file": pytest.approx(1 / 3, abs=1e-6),
    }
    assert summary["sub_answers"] == {}
    assert summary_of([tried("a", True, parts={"x": True, "y": True})])["parts"] == {}


def test_grades_are_averaged_and_their_lack_is_told() -> None:
    records = [tried("a", True, grades={"content": 3.0}), tried("b", False)]
    grade = summary_of(records)["grades"]["content"]
    assert grade == {"questions": 1, "ungraded": 1, "mean": 3.0, "interval": None}


def test_a_compact_record_has_the_same_summary() -> None:
    whole = [replace(record, label="3", trajectory={"steps": []}) for record in _one_try()]
    assert summary_of([one.compacted() for one in whole]) == summary_of(whole)


def test_the_file_holds_the_summary(tmp_path: Path) -> None:
    write_summary(_one_try(), tmp_path / "summary.json", Price(1, 1))
    kept = json.loads((tmp_path / "summary.json").read_text())
    assert kept == summary_of(_one_try(), Price(1, 1))
    assert [file.name for file in tmp_path.iterdir()] == ["summary.json"]


def test_a_file_that_can_not_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    file = tmp_path / "summary.json"
    write_json({"a": 1}, file)
    with pytest.raises(ValueError, match="JSON"):
        write_json({"a": float("nan")}, file)
    assert json.loads(file.read_text()) == {"a": 1}
    assert [one.name for one in tmp_path.iterdir()] == ["summary.json"]


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Prints a summary at 100 columns, and returns its lines with single spaces."""
    monkeypatch.setenv("COLUMNS", "100")

    def lines(records: list[EvalRecord], price: Price | None = None) -> list[str]:
        print_summary(records, price)
        out = capsys.readouterr().out
        assert all(len(line) <= 100 for line in out.splitlines())
        return [" ".join(line.split()) for line in out.splitlines()]

    return lines


def test_the_printed_tables_of_one_try(printed) -> None:
    lines = printed(_one_try(), Price(1.0, 10.0))
    assert "3 questions, 3 runs, 2 answered" in lines
    assert "all 3 1 33.3% 6-79 2 66.7% 21-94" in lines
    assert "level easy 1 1 100.0% 21-100 1 100.0% 21-100" in lines
    assert "hard 2 0 0.0% 0-66 1 50.0% 9-91" in lines
    assert "sub-answers, all alike (UASQ) 60.0% 80.0%" in lines
    assert "turn limit 1 33.3%" in lines
    assert "dollars 0.0020 0.0020 0.0060" in lines
    assert any(line.startswith("self-debugging: 1 of 2 runs") for line in lines)
    assert not any("csv" in line for line in lines)  # one value says no more than all do


def test_the_printed_tables_of_several_graded_tries(printed) -> None:
    records = [
        replace(record, grades={"content": 2.0 + 2 * record.correct}, sampled_cells=4)
        for record in [*tries("a", [True, False]), *tries("b", [False, False])]
    ]
    lines = printed(records)
    assert "pass@2 50.0% (9-91) 50.0% (9-91)" in lines
    assert "any of the tries 50.0% (9-91) 50.0% (9-91)" in lines
    assert "content 2.50 2 0" in lines
    assert "cells of all candidates 4.0 4.0 16.0" in lines


def test_no_runs_are_said_to_be_none(printed) -> None:
    assert printed([]) == ["There are no runs to sum up."]
