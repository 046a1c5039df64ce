from __future__ import annotations

import csv
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dm_jupyter.core.task import Task
from training.suites.records import RecordError
from training.suites.suite import ItemScore, Outcome, Sample
from training.suites.tablebench import TableBench

Write = Callable[..., Path]

RIVERS: dict[str, Any] = {
    "id": "t-1",
    "qtype": "NumericalReasoning",
    "qsubtype": "Aggregation",
    "table": {"columns": ["name", "name", "length\n[km]"], "data": [["Ilse", None, "8,4"]]},
    "question": "How long are they?",
    "answer": "8.4",
}
CHART = {**RIVERS, "id": "t-2", "qtype": "Visualization", "qsubtype": "ChartGeneration"}
CAUSE = {**RIVERS, "id": "t-3", "qtype": "DataAnalysis", "qsubtype": "CausalAnalysis"}


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def item_of(label: str, kind: str = "Aggregation") -> Sample:
    return Sample(Task("t", "?", concepts=("?", kind)), label)


def test_each_table_lies_beside_no_split_as_csv(write_questions: Write, temporary: Path) -> None:
    split = write_questions(RIVERS, {**RIVERS, "id": "t-4", "question": "And now?"})
    before = sorted(split.iterdir())
    first, second = TableBench().load(split)
    (file,) = first.task.files
    assert second.task.files == (file,)
    assert file.name == "table.csv"
    assert file.is_relative_to(temporary)
    assert (file.parent.stat().st_mode & 0o777) == 0o700
    with file.open(newline="", encoding="utf-8") as opened:
        assert list(csv.reader(opened)) == [["name", "name", "length\n[km]"], ["Ilse", "", "8,4"]]
    assert sorted(split.iterdir()) == before


def test_a_table_that_was_changed_is_written_again(write_questions: Write) -> None:
    split = write_questions(RIVERS)
    (item,) = TableBench().load(split)
    whole = item.task.files[0].read_bytes()
    item.task.files[0].write_bytes(b"half")
    TableBench().load(split)
    assert item.task.files[0].read_bytes() == whole


def test_a_folder_that_is_not_ours_is_refused(write_questions: Write, temporary: Path) -> None:
    split = write_questions(RIVERS)
    (item,) = TableBench().load(split)
    root = item.task.files[0].parent.parent
    root.rename(temporary / "elsewhere")
    root.symlink_to(temporary / "elsewhere")
    with pytest.raises(PermissionError, match="belongs to somebody else: set TMPDIR"):
        TableBench().load(split)


def test_what_no_value_answers_is_left_out_and_counted(write_questions: Write) -> None:
    (item,) = TableBench().load(write_questions(CHART, RIVERS, CAUSE))
    assert item.task.id == "t-1"
    assert item.task.metadata["left_out"] == {"ChartGeneration": 1, "CausalAnalysis": 1}
    assert item.task.metadata["format"] == "number"
    assert item.task.concepts == ("NumericalReasoning", "Aggregation")
    assert "8.4" not in str(item.task)
    with pytest.raises(RecordError, match="holds no questions that a value answers"):
        TableBench().load(write_questions(CHART, CAUSE))


def test_a_correlation_is_asked_for_in_the_words_of_its_labels(write_questions: Write) -> None:
    question = {**RIVERS, "qsubtype": "CorrelationAnalysis", "table": '{"columns": [], "data": []}'}
    (item,) = TableBench().load(write_questions(question))
    assert "Weak begins at 0.3, strong at 0.7" in item.task.constraints


@pytest.mark.parametrize(
    ("label", "answer", "right", "strict", "published"),
    [
        ("10.6", "@answer[10.60]", True, True, True),
        ("10.6", "@answer[106]", False, False, False),
        ("-3", "@answer[3]", False, False, False),
        ("12.5%", "@answer[12.5]", True, False, True),
        ("Paris, London", "paris London", True, False, True),
        ("Paris, London", "@answer[London, Paris]", False, False, False),
        ("100", "@answer[109]", False, False, False),
        ("100", "", False, False, False),
    ],
)
def test_answers_are_right_by_what_they_say(
    label: str, answer: str, right: bool, strict: bool, published: bool
) -> None:
    score = TableBench().score(item_of(label), Outcome(answer, Path()))
    parts = {"answer": right, "published": published}
    assert score == ItemScore(right, strict, parts, {"answer": strict})


@pytest.mark.parametrize(
    ("label", "answer", "published"),
    [
        ("Weak positive correlation, 0.50", "weak positive correlation, 0.55", True),
        ("Weak positive correlation, 0.50", "Weak positive correlation, 0.56", False),
        ("Weak positive correlation, 0.50", "Strong positive correlation, 0.50", False),
        ("100", "109", True),
        ("100", "111", False),
        ("0", "0.001", False),
        ("12%", "0.125", True),
        ("12%", "0.13", True),
        ("12%", "0.12", True),
        ("18.90%", "19.0", True),
        ("18.90", "19.0%", True),
        ("18.90%", "21", False),
        ("18.90%", "2100%", False),
        ("10000", "10500", True),
        ("10000", "10,500", True),
        ("10,000", "10500", True),
        ("10,000", "11,500", False),
        ("10,000", "10", False),
        ("904, 916", "950, 950", True),
        ("904, 916", "950, 816", False),
        ("1, 2", "1", False),
    ],
)
def test_ten_percent_are_granted_apart_and_to_three_kinds_alone(
    label: str, answer: str, published: bool
) -> None:
    score = TableBench().score(item_of(label, "CorrelationAnalysis"), Outcome(answer, Path()))
    assert score.parts["published"] is published
    assert not score.correct
    exact = TableBench().score(item_of(label, "Ranking"), Outcome(answer, Path()))
    assert not exact.parts["published"]


def test_runs_agree_by_their_short_answers() -> None:
    suite, item = TableBench(), item_of("1")
    one, other = Outcome("so @answer[1,000]", Path()), Outcome("1000.0", Path())
    assert suite.agree(item, one, other)
    assert not suite.agree(item, one, Outcome("999", Path()))
    assert not suite.agree(item, Outcome("", Path()), Outcome(" ", Path()))


KINDS = st.sampled_from(["Ranking", "TrendForecasting"])


@given(st.integers(10, 10**7), st.integers(-9, 9), KINDS)
def test_however_a_number_is_written_it_is_as_near(label: int, percent: int, kind: str) -> None:
    said = label * (100 + percent) / 100
    written = [f"{said:.2f}", f"{said:,.2f}", f"{said:.2f}%", f"${said:,.2f}"]
    for text in (f"{label}", f"{label:,}", f"{label}.0%"):
        scores = [TableBench().score(item_of(text, kind), Outcome(x, Path())) for x in written]
        assert {score.parts["published"] for score in scores} == {kind != "Ranking" or not percent}
        assert {score.correct for score in scores} == {not percent}


@given(st.text(), st.text(), KINDS)
def test_no_text_raises(label: str, answer: str, kind: str) -> None:
    for text in (answer, f"@answer[{answer}]"):
        score = TableBench().score(item_of(label, kind), Outcome(text, Path()))
        assert score.parts["published"] or not score.correct


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"table": None}, "field 'table': expected an object with the lists 'columns' and 'data'"),
        ({"table": "{"}, "row 1, field 'table': can't be read as JSON"),
        ({"table": "9" * 5000}, "row 1, field 'table': can't be read as JSON .*4300 digits"),
        ({"table": "[" * 10**5}, "row 1, field 'table': can't be read as JSON .nested too deep"),
        ({"table": r'["\ud800"]'}, "row 1, field 'table': can't be written: .*surrogates"),
        (
            {"table": {"columns": ["\ud800"]}},
            "row 1, field 'table': can't be written: .*surrogates",
        ),
        ({"table": {"columns": ["a"], "data": 1}}, "field 'table': expected an object"),
        ({"table": {"columns": ["a"], "data": [[1, 2]]}}, "the rows are not all of one width"),
        ({"answer": ""}, "field 'answer': is empty"),
        ({"qsubtype": 1}, "field 'qsubtype': expected a string, found int"),
    ],
)
def test_a_bad_record_is_named(
    change: dict[str, Any], message: str, write_questions: Write
) -> None:
    with pytest.raises(RecordError, match=message):
        TableBench().load(write_questions({**RIVERS, **change}))


def test_a_split_has_one_file_of_questions(write_questions: Write, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"expected one \.jsonl file with questions, found 0"):
        TableBench().load(tmp_path)
    split = write_questions(RIVERS)
    (split / "more.jsonl").write_text("")
    with pytest.raises(RecordError, match="found 2"):
        TableBench().load(split)


def test_the_shared_questions_load_and_their_answers_are_right(shared_data: Path) -> None:
    items = TableBench().load(shared_data / "tablebench")
    left_out = items[0].task.metadata["left_out"]
    assert len(items) + sum(left_out.values()) == 360
    assert sum(left_out.values()) == 79
    for item in items:
        outcome = Outcome(f"@answer[{item.label}]", Path())
        assert all(TableBench().score(item, outcome).parts.values()), item.task.id
        assert item.task.files[0].stat().st_size > 0
