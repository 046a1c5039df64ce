from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from training.durable.atomic import write_whole


def test_a_file_is_written_over(tmp_path: Path) -> None:
    for content in (b"old", b"new"):
        write_whole(content, tmp_path / "x")
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("x", b"new")]


@pytest.mark.parametrize("name", ["nowhere/x", "taken", "file/x", "."])
def test_a_fault_names_the_file_that_was_asked_for(name: str, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"\[Errno") as fault:
        write_whole(b"x", tmp_path / name)
    assert str(fault.value).endswith(f"{str(tmp_path / name)!r}")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file", "taken"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "x").write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device") as fault:
        write_whole(b"new", tmp_path / "x")
    assert fault.value.errno == errno.ENOSPC
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("x", b"old")]
