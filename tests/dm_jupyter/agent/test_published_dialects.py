"""The prompt shapes that others published, in the loop: without the aid that is ours."""

from pathlib import Path

import pytest

from dm_jupyter.agent.loop import RunSettings, run
from dm_jupyter.core.dialects import DIALECTS, dialect_named
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Answer, DataContext, RunCell, StopReason, Trajectory, Turn
from tests.fakes import ScriptedNotebook, ScriptedPolicy, printed, raised


@pytest.mark.parametrize("name", DIALECTS)
async def test_an_error_is_told_in_every_dialect(name: str) -> None:
    form = dialect_named(name)
    code = form.render(Turn("", RunCell("print(1)")))
    answer = code if name == "markdown" else form.render(Turn("t", Answer("@n[3]")))
    policy = ScriptedPolicy([code, answer])
    notebook = ScriptedNotebook([raised("KeyError", "'agee'"), printed("@n[3]")])
    task = Task("t", "How many?", (Path("people.csv"),), answer_format="@n[n]")
    start = Trajectory(task, name, DataContext("the profile", "df = 1\n"))
    done = await run(start, policy, notebook, RunSettings(), lambda _: None)
    assert (done.stop, done.answer) == (StopReason.ANSWERED, "@n[3]")
    assert "KeyError: 'agee'" in policy.requests[1].messages[-1].content
