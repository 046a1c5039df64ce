"""The prompt shapes that others published, in the loop: without the aid that is ours."""

from pathlib import Path

import pytest

from dm_jupyter.agent.loop import RunSettings, run
from dm_jupyter.core.assistance import Assistance
from dm_jupyter.core.dialects import DIALECTS
from dm_jupyter.core.dialects.tools import call_text
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import DataContext, StopReason, Trajectory
from tests.fakes import ScriptedNotebook, ScriptedPolicy, printed, raised

TURNS = {
    "markdown": ("```python\nprint(1)\n```", "```python\nprint(1)\n```"),
    "react": (
        "Thought: t\nAction: python_code_sandbox\nAction Input:\n```python\nprint(1)\n```",
        "Thought: t\nFinal Answer: @n[3]",
    ),
    "datamind": (
        "<think>t</think>\n<code>\nprint(1)\n</code>",
        "<think>t</think>\n<answer>@n[3]</answer>",
    ),
    "tools": (
        call_text("run_python", '{"code": "print(1)"}'),
        call_text("answer", '{"text": "@n[3]"}'),
    ),
    "jupiter": (
        "Thought: t\nAction: ```python\nprint(1)\n```",
        "Thought: t\nFormatted answer: @n[3]",
    ),
}


@pytest.mark.parametrize("name", DIALECTS)
async def test_hints_after_errors_go_with_our_help_alone(name: str) -> None:
    code, answer = TURNS[name.removesuffix("-published")]
    policy = ScriptedPolicy([code, answer])
    notebook = ScriptedNotebook([raised("KeyError", "'agee'"), printed("@n[3]")])
    task = Task("t", "How many?", (Path("people.csv"),), answer_format="@n[n]")
    start = Trajectory(task, name, DataContext("the profile", "df = 1\n", ("Age",)))
    done = await run(start, policy, notebook, RunSettings(), lambda _: None)
    assert (done.stop, done.answer) == (StopReason.ANSWERED, "@n[3]")
    told = policy.requests[1].messages[-1].content
    assert "KeyError: 'agee'" in told
    assert ("'Age'" in told) is Assistance.for_dialect(name).hints
