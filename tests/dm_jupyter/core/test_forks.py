"""Each prompt is the one before, what was sampled, its ending and more; or the turn forks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dm_jupyter.core.assistance import Assistance
from dm_jupyter.core.dialect import Message
from dm_jupyter.core.dialects import DIALECTS, dialect_named
from dm_jupyter.core.forks import fork_points, plain_prompt
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Answer, Completion, Fold, RunCell, Step, Trajectory, Turn
from tests.fakes import printed, raised

TEMPLATES = Path(__file__).parents[2] / "data" / "chat_templates"
TASK = Task("t", "How many rows?", answer_format="@n[rows]")
APPENDING = [dialect.name for dialect in DIALECTS.values() if dialect.is_append_only]
Render = Callable[[Sequence[Message]], str]


def rendered_by(name: str) -> Render:
    template = jinja2.Environment(autoescape=False).from_string(
        (TEMPLATES / f"{name}.jinja").read_text("utf-8")
    )
    return lambda messages: template.render(messages=[message.to_json() for message in messages])


CHATML, REWRITING, TRIMMING = map(rendered_by, ("chatml", "rewriting", "trimming"))
SAID = st.one_of(
    st.text(max_size=30),
    st.lists(
        st.sampled_from(
            ["<think>", "</think>", "<code>", "print(3)", "\n", "  ", "</code>", "<answer>", "3",
             "<Analyze>", "<Code>", "```python\n", "```", "Thought: t\n", "Final Answer: 3"]
        ),
        max_size=8,
    ).map("".join),
)  # fmt: skip


def run_of(dialect: str, texts: Sequence[str], assistance: Assistance | None = None) -> Trajectory:
    """A run in which a model said that; every cell has printed something."""
    form, run = dialect_named(dialect), Trajectory(TASK, dialect, assistance=assistance)
    for text in texts:
        turn = form.parse(text)
        result = printed("3\n") if isinstance(turn.action, RunCell) else None
        told = form.observation(run, result, "3") if result else form.void_reminder(
            run.extended(Step(Completion(text), turn))
        )  # fmt: skip
        run = run.extended(Step(Completion(text), turn, result, told))
    return run


def three_turns(dialect: str) -> list[str]:
    cells = [Turn("look", RunCell("print(3)")), Turn("again", RunCell("print(4)"))]
    if dialect.startswith("markdown"):
        return [dialect_named(dialect).render(turn) for turn in (*cells, cells[0])]
    return [dialect_named(dialect).render(one) for one in (*cells, Turn("seen", Answer("@n[3]")))]


@pytest.mark.parametrize("dialect", APPENDING)
@pytest.mark.parametrize("assistance", [None, Assistance(), Assistance.none()], ids=str)
@given(texts=st.lists(SAID, min_size=2, max_size=5))
def test_a_dialect_that_only_appends_changes_nothing_that_was_sampled(
    dialect: str, assistance: Assistance | None, texts: list[str]
) -> None:
    run = run_of(dialect, texts, assistance)
    assert fork_points(run) == fork_points(run, CHATML) == ()
    for at, message in enumerate(dialect_named(dialect).messages(run)[2::2]):
        assert message.content.startswith(texts[at])


@pytest.mark.parametrize("dialect", APPENDING)
@given(texts=st.lists(SAID, min_size=2, max_size=5))
def test_blanks_that_a_template_trims_fork_the_next_turn_and_nothing_else_does(
    dialect: str, texts: list[str]
) -> None:
    form = dialect_named(dialect)
    whole = [text + form.ending(text) for text in texts[:-1]]
    # a text of blanks alone leaves nothing, and so does the end of the one before it
    expected = tuple(at for at, text in enumerate(whole, 1) if text != text.strip())
    assert fork_points(run_of(dialect, texts), TRIMMING) == expected


@pytest.mark.parametrize("dialect", APPENDING)
def test_a_template_that_drops_thoughts_forks_each_turn_of_a_dialect_with_its_tags(
    dialect: str,
) -> None:
    run = run_of(dialect, three_turns(dialect))
    assert fork_points(run, CHATML) == fork_points(run, TRIMMING) == ()
    has_its_tags = dialect.startswith("datamind")
    assert fork_points(run, REWRITING) == ((1, 2) if has_its_tags else ())


def test_markdown_forks_where_it_forgets_and_not_without_help() -> None:
    text = "```python\nprint(3)"
    run = run_of("markdown", [text] * 3)
    assert fork_points(run) == ()
    failed = replace(run.steps[0], result=raised("KeyError"))
    forgetting = replace(run, steps=(failed, *run.steps[1:]))
    assert fork_points(forgetting) == (2,), "with turn 1 there, the failed turn 0 is not shown"
    assert fork_points(replace(forgetting, assistance=Assistance.none())) == ()


@given(texts=st.lists(SAID, min_size=2, max_size=5))
def test_markdown_without_help_changes_nothing_that_was_sampled(texts: list[str]) -> None:
    assert fork_points(run_of("markdown", texts, Assistance.none())) == ()


def test_a_void_turn_that_is_left_out_forks() -> None:
    texts = ["Thought: hm", *three_turns("react")]
    assert fork_points(run_of("react", texts)) == ()
    assert fork_points(run_of("react-published", texts)) == (1,)


def test_native_calls_are_another_text_than_was_sampled() -> None:
    assert fork_points(run_of("tools", three_turns("tools"))) == (1, 2)


def test_a_digest_of_the_first_turns_forks() -> None:
    run = run_of("react", three_turns("react"))
    assert fork_points(replace(run, folds=(Fold(2, 1, "looked"),))) == (2,)


def test_the_opening_belongs_to_what_was_said() -> None:
    """The prompt ends with it, and the text of the turn begins with it."""
    step = run_of("markdown", ["```python\ndf = 1\nprint(3)"] * 2).steps[0]
    opened = replace(step, completion=replace(step.completion, prefill="```python\ndf = 1\n"))
    run = replace(run_of("markdown", ["a", "b"]), steps=(opened, opened))
    assert fork_points(run) == ()


def test_a_plain_prompt_keeps_every_blank() -> None:
    shown = plain_prompt([Message("user", " a \n"), Message("assistant", "")])
    assert " a \n<" in shown
