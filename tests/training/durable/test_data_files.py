"""Data files that are found by what they contain, wherever they are."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from dm_jupyter.core.errors import DataFileError
from training.durable.data_files import DataFinder, data_fingerprint, hash_file

CONTENT = b"a\n1\n"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.mark.parametrize("place", ["tables/t.csv", "elsewhere/deep/t.csv", "other/name.csv"])
def test_a_file_is_found_by_its_content(place: str, tmp_path: Path) -> None:
    file = tmp_path / "data" / place
    file.parent.mkdir(parents=True)
    file.write_bytes(CONTENT)
    (tmp_path / "data" / "t.csv").write_text("another")
    (tmp_path / "data" / "folder.csv").mkdir()
    finder = DataFinder([tmp_path / "nowhere", tmp_path / "data"])
    gone = Path("/home/somebody/split/tables/t.csv")
    assert finder.find(Path("tables/t.csv"), SHA256, gone) == file
    assert finder.find(Path("tables/t.csv"), SHA256, file) == file


def test_a_file_that_is_nowhere_is_named_with_the_one_that_has_its_name(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=rf"file t.csv \(sha256 {SHA256[:12]}\) .*--data"):
        DataFinder([]).find(Path("t.csv"), SHA256)
    (tmp_path / "t.csv").write_text("another")
    other = str((hash_file(tmp_path / "t.csv") or {})["sha256"])[:12]
    with pytest.raises(DataFileError, match=rf"/t.csv has another content \(sha256 {other}\)"):
        DataFinder([tmp_path]).find(Path("tables/t.csv"), SHA256)


def test_what_is_no_file_has_no_hash(tmp_path: Path) -> None:
    assert hash_file(tmp_path) is None
    assert hash_file(tmp_path / "nothing") is None


def test_one_hash_stands_for_all_files() -> None:
    data = {"a.csv": {"sha256": "1", "seen": [1]}, "b.csv": {"sha256": "2"}}
    same = {"b.csv": {"sha256": "2"}, "a.csv": {"sha256": "1", "seen": [2]}}
    assert data_fingerprint(data) == data_fingerprint(same)
    assert data_fingerprint(data) != data_fingerprint({"a.csv": {"sha256": "1"}})
    assert data_fingerprint({}) == ""
