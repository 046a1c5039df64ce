from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dm_jupyter.core import prompts
from dm_jupyter.core.assistance import Assistance
from dm_jupyter.core.dialect import Dialect
from dm_jupyter.core.dialects import DIALECTS, dialect_named
from dm_jupyter.core.dialects.datamind import DataMindDialect
from dm_jupyter.core.dialects.deepanalyze import DEEPANALYZE_TOKENS, DeepAnalyzeDialect
from dm_jupyter.core.dialects.markdown import MarkdownDialect
from dm_jupyter.core.dialects.react import JupiterDialect, ReactDialect
from dm_jupyter.core.dialects.tools import call_text
from dm_jupyter.core.errors import UsageError
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import (
    Answer,
    Completion,
    DataContext,
    RunCell,
    Step,
    Trajectory,
    Turn,
    Void,
)
from kernel_sandbox.ledger.facts import Coverage, Fact
from kernel_sandbox.types import CellResult, CellStatus
from tests.fakes import printed, raised

ALL = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=str)
FREE = Trajectory(Task("t", "How many rows?"), "markdown", DataContext("a file", "df = load()\n"))
CLOSED = Trajectory(
    Task("t", "Mean and r?", answer_format="@mean[m] @r[r]"),
    "markdown",
    DataContext("f", "df = 1\n"),
)
DATABASE = Trajectory(
    Task("t", "How many?"), "markdown", DataContext("tables", databases=("a.sqlite",))
)

FRAGMENTS = st.sampled_from(
    [
        "```", "```python\n", "```sql\n", "\n", "print(1)", "<think>", "</think>", "<code>",
        "</code>", "<answer>", "</answer>", "<interpreter>", "Thought: ", "Action: ",
        "Action Input:", "Final Answer: ", "Observation: ", "Formatted answer: ", "**", "@x[1]",
        " ",
    ]
)  # fmt: skip
MODEL_TEXT = st.one_of(st.text(), st.lists(st.one_of(FRAGMENTS, st.text(max_size=5))).map("".join))


@ALL
@given(text=MODEL_TEXT)
def test_parsing_never_raises_and_never_runs_nothing(dialect: Dialect, text: str) -> None:
    action = dialect.parse(text).action
    assert isinstance(action, RunCell | Answer | Void)
    if isinstance(action, RunCell):
        assert action.source.strip()
    if isinstance(action, Answer):
        assert action.text.strip()


@ALL
@given(text=MODEL_TEXT)
def test_a_well_formed_turn_is_never_void(dialect: Dialect, text: str) -> None:
    if dialect.is_well_formed(text):
        assert not isinstance(dialect.parse(text).action, Void)


WELL_FORMED = {
    "markdown": ("First count.\n```python\nprint(len(df))\n```", "There are 3 rows."),
    "datamind": (
        "<think>count</think>\n<code>\nprint(len(df))\n</code>",
        "<think>seen</think><answer>3</answer>",
    ),
    "react": (
        "Thought: count\nAction: python_code_sandbox\n"
        "Action Input:\n```python\nprint(len(df))\n```",
        "Thought: seen\nFinal Answer: 3",
    ),
    "tools": (
        "Count.\n" + call_text("run_python", '{"code": "print(len(df))"}'),
        call_text("answer", '{"text": "There are 3 rows."}'),
    ),
}


WELL_FORMED |= {
    "deepanalyze": (
        "<Analyze>count</Analyze>\n<Understand>one table</Understand>\n"
        "<Code>\n```python\nprint(len(df))\n```\n</Code>",
        "<Analyze>seen</Analyze><Answer>3</Answer>",
    ),
    "datamind-published": WELL_FORMED["datamind"],
    "react-published": WELL_FORMED["react"],
    "jupiter": (
        "Thought: count\nAction: ```python\nprint(len(df))\n```",
        "Thought: seen\nFormatted answer: 3",
    ),
}


@ALL
def test_well_formed_code_and_answer(dialect: Dialect) -> None:
    code, answer = WELL_FORMED[dialect.name]
    assert dialect.is_well_formed(code)
    assert dialect.parse(code).action == RunCell("print(len(df))")
    assert dialect.parse(code).thought
    assert dialect.is_well_formed(answer)
    action = dialect.parse(answer).action
    assert isinstance(action, Answer)
    assert "3" in action.text


@ALL
def test_constraints_and_format_are_shown_where_there_are_some(dialect: Dialect) -> None:
    task = Task("t", "How many rows?", constraints="Round to cents.", answer_format="@n[number]")
    for shown, words in ((task, True), (Task("t", "How many rows?"), False)):
        told = "".join(one.content for one in dialect.messages(Trajectory(shown, dialect.name)))
        assert ("Round to cents." in told) is words
        assert ("@n[number]" in told) is words
        assert "How many rows?" in told


@ALL
def test_every_prompt_it_names_exists(dialect: Dialect) -> None:
    assert all(len(prompts.fingerprint(name)) == 12 for name in dialect.prompts)


@ALL
def test_a_conversation_alternates_and_ends_with_the_user(dialect: Dialect) -> None:
    code, _ = WELL_FORMED[dialect.name]
    step = Step(Completion(code), dialect.parse(code), printed("3"), "seen: 3")
    messages = dialect.messages(FREE.extended(step))
    last = "tool" if dialect.tools else "user"
    assert [message.role for message in messages] == ["system", "user", "assistant", last]
    assert "How many rows?" in messages[1].content
    assert messages[-1].content == "seen: 3"


@ALL
@pytest.mark.parametrize("assistance", [None, Assistance(), Assistance.none()])
def test_the_profile_of_the_files_is_shown_with_our_help_alone(
    dialect: Dialect, assistance: Assistance | None
) -> None:
    task = Task("t", "How many rows?", (Path("/elsewhere/sales.csv"), Path("more.csv")))
    data_context = DataContext("the table's profile", "df = load()\n", links="a link")
    run = Trajectory(task, dialect.name, data_context, assistance=assistance)
    told = "".join(message.content for message in dialect.messages(run))
    is_helped = run.assists.profile and dialect.name != "jupiter"  # it has no place for a profile
    assert ("the table's profile" in told) is is_helped
    assert ("a link" in told) is is_helped
    if not is_helped:
        assert "sales.csv, more.csv" in told
        assert "/elsewhere" not in told
        assert dialect.prefill(run) == ""


def test_the_published_shapes_go_without_our_aid() -> None:
    none = Assistance.none()
    unaided = {name for name in DIALECTS if Assistance.for_dialect(name) == none}
    assert unaided == {"jupiter", "react-published", "datamind-published"}


def test_unknown_dialect_is_named_with_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"'klingon'.*markdown, tools, datamind, deepanalyze"):
        dialect_named("klingon")


class TestMarkdown:
    dialect = MarkdownDialect()

    def test_first_turn_opens_inside_a_block_with_the_data_loaded(self) -> None:
        assert self.dialect.prefill(FREE) == "```python\ndf = load()\n"
        assert self.dialect.stop(FREE, "```python\n") == ("\n```",)

    def test_a_database_is_asked_by_sql_first(self) -> None:
        assert self.dialect.prefill(DATABASE) == "```sql\n"
        assert "SQLite" in self.dialect.messages(DATABASE)[0].content

    def test_a_failed_query_is_followed_by_another_query(self) -> None:
        failed = raised("OperationalError", "no such column: X")
        opening = self.dialect.prefill(DATABASE.extended(_ran(failed, "told")))
        assert opening.startswith(
            "```sql\n-- The last attempt failed:\n-- OperationalError: no such"
        )
        assert opening.endswith("\nSELECT")
        assert "whole query again" in self.dialect.observation(DATABASE, failed, "no such column")

    @pytest.mark.parametrize(
        ("result", "begins"),
        [
            (
                printed("@mean[nan]\n@r[1]\n"),
                "# The last attempt came to nothing:\n# no row has a > 9",
            ),
            (raised("ZeroDivisionError", "division by zero"), "# The last attempt failed:\n"),
        ],
    )
    def test_a_cell_that_chose_no_row_is_followed_by_what_there_is(
        self, result: CellResult, begins: str
    ) -> None:
        coverage = (Coverage("a > 9", 0, column="a", low="1", high="7"),)
        empty = Fact("kept", "[]", 7, 0, condition="a > 9", coverage=coverage)
        kept = Fact("kept", "[]", 7, 3, condition="a > 4")
        run = CLOSED.extended(_ran(replace(result, facts=(kept, empty)), "told"))
        opening = self.dialect.prefill(run)
        assert opening.removeprefix(self.dialect.prefill(CLOSED)).startswith(begins)
        assert "# no row has a > 9 (of 7); a runs from 1 to 7\n" in opening
        assert opening.endswith("# The mistake was that")
        quiet = replace(run, assistance=Assistance().without("ledger"))
        assert "no row" not in self.dialect.prefill(quiet)

    def test_without_its_opening_a_turn_begins_with_what_went_wrong_alone(self) -> None:
        bare = replace(DATABASE, assistance=Assistance().without("opening"))
        assert self.dialect.prefill(bare) == ""
        failed = bare.extended(_ran(raised("OperationalError", "no such column: X"), "told"))
        opening = self.dialect.prefill(failed)
        assert opening.startswith("```sql\n-- The last attempt failed:\n")
        assert not opening.endswith("SELECT")
        quiet = replace(failed, assistance=Assistance.none())
        assert self.dialect.prefill(quiet) == ""
        assert self.dialect.prefill(replace(FREE, assistance=bare.assistance)) == ""

    def test_after_the_same_error_twice_nothing_is_to_be_explained(self) -> None:
        failed = _ran(raised("KeyError", "'a'"), "told")
        once = FREE.extended(failed)
        assert self.dialect.prefill(once).endswith("# The mistake was that")
        assert "mistake" not in self.dialect.prefill(once.extended(failed))
        other = _ran(raised("KeyError", "'b'"), "told")
        assert self.dialect.prefill(once.extended(other)).endswith("# The mistake was that")

    def test_after_a_query_that_worked_python_reads_its_rows(self) -> None:
        saved = printed("1 rows x 1 columns, saved as result_4.csv\n")  # a run before had two
        queries = ("SELECT nothing", raised("OperationalError")), ("SELECT 1", saved)
        run = replace(DATABASE, task=CLOSED.task)
        for source, result in queries:
            turn = Turn("", RunCell(source, "sql"))
            run = run.extended(Step(Completion(source), turn, result, "told"))
        assert self.dialect.prefill(run) == "```python\nrows = result_4\n"
        run = run.extended(_ran(raised("KeyError"), "told"))
        assert self.dialect.prefill(run) == "```python\nrows = result_4\n"

    def test_the_print_lines_name_every_answer(self) -> None:
        task = self.dialect.messages(CLOSED)[1].content
        assert 'print(f"@mean[{mean}]")' in task
        assert 'print(f"@r[{r}]")' in task

    def test_unclosed_block_runs(self) -> None:
        assert self.dialect.parse("```python\nx = 1\nprint(x)").action == RunCell("x = 1\nprint(x)")

    def test_words_behind_a_block_are_not_well_formed(self) -> None:
        block = "```python\nprint(1)\n```"
        assert self.dialect.is_well_formed(f"First.\n{block}\n")
        assert not self.dialect.is_well_formed(f"{block}\nIt is 1.")
        assert not self.dialect.is_well_formed(f"{block}\n{block}")
        assert not self.dialect.is_well_formed("```bash\nls\n```")

    def test_sql_block(self) -> None:
        assert self.dialect.parse("```sql\nSELECT 1\n```").action == RunCell("SELECT 1", "sql")

    def test_other_languages_do_not_run(self) -> None:
        assert isinstance(self.dialect.parse("```bash\nrm -rf /\n```").action, Void)

    def test_a_free_answer_is_asked_for_after_output(self) -> None:
        done = FREE.extended(_ran(printed("3\n"), "told"))
        assert self.dialect.prefill(done) == ""
        assert "one to three plain sentences" in self.dialect.observation(FREE, printed("3\n"), "3")

    def test_a_silent_cell_is_asked_to_print(self) -> None:
        silent = CellResult(CellStatus.OK)
        assert "printed nothing" in self.dialect.observation(FREE, silent, "")
        assert self.dialect.prefill(FREE.extended(_ran(silent, "told"))).startswith("```python")

    def test_a_turn_in_circles_is_not_shown_and_the_one_before_it_is(self) -> None:
        run = FREE.extended(_ran(raised("KeyError"), "first error"))
        circle = Completion("```python\n# again\n# again", finish_reason="repetition")
        run = run.extended(Step(circle, Turn("", Void("circles")), None, "reminder"))
        assert self.dialect.messages(run)[-1].content == "first error"
        assert self.dialect.prefill(run) == "```python\ndf = load()\n"

    def test_a_failed_attempt_is_forgotten_once_replaced(self) -> None:
        run = FREE.extended(_ran(raised("KeyError"), "first error"))
        assert "first error" in self.dialect.messages(run)[-1].content
        run = run.extended(_ran(raised("NameError"), "second error"))
        told = "".join(message.content for message in self.dialect.messages(run))
        assert "second error" in told
        assert "first error" not in told

    def test_the_answer_is_what_the_cell_printed(self) -> None:
        result = printed("noise\n@mean[1.5]\n@r[0.2]\n")
        assert self.dialect.printed_answer(CLOSED, result) == "@mean[1.5]\n@r[0.2]"

    def test_a_missing_name_is_asked_for(self) -> None:
        result = printed("@mean[1.5]")
        assert self.dialect.printed_answer(CLOSED, result) is None
        assert "@r[...]" in self.dialect.observation(CLOSED, result, "@mean[1.5]")

    def test_nan_is_asked_again_once_and_then_accepted(self) -> None:
        result = printed("@mean[nan]\n@r[1]")
        assert self.dialect.printed_answer(CLOSED, result) is None
        assert "@mean" in self.dialect.observation(CLOSED, result, "")
        again = CLOSED.extended(_ran(result, "told"))
        assert self.dialect.printed_answer(again, result) == "@mean[nan]\n@r[1]"

    def test_nan_of_an_empty_selection_is_asked_again_twice(self) -> None:
        empty = Fact("kept", "[]", 7, 0, condition="a > 9")
        result = replace(printed("@mean[nan]\n@r[nan]"), facts=(empty,))
        run = CLOSED
        for _ in range(2):
            assert self.dialect.printed_answer(run, result) is None
            run = run.extended(_ran(result, "told"))
        assert self.dialect.printed_answer(run, result) == "@mean[nan]\n@r[nan]"

    def test_a_failed_cell_answers_nothing(self) -> None:
        result = printed("@mean[1]\n@r[1]", CellStatus.TIMEOUT)
        assert self.dialect.printed_answer(CLOSED, result) is None

    def test_the_stop_string_is_put_back(self) -> None:
        step = _ran(printed("3"), "told", text="```python\nprint(3)")
        assert self.dialect.messages(FREE.extended(step))[2].content == "```python\nprint(3)\n```"


class TestDataMind:
    dialect = DataMindDialect()

    def test_stop_string_may_have_taken_the_closing_tag(self) -> None:
        turn = self.dialect.parse("<think>look</think>\n<code>\nprint(1)\n")
        assert turn == Turn("look", RunCell("print(1)"))
        assert self.dialect.is_well_formed("<think>look</think>\n<code>\nprint(1)\n")

    def test_fences_inside_code_are_dropped(self) -> None:
        text = "<think>t</think><code>```python\nprint(1)\n```</code>"
        assert self.dialect.parse(text).action == RunCell("print(1)")

    @pytest.mark.parametrize(
        "text",
        [
            "<code>print(1)</code>",
            "<think>t</think><code></code>",
            "<think>t</think><code>a</code><answer>b</answer>",
            "<think>t<code>a</code></think><answer>b</answer>",
            "<think>t</think><interpreter>made up</interpreter><answer>1</answer>",
            "words <think>t</think><answer>1</answer>",
        ],
    )
    def test_not_well_formed(self, text: str) -> None:
        assert not self.dialect.is_well_formed(text)

    def test_observation_stands_between_interpreter_tags(self) -> None:
        told = self.dialect.observation(FREE, printed("1"), "1")
        assert told == "<interpreter>\n1\n</interpreter>"

    def test_the_closing_tag_is_put_back(self) -> None:
        step = _ran(printed("3"), "told", text="<think>t</think><code>\nprint(3)\n")
        assert self.dialect.messages(FREE.extended(step))[2].content.endswith("print(3)\n</code>")


class TestDeepAnalyze:
    dialect = DeepAnalyzeDialect()

    def test_a_thought_is_all_that_stands_before_the_last_action(self) -> None:
        text = (
            "<Analyze>plan</Analyze>\n<Understand>two columns</Understand>\n<Analyze></Analyze>"
            "<Code>\n```python\nprint(1)\n```\n"
        )
        assert self.dialect.parse(text) == Turn("plan\n\ntwo columns", RunCell("print(1)"))
        assert self.dialect.is_well_formed(text)
        assert self.dialect.ending(text) == "</Code>"

    @pytest.mark.parametrize(
        "text",
        [
            "<Code>print(1)</Code>",
            "<Understand>u</Understand><Code>print(1)</Code>",
            "<Analyze>t</Analyze><Understand>u</Understand>",
            "<Analyze>t</Analyze><Code>a</Code><Answer>b</Answer>",
            "<Analyze>t</Analyze><Code>a</Code><Execute>1</Execute>",
            "<Analyze>t</Analyze><Execute>1</Execute><Answer>1</Answer>",
            "<Analyze>t<Understand>u</Understand></Analyze><Answer>1</Answer>",
            "<Analyze>t</Understand><Answer>1</Answer>",
            "<Analyze>t<Answer>1</Answer>",
            "<Analyze>t</Analyze> words <Answer>1</Answer>",
            "<Analyze>t</Analyze><Code>```python\n```</Code>",
            "<analyze>t</analyze><answer>1</answer>",
        ],
    )
    def test_not_well_formed(self, text: str) -> None:
        assert not self.dialect.is_well_formed(text)

    def test_many_blocks_without_an_end_are_read_at_once(self) -> None:
        text = "<Analyze>a</Analyze>" * 2_000
        assert not self.dialect.is_well_formed(text)
        assert self.dialect.is_well_formed(text + "<Answer>1</Answer>")

    def test_the_observation_is_a_whole_block_of_the_environment(self) -> None:
        told = self.dialect.observation(FREE, printed("1"), "1")
        assert told == "<Execute>\n1\n</Execute>"

    def test_a_tokenizer_gets_both_tags_of_the_five_actions(self) -> None:
        assert len(set(DEEPANALYZE_TOKENS)) == 10
        assert DEEPANALYZE_TOKENS[:2] == ("<Analyze>", "</Analyze>")
        prompt = prompts.text_of("deepanalyze_system")
        assert all(tag in prompt for tag in DEEPANALYZE_TOKENS[::2])


class TestReact:
    dialect = ReactDialect()

    def test_an_invented_observation_is_dropped(self) -> None:
        text = (
            "Thought: t\nAction: python_code_sandbox\nAction Input:\n```python\nprint(1)\n```\n"
            "Observation: 7\nFinal Answer: 7"
        )
        assert self.dialect.parse(text) == Turn("t", RunCell("print(1)"))
        assert not self.dialect.is_well_formed(text)

    def test_unfenced_input_runs(self) -> None:
        text = "Thought: t\nAction: python_code_sandbox\nAction Input: print(1)"
        assert self.dialect.parse(text).action == RunCell("print(1)")

    @pytest.mark.parametrize(
        "text",
        [
            "Thought: t\nAction: sql_query\nAction Input:\n```sql\nSELECT 1\n```",
            "Thought: t\nAction: sql_query\nAction Input: SELECT 1",
            "Thought: t\nAction: SQL\nAction Input:\n```\nSELECT 1\n```",
            "Thought: t\nAction: python_code_sandbox\nAction Input:\n```sql\nSELECT 1\n```",
        ],
    )
    def test_a_query_is_named_by_its_tool_or_its_fence(self, text: str) -> None:
        assert self.dialect.parse(text) == Turn("t", RunCell("SELECT 1", "sql"))

    def test_python_under_the_tool_for_queries_stays_python(self) -> None:
        text = "Thought: t\nAction: sql_query\nAction Input:\n```python\nprint(1)\n```"
        assert self.dialect.parse(text).action == RunCell("print(1)")
        assert not self.dialect.is_well_formed(text)

    def test_backticks_inside_a_line_do_not_end_a_block(self) -> None:
        text = "Thought: t\nAction: x\nAction Input:\n```python\nprint('```', 1)\n```\n"
        assert self.dialect.parse(text).action == RunCell("print('```', 1)")

    def test_final_answer(self) -> None:
        turn = self.dialect.parse("Thought: done\nFinal Answer: @mean[3.5]")
        assert turn == Turn("done", Answer("@mean[3.5]"))

    @pytest.mark.parametrize(
        "said",
        ["**Final Answer:** 3", "The final answer is 3", "final answer:\n3", "## Final Answer: 3"],
    )
    def test_the_label_of_an_answer_in_other_words(self, said: str) -> None:
        assert self.dialect.parse(f"Thought: done\n{said}") == Turn("done", Answer("3"))

    def test_a_thought_of_the_final_answer_is_none(self) -> None:
        turn = self.dialect.parse(
            "Thought: I now know the final answer\nAction: python_code_sandbox\n"
            "Action Input:\n```python\nprint(1)\n```"
        )
        assert turn.action == RunCell("print(1)")

    def test_the_published_shape_is_asked_the_same_again_after_a_void_turn(self) -> None:
        void = Step(Completion("hm"), Turn("hm", Void("nothing")), None, "told")
        for name, messages in (("react", 4), ("react-published", 2)):
            assert len(dialect_named(name).messages(FREE.extended(void))) == messages

    def test_neither_is_void(self) -> None:
        assert self.dialect.parse("Thought: hm") == Turn(
            "hm", Void("neither Action Input nor Final Answer")
        )


class TestJupiter:
    dialect = JupiterDialect()

    def test_one_message_holds_the_form_of_a_turn_and_the_task(self) -> None:
        task = Task("t", "Mean?", (Path("a.csv"),), "Skip empty rows.", "@mean[m]")
        system, asked = self.dialect.messages(Trajectory(task, "jupiter"))
        assert "Thought" not in system.content
        places = [
            asked.content.index(words)
            for words in (
                "### Form", "### Notes", "Question: Mean?", "Constraints: Skip empty rows.",
                "Format: @mean[m]", "files: a.csv",
            )
        ]  # fmt: skip
        assert places == sorted(places)

    def test_what_a_task_lacks_is_called_none(self) -> None:
        asked = self.dialect.messages(Trajectory(Task("t", "Mean?"), "jupiter"))[1].content
        assert "Constraints: none\nFormat: none\nAvailable local files: none" in asked

    @pytest.mark.parametrize(
        "text",
        [
            "Thought: t\nAction: ```python\nprint(1)\n```",
            "Thought: t\nAction: ```python print(1)```",
            "**Thought:** t\n**Action:**\n```py\nprint(1)\n",
            "t\n```\nprint(1)\n```",
            "Thought: t\nAction:\n```python\nprint(1)\n```\nFormatted answer: 7",
            "Thought: t\nAction:\n```python\nprint(1)\n```\nObservation: 7\nFormatted answer: 7",
        ],
    )
    def test_the_first_python_block_runs(self, text: str) -> None:
        assert self.dialect.parse(text) == Turn("t", RunCell("print(1)"))

    def test_the_indentation_of_a_block_is_kept(self) -> None:
        text = "Thought: t\nAction: ```python\n    x = 1\n    print(x)\n```"
        assert self.dialect.parse(text).action == RunCell("    x = 1\n    print(x)")

    @pytest.mark.parametrize("label", ["Formatted answer:", "**Formatted Answer:**"])
    def test_formatted_answer(self, label: str) -> None:
        turn = self.dialect.parse(f"Thought: done\n{label} @mean[3.5]\n@r[1]")
        assert turn == Turn("done", Answer("@mean[3.5]\n@r[1]"))

    @pytest.mark.parametrize(
        "text",
        ["Thought: hm", "Thought: hm\nAction: print(1)", "Action: ```json\n{}\n```\nhm",
         "Observation: 3\nFormatted answer: 3", "Formatted answer:"],
    )  # fmt: skip
    def test_void(self, text: str) -> None:
        assert isinstance(self.dialect.parse(text).action, Void)

    @pytest.mark.parametrize(
        "text",
        [
            "```python\nprint(1)\n```",
            "Thought: t\nAction: print(1)",
            "Thought: t\nAction: ```python\n\n```",
            "Thought: t\nAction: ```python\na\n```\nFormatted answer: b",
            "Thought: t\nAction: ```python\na\n```\n```python\nb\n```",
            "Thought: ```python\na\n```\nFormatted answer: b",
            "Thought: t\nAction: ```python\na\n```\nThought: t\nAction: ```python\nb\n```",
            "Thought: t\nFormatted answer: ",
            "Formatted answer: 3",
        ],
    )
    def test_not_well_formed(self, text: str) -> None:
        assert not self.dialect.is_well_formed(text)

    def test_the_reply_begins_with_its_label(self) -> None:
        assert self.dialect.observation(FREE, printed("1"), "1") == "Observation:\n1"
        assert self.dialect.void_reminder(FREE).startswith("Observation:")
        assert self.dialect.stop(FREE, "") == ("\nObservation:",)


def _ran(result: CellResult, observation: str, text: str = "```python\nx\n```") -> Step:
    return Step(Completion(text), Turn("", RunCell("x")), result, observation)
