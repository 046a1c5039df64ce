"""The tools dialect: what is called, what can't be, and how it goes back to the endpoint."""

import json
from pathlib import Path

import pytest

from dm_jupyter.core.dialects.tools import TOOLS, ToolsDialect, call_text, in_words
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import (
    Answer,
    Completion,
    DataContext,
    RunCell,
    Step,
    Trajectory,
    Void,
)

DIALECT = ToolsDialect()
TASK = Task("t", "How many rows?", (Path("sales.csv"),))
START = Trajectory(TASK, "tools", DataContext("sales.csv: 3 rows", "df = load()\n"))


def step_of(text, observation):
    return Step(Completion(text), DIALECT.parse(text), None, observation)


def test_a_thought_and_a_call_are_a_cell():
    turn = DIALECT.parse("I count.\n" + call_text("run_python", '{"code": "\\nprint(3)\\n"}'))
    assert (turn.thought, turn.action) == ("I count.", RunCell("print(3)"))
    query = DIALECT.parse(call_text("run_sql", '{"query": "SELECT 1"}')).action
    assert query == RunCell("SELECT 1", "sql")
    assert DIALECT.parse(call_text("answer", '{"text": " 3 rows "}')).action == Answer("3 rows")


def test_of_two_calls_the_first_is_made():
    text = (
        call_text("run_python", '{"code": "a"}') + "\n" + call_text("run_python", '{"code": "b"}')
    )
    assert DIALECT.parse(text).action == RunCell("a")
    assert not DIALECT.is_well_formed(text)
    messages = DIALECT.messages(START.extended(step_of(text, "done")))
    assert [one.role for one in messages] == ["system", "user", "assistant", "tool", "tool"]
    calls = messages[2].calls
    assert [one.call_id for one in messages[3:]] == [one.id for one in calls]
    assert messages[3].content == "done"
    assert "one call at a time" in messages[4].content


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("run_python", '{"code": "pri', "not valid JSON"),
        ("run_python", "[1]", "not valid JSON"),
        ("run_python", "{}", "'code'"),
        ("run_python", '{"code": 3}', "'code'"),
        ("answer", '{"text": "  "}', "'text'"),
        ("shell", '{"code": "ls"}', "no tool 'shell'"),
        ("", "", "no tool ''"),
    ],
)
def test_a_call_that_can_not_be_made_says_why(name, arguments, reason):
    text = call_text(name, arguments)
    action = DIALECT.parse(text).action
    assert isinstance(action, Void)
    assert reason in action.reason
    after = START.extended(step_of(text, ""))
    assert DIALECT.void_reminder(after).startswith(action.reason)
    for message in DIALECT.messages(after):
        for call in message.calls:
            json.loads(call.arguments)


def test_line_breaks_that_are_not_escaped_are_no_fault():
    assert DIALECT.parse(call_text("run_python", '{"code": "a\nb"}')).action == RunCell("a\nb")


def test_code_may_hold_the_mark_of_a_call():
    code = "print('</tool_call><tool_call>')"
    text = call_text("run_python", json.dumps({"code": code}))
    assert DIALECT.parse(text).action == RunCell(code)


def test_words_without_a_call_are_the_answer_unless_they_announce_one():
    assert DIALECT.parse("There are 3 rows.").action == Answer("There are 3 rows.")
    assert isinstance(DIALECT.parse("I look at the data:").action, Void)
    assert isinstance(DIALECT.parse(" \n").action, Void)


@pytest.mark.parametrize(
    "text",
    [
        'I count.\n```json\n{"name": "run_python", "arguments": {"code": "print(3)"}}\n```',
        'I count.\n```\n{"name": "run_python", "arguments": {"code": "print(3)"}}\n``` Then more.',
        'I count.\n{\n "name": "run_python",\n "arguments": {"code": "print(3)"}\n}\n',
        'I count.\n{{"name": "run_python", "arguments": {"code": "print(3)"}}}',
        'I count.\n```json\n{{"name": "run_python", "arguments": {"code": "print(3)"}}}}\n```',
    ],
)
def test_a_call_written_in_words_is_made_and_goes_back_as_words(text):
    turn = DIALECT.parse(text)
    assert (turn.thought, turn.action) == ("I count.", RunCell("print(3)"))
    assert not DIALECT.is_well_formed(text)
    roles = [one.role for one in DIALECT.messages(START.extended(step_of(text, "3")))]
    assert roles == ["system", "user", "assistant", "user"]


@pytest.mark.parametrize("end", ["", "}", "}}\n"])
def test_a_call_may_have_doubled_braces_as_in_the_template_of_some_models(end):
    call = '{{"name": "run_python", "arguments": {"code": "print(3)"}}' + end
    turn = DIALECT.parse(f"I count.\n<tool_call>\n{call}\n</tool_call>")
    assert (turn.thought, turn.action) == ("I count.", RunCell("print(3)"))
    (sent,) = DIALECT.messages(START.extended(step_of(f"<tool_call>{call}", "3")))[2].calls
    assert json.loads(sent.arguments) == {"code": "print(3)"}
    spoiled = DIALECT.parse(f"<tool_call>{call} and more</tool_call>")
    assert isinstance(spoiled.action, Void)


def test_json_that_is_no_call_is_the_answer():
    text = 'The settings are\n```json\n{"name": "north", "rows": 3}\n```'
    assert DIALECT.parse(text).action == Answer(text)


@pytest.mark.parametrize("end", ["\n```", "", "\n```\n\n"])
def test_code_without_a_call_is_asked_for_again(end):
    action = DIALECT.parse("I count the rows.\n```python\nprint(len(df))" + end).action
    assert isinstance(action, Void)
    assert "no tool was called" in action.reason
    whole = "Use `df`:\n```python\nlen(df)\n```\nThere are 3 rows."
    assert DIALECT.parse(whole).action == Answer(whole)


def test_a_turn_in_words_goes_back_as_words():
    after = START.extended(step_of("There are 4 rows.", "4 is in no output."))
    roles = [(one.role, one.content) for one in DIALECT.messages(after)[2:]]
    assert roles == [("assistant", "There are 4 rows."), ("user", "4 is in no output.")]


def test_the_profile_is_shown_and_nothing_is_put_into_the_models_mouth():
    messages = DIALECT.messages(START)
    assert "sales.csv: 3 rows" in messages[1].content
    assert DIALECT.prefill(START) == ""
    assert DIALECT.stop(START, "") == ()


def test_an_endpoint_gets_the_calls_in_its_own_shape():
    text = "I count.\n" + call_text("run_python", '{"code": "print(3)"}')
    sent = [one.to_json() for one in DIALECT.messages(START.extended(step_of(text, "3")))][2:]
    function = {"name": "run_python", "arguments": '{"code": "print(3)"}'}
    assert sent == [
        {
            "role": "assistant",
            "content": "I count.",
            "tool_calls": [{"id": "call_1_1", "type": "function", "function": function}],
        },
        {"role": "tool", "content": "3", "tool_call_id": "call_1_1"},
    ]


def test_in_words_a_conversation_holds_tools_calls_and_results():
    text = "Two.\n" + "\n".join(call_text("run_python", json.dumps({"code": x})) for x in "ab")
    messages = in_words(DIALECT.messages(START.extended(step_of(text, "done"))), TOOLS)
    assert [one.role for one in messages] == ["system", "user", "assistant", "user"]
    assert not any(one.calls or one.call_id for one in messages)
    for tool in TOOLS:
        assert json.dumps(tool.to_json()) in messages[0].content
    assert messages[2].content == text
    assert messages[3].content.startswith("done\n")
    assert "one call at a time" in messages[3].content
    example = messages[0].content.rpartition(":\n")[2].replace("{...}", '{"code": "a"}')
    assert DIALECT.parse(example).action == RunCell("a")


@pytest.mark.parametrize(
    ("text", "action"),
    [
        # as a 0.5B model wrote it: one call, a brace too many, and another beginning
        (
            '{"name": "run_sql", "arguments": {"query": "SELECT 1"}}}, {"text": "There are 3."}}',
            RunCell("SELECT 1", "sql"),
        ),
        (
            'I count.\n```json\n{"name": "run_python", "arguments": {"code": "a"}}}\n```',
            RunCell("a"),
        ),
        (
            '{"name": "run_python", "arguments": {"code": "a"}}\n'
            '{"name": "run_python", "arguments": {"code": "b"}}',
            RunCell("a"),
        ),
    ],
)
def test_a_call_in_words_is_made_whatever_comes_after_it(text, action):
    assert DIALECT.parse(text).action == action


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "run_python", "arguments": {"code": "print("a")"}}',
        'Now:\n```json\n{"name": "answer", "arguments": {"text": }}\n```',
        '{"name": "run_python", "arguments": {"cell": "a"}}',
    ],
)
def test_a_broken_call_in_words_is_no_answer(text):
    action = DIALECT.parse(text).action
    assert isinstance(action, Void)
    assert "JSON" in action.reason or "'code'" in action.reason


def test_data_and_words_about_a_call_are_an_answer():
    for text in (
        '{"rows": 3}',
        '{"name": "Anna", "arguments": 3}',
        'I called run_python with {"code": "a"} and it printed 3.',
    ):
        assert DIALECT.parse(text).action == Answer(text)


def test_json_without_end_or_depth_is_read_without_harm():
    deep = '{"name": "run_python", "arguments": ' + "[" * 100_000
    for text in (deep, f"<tool_call>{deep}</tool_call>", call_text("run_python", "[" * 100_000)):
        assert isinstance(DIALECT.parse(text).action, Void)
        DIALECT.messages(START.extended(step_of(text, "again")))


def test_a_name_that_is_no_text_names_no_tool():
    for name in ("{}", "[1]", "3"):
        text = f'<tool_call>\n{{"name": {name}, "arguments": {{}}}}\n</tool_call>'
        assert isinstance(DIALECT.parse(text).action, Void)
