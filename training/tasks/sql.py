"""Questions over SQLite databases, scored by the table that the agent saved.

A split is a folder with `questions.jsonl` and the databases it names. The agent saves each result
as `result_N.csv` in its working folder, and the last one counts. Where the gold table is
a single cell, an answer that states exactly that value counts too.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dm_jupyter.core.closed_form import find_answers
from dm_jupyter.core.task import Task
from training.scoring.short_answer import Token, is_stated, read_tokens, tokens_equal
from training.scoring.tables import read_csv, tables_equal
from training.tasks.records import Record, read_records
from training.tasks.suite import EvalItem, ItemScore

__all__ = ["SqlLabel", "SqlQuestions"]

CONSTRAINTS = (
    "The rows that answer the question must lie in result_1.csv in the working folder, with a "
    "header line and without an index; a sql block saves its rows there by itself."
)
MAX_RESULT_BYTES = 64 * 2**20

_RESULT_NAME = re.compile(r"result_([0-9]{1,9})\.csv")
_Rows = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class SqlLabel:
    """The gold tables of one question."""

    tables: tuple[_Rows, ...]
    """Any of them is right; the first is the main one."""
    order_matters: bool

    @property
    def cells(self) -> tuple[Any, ...]:
        """The values that are a whole gold table each, such as a count."""
        return tuple(rows[0][0] for rows in self.tables if len(rows) == 1 and len(rows[0]) == 1)


class SqlQuestions:
    """The database questions; a label is an `SqlLabel`."""

    name = "sql"

    def load(self, split: Path) -> list[EvalItem]:
        """Returns the items of `questions.jsonl`.

        Gold rows that the file cuts short are read from the database with the gold query.

        Raises:
            RecordError: a record is not as it should be, or its gold query fails.
        """
        return [_item(record) for record in read_records(split / "questions.jsonl")]

    def score(self, item: EvalItem, answer: str, folder: Path) -> ItemScore:
        """Returns the verdict; `parts` has `by_table` and `by_statement`, and either is enough."""
        label: SqlLabel = item.label
        by_table = _is_right_table(label, folder)
        by_statement = any(_is_said(cell, item.task.question, answer) for cell in label.cells)
        parts = {"by_table": by_table, "by_statement": by_statement}
        return ItemScore(by_table or by_statement, by_table, parts)


def _is_right_table(label: SqlLabel, folder: Path) -> bool:
    file = _last_result(folder)
    if file is None or file.stat().st_size > MAX_RESULT_BYTES:
        return False
    try:
        rows = read_csv(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # what the agent wrote is no table: a wrong answer
        return False
    return any(tables_equal(gold, rows, order_matters=label.order_matters) for gold in label.tables)


def _last_result(folder: Path) -> Path | None:
    """The file `result_N.csv` of the highest N; links are not followed."""
    if not folder.is_dir():
        return None
    numbered = [
        (int(match[1]), path)
        for path in sorted(folder.iterdir())
        if (match := _RESULT_NAME.fullmatch(path.name)) and path.is_file() and not path.is_symlink()
    ]
    return max(numbered, default=(0, None))[1]


def _is_said(cell: object, question: str, answer: str) -> bool:
    """Whether the answer states the value: as its only number, or as whole words.

    Numbers that stand in the question may be repeated ("after 1950"); a list of guesses is
    no statement. A tagged answer, `@answer[…]`, is read alone.
    """
    tagged = [value for _, value in find_answers(answer)]
    said = tagged[-1] if tagged else answer
    wanted = "" if cell is None else str(cell).removesuffix(" 00:00:00")
    if not is_stated(wanted, said):
        return False
    value, *more = read_tokens(wanted)
    if isinstance(value, str) or more:
        return True
    allowed = [value, *_numbers(question)]
    return all(any(tokens_equal(one, number) for one in allowed) for number in _numbers(said))


def _numbers(text: str) -> list[Token]:
    return [token for token in read_tokens(text) if not isinstance(token, str)]


def _item(record: Record) -> EvalItem:
    database = record.data_file("db")
    task = Task(
        id=record.text("id"),
        question=record.text("question"),
        files=(database,),
        constraints=CONSTRAINTS,
        metadata={"suite": SqlQuestions.name, "language": record.text("lang", "en")},
    )
    tables = (_gold_rows(record, database), *_alternatives(record))
    return EvalItem(task, SqlLabel(tables, record.flag("order_matters")))


def _alternatives(record: Record) -> list[_Rows]:
    """Further right tables, each stored as its header followed by its rows."""
    stored = record.fields.get("alternatives") or []
    if not isinstance(stored, list):
        raise record.fault("alternatives", "expected a list of tables")
    return [record.table("alternatives", table)[1:] for table in stored]


def _gold_rows(record: Record, database: Path) -> _Rows:
    if not record.flag("truncated"):
        return record.rows("rows")
    query = record.text("gold_sql")
    try:
        with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as opened:
            return tuple(tuple(row) for row in opened.execute(query))
    except sqlite3.Error as error:
        raise record.fault("gold_sql", f"the database refuses it: {error}") from error
