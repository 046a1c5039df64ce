"""What a model is told of a limit, and what it may do then; no prompt stands in a cell."""

from dataclasses import replace

import pytest

from dm_jupyter.agent.loop import RunSettings, run
from dm_jupyter.agent.notebook_words import why_no_answer
from dm_jupyter.agent.observe import describe
from dm_jupyter.core.dialects import DIALECTS, dialect_named
from dm_jupyter.core.events import Event
from dm_jupyter.core.limits_met import limit_met
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import DataContext, RunCell, StopReason, Trajectory, Turn
from kernel_sandbox.types import CellError, CellResult, CellStatus
from tests.fakes import ScriptedNotebook, ScriptedPolicy, printed, raised

FREE = Trajectory(Task("t", "How many rows?"), "markdown", DataContext("f", "df = 1\n"))
CLOSED = Trajectory(
    Task("t", "n?", answer_format="@n[n]"), "markdown", DataContext("f", "df = 1\n")
)
DATABASE = Trajectory(
    Task("t", "How many?"), "markdown", DataContext("tables", databases=("a.sqlite",))
)
SETTINGS = RunSettings()
CODE = "print(len(df))\n```"
INTERRUPT = CellError("KeyboardInterrupt", "", ("Cell In[1], line 2\n----> 2 slow()",))
TOO_LONG = CellResult(
    CellStatus.TIMEOUT,
    (INTERRUPT,),
    message="the cell ran past its 120 s and was interrupted. Do less at once.",
    ended_by="timeout",
)
TOO_LARGE = CellResult(
    CellStatus.MEMORY,
    message="it needed more than 2048 MiB. Its variables are gone.",
    state_lost=True,
    ended_by="memory",
)
TOO_MUCH_SAID = CellResult(
    CellStatus.ERROR, (INTERRUPT,), cut_bytes=9, message="9 bytes were cut.", ended_by="output"
)


def ignore(event: Event) -> None:
    pass


@pytest.mark.parametrize("limit", [TOO_LONG, TOO_LARGE])
async def test_after_a_limit_the_model_is_told_its_name_and_may_give_up(limit: CellResult) -> None:
    words = "That takes more than this kernel may use. Which part do you need?"
    policy = ScriptedPolicy([CODE, words])
    done = await run(FREE, policy, ScriptedNotebook([limit]), SETTINGS, ignore)
    asked = policy.requests[1]
    assert asked.prefill == ""
    told = asked.messages[-1].content
    assert limit_met(limit) in told
    assert limit.message in told
    assert "KeyboardInterrupt" not in told
    assert "ends the run" in told
    assert (done.stop, done.answer) == (StopReason.ANSWERED, words)


@pytest.mark.parametrize("start", [CLOSED, DATABASE])
async def test_a_limit_forces_no_code_on_any_task(start: Trajectory) -> None:
    policy = ScriptedPolicy([CODE, "```python\nprint(1)\n```"])
    settings = RunSettings(max_turns=2)
    await run(start, policy, ScriptedNotebook([TOO_LONG, printed("")]), settings, ignore)
    assert policy.requests[0].prefill.startswith("```")
    assert policy.requests[1].prefill == ""


async def test_words_that_are_sent_back_after_a_limit_force_no_code() -> None:
    policy = ScriptedPolicy([CODE, "There are 77 rows.", "I can't tell."])
    done = await run(FREE, policy, ScriptedNotebook([TOO_LARGE]), SETTINGS, ignore)
    assert policy.requests[2].prefill == ""
    assert done.answer == "I can't tell."


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("limit", [TOO_LONG, TOO_LARGE, TOO_MUCH_SAID], ids=limit_met)
async def test_the_same_limit_twice_ends_the_run(dialect: str, limit: CellResult) -> None:
    code = dialect_named(dialect).render(Turn("", RunCell("print(1)")))
    start = replace(FREE, dialect=dialect)
    notebook = ScriptedNotebook([limit, printed("3"), limit])
    done = await run(start, ScriptedPolicy([code]), notebook, SETTINGS, ignore)
    assert len(notebook.cells) == 3
    assert done.stop is StopReason.BUDGET
    assert limit.message.rstrip(".") in done.stop_detail
    assert why_no_answer(done).startswith("two cells met ")


async def test_two_different_limits_do_not_end_the_run() -> None:
    notebook = ScriptedNotebook([TOO_LONG, TOO_LARGE, printed("3")])
    code = "```python\nprint(len(df))\n```"
    done = await run(FREE, ScriptedPolicy([CODE, code, code, "3"]), notebook, SETTINGS, ignore)
    assert (done.stop, done.answer) == (StopReason.ANSWERED, "3")


def test_a_limit_is_told_by_its_name_and_the_interrupt_is_not() -> None:
    assert describe(TOO_LONG) == f"line: slow()\nTimeLimit: {TOO_LONG.message}"
    assert describe(TOO_LARGE).startswith(f"MemoryLimit: {TOO_LARGE.message}")
    assert "KeyboardInterrupt" not in describe(TOO_MUCH_SAID)
    own = replace(TOO_LONG, status=CellStatus.ERROR, ended_by="", message="")
    assert "KeyboardInterrupt" in describe(own)


async def test_no_prompt_stands_in_the_cell_after_one_that_failed() -> None:
    policy = ScriptedPolicy([CODE, " len() takes it all.\nprint(2)\n```", "3"])
    notebook = ScriptedNotebook([raised("KeyError", "'agee'"), printed("3")])
    done = await run(FREE, policy, notebook, SETTINGS, ignore)
    prefill = policy.requests[1].prefill
    assert prefill.endswith("# The mistake was that")
    assert done.steps[1].completion.text == f"{prefill} len() takes it all.\nprint(2)\n```"
    assert notebook.cells[1] == RunCell("df = 1\nprint(2)")
    assert done.steps[1].turn.action == RunCell("df = 1\nprint(2)")


async def test_the_load_codes_own_comments_stay_in_the_cell() -> None:
    opening = "df = 1\n# '12 EUR' becomes 12\ndf = 2\n"
    notebook = ScriptedNotebook([raised("KeyError", "'agee'"), printed("3")])
    policy = ScriptedPolicy([CODE, " it was.\nprint(2)\n```", "3"])
    await run(
        replace(FREE, data_context=DataContext("f", opening)), policy, notebook, SETTINGS, ignore
    )
    assert notebook.cells[1] == RunCell(f"{opening}print(2)")


async def test_no_prompt_stands_in_the_cell_when_the_model_writes_the_opening_again() -> None:
    class Repeating(ScriptedPolicy):
        async def sample(self, request, on_text):  # type: ignore[no-untyped-def]
            completion = await super().sample(request, on_text)
            return replace(completion, prefill="")

    policy = Repeating([CODE, " it is.\n# mine\nprint(2)\n```", "3"])
    notebook = ScriptedNotebook([raised("KeyError", "'agee'"), printed("3")])
    await run(FREE, policy, notebook, SETTINGS, ignore)
    assert notebook.cells[1] == RunCell("df = 1\n# mine\nprint(2)")


async def test_no_prompt_stands_in_a_query_after_one_that_failed() -> None:
    policy = ScriptedPolicy(["SELECT a\n```", " b FROM t\n```", "3"])
    notebook = ScriptedNotebook([raised("OperationalError", "no such column: a"), printed("3")])
    await run(DATABASE, policy, notebook, SETTINGS, ignore)
    assert policy.requests[1].prefill.startswith("```sql\n-- The last attempt failed:")
    assert notebook.cells[1] == RunCell("SELECT b FROM t", "sql")


async def test_no_critique_stands_in_the_cell_after_it() -> None:
    form = '@n[n] where "n" is a number between 0 and 1.'
    start = Trajectory(
        Task("t", "Mean of a?", answer_format=form), "markdown", DataContext("f", "df = load()\n")
    )
    policy = ScriptedPolicy(["print(df.a.sum())\n```", "print(df.a.mean())\n```"])
    notebook = ScriptedNotebook([printed("@n[3]"), printed("@n[0.4]")])
    done = await run(start, policy, notebook, SETTINGS, ignore)
    assert done.steps[0].critique
    assert f"# {done.steps[0].critique.splitlines()[0]}" in policy.requests[1].prefill
    assert notebook.cells[1] == RunCell("df = load()\nprint(df.a.mean())")
