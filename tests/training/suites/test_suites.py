from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from training.scoring.values import kind_of
from training.suites.records import RecordError, read_records
from training.suites.registry import SUITES
from training.suites.suite import ItemScore, Outcome

Write = Callable[..., Path]

QUESTION: dict[str, Any] = {
    "id": "own-1",
    "question": "What is the mean?",
    "constraints": "Round to two places.",
    "format": "@mean[value]",
    "file": "table.csv",
    "level": "easy",
    "concepts": ["Summary Statistics"],
    "label_pairs": [["mean", "2.50"], ["c", "1"], ["c", "2"]],
    "flags": ["label_names_repeated"],
}


def test_dabench_items_hold_the_task_and_apart_from_it_the_label(write_questions: Write) -> None:
    split = write_questions(QUESTION)
    (split / "table.csv").write_text("x\n1\n4\n")
    (item,) = SUITES["dabench"].load(split)
    assert item.task.files == (split / "table.csv",)
    assert item.task.answer_format == "@mean[value]"
    assert item.task.concepts == ("Summary Statistics",)
    assert item.task.metadata["flags"] == ["label_names_repeated"]
    assert item.label == (("mean", "2.50"), ("c", "1"), ("c", "2"))
    assert "2.50" not in str(item.task)


def test_dabench_scores_each_sub_answer_by_both_rule_sets(
    write_questions: Write, tmp_path: Path
) -> None:
    split = write_questions(QUESTION)
    (split / "table.csv").write_text("x\n1\n4\n")
    suite = SUITES["dabench"]
    (item,) = suite.load(split)
    score = suite.score(item, Outcome("@Mean[2.5] @c[2] @c[1]", tmp_path))
    assert score == ItemScore(
        correct=True,
        strict_correct=False,
        parts={"mean": True, "c": True, "c#2": True},
        strict_parts={"mean": False, "c": False},
        has_sub_answers=True,
    )
    silent = suite.score(item, Outcome("", tmp_path))
    assert silent.parts == {"mean": False, "c": False, "c#2": False}
    assert silent.strict_parts == {"mean": False, "c": False}


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({}, "several"),
        ({"label_pairs": [["mean", "2.50"]]}, "number"),
        ({"label_pairs": [["mean", "not normal"]]}, "text"),
        ({"label_pairs": [["mean", "a, b"]]}, "list"),
        ({"label_pairs": [["mean", "{'a': 1}"]]}, "list"),
        ({"label_pairs": [["mean", "1"]], "format": "@mean[x] @sd[y]"}, "several"),
    ],
)
def test_dabench_says_which_kind_of_answer_is_asked_for(
    change: dict[str, Any], kind: str, write_questions: Write
) -> None:
    split = write_questions({**QUESTION, **change})
    (split / "table.csv").write_text("x\n1\n")
    (item,) = SUITES["dabench"].load(split)
    assert item.task.metadata["format"] == kind


def test_a_value_is_a_number_a_list_or_text() -> None:
    values = ["1,234", "12 %", "Paris", "", "None", "(0, 5]", "[]", "a, b"]
    kinds = ["number", "number", "text", "text", "text", "list", "list", "list"]
    assert [kind_of(value) for value in values] == kinds


def test_dabench_runs_agree_by_the_names_asked_for(write_questions: Write, tmp_path: Path) -> None:
    split = write_questions(QUESTION)
    (split / "table.csv").write_text("x\n1\n")
    suite = SUITES["dabench"]
    (item,) = suite.load(split)

    def agree(one: str, other: str) -> bool:
        return suite.agree(item, Outcome(one, tmp_path), Outcome(other, tmp_path))

    assert agree("@mean[2.5]", "so @Mean[2.50] and @note[x]")
    assert not agree("@mean[2.5]", "@mean[2.51]")
    assert agree("@mean[3] no: @mean[2.5]", "@mean[2.5]")
    assert not agree("@note[x]", "@note[x]")
    assert not agree("", "")


def test_dabench_runs_agree_by_all_values_where_the_format_asks_for_each(
    write_questions: Write, tmp_path: Path
) -> None:
    split = write_questions({**QUESTION, "format": "For each group:\n@c[value]"})
    (split / "table.csv").write_text("x\n1\n")
    (item,) = SUITES["dabench"].load(split)
    one, other, half = (Outcome(text, tmp_path) for text in ("@c[1] @c[2]", "@c[2] @c[1]", "@c[2]"))
    assert SUITES["dabench"].agree(item, one, other)
    assert not SUITES["dabench"].agree(item, one, half)


def test_xlsx_reads_the_tag_or_else_the_whole_answer(
    write_questions: Write, tmp_path: Path
) -> None:
    suite = SUITES["xlsx"]
    record = {"id": "w", "question": "?", "file": "book.xlsx", "answer": "2020, 1861550"}
    split = write_questions(record)
    (split / "book.xlsx").write_bytes(b"")
    (item,) = suite.load(split)
    tagged = suite.score(item, Outcome("Looking at row 3: @answer[2020, 1,861,550]", tmp_path))
    assert (tagged.correct, tagged.strict_correct) == (True, False)
    assert suite.score(item, Outcome("2020, 1861550", tmp_path)).strict_correct
    assert not suite.score(item, Outcome("In 2020 it was 1861550", tmp_path)).correct
    assert not suite.score(item, Outcome("", tmp_path)).correct


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"question": ""}, "row 2, field 'question': is empty"),
        ({"question": None}, "field 'question': expected a string, found nothing"),
        ({"question": "What \ud800?"}, "field 'question': can't be written: 'utf-8' codec"),
        ({"concepts": "x"}, "field 'concepts': expected a list of strings"),
        ({"concepts": ""}, "field 'concepts': expected a list of strings"),
        ({"concepts": 0}, "field 'concepts': expected a list of strings"),
        ({"concepts": {}}, "field 'concepts': expected a list of strings"),
        ({"concepts": False}, "field 'concepts': expected a list of strings"),
        ({"label_pairs": []}, "field 'label_pairs': expected a list of"),
        ({"label_pairs": [["a"]]}, "field 'label_pairs': expected a list of"),
        ({"file": "../table.csv"}, "field 'file': '../table.csv' leads out of"),
        ({"file": "none.csv"}, "field 'file': there is no file 'none.csv'"),
        ({"file": "x" * 300}, "field 'file': the file can't be looked up"),
        ({"id": "own-1"}, "field 'id': 'own-1' stands in row 1 already"),
    ],
)
def test_a_bad_record_is_named_by_file_row_and_field(
    change: dict[str, Any], message: str, write_questions: Write
) -> None:
    split = write_questions(QUESTION, {**QUESTION, "id": "own-2", **change})
    (split / "table.csv").write_text("x\n1\n")
    with pytest.raises(RecordError) as caught:
        SUITES["dabench"].load(split)
    assert message in str(caught.value)
    assert "questions.jsonl, row 2" in str(caught.value)


@pytest.mark.parametrize("missing", [{"concepts": None, "flags": None}, {}])
def test_a_list_is_missing_where_it_is_null_or_absent(
    missing: dict[str, Any], write_questions: Write
) -> None:
    needed = {name: QUESTION[name] for name in QUESTION.keys() - {"concepts", "flags"}}
    split = write_questions({**needed, **missing})
    (split / "table.csv").write_text("x\n1\n")
    (item,) = SUITES["dabench"].load(split)
    assert (item.task.concepts, item.task.metadata["flags"]) == ((), [])


@pytest.mark.parametrize("name", SUITES)
@pytest.mark.parametrize("lines", [[], ["", " \t"]])
def test_no_suite_takes_a_file_without_questions(
    lines: list[str], name: str, write_questions: Write
) -> None:
    with pytest.raises(RecordError, match=r"questions\.jsonl holds no questions"):
        SUITES[name].load(write_questions(*lines))


def test_lines_that_are_no_records_are_named(write_questions: Write, tmp_path: Path) -> None:
    for line, problem in (
        ("{", "Expecting property name"),
        ('{"id": "a", "n": ' + "9" * 5000 + "}", "Exceeds the limit"),
        ('{"id": "a", "n": ' + "[" * 10**5, "nested too deep"),
    ):
        with pytest.raises(RecordError, match=rf"row 1: can't be read as JSON \({problem}"):
            list(read_records(write_questions(line) / "questions.jsonl"))
    with pytest.raises(RecordError, match="row 2: expected a JSON object, found list"):
        list(read_records(write_questions("", "[]") / "questions.jsonl"))
    with pytest.raises(RecordError, match="can't be read"):
        list(read_records(tmp_path / "absent.jsonl"))
    with pytest.raises(RecordError, match="field 'id': is missing"):
        list(read_records(write_questions({}) / "questions.jsonl"))


def test_files_and_numbers_of_a_record_are_checked(write_questions: Write) -> None:
    split = write_questions({"id": "a", "files": ["t.csv"], "n": 1, "bad": True, "none": []})
    (split / "t.csv").write_text("x\n")
    (record,) = read_records(split / "questions.jsonl")
    assert record.data_files("files") == (split / "t.csv",)
    assert record.number("n") == 1.0
    with pytest.raises(RecordError, match="'none': expected a list with at least one file name"):
        record.data_files("none")
    with pytest.raises(RecordError, match="'bad': expected a number, found bool"):
        record.number("bad")
    with pytest.raises(RecordError, match="'n': '/etc/passwd' leads out of the folder"):
        record.inside("n", "/etc/passwd")


@pytest.mark.parametrize("written", ["NaN", "-Infinity", "1e400", "1" + 400 * "0"])
def test_numbers_that_are_not_finite_are_refused(written: str, write_questions: Write) -> None:
    line = f'{{"id": "a", "n": {written}}}'
    (record,) = read_records(write_questions(line) / "questions.jsonl")
    with pytest.raises(RecordError, match="'n': expected a finite number, found"):
        record.number("n")


@pytest.mark.parametrize(
    ("name", "folder", "count"),
    [("dabench", "dabench/open", 103), ("sql", "sql", 121), ("xlsx", "xlsx", 59)],
)
def test_the_shared_questions_load(name: str, folder: str, count: int, shared_data: Path) -> None:
    items = SUITES[name].load(shared_data / folder)
    assert len(items) == count
    assert all(file.is_file() for item in items for file in item.task.files)


def test_published_labels_answer_themselves(shared_data: Path, tmp_path: Path) -> None:
    dabench, xlsx = SUITES["dabench"], SUITES["xlsx"]
    for item in dabench.load(shared_data / "dabench" / "open"):
        answer = " ".join(f"@{name}[{value}]" for name, value in item.label)
        outcome = Outcome(answer, tmp_path)
        assert dabench.score(item, outcome).correct, item.task.id
        assert dabench.agree(item, outcome, outcome), item.task.id
    for item in xlsx.load(shared_data / "xlsx"):
        outcome = Outcome(f"@answer[{item.label}]", tmp_path)
        assert xlsx.score(item, outcome).correct, item.task.id
        assert xlsx.agree(item, outcome, Outcome(item.label, tmp_path)), item.task.id
