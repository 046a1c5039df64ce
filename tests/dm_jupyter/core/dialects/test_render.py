"""A turn that a dialect writes is the turn that it reads, in every dialect."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dm_jupyter.core.dialect import Dialect
from dm_jupyter.core.dialects import DIALECTS, dialect_named
from dm_jupyter.core.dialects.deepanalyze import DEEPANALYZE_TOKENS
from dm_jupyter.core.errors import UnrenderableTurnError
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Answer, RunCell, Trajectory, Turn, Void
from tests.examples import examples

ALL = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=list(DIALECTS))
MARKS = st.sampled_from(
    [
        "```", "`", "```python\n", "```sql\n", "print(1)", '"""', "'''", "x = '```'", "\n", "\n\n",
        "<think>", "</think>", "<code>", "</code>", "</answer>", "<interpreter>", "<Analyze>",
        "</Code>", "<Answer>", "<Execute>", "<tool_call>", "</tool_call>", "Thought: ", "\nAction:",
        "\nFinal Answer: ", "Formatted answer:", "\nObservation:", "**", "* ", "# ", ": ", "@x[1]",
        "  ", "\t", "é", "名", "\\", '{"name": "answer"}', "%", "$x", "\u2028", "\r",
    ]
)  # fmt: skip
WORDS = st.lists(
    st.one_of(MARKS, st.text(max_size=6), st.text("abc (=)\n", max_size=12)), max_size=8
)
TEXT = WORDS.map("".join)
THOUGHTS = st.one_of(st.just(""), TEXT.map(str.strip))
CELLS = st.builds(
    RunCell,
    TEXT.map(lambda text: text.strip("\n")).filter(str.strip),
    st.sampled_from(["python", "sql"]),
)
ANSWERS = st.builds(Answer, TEXT.map(str.strip).filter(bool))
TURNS = st.builds(Turn, THOUGHTS, st.one_of(CELLS, ANSWERS))

FENCE_LINE = re.compile(r"^[ \t]*```|```[ \t]*$", re.MULTILINE)
FENCE_START = re.compile(r"^[ \t]*```", re.MULTILINE)
LABEL = re.compile(
    r"^[\s*#]*(?:thought|action|action input|observation|(?:the )?final answer|formatted answer)\s*"
    r"[\s*]*(?::|is\b)",
    re.MULTILINE | re.IGNORECASE,
)
TAG = {
    "datamind": re.compile("</?(?:think|code|answer|interpreter)>"),
    "deepanalyze": re.compile("|".join(DEEPANALYZE_TOKENS)),
}


def is_holdable(dialect: str, turn: Turn) -> bool:
    """What the dialects say of the turns that they can't hold, in other words than theirs."""
    form, action = dialect.removesuffix("-published"), turn.action
    is_cell = isinstance(action, RunCell)
    does = action.source if isinstance(action, RunCell) else getattr(action, "text", "")
    said = f"{turn.thought}\n{does}"
    match form:
        case "datamind" | "deepanalyze":
            return not TAG[form].search(said)
        case "markdown":
            return (
                not FENCE_START.search(said) if is_cell else not turn.thought and "```" not in does
            )
        case "tools":
            return "<tool_call>" not in turn.thought
    if LABEL.search(said) or "\nObservation" in said:
        return False
    if form == "jupiter" and ("```" in turn.thought or (not is_cell and "```" in does)):
        return False
    return not (is_cell and FENCE_LINE.search(does))


@ALL
@given(turn=TURNS)
@examples(400)
@example(turn=Turn("", RunCell("x = 1\n\nprint(f'```{x}```', \"`\")")))
@example(turn=Turn("two\n\nlines", RunCell("    indented = 1\n    print(indented)")))
@example(turn=Turn("**bold** – 名", Answer("**3** rows\n* one\n* two")))
@example(turn=Turn("", RunCell("SELECT '`', \"a b\"\nFROM t -- </b>", "sql")))
@example(turn=Turn("", Answer("@mean[3.5]\n@r[0.1]")))
def test_what_a_dialect_writes_it_reads(dialect: Dialect, turn: Turn) -> None:
    try:
        text = dialect.render(turn)
    except UnrenderableTurnError:
        assert not is_holdable(dialect.name, turn)
        return
    assert dialect.parse(text) == turn
    assert dialect.is_well_formed(text)
    assert dialect.parse(text + dialect.ending(text)) == turn


@ALL
@given(turn=TURNS)
def test_a_turn_whose_end_a_stop_string_took_is_whole_with_its_ending(
    dialect: Dialect, turn: Turn
) -> None:
    try:
        text = dialect.render(turn)
    except UnrenderableTurnError:
        return
    for stop in dialect.stop(Trajectory(Task("t", "?"), dialect.name), "an opening"):
        if text.endswith(stop):
            sampled = text.removesuffix(stop)
            assert sampled + dialect.ending(sampled) == text


@ALL
@pytest.mark.parametrize(
    "turn",
    [
        Turn("t", Void("nothing")),
        Turn(" blanks ", RunCell("x = 1")),
        Turn("t", RunCell("\nx = 1\n")),
        Turn("t", RunCell("   \n ")),
        Turn("t", RunCell("ls", "bash")),
        Turn("", Answer("")),
        Turn("", Answer(" 3\n")),
    ],
    ids=str,
)
def test_no_dialect_can_write_these(dialect: Dialect, turn: Turn) -> None:
    with pytest.raises(UnrenderableTurnError, match=dialect.name):
        dialect.render(turn)


@pytest.mark.parametrize(
    ("name", "turn"),
    [
        ("datamind", Turn("", RunCell("print('</code>')"))),
        ("deepanalyze", Turn("then <Answer>", RunCell("x = 1"))),
        ("react", Turn("", RunCell('x = """\nObservation: 3"""'))),
        ("jupiter", Turn("```x```", RunCell("x = 1"))),
        ("markdown", Turn("", RunCell('x = """\n```\n"""'))),
        ("markdown", Turn("I think so", Answer("3"))),
        ("tools", Turn("<tool_call>", Answer("3"))),
    ],
)
def test_marks_of_a_dialect_in_its_turns_are_refused(name: str, turn: Turn) -> None:
    with pytest.raises(UnrenderableTurnError):
        dialect_named(name).render(turn)


@ALL
@pytest.mark.parametrize("language", ["python", "sql"])
def test_a_query_stays_a_query(dialect: Dialect, language: str) -> None:
    text = dialect.render(Turn("look", RunCell("SELECT 1", language)))
    assert dialect.parse(text).action == RunCell("SELECT 1", language)
    assert ("sql" in text) is (language == "sql")
