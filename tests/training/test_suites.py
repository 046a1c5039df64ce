from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dm_jupyter.core.task import Task
from training.tasks.records import RecordError, read_records
from training.tasks.registry import SUITES, find_suite
from training.tasks.sql import SqlLabel
from training.tasks.suite import EvalItem, ItemScore, Suite, draw

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


class ThirdPartySuite:
    """What somebody else's file holds."""

    name = "theirs"

    def load(self, split: Path) -> list[EvalItem]:
        return [EvalItem(Task("t", "?"), "yes")]

    def score(self, item: EvalItem, answer: str, folder: Path) -> ItemScore:
        return ItemScore(answer == item.label, answer == item.label)


def make_database(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "music.sqlite")) as database:
        database.execute("CREATE TABLE albums (title TEXT, year INTEGER)")
        database.executemany("INSERT INTO albums VALUES (?, ?)", [("One", 1999), ("Two", 2004)])
        database.commit()


def sql_question(**changes: Any) -> dict[str, Any]:
    base = {
        "id": "q",
        "db": "music.sqlite",
        "question": "Which albums are there?",
        "gold_sql": "SELECT title, year FROM albums",
        "rows": [["One", 1999], ["Two", 2004]],
        "truncated": False,
        "order_matters": False,
    }
    return {**base, **changes}


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


def test_dabench_scores_by_both_rule_sets(write_questions: Write, tmp_path: Path) -> None:
    split = write_questions(QUESTION)
    (split / "table.csv").write_text("x\n1\n4\n")
    suite = SUITES["dabench"]
    (item,) = suite.load(split)
    score = suite.score(item, "@Mean[2.5] @c[2] @c[1]", tmp_path)
    assert score == ItemScore(True, False, {"mean": True, "c": True, "c#2": True})
    assert suite.score(item, "", tmp_path).parts == {"mean": False, "c": False, "c#2": False}


def test_sql_takes_the_last_saved_table(write_questions: Write, tmp_path: Path) -> None:
    make_database(tmp_path)
    suite = SUITES["sql"]
    (item,) = suite.load(write_questions(sql_question()))
    work = tmp_path / "work"
    assert not suite.score(item, "One and Two", work).right
    work.mkdir()
    (work / "result_9.csv").write_text("title,year\nTwo,2004\n")
    assert not suite.score(item, "", work).right
    (work / "result_10.csv").write_text("title,year\nTwo,2004\nOne,1999\n")
    assert suite.score(item, "", work) == ItemScore(
        True, True, {"by_table": True, "by_statement": False}
    )
    (work / "result_11.csv").write_bytes(b"\xff\xfe\x00")
    assert not suite.score(item, "", work).right


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("There are 2 albums.", True),
        ("2 albums came out after 1990.", True),
        ("@answer[2]", True),
        ("Between 2 and 5.", False),
        ("There are 12 albums.", False),
        ("", False),
    ],
)
def test_sql_takes_a_stated_single_value(
    answer: str, right: bool, write_questions: Write, tmp_path: Path
) -> None:
    make_database(tmp_path)
    suite = SUITES["sql"]
    question = sql_question(question="How many albums came out after 1990?", rows=[[2]])
    (item,) = suite.load(write_questions(question))
    score = suite.score(item, answer, tmp_path)
    assert score.parts == {"by_table": False, "by_statement": right}
    assert score.right is right
    assert not score.strict


def test_sql_states_text_and_never_a_missing_value(write_questions: Write, tmp_path: Path) -> None:
    make_database(tmp_path)
    suite = SUITES["sql"]
    text, missing = suite.load(
        write_questions(sql_question(rows=[["Iron Maiden"]]), sql_question(id="r", rows=[[None]]))
    )
    (day,) = suite.load(write_questions(sql_question(rows=[["1962-02-18 00:00:00"]])))
    assert suite.score(day, "Born on 1962-02-18.", tmp_path).right
    assert suite.score(text, "It is iron maiden.", tmp_path).right
    assert not suite.score(missing, "None", tmp_path).right


def test_sql_reads_rows_that_were_cut_short_from_the_database(
    write_questions: Write, tmp_path: Path
) -> None:
    make_database(tmp_path)
    (item,) = SUITES["sql"].load(
        write_questions(sql_question(rows=[["One", 1999]], truncated=True))
    )
    assert item.label == SqlLabel(((("One", 1999), ("Two", 2004)),), order_matters=False)
    with pytest.raises(RecordError, match=r"row 1, field 'gold_sql': the database refuses it"):
        SUITES["sql"].load(
            write_questions(sql_question(truncated=True, gold_sql="DELETE FROM albums"))
        )


def test_sql_takes_an_alternative_table(write_questions: Write, tmp_path: Path) -> None:
    make_database(tmp_path)
    suite = SUITES["sql"]
    question = sql_question(rows=[["5.13"]], alternatives=[[["difference"], ["4.14"]]])
    (item,) = suite.load(write_questions(question))
    (tmp_path / "result_1.csv").write_text("d\n4.14\n")
    assert suite.score(item, "", tmp_path).right
    with pytest.raises(RecordError, match="'alternatives': expected a list of tables"):
        suite.load(write_questions(sql_question(alternatives=1)))


def test_xlsx_reads_the_tag_or_else_the_whole_answer(
    write_questions: Write, tmp_path: Path
) -> None:
    suite = SUITES["xlsx"]
    record = {"id": "w", "question": "?", "file": "book.xlsx", "answer": "2020, 1861550"}
    split = write_questions(record)
    (split / "book.xlsx").write_bytes(b"")
    (item,) = suite.load(split)
    tagged = suite.score(item, "Looking at row 3: @answer[2020, 1,861,550]", tmp_path)
    assert (tagged.right, tagged.strict) == (True, False)
    assert suite.score(item, "2020, 1861550", tmp_path).strict
    assert not suite.score(item, "In 2020 it was 1861550", tmp_path).right
    assert not suite.score(item, "", tmp_path).right


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"question": ""}, "row 2, field 'question': is empty"),
        ({"question": None}, "field 'question': expected a string, found nothing"),
        ({"concepts": "x"}, "field 'concepts': expected a list of strings"),
        ({"label_pairs": []}, "field 'label_pairs': expected a list of"),
        ({"label_pairs": [["a"]]}, "field 'label_pairs': expected a list of"),
        ({"file": "../table.csv"}, "field 'file': '../table.csv' leads out of"),
        ({"file": "none.csv"}, "field 'file': there is no file 'none.csv'"),
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": 1}, "field 'rows': expected a list of rows"),
        ({"rows": [[1], [1, 2]]}, "field 'rows': the rows are not all of one width"),
        ({"order_matters": "yes"}, "field 'order_matters': expected true or false, found str"),
        ({"db": None}, "field 'db': expected a string, found nothing"),
    ],
)
def test_a_bad_sql_record_is_named(
    change: dict[str, Any], message: str, write_questions: Write, tmp_path: Path
) -> None:
    make_database(tmp_path)
    with pytest.raises(RecordError, match=message):
        SUITES["sql"].load(write_questions(sql_question(**change)))


def test_lines_that_are_no_records_are_named(write_questions: Write, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="row 1: not JSON"):
        list(read_records(write_questions("{") / "questions.jsonl"))
    with pytest.raises(RecordError, match="row 2: expected a JSON object, found list"):
        list(read_records(write_questions("", "[]") / "questions.jsonl"))
    with pytest.raises(RecordError, match="can't be read"):
        list(read_records(tmp_path / "absent.jsonl"))
    with pytest.raises(RecordError, match="field 'id': is missing"):
        list(read_records(write_questions({}) / "questions.jsonl"))


def test_a_draw_is_reproducible_and_keeps_the_order() -> None:
    items = [EvalItem(Task(str(number), "?"), None) for number in range(50)]
    drawn = draw(items, 7, seed=3)
    assert drawn == draw(items, 7, seed=3)
    assert drawn != draw(items, 7, seed=4)
    assert [int(item.task.id) for item in drawn] == sorted(int(item.task.id) for item in drawn)
    assert draw(items, None, seed=3) == draw(items, 99, seed=3) == items
    with pytest.raises(ValueError, match="0 or more"):
        draw(items, -1, seed=3)


def test_a_suite_from_elsewhere_needs_no_line_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "their_suite.py").write_text(
        "from tests.training.test_suites import ThirdPartySuite\nnothing = 1\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    suite = find_suite("their_suite:ThirdPartySuite")
    (item,) = suite.load(tmp_path)
    assert suite.score(item, "yes", tmp_path).right
    with pytest.raises(TypeError, match="is no suite"):
        find_suite("their_suite:nothing")
    with pytest.raises(ValueError, match="there are dabench, sql, xlsx"):
        find_suite("absent")


def test_the_registry_names_suites_as_they_name_themselves() -> None:
    assert all(isinstance(suite, Suite) for suite in SUITES.values())
    assert {name: suite.name for name, suite in SUITES.items()} == {n: n for n in SUITES}
    assert find_suite("dabench") is SUITES["dabench"]


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
        assert dabench.score(item, answer, tmp_path).right, item.task.id
    for item in xlsx.load(shared_data / "xlsx"):
        assert xlsx.score(item, f"@answer[{item.label}]", tmp_path).right, item.task.id


def test_gold_queries_make_right_tables(shared_data: Path, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    suite = SUITES["sql"]
    for item in suite.load(shared_data / "sql"):
        frame = pandas.DataFrame(list(item.label.tables[0]))
        frame.to_csv(tmp_path / "result_1.csv", index=False)
        assert suite.score(item, "", tmp_path).parts["by_table"], item.task.id
