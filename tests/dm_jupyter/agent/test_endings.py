"""How a chart, a cleaned file and an explanation end: once sent back, then told as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from dm_jupyter.agent.loop import RunSettings, run
from dm_jupyter.agent.notebook_words import closing_words
from dm_jupyter.analysis import AnalysisSettings, analyze
from dm_jupyter.core import prompts
from dm_jupyter.core.assistance import Assistance
from dm_jupyter.core.dialects import dialect_named
from dm_jupyter.core.events import Event
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import DataContext, StopReason, Trajectory
from kernel_sandbox.ledger.facts import Fact
from kernel_sandbox.types import CellResult, CellStatus, Display, FileChange
from tests.fakes import ScriptedNotebook, ScriptedPolicy, printed

LOAD = 'import pandas as pd\nimport numpy as np\ndf = pd.read_csv("t.csv")\n'
CODE = "print(df.a.mean())\n```"
FIGURE = CellResult(CellStatus.OK, (Display({"image/png": "", "text/plain": "<Figure>"}),))
SAVED = replace(printed("3 rows"), files=(FileChange("t-clean.csv", "made", size_bytes=9),))
SAID = "Group b is the largest."


def _start(question: str, dialect: str = "markdown") -> Trajectory:
    data_context = DataContext("t.csv: 3 rows, mean 4.25", LOAD)
    return Trajectory(Task("t", question, (Path("t.csv"),)), dialect, data_context)


def ignore(event: Event) -> None:
    pass


async def _run(
    question: str,
    texts: Sequence[str],
    results: Sequence[CellResult],
    settings: RunSettings | None = None,
    dialect: str = "markdown",
) -> tuple[Trajectory, ScriptedPolicy]:
    policy = ScriptedPolicy(texts)
    start = _start(question, dialect)
    notebook = ScriptedNotebook(list(results))
    return await run(start, policy, notebook, settings or RunSettings(), ignore), policy


MISSING = [
    ("Draw a bar chart of a by b.", "critique_no_figure", "No figure was drawn.", FIGURE),
    ("Clean this file.", "critique_no_file", "No file was saved.", SAVED),
]


@pytest.mark.parametrize(("question", "reason", "words", "good"), MISSING)
async def test_an_answer_without_its_chart_or_file_goes_back_once_and_then_says_so(
    question: str, reason: str, words: str, good: CellResult
) -> None:
    del good
    done, policy = await _run(question, [CODE, SAID, SAID, SAID], [printed("2")])
    told = prompts.text_of(reason)
    asked = [told in str(request.messages) + request.prefill for request in policy.requests]
    assert asked[:3] == [False, False, True]
    assert [bool(step.critique) for step in done.steps] == [False, True, False, False]
    assert (done.stop, done.answer, done.ending) == (StopReason.ANSWERED, SAID, (words,))
    assert [finding.rule for step in done.steps for finding in step.findings] == ["ending"]
    assert words in closing_words(done)
    assert Trajectory.from_json(done.to_json()) == done


@pytest.mark.parametrize(("question", "reason", "words", "good"), MISSING)
async def test_what_the_model_makes_then_is_enough(
    question: str, reason: str, words: str, good: CellResult
) -> None:
    del reason
    done, policy = await _run(question, [CODE, SAID, CODE, SAID], [printed("2"), good])
    assert len(policy.requests) == 4
    assert policy.requests[2].prefill.startswith("```python")  # code comes next
    assert done.answer == SAID
    assert words not in done.ending
    at_once, policy = await _run(question, [CODE, SAID], [good])
    assert len(policy.requests) == 2
    assert at_once.ending == done.ending


@pytest.mark.parametrize(("question", "reason", "words", "good"), MISSING)
async def test_where_nothing_comes_after_it_the_answer_stands_and_says_so(
    question: str, reason: str, words: str, good: CellResult
) -> None:
    del reason, good
    done, _ = await _run(question, [CODE, SAID], [printed("2")], RunSettings(max_turns=2))
    assert (done.stop, done.answer, done.ending) == (StopReason.ANSWERED, SAID, (words,))


async def test_a_picture_that_was_saved_is_a_figure() -> None:
    saved = replace(printed("2"), files=(FileChange("a.png", "made", size_bytes=9),))
    done, policy = await _run("Draw a bar chart of a by b.", [CODE, SAID], [saved])
    assert (len(policy.requests), done.ending) == (2, ())


async def test_a_model_that_calls_tools_is_told_as_well() -> None:
    call = '<tool_call>\n{"name": "run_python", "arguments": {"code": "1"}}\n</tool_call>'
    answer = '<tool_call>\n{"name": "answer", "arguments": {"text": "2 groups"}}\n</tool_call>'
    texts = [call, answer, answer]
    done, policy = await _run("Plot a.", texts, [printed("2")], dialect="tools")
    assert prompts.text_of("critique_no_figure") in policy.requests[2].messages[-1].content
    assert done.ending == ("No figure was drawn.",)


@pytest.mark.parametrize("settings", [
    RunSettings(assistance=Assistance.none()),
    RunSettings(assistance=Assistance().without("ending")),
])  # fmt: skip
async def test_without_the_rule_the_person_alone_is_told(settings: RunSettings) -> None:
    done, policy = await _run("Plot a.", [f"```python\n{CODE}", SAID], [printed("2")], settings)
    assert len(policy.requests) == 2
    told = str([request.messages for request in policy.requests])
    for name in ("advice_plot", "critique_no_figure"):
        assert prompts.text_of(name)[:30] not in told
    assert "what the figure shows" not in told
    assert done.ending == ("No figure was drawn.",)


async def test_a_plain_question_has_no_ending() -> None:
    done, policy = await _run("How many groups are there?", [CODE, SAID], [printed("2")])
    assert (len(policy.requests), done.ending, done.advice) == (2, (), ())


async def test_numbers_and_chart_are_sent_back_once_each() -> None:
    wrong = "There are 77 groups."
    texts = [CODE, wrong, CODE, wrong, wrong]
    done, policy = await _run("Draw a chart of a.", texts, [printed("2"), FIGURE])
    assert len(policy.requests) == 5
    assert "77" in policy.requests[4].messages[-1].content
    assert done.unsupported == ("77",)


async def test_an_explanation_needs_no_cell() -> None:
    said = "The mean of 4.25 is the sum divided by the count."
    done, policy = await _run("What does this number mean?", [said], [printed("")])
    (request,) = policy.requests
    assert request.prefill == ""
    assert prompts.text_of("advice_explain") in request.messages[-1].content
    assert (done.answer, done.cells, done.unsupported) == (said, 0, ())  # the profile has it


async def test_an_explanation_may_compute() -> None:
    code = f"```python\n{CODE}"
    done, policy = await _run("Explain this table.", [code, SAID], [printed("2")])
    assert (done.cells, done.answer) == (1, SAID)
    assert "advice" not in str(policy.requests[1].messages)


def test_the_advice_on_a_chart_names_title_axes_and_units() -> None:
    text = prompts.text_of("advice_plot")
    assert all(word in text for word in ("title", "labels on both axes", "unit", "legend"))
    assert {"advice_plot", "advice_clean", "advice_explain"} <= set(
        dialect_named("markdown").prompts
    )


async def test_a_real_cleaning_tells_what_it_kept(tmp_path: Path) -> None:
    data = tmp_path / "sales.csv"
    data.write_text("id,date\n1,2024-01-01\n1,2024-01-01\n2,\n3,2024-02-01\n", "utf-8")
    code = (
        "df = df.drop_duplicates().dropna(subset=['date'])\n"
        "df.to_csv('sales-clean.csv', index=False)\nprint(len(df), 'rows')\n```"
    )
    policy = ScriptedPolicy([code, "The cleaned file has 2 rows."])
    task = Task("sales", "Clean this file: drop duplicates and rows without a date.", (data,))
    settings = AnalysisSettings(dialect="markdown", notebook=tmp_path / "n.ipynb")
    done = await analyze(task, policy, settings, ignore)
    assert done.fault is None
    assert done.trajectory.ending == (
        "Saved sales-clean.csv: 2 of 4 rows kept; 1 duplicate row dropped; "
        "1 row without 'date' dropped.",
    )
    assert [file.name for file in done.files] == ["sales-clean.csv"]
    assert "- Saved sales-clean.csv: 2 of 4 rows kept" in (tmp_path / "n.ipynb").read_text("utf-8")
    assert data.read_text("utf-8").count("\n") == 5


async def test_the_file_that_was_given_can_not_be_overwritten_in_a_private_kernel(
    tmp_path: Path,
) -> None:
    data = tmp_path / "sales.csv"
    data.write_text("id\n1\n1\n", "utf-8")
    code = "df.drop_duplicates().to_csv('sales.csv', index=False)\n```"
    policy = ScriptedPolicy([code, code, "Cleaned.", "Cleaned."])
    settings = AnalysisSettings(
        dialect="markdown", notebook=tmp_path / "n.ipynb", run=RunSettings(max_turns=4)
    )
    done = await analyze(Task("sales", "Clean this file.", (data,)), policy, settings, ignore)
    assert data.read_text("utf-8") == "id\n1\n1\n"
    first = done.trajectory.steps[0].result
    assert first is not None
    assert first.error is not None
    assert done.files == ()


REPORT = "### Sales\nThe sum is 40.\n\n### Limits\nNo year is given."
RAN = replace(printed("40"), facts=(Fact("read", "read_csv", after=1_200, condition="t.csv"),))


async def test_a_report_without_sections_goes_back_once_and_no_cell_is_asked_for() -> None:
    done, policy = await _run("Write a report on sales.", [CODE, SAID, REPORT], [RAN])
    assert done.answer == REPORT
    told = prompts.text_of("critique_no_sections")
    assert policy.requests[2].messages[-1].content == told
    assert not policy.requests[2].prefill  # words come next, not code
    assert "40" in str(policy.requests[2].messages)  # what was computed is still shown
    assert done.ending == (
        "Made with 1 cell from t.csv (1,200 rows).",
        "Numbers that follow from the outputs: 1 of 1.",
    )
    assert [finding.rule for step in done.steps for finding in step.findings] == ["ending"]
    assert Trajectory.from_json(done.to_json()) == done


async def test_a_report_that_stays_without_sections_says_so() -> None:
    done, policy = await _run("Write a report on sales.", [CODE, SAID, SAID], [RAN])
    assert len(policy.requests) == 3
    assert done.ending == (
        "The report has no sections.",
        "Made with 1 cell from t.csv (1,200 rows).",
    )


async def test_a_model_is_told_how_a_report_is_written() -> None:
    _, policy = await _run("Write a report on sales.", [CODE, REPORT], [RAN])
    assert prompts.text_of("advice_report") in policy.requests[0].messages[-1].content
    assert "write the report in Markdown" in policy.requests[1].messages[-1].content
