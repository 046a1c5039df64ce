from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Trajectory
from tests.endpoint import ScriptedEndpoint, unused_url
from tests.training.judging import verdict
from tests.training.outcomes import tried, write_run
from training.durable.folder import folder_lock
from training.judge.__main__ import main
from training.judge.judged import (
    Agreement,
    JudgedLog,
    JudgedRecord,
    agreement_of,
    expected_text,
    item_of,
    judgeable,
)
from training.records.records import EvalRecord
from training.suites.sql import SqlLabel

ROW = JudgedRecord("a", 0, "x", "j", "f", True, True, True, "", "")


def _record(name: str, answer: str | None, right: bool, trial: int = 0) -> EvalRecord:
    task = Task(
        name, f"Mean of {name}?", answer_format="@mean[value]", metadata={"suite": "dabench"}
    )
    trajectory = Trajectory(task, "markdown", answer=answer).to_json()
    return tried(name, right, trial, answer=answer, label=[["mean", "2.50"]], trajectory=trajectory)


def _run(folder: Path) -> Path:
    return write_run(
        folder / "run",
        [
            _record("in-form", "@mean[2.50]", True),
            _record("in-words", "The mean is 2.5.", False),
            _record("other", "@mean[7]", False),
            _record("silent", None, False),
        ],
    )


def _judge(run: Path, base_url: str, *more: str) -> int:
    return main([str(run), "--judge-model", "judge-1", "--judge-base-url", base_url,
                 "--at-once", "1", *more])  # fmt: skip


def test_without_an_address_the_judge_is_a_local_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "judge.gguf"
    assert main([str(_run(tmp_path)), "--judge-model", str(missing)]) == 1
    assert str(missing) in capsys.readouterr().err


def _lines(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "judged.jsonl").read_text().splitlines()]


def _rows(marks: Sequence[tuple[bool | None, bool]]) -> list[JudgedRecord]:
    return [
        replace(ROW, id=str(number), judged=judged, right=right)
        for number, (judged, right) in enumerate(marks)
    ]


def test_kappa_by_hand() -> None:
    # Cohen's own layout, 20 5 / 10 15: p_o = 35 / 50 = 0.7; the judge says right 25 of 50, the
    # rules 30 of 50: p_e = 0.5 * 0.6 + 0.5 * 0.4 = 0.5; kappa = (0.7 - 0.5) / (1 - 0.5) = 0.4
    rows = _rows(
        [(True, True)] * 20 + [(True, False)] * 5 + [(False, True)] * 10 + [(False, False)] * 15
    )
    found = agreement_of(rows)
    assert (found.both_right, found.judge_only, found.rules_only, found.both_wrong) == (
        20,
        5,
        10,
        15,
    )
    assert found.accuracy == pytest.approx(0.7)
    assert found.kappa == pytest.approx(0.4)
    assert found.differing == tuple(map(str, range(20, 35)))


def test_kappa_is_unknown_where_chance_explains_all() -> None:
    assert agreement_of([]) == Agreement(0, 0, 0, 0, 0, ())
    assert (agreement_of([]).accuracy, agreement_of([]).kappa) == (None, None)
    assert agreement_of(_rows([(True, True)] * 3)).kappa is None
    assert agreement_of(_rows([(True, False), (False, True)])).kappa == pytest.approx(-1)


def test_answers_without_a_verdict_are_counted_apart() -> None:
    found = agreement_of(_rows([(None, True), (True, True), (None, False)]))
    assert (found.total, found.unscored, found.accuracy, found.differing) == (1, 2, 1.0, ())


def test_the_strict_rules_and_the_try_are_told_apart() -> None:
    rows = [replace(ROW, strict=False), replace(ROW, strict=False, trial=2)]
    assert agreement_of(rows).differing == ()
    assert agreement_of(rows, "strict").differing == ("a", "a#2")


def test_the_command_writes_a_column_and_prints_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = _run(tmp_path)
    before = (run / "records.jsonl").read_bytes()
    with ScriptedEndpoint([verdict(1), verdict(1), verdict(0)]) as endpoint:
        assert _judge(run, endpoint.base_url) == 0
    rows = _lines(run)
    assert [(row["id"], row["right"], row["judged"]) for row in rows] == [
        ("in-form", True, True), ("in-words", False, True), ("other", False, False)
    ]  # fmt: skip
    assert (run / "records.jsonl").read_bytes() == before
    printed = capsys.readouterr().out
    assert "66.7%" in printed  # 2 of 3 agree; by hand kappa = (2/3 - 4/9) / (5/9) = 0.4
    assert "0.40" in printed
    assert "differ on: in-words" in printed
    assert "strict 1, ours 1, judge 2 of 4 (1 without an answer" in printed
    asked = endpoint.bodies[0]["messages"][0]["content"]
    assert "Mean of in-form?\nAnswer format: @mean[value]\n</question>" in asked
    assert "<expected>\n@mean[2.50]\n</expected>" in asked


def test_a_stopped_command_goes_on_where_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = _run(tmp_path)
    with ScriptedEndpoint([verdict(1), "no idea", "no idea", verdict(0)]) as endpoint:
        assert _judge(run, endpoint.base_url) == 0
        assert "no verdict on 1; asked for again next time" in capsys.readouterr().out
        assert [row["judged"] for row in _lines(run)] == [True, None, False]
        with (run / "judged.jsonl").open("a") as file:
            file.write('{"id": "in-f')
        endpoint.texts[:] = [verdict(1)]
        assert _judge(run, endpoint.base_url) == 0
        assert len(endpoint.bodies) == 5
        assert [row["id"] for row in _lines(run)[3:]] == ["in-words"]
        assert _judge(run, endpoint.base_url) == 0
        assert len(endpoint.bodies) == 5


def test_another_judge_or_answer_is_judged_anew(tmp_path: Path) -> None:
    run = _run(tmp_path)
    with ScriptedEndpoint([verdict(1)]) as endpoint:
        _judge(run, endpoint.base_url)
        assert _judge(run, endpoint.base_url, "--judge-model", "judge-2") == 0
        assert len(endpoint.bodies) == 6
        lines = (run / "records.jsonl").read_text().replace("@mean[7]", "@mean[8]")
        (run / "records.jsonl").write_text(lines)
        assert _judge(run, endpoint.base_url, "--judge-model", "judge-2") == 0
    assert len(endpoint.bodies) == 7
    last = JudgedLog(run / "judged.jsonl").by_key()
    assert {row.judge for row in last.values()} == {"judge-2"}
    assert last["other", 0].answer == "@mean[8]"


def test_a_dead_endpoint_stops_the_command_and_keeps_what_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = _run(tmp_path)
    with ScriptedEndpoint([verdict(1)]) as endpoint:
        _judge(run, endpoint.base_url)
        first = (run / "judged.jsonl").read_text().splitlines(keepends=True)[0]
    (run / "judged.jsonl").write_text(first)
    assert _judge(run, unused_url(), "--cache", str(tmp_path / "empty")) == 1
    assert "judge: judge-1 can't be asked: nothing answers" in capsys.readouterr().err
    assert (run / "judged.jsonl").read_text() == first


def test_the_reformatted_answer_is_a_column_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = _run(tmp_path)
    texts = [verdict(1), verdict(1), "@mean[2.5]", verdict(0)]
    with ScriptedEndpoint(texts) as endpoint:
        assert _judge(run, endpoint.base_url, "--reformat") == 0
        assert len(endpoint.bodies) == 4
        assert _judge(run, endpoint.base_url, "--reformat") == 0
        assert _judge(run, endpoint.base_url) == 0
        assert len(endpoint.bodies) == 4
    form, words, other = _lines(run)
    assert (form["reformatted"], form["reformatted_strict"]) == ("@mean[2.50]", True)
    assert (words["answer"], words["right"]) == ("The mean is 2.5.", False)
    assert (words["reformatted"], words["reformatted_right"]) == ("@mean[2.5]", True)
    assert (other["reformatted"], other["reformatted_right"]) == ("@mean[7]", False)
    printed = capsys.readouterr().out
    assert "ours 1, judge 2 of 4" in printed
    assert "reformatted: strict 2, ours 2 of 4 (1 answers rewritten; 0 could not be and" in printed


def test_an_answer_that_could_not_be_reformatted_keeps_its_verdict_and_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = _run(tmp_path)
    texts = [verdict(1), verdict(1), "@mean[9]", "@mean[9]", verdict(0)]
    with ScriptedEndpoint(texts) as endpoint:
        assert _judge(run, endpoint.base_url, "--reformat") == 0
    row = _lines(run)[1]
    assert (row["judged"], row["reformatted"], row["reformatted_right"]) == (True, None, None)
    assert "the answer lacks" in row["reformat_error"]
    said = "of 4 (0 answers rewritten; 1 could not be and count as wrong here)"
    assert said in capsys.readouterr().out


def test_one_judge_at_a_time_and_a_damaged_column_names_the_way_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = _run(tmp_path)
    with folder_lock(run):
        assert _judge(run, unused_url()) == 1
    assert "Another command is at work in" in capsys.readouterr().err
    (run / "judged.jsonl").write_text("[]\n")
    assert _judge(run, unused_url()) == 1
    assert "judged.jsonl, line 1: no record" in (said := capsys.readouterr().err)
    assert "Delete the file and judge again" in said


def test_ctrl_c_ends_the_judge_with_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "training.judge.__main__.judge_answers", Mock(side_effect=KeyboardInterrupt)
    )
    assert _judge(_run(tmp_path), unused_url()) == 130
    assert "the same command again to resume" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda record: record.compacted(), "is compact, without question and label"),
        (lambda record: replace(record, trajectory={"task": {}}), "has no whole task"),
    ],
)
def test_a_record_that_cannot_be_judged_is_named(
    spoil: Any, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "run", [spoil(_record("a", "x", True))])
    assert _judge(run, unused_url()) == 1
    assert message in capsys.readouterr().err
    assert _judge(tmp_path / "absent", unused_url()) == 1
    assert "absent can't be read" in capsys.readouterr().err


def test_options_that_make_no_sense_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = _run(tmp_path)
    for options, message in (
        (["--at-once", "0"], "must be 1 or more"),
        (["--judge-api-key-file", str(tmp_path / "absent")], "can't be read"),
        (["--reformat", "--suite", "absent"], "no suite is called 'absent'"),
    ):
        assert _judge(run, unused_url(), *options) == 1
        assert message in capsys.readouterr().err


def test_a_key_comes_from_a_file_and_never_from_the_agents_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DM_JUPYTER_API_KEY", "of-the-agent")
    run = _run(tmp_path)
    (tmp_path / "key").write_text("of-the-judge\n")
    with ScriptedEndpoint([verdict(1)]) as endpoint:
        _judge(run, endpoint.base_url)
        _judge(run, endpoint.base_url, "--judge-api-key-file", str(tmp_path / "key"),
               "--judge-model", "judge-2")  # fmt: skip
    keys = [headers["authorization"] for headers in endpoint.headers]
    assert keys == ["Bearer none"] * 3 + ["Bearer of-the-judge"] * 3


def test_labels_are_said_in_words() -> None:
    assert expected_text("two") == "two"
    assert expected_text([["a", "1"], ["a", "2"]]) == "@a[1]\n@a[2]"
    assert expected_text({"a": "1"}) == "@a[1]"
    assert expected_text([1, "☃"]) == '[1, "☃"]'
    assert "tables" in expected_text(SqlLabel(((("1",),),), order_matters=False))


def test_an_item_comes_back_from_its_record(tmp_path: Path) -> None:
    (record,) = judgeable(write_run(tmp_path / "run", [_record("a", "x", True)]))
    item = item_of(record)
    assert (item.task.question, item.label) == ("Mean of a?", (("mean", "2.50"),))


def test_a_label_that_json_cannot_hold_needs_the_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = _run(tmp_path)
    monkeypatch.setitem(sys.modules, "their_suite", sys.modules[__name__])
    with ScriptedEndpoint([verdict(1), verdict(1), "@mean[2.5]", verdict(1)]) as endpoint:
        suite = ["--reformat", "--suite", "their_suite:LabelledByObject"]
        assert _judge(run, endpoint.base_url, *suite) == 1
        assert "add --split with the folder of the split" in capsys.readouterr().err
        assert _judge(run, endpoint.base_url, *suite, "--split", str(tmp_path)) == 0
    assert _lines(run)[1]["reformatted_right"] is True


def test_a_reformatted_answer_that_takes_too_long_to_score_has_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = _run(tmp_path)
    monkeypatch.setitem(sys.modules, "their_suite", sys.modules[__name__])
    monkeypatch.setattr("training.judge.__main__._SCORE_SECONDS", 0.5)
    with ScriptedEndpoint([verdict(1), verdict(1), "@mean[2.5]", verdict(0)]) as endpoint:
        suite = ["--reformat", "--suite", "their_suite:NeverDone"]
        assert _judge(run, endpoint.base_url, *suite) == 0
    form, words, _ = _lines(run)
    assert form["reformatted_right"] is True, "an answer in form is not scored again"
    assert (words["judged"], words["reformatted_right"]) == (True, None)
    assert (
        words["reformat_error"] == "never-done took more than 0.5 s to score the answer to in-words"
    )


class LabelledByObject:
    """A suite whose label has an attribute."""

    name = "labelled-by-object"

    def load(self, split: Path) -> list[Any]:
        from training.suites.suite import Sample

        return [Sample(Task("in-words", "?"), Path("@mean[2.5]"))]

    def score(self, item: Any, outcome: Any) -> Any:
        from training.suites.suite import ItemScore

        right = item.label.name == outcome.answer
        return ItemScore(right, right)

    def agree(self, item: Any, one: Any, other: Any) -> bool:
        return one == other


class NeverDone(LabelledByObject):
    """A suite whose rules don't end."""

    name = "never-done"

    def score(self, item: Any, outcome: Any) -> Any:
        import time

        time.sleep(600)
