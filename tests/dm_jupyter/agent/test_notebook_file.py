"""Files of notebooks are read whole and checked, and written whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest

from dm_jupyter.agent.notebook_file import (
    new_names,
    read_notebook,
    replace_text,
    write_elsewhere,
    write_new,
)
from dm_jupyter.core.errors import NotebookError

EMPTY = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def test_a_notebook_is_read_with_the_bytes_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    path.write_text(json.dumps(EMPTY))
    content, document = read_notebook(path)
    assert (content, document.cells) == (path.read_bytes(), [])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "can't be read: No such file or directory"),
        ("a,b\n1,2\n", r"is not a notebook \(JSONDecodeError\)"),
        ("[]", r"is not a notebook \(AttributeError\)"),
        ("[" * 100_000, r"is not a notebook \(RecursionError\)"),
        (json.dumps({**EMPTY, "cells": 5}), "is not in notebook format 4"),
        (json.dumps({**EMPTY, "nbformat": 3}), "is not in notebook format 4"),
    ],
    ids=["none", "no JSON", "a list", "deep", "no cells", "format 3"],
)
def test_what_is_no_notebook_is_refused_with_the_reason(
    tmp_path: Path, text: str | None, why: str
) -> None:
    path = tmp_path / "n.ipynb"
    if text is not None:
        path.write_text(text)
    with pytest.raises(NotebookError, match=why):
        read_notebook(path)


def test_a_new_file_gets_the_first_free_name(tmp_path: Path) -> None:
    wanted = tmp_path / "n.ipynb"
    assert [write_new(wanted, text).name for text in "abc"] == [
        "n.ipynb", "n-2.ipynb", "n-3.ipynb",
    ]  # fmt: skip
    assert [path.read_text() for path in sorted(tmp_path.iterdir())] == ["b", "c", "a"]
    names = [path.name for path in new_names(wanted)]
    assert names[:3] == ["n.ipynb", "n-2.ipynb", "n-3.ipynb"]
    assert len(names) == len(set(names))


def test_where_every_name_is_taken_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dm_jupyter.agent.notebook_file._MOST_NAMES", 3)
    wanted = tmp_path / "n.ipynb"
    for text in "ab":
        write_new(wanted, text)
    with pytest.raises(FileExistsError, match="too many files of that name"):
        write_new(wanted, "c")
    assert [path.read_text() for path in sorted(tmp_path.iterdir())] == ["b", "a"]


def test_a_file_is_replaced_with_its_permissions_kept(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    replace_text(path, "first")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("first", 0o644)
    path.chmod(0o600)
    replace_text(path, "second")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("second", 0o600)
    assert list(tmp_path.iterdir()) == [path]


def test_what_can_not_be_written_is_kept_in_the_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    refuge = tmp_path / f"n-{os.getpid()}.ipynb"
    told = write_elsewhere(Path("/gone/n.ipynb"), "text", "can't be written")
    assert told == f"/gone/n.ipynb can't be written; the notebook so far is in {refuge}"
    assert refuge.read_text() == "text"
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    told = write_elsewhere(Path("/gone/n.ipynb"), "text", "can't be written")
    assert told == "/gone/n.ipynb can't be written; free some space or choose --out"
