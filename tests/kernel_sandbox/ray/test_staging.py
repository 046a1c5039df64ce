"""Inputs for other machines: read once, stored once for each content, written whole."""

import asyncio
import os
import stat
from hashlib import blake2b

import pytest

from kernel_sandbox.errors import WorkspaceError
from kernel_sandbox.ray.staging import Contents, StagedFiles


@pytest.fixture
def stored():
    return []


@pytest.fixture
def contents(stored):
    def store(data):
        stored.append(data)
        return len(stored)

    return Contents(store)


async def test_one_content_is_stored_once_whatever_its_names(contents, stored, tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("x\n1\n")
    first = await contents.add("data.csv", tmp_path / "a.csv")
    assert await contents.add("other.csv", tmp_path / "b.csv") == first
    assert first == blake2b(b"x\n1\n", digest_size=32).hexdigest()
    assert (stored, contents.reference(first)) == ([b"x\n1\n"], 1)


async def test_many_who_ask_at_once_cause_one_read(contents, stored, tmp_path):
    (tmp_path / "a.csv").write_text("x")
    async with asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(contents.add("a.csv", tmp_path / "a.csv"))
    assert stored == [b"x"]


async def test_an_unchanged_file_is_not_read_again_and_a_changed_one_is(contents, tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("old")
    times = file.stat()
    first = await contents.add("a.csv", file)
    file.write_text("OLD")  # the same size and inode, and below the same time stamp
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert await contents.add("a.csv", file) == first
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns + 1))
    assert await contents.add("a.csv", file) != first


async def test_a_replaced_file_is_read_again(contents, tmp_path):
    file, other = tmp_path / "a.csv", tmp_path / "b.csv"
    file.write_text("old")
    first = await contents.add("a.csv", file)
    other.write_text("new")
    os.utime(other, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    other.rename(file)
    assert await contents.add("a.csv", file) != first


async def test_what_can_not_be_carried_is_told_by_its_name(contents, tmp_path):
    with pytest.raises(WorkspaceError, match=r"'gone.csv' can't be read: .*No such file"):
        await contents.add("gone.csv", tmp_path / "gone.csv")
    with pytest.raises(WorkspaceError, match="'folder' can't be read"):
        await contents.add("folder", tmp_path)
    with pytest.raises(WorkspaceError, match=r"'/data/a.csv' is absolute"):
        await contents.add("/data/a.csv", tmp_path / "a.csv")


def test_staged_files_are_private_read_only_and_go_away():
    files = StagedFiles()
    files.write("d1", b"x")
    folder = files.path("d1").parent
    assert [path.name for path in folder.iterdir()] == ["d1"]
    assert files.path("d1").read_bytes() == b"x"
    assert stat.S_IMODE(files.path("d1").stat().st_mode) == 0o400
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    files.remove()
    files.remove()
    assert not folder.exists()
