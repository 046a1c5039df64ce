import json
from dataclasses import replace
from pathlib import Path

import pytest

from dm_jupyter.agent.loop import RunSettings
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import StopReason
from kernel_sandbox.types import CellStatus
from tests.fakes import ScriptedPolicy, printed, raised
from training.evaluate import EvalOptions, evaluate
from training.records import EvalRecord, RecordLog, failure_of
from training.summary import print_summary, summary_of, wilson, write_summary
from training.tasks.dabench import DABench
from training.tasks.suite import ItemScore

from dm_jupyter.core.trajectory import (  # isort: skip
    Completion,
    RunCell,
    Step,
    Trajectory,
    Turn,
)


def _split(folder: Path, count: int = 3) -> Path:
    (folder / "tables").mkdir(parents=True)
    (folder / "tables" / "t.csv").write_text("a\n1\n2\n3\n")
    rows = [
        {
            "id": f"q{number}",
            "question": "How many rows?",
            "constraints": "",
            "format": "@n[n]",
            "file": "tables/t.csv",
            "level": "easy",
            "concepts": [],
            "label_pairs": [["n", "3"]],
            "flags": [],
        }
        for number in range(count)
    ]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def _ended(results: list, stop: StopReason, answer: str | None = None) -> Trajectory:
    start = Trajectory(Task("t", "q", level="easy"), "markdown", stop=stop, answer=answer)
    for result in results:
        step = Step(Completion("x", completion_tokens=5), Turn("", RunCell("x")), result, "told")
        start = start.extended(step)
    return start


@pytest.mark.parametrize(
    ("results", "stop", "answer", "kind"),
    [
        ([printed("")], StopReason.ANSWERED, "@n[4]", "wrong value"),
        ([printed("")], StopReason.ANSWERED, "@n[nan]", "undefined value"),
        ([raised("KeyError"), raised("KeyError")], StopReason.TURN_LIMIT, None,
         "same exception again"),
        ([raised("KeyError"), raised("ValueError")], StopReason.TURN_LIMIT, None,
         "exception not mended"),
        ([printed("no tag")], StopReason.TURN_LIMIT, None, "not printed"),
        ([printed("", CellStatus.TIMEOUT)], StopReason.TURN_LIMIT, None, "timeout"),
        ([], StopReason.TURN_LIMIT, None, "void"),
        ([], StopReason.FAULT, None, "fault"),
    ],
)  # fmt: skip
def test_failures_by_kind(results: list, stop: StopReason, answer: str, kind: str) -> None:
    assert failure_of(_ended(results, stop, answer)) == kind


def _record(name: str, *, right: bool) -> EvalRecord:
    trajectory = _ended([printed("")], StopReason.ANSWERED, "@n[3]")
    score = ItemScore(right, right, {"n": right})
    return replace(EvalRecord.of(trajectory, score, [["n", "3"]]), id=name)


def test_records_survive_a_line_that_broke_off(tmp_path: Path) -> None:
    log = RecordLog(tmp_path / "records.jsonl")
    log.append(_record("a", right=True))
    with (tmp_path / "records.jsonl").open("a") as file:
        file.write('{"id": "b", "lev')
    assert [record.id for record in log.read()] == ["a"]
    log.append(_record("b", right=False))
    assert [record.id for record in log.read()] == ["a", "b"]


def test_a_compact_record_keeps_the_outcome_and_none_of_the_benchmarks_text() -> None:
    record = _record("a", right=True)
    compact = record.compacted()
    assert (compact.label, compact.trajectory) == (None, {})
    assert summary_of([compact]) == summary_of([record])


def test_a_line_that_is_no_record_is_named(tmp_path: Path) -> None:
    (tmp_path / "records.jsonl").write_text('{"id": 1}\n')
    with pytest.raises(ValueError, match="line 1"):
        RecordLog(tmp_path / "records.jsonl").read()


def test_wilson_interval() -> None:
    # by hand, 22 of 43: centre (0.5116 + 3.8415 / 86) / 1.0893, spread 0.1446 after scaling
    low, high = wilson(22, 43)
    assert low == pytest.approx(0.3675, abs=5e-4)
    assert high == pytest.approx(0.6538, abs=5e-4)
    assert wilson(0, 0) == (0.0, 1.0)


def test_the_summary_keeps_every_question_in_the_denominator(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = [_record("a", right=True), _record("b", right=False)]
    summary = summary_of(records)
    assert summary["all"]["questions"] == 2
    assert summary["all"]["strict"] == 1
    assert summary["failures"] == {"wrong value": 1}
    write_summary(records, tmp_path / "summary.json")
    assert json.loads((tmp_path / "summary.json").read_text()) == summary
    print_summary(records)
    assert "50.0%" in capsys.readouterr().out


async def test_an_evaluation_goes_on_where_it_stopped(tmp_path: Path) -> None:
    options = EvalOptions(
        DABench(), _split(tmp_path / "split"), tmp_path / "out", run=RunSettings(max_turns=2)
    )
    policy = ScriptedPolicy(['print(f"@n[{len(df)}]")\n```'])
    first = await evaluate(replace(options, limit=1), policy)
    assert [record.right for record in first] == [True]
    asked = len(policy.requests)
    records = await evaluate(options, policy)
    assert len(records) == 3
    assert len(policy.requests) == asked + 2
    assert all(record.strict and record.turns == 1 for record in records)
    assert (tmp_path / "out" / "items" / "q0" / "notebook.ipynb").exists()
