"""Runs for the page, made of values: what a cell could have left, good or hostile."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import (
    Answer,
    Completion,
    RunCell,
    Step,
    StopReason,
    Trajectory,
    Turn,
    Void,
)
from kernel_sandbox.types import CellError, CellResult, CellStatus, Display, Output, Stream
from training.records.records import EvalRecord, RunUsage
from training.suites.suite import ItemScore, Sample

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwAD"
    "hgGAWjR9awAAAABJRU5ErkJggg=="
)
"""A picture of one pixel."""
SCRIPT = "<script>window.ran = 1</script><img src=x onerror='window.ran = 1'>"
"""What must not run."""
DATA_FRAME = (
    "<div>\n<style scoped>\n  .dataframe { color: red }\n</style>\n"
    "<table border='1' class='dataframe'>"
    "<thead><tr><th></th><th colspan='2'>mass</th></tr></thead>"
    "<tbody><tr><th>0</th><td>4207.3</td><td>12</td></tr></tbody></table>\n</div>"
)
OUTPUTS: tuple[Output, ...] = (
    Stream("stdout", "four thousand\n"),
    Stream("stderr", "\x1b[33ma warning\x1b[0m"),
    Display({"text/plain": "<Figure>", "image/png": PNG}),
    Display({"text/plain": "   mass", "text/html": DATA_FRAME}),
)
FAILED = CellResult(
    CellStatus.ERROR,
    (CellError("KeyError", "'mass'", ("\x1b[31mKeyError\x1b[0m: 'mass'",)),),
    execution_count=2,
)


def ran(*outputs: Output) -> CellResult:
    return CellResult(CellStatus.OK, outputs, execution_count=1)


def a_step(action: Any, result: CellResult | None = None, thought: str = "a **thought**") -> Step:
    told = "what was told" if result else ""
    return Step(
        Completion("the whole turn", completion_tokens=5), Turn(thought, action), result, told
    )


def a_trajectory(
    question: str = "How heavy?",
    outputs: Sequence[Output] = OUTPUTS,
    answer: str | None = "@mass[4207.3]",
    name: str = "q",
) -> Trajectory:
    """A cell that shows, one that raises, a turn of neither, and the answer where there is one."""
    task = Task(name, question, (Path("p.csv"),), "all rows", "@mass[mean]", "easy", ("Means",))
    steps = [
        a_step(RunCell("import pandas as pd  # first\nprint('four', 4)"), ran(*outputs)),
        a_step(RunCell("df['mass']"), FAILED),
        a_step(Void("no tag"), thought=""),
    ]
    if answer is not None:
        steps.append(a_step(Answer(answer)))
    stop = StopReason.TURN_LIMIT if answer is None else StopReason.ANSWERED
    return Trajectory(task, "datamind", steps=tuple(steps), stop=stop, answer=answer, policy="m")


def a_record(
    trajectory: Trajectory | None = None,
    *,
    right: bool = True,
    trial: int = 0,
    search: Mapping[str, Any] | None = None,
    name: str = "q",
) -> EvalRecord:
    trajectory = trajectory or a_trajectory(name=name)
    item = Sample(trajectory.task, [["mass", "4207.3"]])
    score = ItemScore(right, right, {"mass": right}, {"mass": right})
    spent = RunUsage(trajectory.tokens, 50, trajectory.cells, 1.5, search or {})
    return EvalRecord.of(item, trial, trajectory, score, spent)


def write_run(
    folder: Path, *records: EvalRecord, manifest: Mapping[str, Any] | None = None
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(asdict(record)) + "\n" for record in records or (a_record(),)]
    (folder / "records.jsonl").write_text("".join(lines), encoding="utf-8")
    if manifest is not None:
        (folder / "run.json").write_text(json.dumps(manifest), encoding="utf-8")
    return folder


def a_node(number: int, parent: int | None, **other: Any) -> dict[str, Any]:
    return {
        "id": number, "parent": parent, "depth": 0 if parent is None else 1, "visits": 3,
        "value_sum": 1.5, "prior": 0.5, "reward": None, "terminal": False, "answer": None,
        "errors": 0, "messages": [], **other,
    }  # fmt: skip


TREE = {
    "kind": "search",
    "nodes": [a_node(0, None), a_node(1, 0, errors=1), a_node(2, 0, terminal=True, answer="@a[1]")],
    "chosen": 2,
}
VOTE = {
    "kind": "vote",
    "groups": [
        {"answer": None, "count": 1, "trials": [2]},
        {"answer": "@mass[4207.3]", "count": 2, "trials": [0, 1]},
    ],
    "chosen": 0,
}
