"""A long run on a model with a short context ends with an answer, and loses nothing it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from dm_jupyter.agent.compaction import estimated_tokens, folded_further
from dm_jupyter.agent.loop import RunSettings, run
from dm_jupyter.core.assistance import Assistance
from dm_jupyter.core.dialects import dialect_named
from dm_jupyter.core.errors import ContextFullError
from dm_jupyter.core.events import Event
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Completion, DataContext, StopReason, Trajectory
from dm_jupyter.models.protocols import SampleRequest
from kernel_sandbox.types import CellResult
from tests.fakes import ScriptedNotebook, ScriptedPolicy, printed, raised

CONTEXT = 8_192
TURNS = 40
FINDING = "the key figure of turn"
START = Trajectory(
    Task("t", "How many rows in all?"), "markdown", DataContext("f.csv: 5 x 2", "df = 1\n")
)
SETTINGS = RunSettings(
    max_turns=TURNS + 1, max_cells=TURNS + 1, max_tokens=200_000, turn_tokens=500
)
BIG = "\n".join(f"{row},{row * 7},{row % 11}" for row in range(250))


@dataclass
class SmallModel:
    """Takes 8,192 tokens, counted as its server counts them; answers after forty turns."""

    code: Callable[[int], str]
    answer: str
    tells_usage: bool = True
    name: str = "small"
    requests: list[SampleRequest] = field(default_factory=list)

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        prompt = sum(len(message.content) for message in request.messages) + len(request.prefill)
        tokens = round(prompt / 2.7)
        if tokens + request.max_tokens > CONTEXT:
            raise ContextFullError(f"{tokens} tokens exceed the context of {CONTEXT}")
        turn = len(self.requests)
        self.requests.append(request)
        text = self.code(turn) if turn < TURNS - 1 else self.answer
        whole = request.prefill + text if turn < TURNS - 1 else text
        return Completion(whole, request.prefill, tokens if self.tells_usage else 0, 120, 0.0)


def ignore(event: Event) -> None:
    pass


def markdown_code(turn: int) -> str:
    return f"```python\npart_{turn} = df.iloc[{turn}:]\nprint(part_{turn})\n```"


def tools_code(turn: int) -> str:
    code = f"part_{turn} = df.iloc[{turn}:]\\nprint(part_{turn})"
    return f'<tool_call>\n{{"name": "run_python", "arguments": {{"code": "{code}"}}}}\n</tool_call>'


DIALECTS = {
    "markdown": (markdown_code, "There are many."),
    "tools": (
        tools_code,
        '<tool_call>\n{"name": "answer", "arguments": {"text": "Many."}}\n</tool_call>',
    ),
    "datamind": (
        lambda turn: f"<think>on</think>\n<code>part_{turn} = {turn}\nprint(part_{turn})",
        "<think>done</think>\n<answer>Many.",
    ),
    "react": (
        lambda turn: (
            "Thought: on\nAction: python_code_sandbox\nAction Input:\n"
            f"```python\npart_{turn} = {turn}\nprint(part_{turn})\n```"
        ),
        "Thought: done\nFinal Answer: Many.",
    ),
}


def notebook() -> ScriptedNotebook:
    return ScriptedNotebook([printed(f"{BIG}\n{FINDING} {turn}") for turn in range(TURNS)])


@pytest.mark.parametrize("context_tokens", [CONTEXT, 0], ids=["known", "unknown"])
@pytest.mark.parametrize("tells_usage", [True, False], ids=["usage", "estimate"])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_forty_turns_on_a_small_context_end_with_an_answer(
    dialect: str, tells_usage: bool, context_tokens: int
) -> None:
    model = SmallModel(*DIALECTS[dialect], tells_usage)
    settings = replace(SETTINGS, context_tokens=context_tokens)
    done = await run(replace(START, dialect=dialect), model, notebook(), settings, ignore)
    assert (done.stop, done.turns) == (StopReason.ANSWERED, TURNS), done.stop_detail
    assert done.folds
    asked = "\n".join(message.content for message in model.requests[-1].messages)
    assert "How many rows in all?" in asked
    assert f"{FINDING} {TURNS - 2}" in asked, "the last output is shown"
    assert f"{FINDING} {TURNS - 10}" in asked, "an earlier one by what it showed in the end"
    assert "part_3" in asked.partition("Variables that these turns made")[2]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_without_compaction_the_same_run_ends_in_a_full_context(dialect: str) -> None:
    own = Assistance.for_dialect(dialect).without("compaction")
    settings = replace(SETTINGS, context_tokens=CONTEXT, assistance=own)
    model = SmallModel(*DIALECTS[dialect])
    done = await run(replace(START, dialect=dialect), model, notebook(), settings, ignore)
    assert (done.stop, done.answer) == (StopReason.BUDGET, None)
    assert "context" in done.stop_detail


async def test_a_context_of_known_length_is_never_overrun() -> None:
    class Strict(SmallModel):
        async def sample(
            self, request: SampleRequest, on_text: Callable[[str], None]
        ) -> Completion:
            try:
                return await super().sample(request, on_text)
            except ContextFullError as error:
                raise AssertionError("asked with too much") from error

    model = Strict(*DIALECTS["markdown"])
    settings = replace(SETTINGS, context_tokens=CONTEXT)
    done = await run(START, model, notebook(), settings, ignore)
    assert done.answer == "There are many."


async def test_what_a_turn_was_asked_with_can_be_made_again() -> None:
    model = SmallModel(*DIALECTS["markdown"])
    settings = replace(SETTINGS, context_tokens=CONTEXT)
    done = await run(START, model, notebook(), settings, ignore)
    kept = Trajectory.from_json(done.to_json())
    dialect = dialect_named("markdown")
    made_again = [dialect.messages(kept.before(turn)) for turn in range(TURNS)]
    assert made_again == [request.messages for request in model.requests]


async def test_folds_come_in_leaps_so_that_an_engine_keeps_what_it_has_read() -> None:
    model = SmallModel(*DIALECTS["markdown"])
    settings = replace(SETTINGS, context_tokens=CONTEXT)
    done = await run(START, model, notebook(), settings, ignore)
    assert len(done.folds) <= TURNS // 2


def test_a_first_question_that_is_too_long_can_not_be_folded() -> None:
    assert folded_further(START) is None
    assert estimated_tokens(START) > 0


LOOPING = "<think>clean</think>\n<code>\n" + "df = df[df.a != 1]\n" * 9
FAILING = "<think>on</think>\n<code>\nprint(wrong)\n"
MEND = "<think>mend</think>\n<code>\nprint(right)\n"
ANSWER = "<think>done</think>\n<answer>\nMany.\n"


class Looping(ScriptedPolicy):
    """Its turn that repeats itself is cut."""

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        sampled = await super().sample(request, on_text)
        is_cut = sampled.text == LOOPING
        return replace(sampled, finish_reason="repetition" if is_cut else "stop")


async def copied(
    turns: list[str], results: list[CellResult], assistance: Assistance | None = None
) -> tuple[Trajectory, ScriptedPolicy]:
    model = Looping(turns)
    settings = RunSettings(max_turns=len(turns), assistance=assistance)
    start = replace(START, dialect="datamind")
    return await run(start, model, ScriptedNotebook(results), settings, ignore), model


async def test_a_turn_that_repeats_itself_is_not_shown_again() -> None:
    done, model = await copied([LOOPING, MEND, ANSWER], [printed("5")])
    assert (done.answer, len(done.folds)) == ("Many.", 1)
    first, second, third = ([m.content for m in r.messages] for r in model.requests)
    assert second == first
    assert len(third) == len(first) + 2
    assert model.requests[1].temperature > model.requests[0].temperature


async def test_a_model_that_copies_a_failed_cell_sees_it_shortened() -> None:
    error = raised("NameError", "name 'wrong' is not defined")
    done, model = await copied([FAILING, FAILING, MEND, ANSWER], [error, error, printed("5")])
    assert done.answer == "Many."
    assert [(fold.at, fold.turns) for fold in done.folds] == [(2, 2)]
    asked = model.requests[2].messages
    assert [message.role for message in asked] == ["system", "user"]
    assert asked[1].content.count("print(wrong)") == 1
    assert "NameError" in asked[1].content
    assert "copies its last turn" in done.folds[0].why
    kept = Trajectory.from_json(done.to_json())
    messages = dialect_named("datamind").messages
    assert [messages(kept.before(at)) for at in range(4)] == [r.messages for r in model.requests]


async def test_a_model_that_copies_a_good_cell_sees_its_output_shortened() -> None:
    done, model = await copied([MEND, MEND, ANSWER], [printed("5"), printed("5")])
    assert done.answer == "Many."
    assert model.requests[2].messages[1].content.endswith("showed: 5")


@pytest.mark.parametrize("assistance", [Assistance.none(), Assistance().without("forgetting")])
async def test_without_that_help_a_copy_stays(assistance: Assistance) -> None:
    error = raised("NameError", "name 'wrong' is not defined")
    done, model = await copied([FAILING, FAILING, ANSWER], [error, error], assistance)
    assert not done.folds
    assert len(model.requests[2].messages) == 6
