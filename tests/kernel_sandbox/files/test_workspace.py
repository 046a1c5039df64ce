"""The working folder: links to inputs, new files, what is refused."""

import os
from pathlib import Path

import pytest

from kernel_sandbox.errors import WorkspaceError
from kernel_sandbox.files import workspace as workspace_module
from kernel_sandbox.files.workspace import TOO_MANY_TO_COMPARE, Workspace
from kernel_sandbox.runners.session import KernelSession


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "real" / "data.csv"
    path.parent.mkdir()
    path.write_text("a\n1\n")
    return path


def test_inputs_appear_under_their_names_and_the_folder_goes_away(data):
    workspace = Workspace({"data.csv": data, "sub/b.csv": data, str(data): data})
    assert (workspace.path / "data.csv").read_text() == "a\n1\n"
    assert (workspace.path / "sub" / "b.csv").resolve() == data
    assert workspace.readable == (data,)
    assert workspace.new_files() == ()
    workspace.remove()
    workspace.remove()
    assert not workspace.path.exists()
    assert data.exists()


def test_new_files_are_those_made_or_changed_and_never_links(data, tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "old.txt").write_text("old")
    (folder / "touched.txt").write_text("old")
    workspace = Workspace({"data.csv": data}, folder)
    os.utime(folder / "touched.txt", ns=(1, 1))
    (folder / "sub").mkdir()
    (folder / "sub" / "new.txt").write_text("new")
    (folder / "link").symlink_to(data)
    assert [path.name for path in workspace.new_files()] == ["new.txt", "touched.txt"]
    workspace.remove()
    assert folder.exists()
    assert not (folder / "data.csv").exists()
    assert data.exists()


def test_an_input_that_lies_in_the_given_folder_stays_there(data):
    workspace = Workspace({"data.csv": data}, data.parent)
    workspace.remove()
    assert data.read_text() == "a\n1\n"
    assert not data.is_symlink()


def test_a_link_that_the_code_replaced_is_left_to_it(data, tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    workspace = Workspace({"data.csv": data}, folder)
    (folder / "data.csv").unlink()
    (folder / "data.csv").write_text("result")
    workspace.remove()
    assert (folder / "data.csv").read_text() == "result"


def test_no_link_is_made_or_removed_through_a_link(data, tmp_path):
    folder, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (folder / "sub").symlink_to(elsewhere)
    with pytest.raises(WorkspaceError, match="can't be placed"):
        Workspace({"sub/data.csv": data}, folder)
    assert not list(elsewhere.iterdir())
    (folder / "sub").unlink()
    workspace = Workspace({"sub/data.csv": data}, folder)
    (folder / "sub" / "data.csv").rename(elsewhere / "data.csv")
    (folder / "sub").rmdir()
    (folder / "sub").symlink_to(elsewhere)
    workspace.remove()
    assert (elsewhere / "data.csv").is_symlink()


@pytest.mark.parametrize("name", ["../x.csv", "a/../../x.csv", "", "."])
def test_names_that_leave_the_folder_are_refused(data, name):
    with pytest.raises(WorkspaceError, match="leaves the working folder"):
        Workspace({name: data})


def test_bad_inputs_are_named(data, tmp_path):
    with pytest.raises(WorkspaceError, match="'x' is missing"):
        Workspace({"x": tmp_path / "none"})
    with pytest.raises(WorkspaceError, match="'x' is not a file"):
        Workspace({"x": tmp_path})
    with pytest.raises(WorkspaceError, match="'a/b' can't be placed"):
        Workspace({"a": data, "a/b": data})
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(WorkspaceError, match="missing"):
        Workspace({"x": loop})


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_an_unreadable_input_is_named(data):
    data.chmod(0)
    with pytest.raises(WorkspaceError, match="can't be read"):
        Workspace({"x": data})


def test_a_folder_that_can_not_be_used_is_named(data):
    with pytest.raises(WorkspaceError, match="not a folder that can be written"):
        Workspace({}, data)
    with pytest.raises(WorkspaceError, match="not a folder"):
        Workspace({}, Path("/nowhere/at/all"))


async def test_more_files_than_are_compared_are_told_in_words(monkeypatch):
    monkeypatch.setattr(workspace_module, "MOST_FILES", 3)
    async with KernelSession(isolate=False, screened=False) as session:
        result = await session.run("open('a', 'w').close(); open('b', 'w').close()")
        assert [change.path for change in result.files] == ["a", "b"]
        assert result.message == ""
        result = await session.run("open('c', 'w').close()")
    assert result.files == ()
    assert result.message == TOO_MANY_TO_COMPARE
