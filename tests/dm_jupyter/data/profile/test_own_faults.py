"""A bug of ours is never called damage: sound files are read, with a plain load at the worst."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest

from dm_jupyter.core.errors import DataFileError
from dm_jupyter.data.profile import csv_file, json_file, profile_file, render, sqlite_file, workbook
from tests.dm_jupyter.data.profile.reading import assert_load_code_agrees, loaded, said
from tests.examples import some_quick

ROOT = Path(__file__).resolve().parents[4]
SHARED = ROOT.parent / "shared" / "data"
QUICK_BYTES = 500_000
PLAIN = "the layout could not be worked out"
READERS: dict[str, Callable[[Path], Any]] = {
    ".csv": pd.read_csv,
    ".tsv": pd.read_csv,
    ".txt": pd.read_csv,
    ".data": pd.read_csv,
    ".json": pd.read_json,
    ".jsonl": lambda path: pd.read_json(path, lines=True),
    ".parquet": pd.read_parquet,
    ".xlsx": partial(pd.read_excel, engine="openpyxl"),
    ".xls": pd.read_excel,
    ".ods": pd.read_excel,
    ".sqlite": lambda path: list(sqlite3.connect(path).execute("PRAGMA schema_version")),
}
ARGUED = ("unpack to", "contains no list of records", "0 bytes", "NUL bytes")
"""Refusals of our own: a bomb, JSON that is no table, nothing at all, text that is none."""


def _files() -> list[Any]:
    """One in four of the small files each time, the others with the slow tests."""
    folders = [folder for folder in (SHARED, ROOT / "examples") if folder.is_dir()]
    found = [path for folder in folders for path in sorted(folder.rglob("*"))]
    files = [path for path in found if path.suffix in READERS and path.is_file()]
    quick = [path for path in files if path.stat().st_size <= QUICK_BYTES]
    slow = [
        pytest.param(path, id=_name(path), marks=pytest.mark.slow)
        for path in files
        if path not in quick
    ]
    return [*some_quick(quick, 4, _name), *slow]


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


@pytest.mark.parametrize("path", _files())
def test_every_file_is_read_or_refused_with_reason(path: Path) -> None:
    try:
        assert PLAIN not in said(profile_file(path))
    except DataFileError as refused:
        if not any(words in str(refused) for words in ARGUED):
            with pytest.raises(Exception):  # noqa: B017, PT011 - each library has its own
                READERS[path.suffix](path)


class Random(random.Random):
    """Draws sheets that people could have made, and some that nobody would."""

    def cell(self) -> Any:
        return self.choice(
            [None, None, "", " ", "text", "Total", "#N/A", "#DIV/0!", "=A1+1", "Note: x", "n/a",
             "-", 2014, 7, -999, 1.5, 0, True, "007", "1.234,5", "12 %", "2024-01-02", "€ 5"]
        )  # fmt: skip

    def rows(self) -> list[list[Any]]:
        height, width = self.choice([0, 1, 1, 2, 5, 12, 40]), self.choice([1, 1, 2, 3, 5, 9])
        rows = [[self.cell() for _ in range(width)] for _ in range(height)]
        if self.random() < 0.6:
            names = [[self.choice(["a", "b", None, 2014, "(kg)"]) for _ in range(width)]]
            rows = names * self.randint(1, 4) + rows
        if self.random() < 0.4:
            rows = [["A title"], *([[]] * self.randint(0, 2)), *rows]
        for _ in range(self.randint(0, 3)):
            rows.insert(self.randint(0, len(rows)), [])
        return rows

    def sheet(self, sheet: Any) -> None:
        for row in self.rows():
            sheet.append(row)
        for _ in range(self.randint(0, 4)):
            top, left = self.randint(1, 12), self.randint(1, 12)
            # openpyxl forbids none of it: ranges that are empty, that overlap, beyond all cells.
            sheet.merge_cells(
                start_row=top,
                start_column=left,
                end_row=top + self.randint(0, 5),
                end_column=left + self.randint(0, 5),
            )
        sheet.sheet_state = "hidden" if self.random() < 0.1 else "visible"


@pytest.mark.parametrize("seed", some_quick(range(100), 8))
def test_generated_workbooks_are_read(seed: int, tmp_path: Path, monkeypatch: Any) -> None:
    draw, book = Random(seed), openpyxl.Workbook()
    draw.sheet(book.active)
    for _ in range(draw.randint(0, 2)):
        draw.sheet(book.create_sheet())
    book.active.sheet_state = "visible"
    book.save(tmp_path / "x.xlsx")
    assert PLAIN not in said(assert_load_code_agrees(tmp_path / "x.xlsx", monkeypatch))


@pytest.mark.parametrize("seed", range(100, 200))
def test_generated_csv_files_are_read(seed: int, tmp_path: Path, monkeypatch: Any) -> None:
    draw, path = Random(seed), tmp_path / "x.csv"
    separator = draw.choice(",;\t|")
    lines = [separator.join("" if v is None else str(v) for v in row) for row in draw.rows()]
    text = "\n".join([*(["sep=;"] if draw.random() < 0.1 else []), *lines])
    path.write_text(text)
    if not text.strip(" \n"):
        with pytest.raises(DataFileError, match=r"empty|blank"):
            profile_file(path)
        return
    assert PLAIN not in said(assert_load_code_agrees(path, monkeypatch))


ODD_NAMES = [
    "t", "Order Details", "select", 'say "hi"', "it's", "[x]", "1st", "Straße", "a;b", "tab\tx\n",
    "sqlite stat", "%s", "{name}", "-- note", "日本", "x" * 200,
]  # fmt: skip
DECLARED = ["INTEGER", "TEXT", "REAL", "BLOB", "NUMERIC", "", "VARCHAR(3)", "BOOLEAN", "point"]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@pytest.mark.parametrize("seed", range(200, 240))
def test_generated_databases_are_read(seed: int, tmp_path: Path) -> None:
    draw, path = Random(seed), tmp_path / "x.sqlite"
    names = draw.sample(ODD_NAMES, draw.randint(0, 5))
    with closing(sqlite3.connect(path)) as connection:
        for name in names:
            columns = draw.sample(ODD_NAMES, draw.randint(1, 6))
            parts = [f"{_quoted(column)} {draw.choice(DECLARED)}" for column in columns]
            if draw.random() < 0.3:
                parts.append(f"UNIQUE ({_quoted(columns[0])})")
            connection.execute(f"CREATE TABLE {_quoted(name)} ({', '.join(parts)})")
            marks = ", ".join("?" * len(columns))
            for _ in range(draw.randint(0, 20)):
                row = [draw.choice([draw.cell(), b"\xff\x00", 2**63 - 1, 1e308]) for _ in columns]
                connection.execute(f"INSERT OR IGNORE INTO {_quoted(name)} VALUES ({marks})", row)
        if names:
            connection.execute(f"CREATE VIEW seen AS SELECT * FROM {_quoted(names[0])}")
        connection.commit()
        counts = [
            connection.execute(f"SELECT COUNT(*) FROM {_quoted(name)}").fetchone()[0]
            for name in names
        ]
    profile = profile_file(path)
    tables = [table for table in profile.tables if not table.is_view]
    assert [(table.name, table.row_count) for table in tables] == [*zip(names, counts, strict=True)]
    assert "could not be described" not in said(profile)
    assert len(render(profile)) <= 2200


def test_a_merged_header_over_nothing_is_no_damage(tmp_path: Path, monkeypatch: Any) -> None:
    book = openpyxl.Workbook()
    for row in (["Year", "Gas"], [2005, 10], [2006, 11]):
        book.active.append(row)
    book.active.merge_cells("D1:F1")
    book.save(tmp_path / "x.xlsx")
    profile = assert_load_code_agrees(tmp_path / "x.xlsx", monkeypatch)
    assert PLAIN not in said(profile)
    assert profile.tables[0].row_count == 2


def _broken(*_: Any, **__: Any) -> Any:
    raise AssertionError("a layout that nobody foresaw")


@pytest.mark.parametrize(
    "step", ["find_sheet_layout", "cleaning_of", "find_footer", "suspicions_of"]
)
def test_a_broken_step_gets_the_plain_sheet(tmp_path: Path, monkeypatch: Any, step: str) -> None:
    book = openpyxl.Workbook()
    for row in (["k", "v"], ["a", 1], ["b", 2]):
        book.active.append(row)
    book.create_sheet("other").append(["x"])
    book.save(tmp_path / "x.xlsx")
    monkeypatch.setattr(workbook, step, _broken)
    profile = assert_load_code_agrees(tmp_path / "x.xlsx", monkeypatch)
    assert f"{PLAIN}: the sheet is loaded as it is" in said(profile)
    frame = loaded(tmp_path, profile.tables[0], monkeypatch)
    plain = pd.read_excel(tmp_path / "x.xlsx", sheet_name="Sheet", engine="openpyxl")
    pd.testing.assert_frame_equal(frame, plain)


@pytest.mark.parametrize("step", ["find_layout", "scan_rows", "detect_encoding", "suspicions_of"])
def test_a_broken_step_gets_the_plain_csv(tmp_path: Path, monkeypatch: Any, step: str) -> None:
    (tmp_path / "x.csv").write_text("k,v\na,1\nb,2\n")
    monkeypatch.setattr(csv_file, step, _broken)
    profile = assert_load_code_agrees(tmp_path / "x.csv", monkeypatch)
    assert f"{PLAIN}: the table is loaded as it is" in said(profile)
    assert profile.tables[0].load_code == 'df = pd.read_csv("x.csv")'


def test_a_broken_step_gets_the_plain_json(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "x.json").write_text(json.dumps([{"k": 1}, {"k": 2}]))
    monkeypatch.setattr(json_file, "suspicions_of", _broken)
    profile = assert_load_code_agrees(tmp_path / "x.json", monkeypatch)
    assert PLAIN in said(profile)
    assert profile.tables[0].load_code == 'df = pd.read_json("x.json")'


def test_a_broken_step_leaves_the_columns_of_a_database(tmp_path: Path, monkeypatch: Any) -> None:
    with sqlite3.connect(tmp_path / "x.sqlite") as connection:
        connection.execute("CREATE TABLE t (a INTEGER)")
    connection.close()
    monkeypatch.setattr(sqlite_file, "_profile_values", _broken)
    table = profile_file(tmp_path / "x.sqlite").tables[0]
    assert [column.name for column in table.columns] == ["a"]
    assert "could not be described" in table.warnings[0]


def test_what_the_library_refuses_is_damage(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"\x1f\x8b\x08\x00garbage")
    with pytest.raises(DataFileError, match="gzip"):
        profile_file(tmp_path / "x.csv")
