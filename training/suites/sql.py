"""Questions over SQLite databases, scored by the table that the agent saved.

A split is a folder with `questions.jsonl` and the databases it names. The agent saves each result
as `result_N.csv` in its working folder, and the last one counts. Two published ways score it:

- `by_result` is BIRD's (arXiv 2305.03111): the rows, in any order, even if the question asks for
  one.
  Deviates: duplicates count and numbers may be 1e-6 apart, see `training.scoring.tables`.
- `by_file` is DataMind's (arXiv 2509.25084): the file contains the full result exactly, its columns
  in order, its rows in order if the question asks for one. Deviates: the comparison released
  with it sorts each column alone, and accepts scrambled rows.

If the gold table is a single cell, an answer that states exactly that value counts too.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from dm_jupyter.core.closed_form import find_answers
from dm_jupyter.core.task import Task
from training.scoring.short_answer import answers_equal, states
from training.scoring.tables import read_csv, tables_equal, tables_identical
from training.suites.records import Record, read_records
from training.suites.suite import ItemScore, Outcome, Sample

__all__ = ["SqlLabel", "SqlQuestions"]

CONSTRAINTS = (
    "The rows that answer the question must lie in result_1.csv in the working folder, with a "
    "header line and without an index; a sql block saves its rows there by itself."
)
MAX_RESULT_BYTES = 64 * 2**20
MIDNIGHT = " 00:00:00"
"""Time that follows a date in a database, and that nobody writes."""

_RESULT_NAME = re.compile(r"result_([0-9]{1,9})\.csv")
_Rows = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class SqlLabel:
    """The gold tables of one question."""

    tables: tuple[_Rows, ...]
    """Tables of which any is correct; the first is the main one."""
    order_matters: bool

    @property
    def cells(self) -> tuple[Any, ...]:
        """Values that are each an entire gold table, such as a count."""
        return tuple(rows[0][0] for rows in self.tables if len(rows) == 1 and len(rows[0]) == 1)


class SqlQuestions:
    """The database questions; a label is an `SqlLabel`."""

    name = "sql"

    def load(self, split: Path) -> list[Sample]:
        """Return the samples of `questions.jsonl`.

        Gold rows that the file truncates are read from the database with the gold query. Samples
        are drawn in equal shares of each database. `metadata["format"]` is `value` if the gold
        table is a single cell, and otherwise `table`.

        Raises:
            RecordError: a record is invalid, or its gold query fails.
        """
        return [_item(record) for record in read_records(split / "questions.jsonl")]

    def score(self, item: Sample, outcome: Outcome) -> ItemScore:
        """Return the verdict: correct is `in_order` or `by_statement`, strict is `by_file`.

        `parts` are the ways to be correct. `by_result` and `by_file` are described above.
        `in_order` is `by_result` with its rows in the order that the question asks for, if any.
        `by_statement` is an answer in words.
        """
        label: SqlLabel = item.label
        readings = _readings(_saved_text(outcome.folder))
        in_order = _is_result(label, readings, order_matters=label.order_matters)
        in_any_order = in_order or (
            label.order_matters and _is_result(label, readings, order_matters=False)
        )
        parts = {
            "by_result": in_any_order,
            "in_order": in_order,
            "by_file": _is_file(label, readings),
            "by_statement": _is_stated(label, item.task.question, outcome.answer),
        }
        right = parts["in_order"] or parts["by_statement"]
        return ItemScore(right, parts["by_file"], parts, {"by_file": parts["by_file"]})

    def agree(self, item: Sample, one: Outcome, other: Outcome) -> bool:  # noqa: ARG002
        """Return whether the saved tables contain the same rows, or else the answers agree.

        Only the label says whether the order of the rows matters, so votes ignore it. Words count
        only if neither run saved a table.
        """
        first, second = (_readings(_saved_text(outcome.folder)) for outcome in (one, other))
        if first or second:
            return any(tables_equal(rows, others) for rows, others in product(first, second))
        said = _said(one.answer)
        return bool(said) and answers_equal(said, _said(other.answer))


def _is_result(
    label: SqlLabel, readings: Sequence[Sequence[Sequence[str]]], *, order_matters: bool
) -> bool:
    return any(
        tables_equal(gold, rows, order_matters=order_matters)
        for gold in label.tables
        for rows in readings
    )


def _is_file(label: SqlLabel, readings: Sequence[Sequence[Sequence[str]]]) -> bool:
    return any(
        tables_identical(gold, rows, order_matters=label.order_matters)
        for gold in label.tables
        for rows in readings[-1:]
    )


def _is_stated(label: SqlLabel, question: str, answer: str) -> bool:
    return any(_is_said(cell, question, answer) for cell in label.cells)


def _readings(text: str) -> list[list[list[str]]]:
    """Return the possible tables of a csv text, the last with all of its columns; often just one.

    A first column without a name that counts the rows is pandas' index, or a result. A text that is
    not csv has no table, which is a wrong answer.
    """
    try:
        bare, whole = read_csv(text), read_csv(text, keep_index=True)
    except ValueError:
        return []
    return [whole] if bare == whole else [bare, whole]


def _saved_text(folder: Path) -> str:
    """Return the text of the last saved result; empty if none can be read."""
    file = _last_result(folder)
    try:
        if file is None or file.stat().st_size > MAX_RESULT_BYTES:
            return ""
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def _last_result(folder: Path) -> Path | None:
    """Return the file `result_N.csv` with the highest N; links are not followed."""
    if not folder.is_dir():
        return None
    numbered = [
        (int(match[1]), path)
        for path in sorted(folder.iterdir())
        if (match := _RESULT_NAME.fullmatch(path.name)) and path.is_file() and not path.is_symlink()
    ]
    return max(numbered, default=(0, None))[1]


def _is_said(cell: object, question: str, answer: str) -> bool:
    """Whether the answer states the value; a tagged answer, `@answer[…]`, is read alone."""
    wanted, said = "" if cell is None else str(cell), _said(answer)
    if wanted.endswith(MIDNIGHT):
        wanted, said = wanted.removesuffix(MIDNIGHT), said.replace(MIDNIGHT, "")
    return states(wanted, said, question)


def _said(answer: str) -> str:
    """Return the last tagged value, or the entire answer without one."""
    tagged = [value for _, value in find_answers(answer)]
    return tagged[-1] if tagged else answer.strip()


def _item(record: Record) -> Sample:
    database = record.data_file("db")
    tables = (_gold_rows(record, database), *_alternatives(record))
    label = SqlLabel(tables, record.flag("order_matters"))
    task = Task(
        id=record.text("id"),
        question=record.text("question"),
        files=(database,),
        constraints="\n".join(filter(None, (record.text("evidence", ""), CONSTRAINTS))),
        level=record.text("level", ""),
        metadata={
            "suite": SqlQuestions.name,
            "evaluation_only": True,
            "format": "value" if label.cells else "table",
            "draw_group": database.name,
            "language": record.text("lang", "en"),
        },
    )
    return Sample(task, label)


def _alternatives(record: Record) -> list[_Rows]:
    """Return further correct tables, each stored as its header followed by its rows."""
    stored = record.fields.get("alternatives")
    if stored is None:
        return []
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
