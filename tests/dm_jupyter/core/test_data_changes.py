"""What a person is told that a cleaning saved and changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from dm_jupyter.core.data_changes import cleaning_words, saved_files, saved_pictures
from kernel_sandbox.ledger.facts import Fact
from kernel_sandbox.types import CellResult, CellStatus, FileChange
from tests.kernel_sandbox.ledger.ledger_shell import LedgerShell

SET_UP = """
import pandas as pd
rows = 1_250
df = pd.DataFrame({
    "id": [i if i < 1_219 else 0 for i in range(rows)],
    "date": ["2024-01-02" if 20 <= i else None if i < 15 else "n/a" for i in range(rows)],
})
df.loc[1_219:, "date"] = None
df.to_csv("sales.csv", index=False)
"""
CLEAN = """
df = pd.read_csv("sales.csv", keep_default_na=False, na_values=[""])
df = df.drop_duplicates()
df = df.dropna(subset=["date"])
df["date"] = pd.to_datetime(df["date"], format="%Y-%m-%d", errors="coerce")
df.to_csv("sales-clean.csv", index=False)
"""


def _ran(sources: Sequence[str], *changes: FileChange) -> list[CellResult]:
    """Cells that really ran, one after another; the last one changed the files."""
    shell = LedgerShell()
    results = [CellResult(CellStatus.OK, facts=shell.run(source)) for source in sources]
    last = results[-1]
    return [*results[:-1], CellResult(last.status, files=changes, facts=last.facts)]


def _made(path: str) -> FileChange:
    return FileChange(path, "made", size_bytes=9)


def test_rows_are_followed_from_the_file_read_to_the_file_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    results = _ran([SET_UP, CLEAN], _made("sales-clean.csv"))[1:]
    (line,) = cleaning_words(results, ["sales.csv"])
    assert line == (
        "Saved sales-clean.csv: 1,204 of 1,250 rows kept; 31 duplicate rows dropped; "
        "15 rows without 'date' dropped; "
        "to_datetime: 5 of 1,204 values of date became NaN: 'n/a'."
    )


def test_rows_are_followed_over_several_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cells = [SET_UP, *CLEAN.strip().splitlines(), "pd.read_csv('sales-clean.csv')"]
    (line,) = cleaning_words(_ran(cells)[1:], ["sales.csv"])
    assert line.startswith("Saved sales-clean.csv: 1,204 of 1,250 rows kept; 31 duplicate")


def test_gaps_that_were_filled_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cell = 'd = pd.read_csv("sales.csv").fillna({"date": "x"})\nd.to_csv("full.csv")'
    (line,) = cleaning_words(_ran([SET_UP, cell])[1:], ["sales.csv"])
    assert line.startswith("Saved full.csv: 1,250 of 1,250 rows kept; fillna of date: ")
    assert line.endswith("missing values filled.")


def test_what_nobody_noted_is_said_to_be_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cell = 'd = pd.read_csv("sales.csv").iloc[:7]\nd.to_csv("few.csv")'
    (line,) = cleaning_words(_ran([SET_UP, cell])[1:], ["sales.csv"])
    assert line == ("Saved few.csv: 7 rows; sales.csv has 1,250, and why 7 are left was not noted.")
    whole = 'd = pd.read_csv("sales.csv")\nd.columns = ["a", "b"]\nd.to_csv("named.csv")'
    (line,) = cleaning_words(_ran([SET_UP, whole])[1:], ["sales.csv"])
    assert line.endswith("changes of text, names and types are not counted.")
    plain = CellResult(CellStatus.OK, files=(_made("out.parquet"),))
    assert cleaning_words([plain], ()) == (
        "Saved out.parquet; what was changed in it is not known.",
    )


def test_no_file_is_told() -> None:
    assert cleaning_words([CellResult(CellStatus.OK)], ()) == ("No file was saved.",)
    picture = CellResult(CellStatus.OK, files=(_made("a.png"), _made("b.py")))
    assert cleaning_words([picture], ()) == ("No file was saved.",)
    assert saved_pictures([picture]) == ("a.png",)


def test_a_file_that_the_folder_does_not_have_is_not_saved() -> None:
    """Where the kernel tells of files, its word on what it saved does not count."""
    saved = Fact("saved", "to_csv", None, 3, condition="gone.csv")
    removed = FileChange("gone.csv", "removed")
    refused = FileChange("no.csv", "made", "refused")
    result = CellResult(CellStatus.OK, files=(removed, refused), facts=(saved,))
    assert saved_files([result]) == ()
    elsewhere = Fact("saved", "to_csv", None, 3, condition="/tmp/x.csv")
    assert saved_files([CellResult(CellStatus.OK, facts=(elsewhere,))]) == ()


def test_a_given_file_that_was_overwritten_is_told_first() -> None:
    changed = FileChange("data/sales.csv", "changed", size_bytes=5, before_bytes=9)
    saved = Fact("saved", "to_csv", None, 3, condition="data/sales.csv")
    result = CellResult(CellStatus.OK, files=(changed,), facts=(saved,))
    lines = cleaning_words([result], ["/home/me/data/sales.csv"])
    assert lines[0] == "data/sales.csv, which the question is about, was overwritten."
    assert len(lines) == 2
    refused = FileChange("sales.csv", "changed", "refused")
    lines = cleaning_words([CellResult(CellStatus.OK, files=(refused,))], ["sales.csv"])
    assert lines == (
        "sales.csv, which the question is about, was not overwritten.",
        "No file was saved.",
    )


def test_a_hostile_kernel_makes_no_long_answer() -> None:
    facts = tuple(Fact("saved", "to_csv", None, at, condition=f"{at}.csv") for at in range(40))
    changes = tuple(_made(f"\u202e{at}\n.csv") for at in range(5_000))
    lines = cleaning_words([CellResult(CellStatus.OK, files=changes, facts=facts)], ())
    assert len(lines) == 11
    assert all(line.isprintable() for line in lines)
