import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from dm_jupyter.agent import loop
from dm_jupyter.agent.loop import RunSettings, begin, request_for, run, step
from dm_jupyter.agent.protocols import ExecutedCell
from dm_jupyter.core.assistance import Assistance
from dm_jupyter.core.errors import ContextFullError, EndpointUnreachableError
from dm_jupyter.core.events import (
    CellFinished,
    Event,
    ModelSilent,
    RunFinished,
    RunStarted,
    StepFinished,
)
from dm_jupyter.core.sampled_tokens import SampledTokens, TurnEnd, float_array, id_array
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import (
    Answer,
    Completion,
    DataContext,
    RunCell,
    StopReason,
    Trajectory,
    Void,
)
from dm_jupyter.models.protocols import SampleRequest
from kernel_sandbox.errors import KernelStartError
from kernel_sandbox.types import CellResult, CellStatus, Display
from tests.fakes import ScriptedNotebook, ScriptedPolicy, printed, raised

FREE = Trajectory(Task("t", "How many rows?"), "markdown", DataContext("f", "df = 1\n"))
CLOSED = Trajectory(
    Task("t", "n?", answer_format="@n[n]"), "markdown", DataContext("f", "df = 1\n")
)
TAGGED = replace(FREE, dialect="datamind")
SETTINGS = RunSettings()
CODE = "print(len(df))\n```"


def ignore(event: Event) -> None:
    pass


async def test_code_then_answer() -> None:
    policy = ScriptedPolicy([CODE, "There are 3 rows."])
    events: list[Event] = []
    done = await run(FREE, policy, ScriptedNotebook([printed("3\n")]), SETTINGS, events.append)
    assert (done.stop, done.answer, done.unsupported) == (
        StopReason.ANSWERED,
        "There are 3 rows.",
        (),
    )
    assert (done.turns, done.cells) == (2, 1)
    assert done.policy == "scripted"
    assert set(done.prompts) >= {"markdown_system", "answer_unsupported"}
    assert isinstance(events[0], RunStarted)
    assert isinstance(events[-1], RunFinished)
    assert sum(isinstance(event, StepFinished) for event in events) == 2


async def test_the_printed_answer_ends_a_closed_form_task() -> None:
    done = await run(
        CLOSED, ScriptedPolicy([CODE]), ScriptedNotebook([printed("@n[3]")]), SETTINGS, ignore
    )
    assert (done.stop, done.answer, done.turns) == (StopReason.ANSWERED, "@n[3]", 1)


async def test_a_failed_cell_is_followed_by_its_error() -> None:
    policy = ScriptedPolicy([CODE, CODE, "3"])
    notebook = ScriptedNotebook([raised("KeyError", "'agee'"), printed("3")])
    done = await run(FREE, policy, notebook, SETTINGS, ignore)
    assert done.answer == "3"
    told = policy.requests[1].messages[-1].content
    assert "KeyError: 'agee'" in told


async def test_a_number_without_an_output_is_sent_back_once_then_flagged() -> None:
    policy = ScriptedPolicy([CODE, "There are 4 rows.", "There are 5 rows."])
    done = await run(FREE, policy, ScriptedNotebook([printed("3")]), SETTINGS, ignore)
    assert "4" in done.steps[1].observation
    assert done.answer == "There are 5 rows."
    assert done.unsupported == ("5",)
    assert done.stop is StopReason.ANSWERED


async def test_whose_number_it_is_goes_back_to_the_model() -> None:
    table = "species    mass\nAdelie     3700.7\nGentoo     5076.0"
    policy = ScriptedPolicy([CODE, "Adelie weigh 5076 g.", "Adelie weigh 3701 g."])
    done = await run(FREE, policy, ScriptedNotebook([printed(table)]), SETTINGS, ignore)
    assert "- 5076 (5076.0 is for Gentoo, not Adelie)" in done.steps[1].observation
    assert (done.answer, done.unsupported) == ("Adelie weigh 3701 g.", ())
    assert [(one.text, one.cell) for one in done.grounding] == [("3701", 0)]


@pytest.mark.parametrize(("column", "doubted"), [("sales_musd", ()), ("sales", ("3 million",))])
async def test_the_code_of_a_cell_may_name_the_scale_of_its_output(
    column: str, doubted: tuple[str, ...]
) -> None:
    policy = ScriptedPolicy([f"print(df.{column}.sum())\n```", *["Sales are 3 million."] * 2])
    done = await run(FREE, policy, ScriptedNotebook([printed("3")]), SETTINGS, ignore)
    assert done.unsupported == doubted


async def test_a_cell_that_only_comes_again_is_not_run_again() -> None:
    again = "There are 3 rows.\n```python\nprint(3)\n```"
    policy = ScriptedPolicy([CODE, again, again])
    notebook = ScriptedNotebook([printed("3"), printed("3")])
    done = await run(FREE, policy, notebook, SETTINGS, ignore)
    assert (done.answer, done.turns, done.cells) == ("There are 3 rows.", 3, 2)


class Edited(ScriptedNotebook):
    """The person changes every cell."""

    async def run(self, cell, thought) -> ExecutedCell:  # type: ignore[no-untyped-def]
        ran = await super().run(cell, thought)
        return replace(ran, cell=RunCell("from scipy import stats\nstats.nothing"))


async def test_a_changed_cell_is_the_step_and_the_model_is_told() -> None:
    policy = ScriptedPolicy([CODE, f"```python\ndf = 1\n{CODE}"])
    events: list[Event] = []
    results = [printed("5"), printed("5")]
    done = await run(FREE, policy, Edited(results), RunSettings(max_turns=2), events.append)
    assert done.steps[0].turn.action == RunCell("from scipy import stats\nstats.nothing")
    assert done.steps[0].is_edited
    told = policy.requests[1].messages[-1].content
    assert told.startswith("The person changed this cell to:\n```python\nfrom scipy import stats")
    assert "5" in told
    finished = [event.cell for event in events if isinstance(event, CellFinished)]
    assert finished[0] == done.steps[0].turn.action
    assert done.cells == 2  # the model's own cell has not been shown


@pytest.mark.parametrize("words", ["", "Let us look again:\n"])
async def test_a_cell_that_comes_again_without_an_answer_is_a_void_turn(words: str) -> None:
    again = f"{words}```python\nprint(3)\n```"
    policy = ScriptedPolicy([CODE, again, again, "There are 3 rows."])
    notebook = ScriptedNotebook([printed("3"), printed("3")])
    done = await run(FREE, policy, notebook, SETTINGS, ignore)
    assert done.steps[2].turn.action == Void("the same cell again")
    assert (done.answer, done.turns, done.cells) == ("There are 3 rows.", 4, 2)


async def test_a_thought_before_a_cell_that_comes_again_is_no_answer() -> None:
    again = "<think>I need the number.</think><code>\n```python\nprint(3)\n```\n</code>"
    policy = ScriptedPolicy([again, again, "<think>t</think><answer>3</answer>"])
    notebook = ScriptedNotebook([printed("3"), printed("3")])
    done = await run(TAGGED, policy, notebook, SETTINGS, ignore)
    assert (done.answer, done.turns, done.cells) == ("3", 3, 2)


async def test_an_answer_before_any_cell_is_sent_back_to_compute() -> None:
    policy = ScriptedPolicy(["<think>t</think><answer>It is 3.</answer>"])
    done = await run(TAGGED, policy, ScriptedNotebook([printed("3")]), SETTINGS, ignore)
    assert "No cell has computed" in done.steps[0].observation
    assert done.unsupported == ("3",)


async def test_a_model_that_says_nothing_is_told_of(monkeypatch) -> None:
    monkeypatch.setattr(loop, "SILENCE_S", 0.01)
    told, events = asyncio.Event(), []

    class Slow(ScriptedPolicy):
        async def sample(self, request, on_text):
            await told.wait()
            return await super().sample(request, on_text)

    def take(event) -> None:
        events.append(event)
        if isinstance(event, ModelSilent):
            told.set()

    done = await run(TAGGED, Slow(["<answer>3</answer>"]), ScriptedNotebook([]), SETTINGS, take)
    assert done.answer == "3"
    silent = [event for event in events if isinstance(event, ModelSilent)]
    assert silent[0].model == done.policy


async def test_who_waits_for_others_is_told_how_many_and_that_its_turn_has_come() -> None:
    words = []

    class Third(ScriptedPolicy):
        async def sample(self, request, on_text):
            for before in (2, 1, 0):
                request.on_wait(before)
            return await super().sample(request, on_text)

    def take(event) -> None:
        if isinstance(event, ModelSilent):
            words.append(event.words)

    policy = Third(["<answer>3</answer>"])
    await run(TAGGED, policy, ScriptedNotebook([]), replace(SETTINGS, max_turns=1), take)
    name = policy.name
    assert words == [
        f"waiting for {name}: 2 questions before yours",
        f"waiting for {name}: 1 question before yours",
        f"{name} is reading the question",
    ]


@pytest.mark.parametrize(
    ("text", "is_cut"),
    [
        ("<code>\nprint(1)\n</code>", False),
        ("<code>\nprint(1", True),
        ("<answer>There are", True),
        ("<answer>3</answer>", False),
    ],
)
async def test_a_turn_that_its_length_cut_is_not_run(text, is_cut) -> None:
    class Cut(ScriptedPolicy):
        async def sample(self, request, on_text):
            done = await super().sample(request, on_text)
            return replace(done, finish_reason="length" if len(self.requests) == 1 else "stop")

    policy = Cut([text, "<answer>3</answer>"])
    done = await run(TAGGED, policy, ScriptedNotebook([printed("3")]), SETTINGS, ignore)
    assert done.answer == "3"
    assert isinstance(done.steps[0].turn.action, Void) is is_cut
    assert ("cut off" in done.steps[0].observation) is is_cut


async def test_garbage_three_times_in_a_row_ends_the_run() -> None:
    done = await run(TAGGED, ScriptedPolicy(["blah"]), ScriptedNotebook([]), SETTINGS, ignore)
    assert (done.stop, done.turns) == (StopReason.VOID, 3)
    assert done.stop_detail.startswith("3 turns in a row without code or an answer; the last was ")
    assert "<code>" in done.steps[0].observation


async def test_a_void_turn_can_end_the_run() -> None:
    settings = RunSettings(stop_on_void=True)
    done = await run(TAGGED, ScriptedPolicy(["blah"]), ScriptedNotebook([]), settings, ignore)
    assert (done.stop, done.turns) == (StopReason.VOID, 1)


@pytest.mark.parametrize(
    ("settings", "detail"),
    [
        (RunSettings(max_cells=2), "2 cells"),
        (RunSettings(max_tokens=3), "3 tokens"),
        (RunSettings(max_seconds=0.05), "0.05 seconds"),
    ],
)
async def test_budgets(settings: RunSettings, detail: str) -> None:
    class Slow(ScriptedNotebook):
        async def run(self, cell, thought) -> ExecutedCell:  # type: ignore[no-untyped-def]
            if settings.max_seconds < 1:
                await asyncio.sleep(60)
            return await super().run(cell, thought)

    done = await run(
        FREE, ScriptedPolicy(["x = 1\n```"]), Slow([raised("KeyError")]), settings, ignore
    )
    assert (done.stop, done.stop_detail) == (StopReason.BUDGET, detail)


@pytest.mark.parametrize("name", ["max_turns", "max_seconds", "turn_tokens"])
def test_settings_must_be_positive(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        RunSettings(**{name: 0})


async def test_without_a_retry_temperature_every_turn_has_the_same() -> None:
    policy = ScriptedPolicy([CODE, CODE, "3"])
    notebook = ScriptedNotebook([raised("KeyError", "'agee'"), printed("3")])
    settings = RunSettings(temperature=0.4, retry_temperature=None)
    await run(FREE, policy, notebook, settings, ignore)
    assert [request.temperature for request in policy.requests] == [0.4, 0.4, 0.4]


async def test_the_retry_temperature_is_the_least_after_a_failure() -> None:
    policy = ScriptedPolicy([CODE, CODE, "3"])
    notebook = ScriptedNotebook([raised("KeyError", "'agee'"), printed("3")])
    await run(FREE, policy, notebook, RunSettings(retry_temperature=0.5), ignore)
    assert [request.temperature for request in policy.requests] == [0.2, 0.5, 0.2]


@pytest.mark.parametrize("name", ["temperature", "retry_temperature"])
@pytest.mark.parametrize("value", [-0.1, 2.1, math.inf, math.nan])
def test_a_temperature_out_of_range_is_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"RunSettings.{name} must be 0 to 2"):
        RunSettings(**{name: value})


async def test_a_rollout_samples_the_model_itself_and_gives_no_help() -> None:
    policy = ScriptedPolicy(["<think>a</think><code>x", "<think>b</think><answer>3"])
    notebook = ScriptedNotebook([raised("KeyError", "'agee'")])
    settings = RunSettings.for_rollouts()
    done = await run(TAGGED, policy, notebook, settings, ignore)
    drawn = {(one.temperature, one.top_p, one.cuts_repetition) for one in policy.requests}
    assert drawn == {(1.0, 1.0, False)}
    assert all(one.thinks_in_text for one in policy.requests)
    assert done.assistance == Assistance.none()
    void = await run(TAGGED, ScriptedPolicy(["hm"]), notebook, settings, ignore)
    assert void.stop is StopReason.VOID


async def test_each_turn_is_asked_with_the_ids_of_the_one_before() -> None:
    end = TurnEnd.of("x", "x", "", "", is_closed=False)
    tokens = [
        SampledTokens(id_array([1]), id_array([place]), float_array([-1.0]), 1.0, 1.0, end)
        for place in range(3)
    ]

    @dataclass
    class TokensPolicy(ScriptedPolicy):
        async def sample(
            self, request: SampleRequest, on_text: Callable[[str], None]
        ) -> Completion:
            one = tokens[len(self.requests)]
            return replace(await super().sample(request, on_text), tokens=one)

    policy = TokensPolicy([CODE, CODE, "3"])
    notebook = ScriptedNotebook([raised("KeyError", "'agee'"), printed("3")])
    done = await run(FREE, policy, notebook, SETTINGS, ignore)
    assert [request.before for request in policy.requests] == [None, *tokens[:2]]
    # A branch from the first step continues that step, whatever has been sampled since.
    branch = replace(done.before(1), stop=None, answer=None)
    assert request_for(branch, SETTINGS).before is tokens[0]


async def test_a_failure_raises_the_temperature_and_every_turn_has_a_new_seed() -> None:
    policy = ScriptedPolicy([CODE])
    settings = RunSettings(max_turns=4, seed=7)
    await run(FREE, policy, ScriptedNotebook([raised("KeyError")]), settings, ignore)
    assert [request.temperature for request in policy.requests] == [0.2, 0.7, 0.7, 0.7]
    assert [request.seed for request in policy.requests] == [7, 8, 9, 10]


class Failing(ScriptedPolicy):
    async def sample(self, request: SampleRequest, on_text) -> Completion:  # type: ignore[no-untyped-def]
        if self.requests:
            raise EndpointUnreachableError("nothing answers")
        return await super().sample(request, on_text)


async def test_a_fault_of_the_endpoint_keeps_the_steps_before_it() -> None:
    events: list[Event] = []
    done = await run(
        FREE, Failing([CODE]), ScriptedNotebook([printed("3")]), SETTINGS, events.append
    )
    assert (done.stop, done.stop_detail, done.turns) == (StopReason.FAULT, "nothing answers", 1)
    last = events[-1]
    assert isinstance(last, RunFinished)
    assert isinstance(last.fault, EndpointUnreachableError)


async def test_a_fault_of_the_sandbox_ends_the_run() -> None:
    class Dead(ScriptedNotebook):
        async def run(self, cell, thought) -> ExecutedCell:  # type: ignore[no-untyped-def]
            raise KernelStartError("the kernel did not start")

    done = await run(FREE, ScriptedPolicy([CODE]), Dead([]), SETTINGS, ignore)
    assert (done.stop, done.stop_detail) == (StopReason.FAULT, "the kernel did not start")


async def test_cancelling_emits_the_run_so_far_and_is_raised() -> None:
    started = asyncio.Event()

    class Endless(ScriptedNotebook):
        async def run(self, cell, thought) -> ExecutedCell:  # type: ignore[no-untyped-def]
            started.set()
            await asyncio.sleep(60)
            raise AssertionError

    events: list[Event] = []
    task = asyncio.create_task(
        run(FREE, ScriptedPolicy([CODE]), Endless([]), SETTINGS, events.append)
    )
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    last = events[-1]
    assert isinstance(last, RunFinished)
    assert last.trajectory.stop is StopReason.CANCELLED


async def test_a_branch_is_a_step_from_any_trajectory() -> None:
    start = begin(FREE, ScriptedPolicy([]), SETTINGS)
    notebook = ScriptedNotebook([printed("3")])
    once = await step(start, ScriptedPolicy([CODE]), notebook, SETTINGS, ignore)
    left = await step(once, ScriptedPolicy(["It is 3."]), notebook, SETTINGS, ignore)
    right = await step(once, ScriptedPolicy(["3 rows."]), notebook, SETTINGS, ignore)
    assert (start.turns, once.turns) == (0, 1)
    assert left.steps[-1].turn.action == Answer("It is 3.")
    assert right.steps[-1].turn.action == Answer("3 rows.")


async def test_a_full_context_ends_the_run_as_out_of_budget_with_its_steps_kept() -> None:
    class Full(ScriptedPolicy):
        async def sample(self, request: SampleRequest, on_text) -> Completion:  # type: ignore[no-untyped-def]
            if self.requests:
                raise ContextFullError("too long")
            return await super().sample(request, on_text)

    done = await run(FREE, Full([CODE]), ScriptedNotebook([printed("1\n")]), RunSettings(), ignore)
    assert (done.stop, done.turns) == (StopReason.BUDGET, 1)
    assert "context" in done.stop_detail


async def test_a_turn_in_circles_runs_nothing_and_raises_the_temperature() -> None:
    class Circling(ScriptedPolicy):
        async def sample(self, request: SampleRequest, on_text) -> Completion:  # type: ignore[no-untyped-def]
            completion = await super().sample(request, on_text)
            return replace(completion, finish_reason="repetition")

    policy = Circling([CODE])
    done = await run(FREE, policy, ScriptedNotebook([]), RunSettings(max_turns=2), ignore)
    assert (done.cells, done.turns) == (0, 2)
    assert [request.temperature for request in policy.requests] == [0.2, 0.7]


FROM_0_TO_1 = replace(
    CLOSED, task=replace(CLOSED.task, answer_format='@p[p] where "p" is a number between 0 and 1.')
)


async def test_a_published_shape_gets_no_imports_and_no_critique() -> None:
    text = f"Thought: t\nAction: python\nAction Input: ```python\n{CODE}"
    start = replace(FROM_0_TO_1, dialect="react-published")
    notebook = ScriptedNotebook([printed("@p[495]")])
    done = await run(start, ScriptedPolicy([text]), notebook, RunSettings(max_turns=1), ignore)
    assert notebook.cells[0] == RunCell("print(len(df))")
    assert not done.steps[0].critique


async def test_a_value_of_another_kind_sends_the_cell_back_once() -> None:
    policy = ScriptedPolicy([CODE])
    notebook = ScriptedNotebook([printed("@p[495]"), printed("@p[7]")])
    done = await run(FROM_0_TO_1, policy, notebook, SETTINGS, ignore)
    assert (done.answer, done.turns) == ("@p[7]", 2)
    assert "between 0 and 1" in done.steps[0].critique
    told = policy.requests[1]
    assert [message.role for message in told.messages] == ["system", "user"]
    assert done.steps[0].critique in told.messages[-1].content
    assert told.temperature > policy.requests[0].temperature
    assert told.prefill.endswith(f"# {done.steps[0].critique}\n")
    assert not done.steps[1].critique


async def test_an_answer_that_was_sent_back_stands_when_nothing_better_comes() -> None:
    notebook = ScriptedNotebook([printed("@p[3]"), raised("KeyError", "'x'")])
    settings = RunSettings(max_turns=3)
    done = await run(FROM_0_TO_1, ScriptedPolicy([CODE]), notebook, settings, ignore)
    assert (done.stop, done.answer, done.turns) == (StopReason.ANSWERED, "@p[3]", 3)


async def test_the_same_error_twice_is_followed_by_a_fresh_start() -> None:
    policy = ScriptedPolicy([CODE])
    notebook = ScriptedNotebook([raised("KeyError", "'x'"), raised("KeyError", "'x'"), printed("")])
    await run(CLOSED, policy, notebook, RunSettings(max_turns=3), ignore)
    first, repair, anew = policy.requests
    assert "KeyError" in repair.prefill
    assert anew.messages == first.messages
    assert anew.prefill.startswith(f"{first.prefill}# The last attempt failed")
    assert "mistake was" not in anew.prefill
    assert anew.seed != first.seed
    assert anew.temperature > first.temperature


async def test_an_answer_that_a_content_filter_ended_is_named() -> None:
    class Filtered(ScriptedPolicy):
        async def sample(self, request, on_text):
            done = await super().sample(request, on_text)
            return replace(done, finish_reason="content_filter")

    policy = Filtered(["<answer>3</answer>"])
    done = await run(TAGGED, policy, ScriptedNotebook([]), SETTINGS, ignore)
    assert done.answer is None
    assert done.stop is StopReason.VOID
    assert "content filter" in done.stop_detail


PNG = "iVBORw0KGgoAAAAA"
FIGURE = CellResult(CellStatus.OK, (Display({"image/png": PNG, "text/plain": "Figure: rain"}),))
CALL = '<tool_call>\n{"name": "run_python", "arguments": {"code": "plt.show()"}}\n</tool_call>'


@pytest.mark.parametrize("dialect", ["markdown", "tools"])
async def test_the_last_figure_is_shown_where_that_is_wanted_and_told_in_words(
    dialect: str,
) -> None:
    code = CALL if dialect == "tools" else CODE
    policy = ScriptedPolicy([code, code, "It rains."])
    settings = RunSettings(shows_pictures=True)
    notebook = ScriptedNotebook([FIGURE, printed("3")])
    await run(replace(FREE, dialect=dialect), policy, notebook, settings, ignore)
    shown = [[one.pictures for one in request.messages] for request in policy.requests]
    assert not any(shown[0])
    assert shown[1][-1] == (f"data:image/png;base64,{PNG}",)
    assert policy.requests[1].messages[-1].role == "user"
    assert not any(shown[2]), "once is enough"
    words = "".join(message.content for message in policy.requests[2].messages)
    assert "[a figure was shown. Figure: rain]" in words


async def test_a_figure_is_not_sent_unless_that_is_wanted() -> None:
    policy = ScriptedPolicy([CODE, "It rains."])
    await run(FREE, policy, ScriptedNotebook([FIGURE]), SETTINGS, ignore)
    assert not any(one.pictures for request in policy.requests for one in request.messages)


async def test_the_cell_as_written_has_the_notes_that_did_not_run() -> None:
    policy = ScriptedPolicy([CODE, " the name.\nprint(2)\n```"])
    notebook = ScriptedNotebook([raised("KeyError", "'a'"), printed("2")])
    done = await run(FREE, policy, notebook, replace(SETTINGS, max_turns=2), ignore)
    first, second = done.steps
    assert first.written is None
    assert second.turn.action == RunCell("df = 1\nprint(2)")
    assert second.written is not None
    assert second.written.source.startswith("df = 1\n# The last attempt failed:\n# KeyError")
    assert second.written.source.endswith("# The mistake was that the name.\nprint(2)")
    assert Trajectory.from_json(done.to_json()).steps[1].written == second.written
