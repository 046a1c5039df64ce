import json
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dm_jupyter.core.assistance import Finding
from dm_jupyter.core.errors import TrajectoryError
from dm_jupyter.core.grounded import Grounded, Verdict
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import (
    Answer,
    Completion,
    DataContext,
    RunCell,
    Step,
    StopReason,
    Trajectory,
    Turn,
    Void,
)
from kernel_sandbox.types import CellError, CellResult, CellStatus, Display, Stream

TEXT = st.text(max_size=30)
CODE = Turn("", RunCell("print(1)"))
OUTPUTS = st.one_of(
    st.builds(Stream, st.sampled_from(["stdout", "stderr"]), TEXT),
    st.builds(Display, st.dictionaries(st.just("text/plain"), TEXT), st.just({})),
    st.builds(CellError, TEXT, TEXT, st.lists(TEXT, max_size=2).map(tuple)),
)
RESULTS = st.builds(
    CellResult,
    st.sampled_from(CellStatus),
    st.lists(OUTPUTS, max_size=3).map(tuple),
    st.none() | st.integers(0, 9),
    st.floats(0, 100),
    st.none() | st.integers(0, 10**12),
)
ACTIONS = st.one_of(
    st.builds(RunCell, TEXT, st.sampled_from(["python", "sql"])),
    st.builds(Answer, TEXT),
    st.builds(Void, TEXT),
)
STEPS = st.builds(
    Step,
    st.builds(Completion, TEXT, TEXT, st.integers(0, 99), st.integers(0, 99), st.floats(0, 9)),
    st.builds(Turn, TEXT, ACTIONS),
    st.none() | RESULTS,
    TEXT,
    TEXT,
    st.booleans(),
)
TASKS = st.builds(
    Task,
    TEXT,
    TEXT,
    st.lists(st.text(string.ascii_letters, min_size=1).map(Path), max_size=2).map(tuple),
    concepts=st.lists(TEXT, max_size=2).map(tuple),
)
NAMES = st.lists(TEXT, max_size=3).map(tuple)
GROUNDED = st.builds(
    Grounded,
    TEXT,
    st.integers(0, 99),
    st.integers(0, 99),
    st.sampled_from(Verdict),
    st.none() | st.integers(0, 9),
    TEXT,
)
TRAJECTORIES = st.builds(
    Trajectory,
    TASKS,
    TEXT,
    st.builds(DataContext, TEXT, TEXT, *[NAMES] * 3, TEXT),
    st.lists(STEPS, max_size=3).map(tuple),
    st.none() | st.sampled_from(StopReason),
    answer=st.none() | TEXT,
    unsupported=st.lists(TEXT, max_size=2).map(tuple),
    grounding=st.lists(GROUNDED, max_size=2).map(tuple),
    endpoint=TEXT,
)


@given(TRAJECTORIES)
def test_json_round_trip(trajectory: Trajectory) -> None:
    stored = json.dumps(trajectory.to_json())
    assert Trajectory.from_json(json.loads(stored)) == trajectory


def test_files_are_stored_by_name_alone() -> None:
    task = Task("t", "q", (Path("/home/ann/secret/sales.csv"),))
    assert "ann" not in json.dumps(Trajectory(task, "markdown").to_json())


def test_what_earlier_releases_recorded_beyond_is_left_out() -> None:
    finding = Finding("hints", "KeyError", "likely", "look")
    cell = Turn("", RunCell("x"))
    run = Trajectory(
        Task("t", "q"), "markdown", steps=(Step(Completion("x"), cell, findings=(finding,)),)
    )
    stored = run.to_json()
    stored["steps"][0]["findings"][0]["edit"] = "import x"
    stored["data_context"] |= {"columns": ["a"], "frames": [], "tables": []}
    assert Trajectory.from_json(stored) == run


def test_another_schema_version_is_refused() -> None:
    stored = {**Trajectory(Task("t", "q"), "markdown").to_json(), "schema_version": 99}
    with pytest.raises(TrajectoryError, match="version 99"):
        Trajectory.from_json(stored)


def test_a_missing_field_is_named() -> None:
    stored = Trajectory(Task("t", "q"), "markdown").to_json()
    del stored["steps"]
    with pytest.raises(TrajectoryError, match="steps"):
        Trajectory.from_json(stored)


@pytest.mark.parametrize(
    ("place", "wrong", "said"),
    [
        (("steps", 1, "completion", "text"), 3, r"steps\[1\]\.completion\.text: Expected `str`"),
        (("steps", 1, "completion"), {}, r"steps\[1\]\.completion: .* missing .* `text`"),
        (("steps", 0, "action", "kind"), "Dance", r"steps\[0\]\.action\.kind: .* 'Dance'"),
        (("steps", 0, "findings"), [{}], r"steps\[0\]\.findings\[0\]: .* missing .* `rule`"),
        (
            ("data_context", "incomplete"),
            "abc",
            r"data_context\.incomplete: Expected `array`, got `str`",
        ),
        (("grounding",), [{"verdict": "maybe"}], r"grounding\[0\]"),
        (("task", "files"), [3], r"task\.files\[0\]: Expected `str`, got `int`"),
        (("answer",), 3, "answer: Expected `str \\| null`"),
        (("steps", 0, "observation"), None, r"steps\[0\]\.observation: Expected `str`"),
        (("steps", 0, "result"), {"status": "ok", "outputs": ["text"]}, "not valid"),
        (("schema_version",), [1], r"version \[1\]"),
        (("steps",), [3], "not valid"),
        (("assistance",), [1], "not valid"),
    ],
)
def test_a_field_that_does_not_fit_is_named_with_its_place(
    place: tuple[str | int, ...], wrong: object, said: str
) -> None:
    step = Step(Completion("x"), Turn("", RunCell("x")))
    stored = Trajectory(Task("t", "q"), "markdown", steps=(step, step)).to_json()
    part: Any = stored
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = wrong
    with pytest.raises(TrajectoryError, match=said):
        Trajectory.from_json(stored)


@pytest.mark.parametrize("wrong", [[1], 3, None, "text"])
def test_what_is_no_object_is_no_trajectory(wrong: Any) -> None:
    with pytest.raises(TrajectoryError, match=f"found {type(wrong).__name__}"):
        Trajectory.from_json(wrong)


@pytest.mark.parametrize("name", ["schema_version", "task", "data_context", "assistance"])
def test_a_trajectory_that_is_nested_too_deeply_is_refused(name: str) -> None:
    deep: list[object] = []
    for _ in range(50_000):
        deep = [deep]
    with pytest.raises(TrajectoryError):
        Trajectory.from_json({**Trajectory(Task("t", "q"), "markdown").to_json(), name: deep})


def test_a_trajectory_of_an_earlier_release_holds_the_cells_as_the_model_wrote_them() -> None:
    step = Step(Completion("x"), Turn("", RunCell("x")))
    stored = Trajectory(Task("t", "q"), "markdown", steps=(step,)).to_json()
    del stored["steps"][0]["is_edited"]
    assert Trajectory.from_json(stored).steps == (step,)


def test_a_run_counts_its_cells_tokens_and_seconds() -> None:
    ran = CellResult(CellStatus.OK, seconds=2.5)
    run = Trajectory(Task("t", "?"), "markdown")
    assert (run.cells, run.tokens, run.seconds) == (0, 0, 0)
    run = run.extended(Step(Completion("a", completion_tokens=7, seconds=1.5), CODE, ran))
    run = run.extended(Step(Completion("b", completion_tokens=3, seconds=0.5), CODE))
    run = run.extended(Step(Completion("of an unknown length"), CODE, ran))
    assert (run.cells, run.tokens, run.seconds) == (2, 10, 7.0)


def test_extending_leaves_the_original_alone() -> None:
    start = Trajectory(Task("t", "q"), "markdown")
    step = Step(Completion("x", completion_tokens=3, seconds=1.0), Turn("", Answer("x")))
    longer = start.extended(step)
    assert (start.turns, longer.turns) == (0, 1)
    assert (longer.tokens, longer.cells, longer.seconds) == (3, 0, 1.0)


def test_a_record_of_an_earlier_release_has_no_cells_for_its_numbers() -> None:
    stored = Trajectory(Task("t", "q"), "markdown", answer="3", unsupported=("3",)).to_json()
    del stored["grounding"]
    assert Trajectory.from_json(stored).grounding == ()


def test_a_record_with_an_unknown_verdict_is_refused() -> None:
    number = Grounded("3", 0, 1, Verdict.SUPPORTED, 0)
    stored = Trajectory(Task("t", "q"), "markdown", grounding=(number,)).to_json()
    stored["grounding"][0]["verdict"] = "sworn"
    with pytest.raises(TrajectoryError, match="sworn"):
        Trajectory.from_json(stored)


def test_a_record_without_an_endpoint_is_read() -> None:
    trajectory = Trajectory(
        Task("t", "q"), "markdown", policy="m", endpoint="https://far.example/v1"
    )
    assert trajectory.answered_by == "m at far.example"
    stored = trajectory.to_json()
    del stored["endpoint"]
    assert Trajectory.from_json(stored).answered_by == "m"


def test_a_trajectory_of_version_1_is_read() -> None:
    step = Step(Completion("x"), Turn("", RunCell("x")), critique="Print the number alone.")
    shown = DataContext("t.csv: 3 rows", preamble="import pandas as pd\n")
    trajectory = Trajectory(Task("t", "q"), "markdown", shown, (step,))
    stored = trajectory.to_json()
    stored["schema_version"] = 1
    stored["brief"] = stored.pop("data_context")
    stored["brief"]["opening"] = stored["brief"].pop("preamble")
    stored["steps"][0]["objection"] = stored["steps"][0].pop("critique")
    assert Trajectory.from_json(json.loads(json.dumps(stored))) == trajectory


def test_a_trajectory_of_version_1_with_a_missing_field_names_it() -> None:
    stored = {**Trajectory(Task("t", "q"), "markdown").to_json(), "schema_version": 1}
    with pytest.raises(TrajectoryError, match="brief"):
        Trajectory.from_json(stored)
