from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from training.durable.atomic import replaced_folder, write_whole


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


def _contents(folder: Path) -> dict[str, str]:
    return {
        str(file.relative_to(folder)): file.read_text()
        for file in folder.rglob("*")
        if file.is_file()
    }


def test_a_folder_is_replaced_once_it_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a" / "f"
    for text in ("old", "new"):
        with replaced_folder(folder) as part:
            (part / text).write_text(text)
    assert _contents(tmp_path) == {"a/f/new": "new"}

    def unfinished() -> None:
        with replaced_folder(folder) as part:
            (part / "half").write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        unfinished()
    assert _contents(tmp_path) == {"a/f/new": "new"}

    rename = Path.rename

    def no_swap(path: Path, target: Path) -> Path:
        if path.name == ".f.part":
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", no_swap)
    with pytest.raises(PermissionError), replaced_folder(folder):
        pass
    assert _contents(tmp_path) == {"a/f/new": "new"}


def test_a_folder_left_beside_by_a_killed_process_is_put_back(tmp_path: Path) -> None:
    for name in (".f.old", ".f.part"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_text(name)

    def unfinished() -> None:
        with replaced_folder(tmp_path / "f"):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        unfinished()
    assert _contents(tmp_path) == {"f/x": ".f.old"}


def test_a_link_to_a_folder_stays_one(tmp_path: Path) -> None:
    (tmp_path / "large").mkdir()
    (tmp_path / "f").symlink_to("large")
    for text in ("old", "new"):
        with replaced_folder(tmp_path / "f") as part:
            (part / text).write_text(text)
    assert (tmp_path / "f").is_symlink()
    assert _contents(tmp_path) == {"large/new": "new"}
