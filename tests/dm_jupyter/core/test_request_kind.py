"""Which kind of request a question is, by its own words."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from dm_jupyter.core.request_kind import request_kind
from dm_jupyter.core.task import Task

DATA = Path(__file__).parents[3] / "../shared/data"
KINDS = {
    "plot": (
        "Plot the monthly sales",
        "Show sales by region as a bar chart.",
        "Can you make a scatter plot of price against size?",
        "How does x change over month in `a.csv`? Draw a chart.",
        "bar chart of sales by region",
        "Clean the data and plot sales by month",
        "visualise the distribution of fares",
        "Count the rows and then plot them by year",
    ),
    "clean": (
        "Clean this file",
        "Can you clean up the data?",
        "fix the dates and drop duplicates",
        "Clean sales.csv: fix the dates, drop duplicate rows and save it",
        "Fill the missing ages with the median and drop duplicates.",
        "Please remove empty rows, then trim the spaces.",
    ),
    "explain": (
        "Explain this cell",
        "What does this error mean?",
        "Explain the code above",
        "What is a p-value?",
        "How does this query work?",
    ),
    "report": ("Write a report on sales with charts", "Prepare a short report about churn."),
    "answer": (
        "What is the mean age?",
        "What is the plot of the movie with the highest rating?",
        "Which movie has the longest plot?",
        "What is the mean age? Do not plot anything.",
        "Give me the figure for 2020",
        "Remove the duplicates and tell me the mean price",
        "How many rows remain after dropping duplicates?",
        "Drop rows with missing values and compute the average of x",
        "Normalize column a and give its variance",
        "Explain why sales fell in March",
        "Compute the mean and explain this result",
        "What is the p-value of the test?",
        "What is the median?",
        "How many customers are in the file named `plot a chart.csv`?",
        "Which region has the \"clean this file\" flag?",
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "question"), [(kind, one) for kind, ones in KINDS.items() for one in ones]
)
def test_the_words_of_a_question_tell_its_kind(kind: str, question: str) -> None:
    assert request_kind(Task("t", question)) == kind


@pytest.mark.parametrize("form", [{"constraints": "Use x."}, {"answer_format": "@a[a]"}])
def test_a_task_that_prescribes_its_answer_asks_for_one(form: dict[str, str]) -> None:
    for question in (*KINDS["plot"], *KINDS["clean"], *KINDS["explain"]):
        assert request_kind(replace(Task("t", question), **form)) == "answer"


@pytest.mark.parametrize(
    "word", ["\n", "please ", "and please a ", "make x, ", "drop the all ", "`"]
)
def test_a_long_question_takes_no_time(word: str) -> None:
    began = time.process_time()
    request_kind(Task("t", word * 20_000))
    assert time.process_time() - began < 20  # squared, it would be minutes


@pytest.mark.skipif(not DATA.exists(), reason="no ../shared")
@pytest.mark.parametrize("name", ["sql", "qrdata", "xlsx"])
def test_questions_for_an_answer_are_no_other_kind(name: str) -> None:
    """The words alone decide, without the format that most of these questions have as well."""
    found = list((DATA / name).rglob("*.jsonl"))
    lines = [json.loads(line) for path in found for line in path.read_text("utf-8").splitlines()]
    asked = [line["question"] for line in lines if "question" in line]
    assert asked
    assert [one for one in asked if request_kind(Task("t", one)) != "answer"] == []
