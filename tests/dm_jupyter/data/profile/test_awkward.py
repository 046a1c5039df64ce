"""Awkward files of every kind: the load code gives the table of the manifest, cell by cell."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.dm_jupyter.data.profile.awkward import FOLDER, AwkwardFile, awkward_files, verdict
from tests.dm_jupyter.data.profile.awkward_books import BOOKS

FILES = awkward_files()
MOST_BYTES = 1_000_000


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.kind}/{file.name}")
def test_the_load_code_gives_the_table_that_the_file_holds(file: AwkwardFile) -> None:
    faults = verdict(file.kind, file.name).faults
    assert not faults, "\n".join([f"{file.kind}/{file.name}:", *faults])


def test_no_value_of_the_corpus_is_wrong() -> None:
    wrong = Counter[str]()
    for file in FILES:
        wrong[f"{file.kind}/{file.name}"] += verdict(file.kind, file.name).wrong_values
    assert wrong.total() == 0, +wrong


def test_the_corpus_is_as_large_as_it_says() -> None:
    assert len(FILES) >= 60
    assert sum(path.stat().st_size for path in FOLDER.rglob("*")) < MOST_BYTES
    named = {(file.kind, file.name) for file in FILES}
    kept = {(path.parent.name, path.name) for path in FOLDER.glob("*/*")}
    assert named == {(kind, name) for kind, name in kept if name != "manifest.toml"} | {
        ("workbooks", name) for name in BOOKS
    }


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.kind}/{file.name}")
def test_ten_cells_of_each_table_are_named(file: AwkwardFile) -> None:
    for ways in file.tables:
        for way in ways:
            assert way.cells >= min(10, way.rows * len(way.columns))
            assert all(len(row) == len(way.columns) + 1 for row in way.values)
