from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from training.suites.records import RecordError
from training.suites.registry import SUITES
from training.suites.sql import SqlLabel
from training.suites.suite import ItemScore, Outcome

Write = Callable[..., Path]


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


def test_sql_takes_the_last_saved_table(write_questions: Write, tmp_path: Path) -> None:
    make_database(tmp_path)
    suite = SUITES["sql"]
    (item,) = suite.load(write_questions(sql_question()))
    work = tmp_path / "work"
    assert not suite.score(item, Outcome("One and Two", work)).correct
    work.mkdir()
    (work / "result_9.csv").write_text("title,year\nTwo,2004\n")
    assert not suite.score(item, Outcome("", work)).correct
    (work / "result_10.csv").write_text("title,year\nTwo,2004\nOne,1999\n")
    assert suite.score(item, Outcome("", work)) == ItemScore(
        correct=True,
        strict_correct=True,
        parts={"by_result": True, "in_order": True, "by_file": True, "by_statement": False},
        strict_parts={"by_file": True},
    )
    (work / "result_11.csv").write_bytes(b"\xff\xfe\x00")
    assert not suite.score(item, Outcome("", work)).correct
    (work / "result_11.csv").unlink()
    (work / "result_12.csv").symlink_to(work / "result_9.csv")
    assert suite.score(item, Outcome("", work)).correct


@pytest.mark.parametrize(
    ("saved", "ways"),
    [
        ("title,year\nOne,1999\nTwo,2004\n", {"by_result", "in_order", "by_file"}),
        ("title,year\nOne,1999.0\nTwo,2004.0\n", {"by_result", "in_order", "by_file"}),
        ("title,year\nTwo,2004\nOne,1999\n", {"by_result"}),
        ("year,title\n1999,One\n2004,Two\n", {"by_result", "in_order"}),
        (",title,year\n0,One,1999\n1,Two,2004\n", {"by_result", "in_order"}),
        ("title,year\nOne ,1999\nTwo,2004\n", {"by_result", "in_order"}),
        ("title,year\nOne,1999\nTwo,2004\nTwo,2004\n", set()),
        ("title,year\nOne,2004\nTwo,1999\n", set()),
    ],
)
def test_sql_tells_the_two_published_ways_apart(
    saved: str, ways: set[str], write_questions: Write, tmp_path: Path
) -> None:
    make_database(tmp_path)
    suite = SUITES["sql"]
    (item,) = suite.load(write_questions(sql_question(order_matters=True)))
    (tmp_path / "result_1.csv").write_text(saved)
    score = suite.score(item, Outcome("", tmp_path))
    assert {name for name, right in score.parts.items() if right} == ways
    assert score.correct is ("in_order" in ways)
    assert score.strict_correct is ("by_file" in ways)


def test_sql_runs_agree_by_their_tables_and_else_by_their_words(
    write_questions: Write, tmp_path: Path
) -> None:
    make_database(tmp_path)
    suite = SUITES["sql"]
    (item,) = suite.load(write_questions(sql_question()))
    folders = [tmp_path / name for name in "abc"]
    for folder in folders:
        folder.mkdir()
    one, other, bare = (Outcome("@answer[2]", folder) for folder in folders)
    assert suite.agree(item, one, other)
    assert not suite.agree(item, one, Outcome("@answer[3]", folders[1]))
    assert not suite.agree(item, Outcome("", folders[0]), Outcome("", folders[1]))
    (folders[0] / "result_1.csv").write_text("a,b\nx,1\ny,2\n")
    assert not suite.agree(item, one, bare)
    (folders[1] / "result_3.csv").write_text("n,k\n2.0,y\n1.0,x\n")
    assert suite.agree(item, one, other)
    (folders[1] / "result_4.csv").write_text("n,k\n2,x\n1,y\n")
    assert not suite.agree(item, one, other)


def test_a_first_column_without_a_name_may_be_an_index_or_a_result(
    write_questions: Write, tmp_path: Path
) -> None:
    make_database(tmp_path)
    suite = SUITES["sql"]
    counted, bare = suite.load(
        write_questions(
            sql_question(rows=[[0, "a"], [1, "b"]]), sql_question(id="n", rows=[["a"], ["b"]])
        )
    )
    work = tmp_path / "work"
    work.mkdir()
    (work / "result_1.csv").write_text(",n\n0,a\n1,b\n")
    assert suite.score(counted, Outcome("", work)).correct
    assert suite.score(counted, Outcome("", work)).strict_correct
    assert suite.score(bare, Outcome("", work)).correct
    assert not suite.score(bare, Outcome("", work)).strict_correct
    (tmp_path / "result_1.csv").write_text("id,n\n1,b\n0,a\n")
    assert suite.agree(counted, Outcome("", work), Outcome("", tmp_path))


def test_sql_says_which_kind_of_answer_and_which_database(
    write_questions: Write, tmp_path: Path
) -> None:
    make_database(tmp_path)
    items = SUITES["sql"].load(write_questions(sql_question(), sql_question(id="n", rows=[[2]])))
    assert [item.task.metadata["format"] for item in items] == ["table", "value"]
    assert {item.task.metadata["draw_group"] for item in items} == {"music.sqlite"}


def test_sql_gives_the_evidence_of_a_question_along(write_questions: Write, tmp_path: Path) -> None:
    make_database(tmp_path)
    plain, helped = SUITES["sql"].load(
        write_questions(
            sql_question(),
            sql_question(id="e", evidence="old means year < 2000", level="simple"),
        )
    )
    assert helped.task.constraints == f"old means year < 2000\n{plain.task.constraints}"
    assert (plain.task.level, helped.task.level) == ("", "simple")


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("There are 2 albums.", True),
        ("2 albums came out after 1990.", True),
        ("@answer[2]", True),
        ("Between 2 and 5.", False),
        ("There are 12 albums.", False),
        ("2 or 1990", False),
        ("Those after 1990 are not counted.", False),
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
    score = suite.score(item, Outcome(answer, tmp_path))
    assert score.parts["by_statement"] is right
    assert not score.parts["by_result"]
    assert score.correct is right
    assert not score.strict_correct


def test_sql_states_text_and_never_a_missing_value(write_questions: Write, tmp_path: Path) -> None:
    make_database(tmp_path)
    suite = SUITES["sql"]
    text, missing = suite.load(
        write_questions(sql_question(rows=[["Iron Maiden"]]), sql_question(id="r", rows=[[None]]))
    )
    (day,) = suite.load(write_questions(sql_question(rows=[["1962-02-18 00:00:00"]])))
    for said in ("Born on 1962-02-18.", "It is 1962-02-18 00:00:00"):
        assert suite.score(day, Outcome(said, tmp_path)).correct
    assert not suite.score(day, Outcome("1962-02-18 or 1962-02-19", tmp_path)).correct
    assert not suite.score(text, Outcome("It is not Iron Maiden.", tmp_path)).correct
    assert not suite.score(text, Outcome("@answer[Accept or Iron Maiden]", tmp_path)).correct
    assert suite.score(text, Outcome("Accept? No: @answer[Iron Maiden]", tmp_path)).correct
    assert suite.score(text, Outcome("It is iron maiden.", tmp_path)).correct
    assert not suite.score(missing, Outcome("None", tmp_path)).correct


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
    assert suite.score(item, Outcome("", tmp_path)).correct
    assert suite.load(write_questions(sql_question(alternatives=None)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": 1}, "field 'rows': expected a list of rows"),
        ({"rows": [[1], [1, 2]]}, "field 'rows': the rows are not all of one width"),
        ({"order_matters": "yes"}, "field 'order_matters': expected true or false, found str"),
        ({"db": None}, "field 'db': expected a string, found nothing"),
        ({"alternatives": 1}, "row 1, field 'alternatives': expected a list of tables"),
        ({"alternatives": 0}, "row 1, field 'alternatives': expected a list of tables"),
        ({"alternatives": ""}, "row 1, field 'alternatives': expected a list of tables"),
        ({"gold_sql": "SELECT '\ud800'", "truncated": True}, "field 'gold_sql': can't be written"),
    ],
)
def test_a_bad_sql_record_is_named(
    change: dict[str, Any], message: str, write_questions: Write, tmp_path: Path
) -> None:
    make_database(tmp_path)
    with pytest.raises(RecordError, match=message):
        SUITES["sql"].load(write_questions(sql_question(**change)))


def test_gold_queries_make_right_tables(shared_data: Path, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    suite = SUITES["sql"]
    for item in suite.load(shared_data / "sql"):
        frame = pandas.DataFrame(list(item.label.tables[0]))
        frame.to_csv(tmp_path / "result_1.csv", index=False)
        parts = suite.score(item, Outcome("", tmp_path)).parts
        assert parts["by_result"], item.task.id
        assert parts["by_file"], item.task.id
