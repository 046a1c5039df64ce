"""A cell runs as it was written; corrected it runs only after its failure, and for all to see."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from dm_jupyter.agent.loop import RunSettings, run
from dm_jupyter.agent.notebook import HeadlessNotebook
from dm_jupyter.agent.protocols import ExecutedCell
from dm_jupyter.assist.repair import repair_of
from dm_jupyter.core.assistance import Assistance
from dm_jupyter.core.events import CellFinished, CellStarted, Event
from dm_jupyter.core.schema import LoadedTable
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Completion, DataContext, RunCell, Step, Trajectory, Turn
from kernel_sandbox.forkserver.zygote_client import Zygote
from kernel_sandbox.runners.worker import CellWorker
from kernel_sandbox.types import Limits
from tests.dm_jupyter.assist.failing import Interpreter
from tests.fakes import ScriptedPolicy

LINE = "df = pd.read_csv('people.csv')"
LOAD = f"import pandas as pd\n{LINE}\n"
COLUMNS = ("Fare Paid", "Age")
BRIEF = DataContext("people.csv", LOAD, COLUMNS, frames=(LoadedTable("df", LINE, COLUMNS),))
START = Trajectory(Task("t", "What is the mean fare?"), "markdown", BRIEF)


@pytest.fixture(autouse=True)
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "people.csv"
    file.write_text("Fare Paid,Age\n1,2\n6,7\n")
    return file


@dataclass
class RunNotebook:
    """A notebook whose cells really run."""

    interpreter: Interpreter = field(default_factory=Interpreter)
    corrections: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    async def run(self, cell: RunCell, thought: str) -> ExecutedCell:
        return ExecutedCell(cell, self.interpreter.run(cell.source))

    async def rerun(self, cell: RunCell, why: str) -> ExecutedCell:
        self.corrections.append(why)
        return await self.run(cell, "")


async def _step(code: str, assistance: Assistance | None = None) -> tuple[Step, RunNotebook]:
    notebook, settings = RunNotebook(), RunSettings(max_turns=1, assistance=assistance)
    opening = "" if assistance is None or assistance.opening else f"```python\n{LOAD}"
    policy = ScriptedPolicy([f"{opening}{code}\n```"])
    done = await run(START, policy, notebook, settings, notebook.events.append)
    return done.steps[0], notebook


async def test_a_right_cell_runs_once_and_as_it_was_written() -> None:
    step, notebook = await _step("print(df['Fare Paid'].mean())")
    assert notebook.interpreter.ran == [LOAD + "print(df['Fare Paid'].mean())"]
    assert (step.written, step.findings, step.is_edited) == (None, (), False)


async def test_what_was_written_and_what_ran_are_both_kept() -> None:
    written = LOAD + "print(np.round(df['fare_paid'].mean()))"
    step, notebook = await _step("print(np.round(df['fare_paid'].mean()))")
    assert notebook.interpreter.ran[0] == written
    assert notebook.corrections == [
        "Import added: import numpy as np",
        "Column spelt as in the file: 'Fare Paid'",
    ]
    assert step.written == RunCell(written)
    assert isinstance(step.turn.action, RunCell)
    assert step.turn.action.source == notebook.interpreter.ran[-1]
    assert "# Column spelt as in the file: 'Fare Paid'" in step.turn.action.source
    assert "# Import added: import numpy as np" in step.turn.action.source
    assert not step.is_edited
    assert [one.rule for one in step.findings] == ["imports", "columns"]
    assert step.result is not None
    assert step.result.stdout == "4.0\n"
    shown = [event.cell for event in notebook.events if isinstance(event, CellStarted)]
    assert [cell.source for cell in shown] == notebook.interpreter.ran
    ended = [event.result.ok for event in notebook.events if isinstance(event, CellFinished)]
    assert ended == [False, False, True]
    kept = Trajectory.from_json(replace(START, steps=(step,)).to_json())
    assert kept.steps == (step,)


@pytest.mark.parametrize("rule", ["imports", "columns"])
async def test_a_rule_that_is_off_corrects_nothing(rule: str) -> None:
    code = {"imports": "print(np.e)", "columns": "print(df['fare_paid'])"}[rule]
    step, notebook = await _step(code, Assistance().without(rule))
    assert len(notebook.interpreter.ran) == 1
    assert step.written is None
    step, notebook = await _step(code, Assistance.none())
    assert len(notebook.interpreter.ran) == 1
    assert step.findings == ()


async def test_a_cell_that_a_person_has_changed_is_theirs() -> None:
    class Changed(RunNotebook):
        async def run(self, cell: RunCell, thought: str) -> ExecutedCell:
            theirs = RunCell(LOAD + "df['fare_paid']")
            return await super().run(theirs, thought)

    notebook = Changed()
    policy, settings = ScriptedPolicy(["print(1)\n```"]), RunSettings(max_turns=1)
    done = await run(START, policy, notebook, settings, lambda _: None)
    assert len(notebook.interpreter.ran) == 1
    assert done.steps[0].is_edited
    assert done.steps[0].written == RunCell(LOAD + "print(1)")


def _edit(source: str, *earlier: str) -> str | None:
    interpreter = Interpreter()
    steps = [Step(Completion(""), Turn("", RunCell(x)), interpreter.run(x)) for x in earlier]
    result = interpreter.run(source)
    assert result.error is not None
    found = repair_of(RunCell(source), result, replace(START, steps=tuple(steps)))
    return None if found is None else found.edit


AGAIN = {
    "loaded": LOAD,
    "copied": LOAD + "d = df.copy()\nd['x'] = 1\nd.insert(0, 'y', 2)\n",
    "collected": LOAD + "rows = []\nfor a in df['Age']:\n    rows.append(a)\n    total = a\n",
    "counted": LOAD + "n = 0\nfor a in df['Age']:\n    n += a\nprint(n)\n",
    "printed": LOAD + "print(df.shape)\nif len(df):\n    m = max(df['Age'])\n    print(m)\n",
    "function": LOAD + "def f(x):\n    y = x + 1\n    return y\nz = f(1)\n",
    "comprehension": LOAD + "names = [c for c in df.columns if c]\nd = {c: 1 for c in names}\n",
    "in place": LOAD + "df.dropna(inplace=True)\ndf = df[df['Age'] > 0]\n",
}


@pytest.mark.parametrize("before", AGAIN.values(), ids=AGAIN)
def test_what_comes_to_the_same_may_run_again(before: str) -> None:
    assert _edit(before + "np.mean([1])") is not None


ONCE = {
    "file written": LOAD + "df.to_csv('out.csv')\n",
    "file appended": LOAD + "with open('log.txt', 'a') as f:\n    f.write('x')\n",
    "old list": "seen.append(1)\n",
    "old table": "old['x'] = 1\n",
    "old table in place": "old.dropna(inplace=True)\n",
    "old name": "old = old * 2\n",
    "old number": "number += 1\n",
    "by another name": "new = old\nnew['x'] = 1\n",
    "inside a function": "def f():\n    seen.append(1)\nf()\n",
    "an unknown function": "act()\n",
    "a global": "def f():\n    global number\n    number = 3\nf()\n",
}
OLD = (
    "import pandas as pd\nold = pd.DataFrame({'Age': [1]})\nseen, number = [], 1\n"
    "def act():\n    seen.append(1)\n"
)


@pytest.mark.parametrize("before", ONCE.values(), ids=ONCE)
def test_what_would_count_twice_does_not_run_again(before: str) -> None:
    assert _edit(before + "np.mean([1])", OLD) is None
    assert _edit("np.mean([1])\n" + before, OLD) is not None  # it has not happened yet


def test_an_error_of_an_earlier_cells_function_is_not_this_cells() -> None:
    assert _edit("f()", "def f():\n    return np.mean([1])") is None


async def test_a_notebook_on_disk_shows_what_was_corrected(people: Path) -> None:
    files = {"people.csv": people}
    async with Zygote(("pandas",)) as zygote, CellWorker(zygote, Limits(wall_s=60.0), files) as one:
        notebook = HeadlessNotebook(one)
        settings = RunSettings(max_turns=1)
        policy = ScriptedPolicy(["print(df['fare_paid'].mean())\n```"])
        done = await run(START, policy, notebook, settings, lambda _: None)
    (cell,) = (one for one in notebook.document.cells if one.cell_type == "code")
    assert cell.source.startswith("# Column spelt as in the file: 'Fare Paid'\n")
    corrected = ["Column spelt as in the file: 'Fare Paid'"]
    assert cell.metadata["dm_jupyter"] == {"corrected": corrected}
    assert cell.outputs[0]["text"] == "3.5\n"
    assert done.steps[0].written == RunCell(LOAD + "print(df['fare_paid'].mean())")
