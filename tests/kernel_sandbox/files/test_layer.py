"""The layer above a person's folder: what gets through, what waits, what never does."""

import asyncio
import contextlib
import os
import shutil
import sqlite3
import stat
import tempfile
import threading
import time
from pathlib import Path

import pytest

from kernel_sandbox.confine.probe import probe
from kernel_sandbox.files import layer_entries, waiting_changes, workspace_layer
from kernel_sandbox.files.workspace_layer import WorkspaceLayer
from kernel_sandbox.forkserver.zygote_client import Zygote
from kernel_sandbox.runners.session import KernelSession
from kernel_sandbox.runners.worker import CellWorker
from kernel_sandbox.types import MIB, FileChange, Limits
from tests.waiting import PATIENCE_S, until

LIMIT_BYTES = 4 * MIB
needs_view = pytest.mark.skipif(not probe().has_view, reason="namespaces do not work here")


@pytest.fixture
def folder(tmp_path):
    """A person's folder, of an awkward name."""
    found = tmp_path / "my, data=1"
    found.mkdir()
    (found / "old.csv").write_text("old")
    (found / "book.ipynb").write_text("{}")
    return found


@pytest.fixture
def layer(folder, tmp_path):
    made = WorkspaceLayer(folder, tmp_path, LIMIT_BYTES)
    yield made
    made.remove()
    made.remove()
    assert not made.path.exists()


def settled(layer):
    layer.settle()
    return {change.path: change for change in layer.take_news()}


def names_of(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def removal(path):
    os.mknod(path, stat.S_IFCHR | 0o600, 0)


WRITTEN = {"made": "written", "changed": "written", "removed": "written"}


def test_data_gets_through_as_it_is(layer, folder):
    (layer.upper / "new.csv").write_text("new")
    (layer.upper / "old.csv").write_text("newer")
    (layer.upper / "deep" / "er").mkdir(parents=True)
    (layer.upper / "deep" / "er" / "x.txt").write_text("x")
    (layer.upper / "empty").mkdir()
    found = settled(layer)
    assert found == {
        "new.csv": FileChange("new.csv", "made", size_bytes=3),
        "old.csv": FileChange("old.csv", "changed", size_bytes=5, before_bytes=3),
        "deep/er/x.txt": FileChange("deep/er/x.txt", "made", size_bytes=1),
    }
    assert (folder / "old.csv").read_text() == "newer"
    assert names_of(folder) == [
        *("book.ipynb", "deep", "deep/er", "deep/er/x.txt", "empty", "new.csv", "old.csv"),
    ]
    assert settled(layer) == {}
    (layer.upper / "new.csv").write_text("again")
    assert settled(layer)["new.csv"].kind == "changed"


@pytest.mark.skipif(os.getuid() != 0, reason="only root makes such marks outside of a view")
def test_what_was_removed_is_removed_once(layer, folder):
    removal(layer.upper / "old.csv")
    removal(layer.upper / "never.csv")
    assert settled(layer) == {"old.csv": FileChange("old.csv", "removed", before_bytes=3)}
    assert names_of(folder) == ["book.ipynb"]


def removed(path):
    removal(path)


def made_a_file(path):
    path.write_text("x")


@pytest.mark.skipif(os.getuid() != 0, reason="only root makes such marks outside of a view")
@pytest.mark.parametrize("act", [removed, made_a_file])
@pytest.mark.parametrize("name", ["a/b/c/d/notes.ipynb", "a/b/c/d/.git/config"])
def test_a_folder_with_a_protected_file_stays_however_deep_that_is(layer, folder, name, act):
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_text("{}")
    act(layer.upper / "a")
    change = settled(layer)["a"]
    assert change.state == "refused"
    assert "programs run or obey it unasked: " in " ".join(change.marks)
    assert (folder / name).read_text() == "{}"


@pytest.mark.skipif(os.getuid() != 0, reason="only root makes such marks outside of a view")
@pytest.mark.parametrize("name", [".env", "book.ipynb"])
def test_a_folder_with_a_protected_link_stays(layer, folder, name):
    (folder / "sub").mkdir()
    (folder / "sub" / name).symlink_to("../../elsewhere")
    removal(layer.upper / "sub")
    assert settled(layer)["sub"].state == "refused"
    assert (folder / "sub" / name).is_symlink()


def test_a_notebook_stays_however_its_ending_is_written(layer, folder):
    (folder / "BOOK.IPYNB").write_text("{}")
    (layer.upper / "BOOK.IPYNB").write_text("other")
    assert settled(layer)["BOOK.IPYNB"].state == "refused"


def test_a_program_gets_no_rights_of_its_owner_or_group(layer, folder):
    (layer.upper / "run").write_text("x")
    (layer.upper / "run").chmod(0o6755)
    assert settled(layer)["run"].state == "written"
    assert stat.S_IMODE((folder / "run").stat().st_mode) == 0o755


def test_a_folder_with_too_many_files_to_look_at_stays(layer, folder, monkeypatch):
    monkeypatch.setattr(layer_entries, "_REMOVED_ENTRIES", 3)
    for name in "ab":
        (folder / name / "c").mkdir(parents=True)
        (folder / name / "c" / "x.csv").write_text("x")
    (folder / "b" / "c" / "y.csv").write_text("y")
    (folder / "b" / "c" / "z.csv").write_text("y")
    removal(layer.upper / "a")
    removal(layer.upper / "b")
    found = settled(layer)
    assert (found["a"].state, found["b"].state) == ("written", "refused")
    assert found["b"].marks == ("too many files to look at",)
    assert not (folder / "a").exists()
    assert (folder / "b" / "c" / "z.csv").exists()


NEVER = {
    ".git/config": "programs run or obey it unasked",
    "sub/.envrc": "programs run or obey it unasked",
    "Makefile": "programs run or obey it unasked",
    "polars.py": "hides the module polars",
    "sub/pandas/__init__.py": "hides the module pandas",
    "book.ipynb": "a notebook that was there",
    "\udcff.csv": "its name is no text",
}


@pytest.mark.parametrize("is_gated", [True, False])
@pytest.mark.parametrize("name", NEVER)
def test_some_names_never_get_through(layer, folder, name, is_gated):
    before = names_of(folder)
    layer.is_gated = is_gated
    path = layer.upper / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    (change,) = settled(layer).values()
    assert change.state == "refused"
    assert NEVER[name] in change.marks
    change.path.encode()
    assert not layer.waiting.changes
    assert [x for x in names_of(folder) if x not in (*before, "sub", "sub/pandas")] == []
    assert (folder / "book.ipynb").read_text() == "{}"


@pytest.mark.parametrize(
    ("target", "state"),
    [
        ("old.csv", "written"),
        ("../old.csv", "refused"),
        ("sub/../../x", "refused"),
        ("/etc/passwd", "refused"),
        ("./old.csv", "written"),
        ("./sub/../old.csv", "refused"),
        ("//etc/passwd", "refused"),
    ],
)
def test_a_link_stays_in_the_folder(layer, folder, target, state):
    (layer.upper / "link").symlink_to(target)
    assert settled(layer)["link"].state == state
    assert (folder / "link").is_symlink() == (state == "written")
    assert settled(layer) == {}


def test_a_link_over_another_link_stays_in_the_folder(layer, folder):
    """The text of `x` leads to `p/secret`, and the way that it goes leads above the folder."""
    (layer.upper / "top").mkdir()
    (layer.upper / "p" / "q" / "r").mkdir(parents=True)
    (layer.upper / "p" / "q" / "r" / "d").symlink_to("../../../top")
    (layer.upper / "x").symlink_to("p/q/r/d/../../../secret")
    (layer.upper / "y").symlink_to("p/q/r/d/new.csv")
    found = settled(layer)
    assert [found[x].state for x in ("p/q/r/d", "x", "y")] == ["written", "refused", "written"]
    assert (folder / "y").resolve() == folder / "top" / "new.csv"


def test_what_is_no_file_stays_out(layer, folder):
    os.mkfifo(layer.upper / "pipe")
    assert settled(layer)["pipe"].marks == ("neither a file nor a folder",)
    assert not (folder / "pipe").exists()


def test_what_waits_is_written_as_it_was_shown(layer, folder):
    layer.is_gated = True
    (layer.upper / "old.csv").write_text("shown")
    (layer.upper / "tool.sh").write_text("x")
    (layer.upper / "run").write_text("x")
    (layer.upper / "run").chmod(0o755)
    (layer.upper / "new.csv").write_text("new")
    (layer.upper / "report.html").write_text("<p>")
    found = settled(layer)
    waiting = {path for path, change in found.items() if change.state == "waits"}
    assert waiting == {"old.csv", "tool.sh", "run"} == {x.path for x in layer.waiting.changes}
    assert found["run"].marks == ("executable",)
    assert found["report.html"].marks == ("may run code when it is opened",)
    assert names_of(folder) == ["book.ipynb", "new.csv", "old.csv", "report.html"]
    assert (folder / "old.csv").read_text() == "old"
    (layer.upper / "old.csv").write_text("swapped")  # the kernel goes on
    refreshed = []
    layer.refresh = lambda: refreshed.append(1)
    assert {change.state for change in layer.decide(allows=True)} == {"written"}
    assert (folder / "old.csv").read_text() == "shown"
    assert os.access(folder / "run", os.X_OK)
    assert refreshed == [1]
    assert list((layer.path / "held").iterdir()) == []
    assert settled(layer)["old.csv"].state == "waits"


MEANWHILE = "it was changed meanwhile"


@pytest.mark.parametrize(
    "act",
    [
        made_a_file,
        pytest.param(
            removal,
            marks=pytest.mark.skipif(os.getuid() != 0, reason="only root makes such marks"),
        ),
    ],
)
@pytest.mark.parametrize("name", ["old.csv", "a"])
def test_an_approval_does_not_replace_what_the_person_changed_meanwhile(layer, folder, name, act):
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "old.csv").write_text("old")
    layer.is_gated = True
    act(layer.upper / name)
    assert settled(layer)[name].state == "waits"
    theirs = folder / name if name == "old.csv" else folder / "a" / "b" / "old.csv"
    theirs.write_text("the person's")
    (change,) = layer.decide(allows=True)
    assert (change.state, change.marks) == ("refused", (MEANWHILE,))
    assert theirs.read_text() == "the person's"
    assert names_of(layer.upper) == []  # the cells see it too
    assert [change.state for change in layer.take_news()] == ["refused"]


def test_an_approval_does_not_replace_a_file_that_the_person_made_meanwhile(layer, folder):
    layer.is_gated = True
    (layer.upper / "tool.sh").write_text("x")
    (layer.upper / "other.sh").write_text("x")
    settled(layer)
    (folder / "tool.sh").write_text("the person's")
    assert {change.path: change.state for change in layer.decide(allows=True)} == {
        "other.sh": "written",
        "tool.sh": "refused",
    }
    assert (folder / "tool.sh").read_text() == "the person's"


def test_what_was_asked_about_is_written_even_if_the_layer_is_read_meanwhile(layer, folder):
    layer.is_gated = True
    (layer.upper / "old.csv").write_text("shown")
    settled(layer)
    assert [change.path for change in layer.ask()] == ["old.csv"]
    (layer.upper / "old.csv").write_text("swapped")
    (layer.upper / "tool.sh").write_text("never shown")
    (layer.upper / "new.csv").write_text("new")
    assert settled(layer).keys() == {"new.csv"}
    assert [change.path for change in layer.decide(allows=True)] == ["old.csv"]
    assert (folder / "old.csv").read_text() == "shown"
    assert not (folder / "tool.sh").exists()
    assert {change.path for change in settled(layer).values()} == {"old.csv", "tool.sh"}
    assert len(layer.waiting.changes) == 2


def test_a_layer_that_was_removed_has_nothing_to_decide(layer, folder):
    layer.is_gated = True
    (layer.upper / "tool.sh").write_text("x")
    settled(layer)
    layer.ask()
    layer.finish()
    assert layer.decide(allows=True) == ()
    assert [change.state for change in layer.take_news()] == ["refused"]
    assert not (folder / "tool.sh").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root makes such marks outside of a view")
def test_the_removal_of_a_folder_replaces_what_waits_in_it(layer, folder):
    (folder / "a").mkdir()
    (folder / "a" / "x.csv").write_text("x")
    layer.is_gated = True
    (layer.upper / "a").mkdir()
    (layer.upper / "a" / "x.csv").write_text("other")
    settled(layer)
    (layer.upper / "a" / "x.csv").unlink()
    (layer.upper / "a").rmdir()
    removal(layer.upper / "a")
    settled(layer)
    assert [change.path for change in layer.waiting.changes] == ["a"]
    assert list((layer.path / "held").iterdir()) == []
    assert [change.state for change in layer.decide(allows=True)] == ["written"]
    assert not (folder / "a").exists()


def test_what_is_denied_is_gone_for_the_kernel_too(layer, folder):
    layer.is_gated = True
    (layer.upper / "old.csv").write_text("x")
    (layer.upper / "tool.py").write_text("x")
    settled(layer)
    (layer.upper / "tool.py").write_text("another by now")
    assert {change.state for change in layer.decide(allows=False)} == {"refused"}
    assert names_of(layer.upper) == ["tool.py"]
    assert (folder / "old.csv").read_text() == "old"
    assert layer.decide(allows=True) == ()
    assert settled(layer)["tool.py"].state == "waits"


def test_what_is_written_back_as_it_was_waits_no_more(layer):
    layer.is_gated = True
    (layer.upper / "old.csv").write_text("x")
    assert settled(layer)["old.csv"].state == "waits"
    (layer.upper / "old.csv").write_text("old")
    assert settled(layer) == {}
    assert layer.waiting.changes == ()


def test_a_file_that_is_being_written_is_left_for_later(layer, folder):
    (layer.upper / "new.csv").write_text("new")
    layer.settle(quiet_s=60)
    assert layer.take_news() == ()
    assert settled(layer)["new.csv"].state == "written"


def test_a_file_with_a_date_to_come_gets_through(layer, folder):
    (layer.upper / "new.csv").write_text("new")
    os.utime(layer.upper / "new.csv", (time.time() + 3600,) * 2)
    assert settled(layer)["new.csv"].state == "written"


def test_a_file_with_an_old_date_that_is_being_written_is_left_for_later(layer):
    (layer.upper / "new.csv").write_text("new")
    os.utime(layer.upper / "new.csv", (1, 1))
    layer.settle(quiet_s=60)
    assert layer.take_news() == ()


@pytest.mark.parametrize("act", ["settle", "decide"])
def test_what_the_person_changes_is_seen_although_the_layer_writes_in_between(layer, folder, act):
    layer.is_gated = act == "decide"
    (layer.upper / "old.csv").write_text("newer")
    layer.settle()
    (folder / "later.csv").write_text("the person's")
    (layer.upper / "new.csv").write_text("new")
    if act == "settle":
        layer.settle()
    else:
        layer.decide(allows=True)
    refreshed = []
    layer.refresh = lambda: refreshed.append(True)
    layer.look_below()
    assert refreshed == [True]
    layer.look_below()
    assert refreshed == [True]


def test_what_is_still_written_in_a_folder_that_got_through_is_not_lost(layer, folder):
    (layer.upper / "out" / "sub").mkdir(parents=True)
    with (layer.upper / "out" / "log.txt").open("w", buffering=1) as log:
        log.write("one\n")
        assert settled(layer)["out/log.txt"].state == "written"
        (layer.upper / "out" / "sub" / "new.csv").write_text("new")
        (folder / "out" / "later.csv").write_text("the person's")
        layer.look_below()
        log.write("two\n")
    assert settled(layer).keys() == {"out/log.txt", "out/sub/new.csv"}
    assert (folder / "out" / "log.txt").read_text() == "one\ntwo\n"
    assert (folder / "out" / "sub" / "new.csv").read_text() == "new"


@needs_view
async def test_a_folder_that_was_created_again_shows_what_the_person_puts_there(
    folder, monkeypatch
):
    monkeypatch.setattr(workspace_layer, "TEND_S", 90)
    async with runner("kernel", folder) as cells:
        await done(cells, "import os, shutil\nos.mkdir('out'); open('out/x', 'w').write('x')")
        await done(cells, "shutil.rmtree('out')")
        await done(cells, "os.mkdir('out')")
        (folder / "out" / "later.csv").write_text("the person's")
        assert await done(cells, "pass") == {}
    assert (folder / "out" / "later.csv").exists()


def test_a_folder_that_the_person_removes_is_gone_for_the_kernel_except_what_is_new(layer, folder):
    for name in ("old/a.csv", "both/a.csv"):
        (layer.upper / name).parent.mkdir()
        (layer.upper / name).write_text("x")
    settled(layer)
    for name in ("old", "both"):
        shutil.rmtree(folder / name)
    (layer.upper / "both" / "new.csv").write_text("new")
    layer.look_below()
    assert names_of(layer.upper) == ["both", "both/new.csv"]
    assert settled(layer).keys() == {"both/new.csv"}
    assert names_of(folder) == ["book.ipynb", "both", "both/new.csv", "old.csv"]


def test_a_folder_that_the_person_removes_does_not_come_back(layer, folder):
    (folder / "data" / "in").mkdir(parents=True)
    for name in "xyz":
        (folder / "data" / "in" / name).write_text(name)
    (layer.upper / "data" / "in").mkdir(parents=True)
    (layer.upper / "data" / "in" / "x").write_text("new")
    removal(layer.upper / "data" / "in" / "y")
    settled(layer)
    assert names_of(folder / "data") == ["in", "in/x", "in/z"]
    shutil.rmtree(folder / "data")
    layer.look_below()
    assert settled(layer) == {}
    assert names_of(folder) == ["book.ipynb", "old.csv"]
    assert names_of(layer.upper) == []


def test_a_link_laid_by_somebody_else_is_not_followed(layer, folder, tmp_path):
    """In the folder: another kernel without a layer, or a person, may have laid it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (folder / "sub").symlink_to(outside)
    (folder / "dangling.csv").symlink_to(outside / "planted")
    (layer.upper / "sub").mkdir()
    (layer.upper / "sub" / "x.csv").write_text("x")
    (layer.upper / "dangling.csv").write_text("x")
    settled(layer)
    assert list(outside.iterdir()) == []
    assert (folder / "dangling.csv").read_text() == "x"
    assert not (folder / "dangling.csv").is_symlink()


def test_a_file_takes_the_place_of_a_folder_and_the_other_way_round(layer, folder):
    (folder / "a").mkdir()
    (folder / "a" / "x").write_text("x")
    (folder / "b").write_text("b")
    (layer.upper / "a").write_text("a")
    (layer.upper / "b").mkdir()
    (layer.upper / "b" / "y").write_text("y")
    assert {(x.path, x.kind) for x in settled(layer).values()} == {
        *(("a", "changed"), ("b", "changed"), ("b/y", "made")),
    }
    assert (folder / "a").read_text() == "a"
    assert (folder / "b" / "y").read_text() == "y"


def test_what_can_not_be_written_says_so_and_is_tried_again(layer, folder, monkeypatch):
    (layer.upper / "new.csv").write_text("new")

    @contextlib.contextmanager
    def full(*_):
        raise OSError(28, "No space left on device")
        yield

    with monkeypatch.context() as patch:
        patch.setattr(workspace_layer.beneath, "replaced", full)
        change = settled(layer)["new.csv"]
        assert (change.state, change.marks) == ("refused", ("No space left on device",))
        layer.is_gated = True
        (layer.upper / "old.csv").write_text("x")
        settled(layer)
    assert settled(layer)["new.csv"].state == "written"


def sparse(path, size_bytes):
    with path.open("wb") as file:
        file.truncate(size_bytes)


TOO_LARGE = "with it, the files take more than 4 MiB together"


def test_holes_of_files_count_as_far_as_all_of_them_may_take(layer, folder):
    for name in "abc":
        sparse(layer.upper / f"{name}.bin", LIMIT_BYTES // 2)
    found = settled(layer)
    assert [change.state for change in found.values()] == ["written", "written", "refused"]
    assert found["c.bin"].marks == (TOO_LARGE,)
    assert names_of(folder) == ["a.bin", "b.bin", "book.ipynb", "old.csv"]
    sparse(layer.upper / "b.bin", LIMIT_BYTES // 4)  # a file written again counts once
    (layer.upper / "new.csv").write_text("new")
    found = settled(layer)
    assert (found["b.bin"].state, found["new.csv"].state) == ("written", "written")
    assert (folder / "b.bin").stat().st_size == LIMIT_BYTES // 4


def test_what_waits_takes_no_more_than_the_files_may(layer, folder):
    layer.is_gated = True
    for name in "abc":
        (folder / f"{name}.bin").write_bytes(b"x")
        sparse(layer.upper / f"{name}.bin", LIMIT_BYTES // 2)
    found = settled(layer)
    assert [change.state for change in found.values()] == ["waits", "waits", "refused"]
    held = layer.path / "held"
    assert sum(path.stat().st_size for path in held.iterdir()) == LIMIT_BYTES
    sparse(layer.upper / "a.bin", LIMIT_BYTES // 4)
    assert settled(layer)["a.bin"].state == "waits"
    (layer.upper / "a.bin").write_bytes(b"x")  # as it was: its copy is removed
    settled(layer)
    assert sum(path.stat().st_size for path in held.iterdir()) == LIMIT_BYTES // 2
    assert [change.path for change in layer.decide(allows=True)] == ["b.bin"]
    assert (folder / "c.bin").read_bytes() == b"x"


def test_another_version_of_what_waits_takes_no_more_room_than_it_needs(layer, folder):
    layer.is_gated = True
    (folder / "old.csv").write_bytes(b"x")
    sparse(layer.upper / "old.csv", LIMIT_BYTES - MIB)
    settled(layer)
    (layer.upper / "new.csv").write_text("new")
    sparse(layer.upper / "old.csv", LIMIT_BYTES - 2 * MIB)
    found = settled(layer)
    assert (found["new.csv"].state, found["old.csv"].state) == ("written", "waits")


def test_a_copy_that_can_not_be_removed_refuses_its_file_and_no_other(layer, folder, monkeypatch):
    layer.is_gated = True
    (folder / "a.bin").write_bytes(b"x")
    (layer.upper / "a.bin").write_bytes(b"y")
    assert settled(layer)["a.bin"].state == "waits"

    def remove(*_):
        raise OSError(24, "Too many open files")

    (layer.upper / "a.bin").write_bytes(b"yy")
    (layer.upper / "b.csv").write_text("1")
    with monkeypatch.context() as patched:
        patched.setattr(waiting_changes, "remove", remove)
        found = settled(layer)
    assert (found["a.bin"].state, found["b.csv"].state) == ("refused", "written")
    assert "Too many open files" in found["a.bin"].marks
    assert settled(layer)["a.bin"].state == "waits"
    assert [change.path for change in layer.decide(allows=True)] == ["a.bin"]
    assert (folder / "a.bin").read_bytes() == b"yy"


@pytest.mark.parametrize("allows", [True, False])
def test_a_decision_is_carried_out_and_told_although_copies_can_not_be_removed(
    layer, folder, monkeypatch, allows
):
    layer.is_gated = True
    for name in ("a.sh", "b.sh"):
        (layer.upper / name).write_text(name)
    settled(layer)

    def unlink(name, *, dir_fd):
        if len(name) == 64:
            raise OSError(16, "Device or resource busy")
        real(name, dir_fd=dir_fd)

    real = os.unlink
    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", unlink)
        decided = layer.decide(allows=allows)
    state = "written" if allows else "refused"
    assert {change.path: change.state for change in decided} == {"a.sh": state, "b.sh": state}
    assert layer.take_news() == decided
    assert names_of(layer.upper) == (["a.sh", "b.sh"] if allows else [])
    assert [x for x in names_of(folder) if x.endswith(".sh")] == ["a.sh", "b.sh"] * allows
    for name in ("a.sh", "b.sh"):
        (layer.upper / name).write_text(f"the next {name}")
    assert {change.state for change in settled(layer).values()} == {"waits"}
    assert [change.state for change in layer.decide(allows=True)] == ["written", "written"]
    assert (folder / "a.sh").read_text() == "the next a.sh"
    assert list((layer.path / "held").iterdir()) == []


def test_a_decision_that_can_not_be_carried_out_is_told_and_asked_about_again(
    layer, folder, monkeypatch
):
    layer.is_gated = True
    (layer.upper / "a.sh").write_text("a")
    settled(layer)
    layer.ask()

    def held(_):
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(layer_entries.beneath, "held", held)
        (change,) = layer.decide(allows=True)
    assert (change.state, change.marks[-1]) == ("refused", "Too many open files")
    assert layer.take_news() == (change,)
    assert settled(layer)["a.sh"].state == "waits"
    assert [change.state for change in layer.decide(allows=True)] == ["written"]
    assert (folder / "a.sh").read_text() == "a"


def test_the_news_are_there_while_a_large_file_is_compared(layer, monkeypatch):
    (layer.upper / "new.csv").write_text("new")
    layer.settle()
    compares, ends = threading.Event(), threading.Event()

    def comparison(*_):
        compares.set()
        return not ends.wait(5)

    monkeypatch.setattr(workspace_layer, "changes_nothing", comparison)
    (layer.upper / "old.csv").write_text("x")
    comparing = threading.Thread(target=layer.settle)
    comparing.start()
    try:
        assert compares.wait(PATIENCE_S)
        news = layer.take_news()
        assert comparing.is_alive(), "the call has waited for the comparison"
    finally:
        ends.set()
        comparing.join()
    assert [change.path for change in news] == ["new.csv"]
    assert [change.path for change in layer.take_news()] == ["old.csv"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root makes such marks outside of a view")
def test_a_large_folder_that_is_renamed_gets_through(layer, folder):
    (layer.upper / "z").mkdir()
    sparse(layer.upper / "z" / "x.bin", LIMIT_BYTES)
    settled(layer)
    (layer.upper / "z").rename(layer.upper / "a")
    removal(layer.upper / "z")
    assert {change.state for change in settled(layer).values()} == {"written"}
    assert names_of(folder) == ["a", "a/x.bin", "book.ipynb", "old.csv"]


def test_more_than_some_thousand_files_stay_out_and_are_one_entry(layer, folder, monkeypatch):
    for module in (layer_entries, workspace_layer):
        monkeypatch.setattr(module, "MOST_ENTRIES", 20)
    (layer.upper / "sub").mkdir()
    for number in range(40):
        (layer.upper / f"{number % 2 * 'sub/'}{number}.csv").write_text("x")
    layer.settle()
    *passed, rest = sorted(layer.take_news(), key=lambda change: change.state == "refused")
    assert {change.state for change in passed} == {"written"}
    assert len(names_of(folder)) - 2 == 20
    assert (rest.path, rest.state) == (".", "refused")
    assert rest.marks == (
        "only 5,000 files and folders of a kernel get there; a restarted kernel may write more",
    )
    layer.settle(quiet_s=1)
    assert layer.take_news() == ()
    assert settled(layer) == {".": rest}, "the next cell may have lost files, too"
    for path in (*layer.upper.glob("*.csv"), layer.upper / "sub" / "1.csv"):
        path.unlink()
    settled(layer)
    assert len(names_of(folder)) - 2 <= 20, "what is there from before counts as well"
    for path in folder.rglob("*.csv"):
        path.unlink()
    layer.look_below()
    for number in range(19):
        (layer.upper / "sub" / f"{number}.new").write_text("x")
    for path in (layer.upper / "sub").glob("*.csv"):
        path.unlink()
    assert {change.state for change in settled(layer).values()} == {"written"}
    assert len(list((folder / "sub").glob("*.new"))) == 19


def remembered(layer):
    below = layer._below
    return max(map(len, (layer._handled, below.written, below._sizes)))


@pytest.mark.skipif(os.getuid() != 0, reason="only root makes such marks outside of a view")
def test_a_kernel_that_makes_ever_new_names_is_not_remembered_for_ever(layer, folder, monkeypatch):
    for module in (layer_entries, workspace_layer):
        monkeypatch.setattr(module, "MOST_ENTRIES", 20)
    (layer.upper / "kept.csv").write_text("x")
    settled(layer)
    for number in range(100):
        names = [f"{number}-{x}.csv" for x in range(5)]
        (layer.upper / f"polars-{number}").mkdir()
        (layer.upper / f"polars-{number}" / "polars.py").write_text("x")
        for name in names:
            (layer.upper / name).write_text(name)
        settled(layer)
        shutil.rmtree(layer.upper / f"polars-{number}")
        removal(layer.upper / f"polars-{number}")
        for name in names:
            (layer.upper / name).unlink()
            removal(layer.upper / name)
        settled(layer)
        for mark in (f"polars-{number}", *names):
            (layer.upper / mark).unlink()
        assert remembered(layer) <= 60
    assert names_of(folder) == ["book.ipynb", "kept.csv", "old.csv"]
    (folder / "kept.csv").write_text("the person's")
    layer.look_below()
    assert names_of(layer.upper) == [], "what was passed on is still known"


@pytest.mark.skipif(os.getuid() != 0, reason="only root makes such marks outside of a view")
def test_a_removed_file_that_the_person_makes_again_is_seen_however_much_came_between(
    layer, folder, monkeypatch
):
    for module in (layer_entries, workspace_layer):
        monkeypatch.setattr(module, "MOST_ENTRIES", 20)
    removal(layer.upper / "old.csv")
    settled(layer)
    for number in range(100):
        (layer.upper / "tool").symlink_to(f"/{number}")
        removal(layer.upper / f"{number}")
        settled(layer)
        (layer.upper / f"{number}").unlink()
        (layer.upper / "tool").unlink()
    assert remembered(layer) <= 60
    (folder / "old.csv").write_text("the person's")
    layer.look_below()
    assert names_of(layer.upper) == []
    assert settled(layer) == {}
    assert (folder / "old.csv").read_text() == "the person's"


def test_no_more_than_some_thousand_new_files_wait(layer, folder, monkeypatch):
    for module in (layer_entries, workspace_layer):
        monkeypatch.setattr(module, "MOST_ENTRIES", 20)
    layer.is_gated = True
    for number in range(10):
        for x in range(5):
            (layer.upper / f"{number}-{x}.py").write_text("x")
        layer.settle()
        for path in layer.upper.iterdir():
            path.unlink()
    assert len(layer.waiting.changes) == 20
    (rest,) = (x for x in layer.take_news() if x.state == "refused")
    assert (rest.path, rest.marks) == (".", (workspace_layer.TOO_MANY,))
    assert {change.state for change in layer.decide(allows=True)} == {"written"}
    assert len(names_of(folder)) == 22


def test_news_that_nobody_takes_make_room_for_later_ones_and_say_so(monkeypatch):
    monkeypatch.setattr(waiting_changes, "MOST_NEWS", 3)
    news = waiting_changes.ChangeNews()
    for number in range(9):
        news.add([FileChange(f"{number}.csv", "made"), FileChange("same.csv", "changed")])
    first, *others = news.take()
    assert (first.path, first.marks) == (".", ("the earlier changes are too many to list",))
    assert "8.csv" in [change.path for change in others]
    assert len(others) <= 3
    assert news.take() == ()


def test_a_folder_that_moves_is_written_where_it_is(layer, folder):
    folder.rename(folder.with_name("moved"))
    (layer.upper / "new.csv").write_text("new")
    assert settled(layer)["new.csv"].state == "written"
    assert (folder.with_name("moved") / "new.csv").exists()


def test_very_deep_folders_stay_out(layer, folder, monkeypatch):
    monkeypatch.setattr(layer_entries, "_MAXIMUM_DEPTH", 3)
    (layer.upper / "a" / "b" / "c" / "d" / "e").mkdir(parents=True)
    (layer.upper / "a" / "b" / "c" / "d" / "x.csv").write_text("x")
    assert "too many folders deep" in settled(layer)["a/b/c/d"].marks
    assert names_of(folder)[:3] == ["a", "a/b", "a/b/c"]


@pytest.fixture
def ordinary(tmp_path):
    """A layer above the folder of an ordinary user, who may not read everything."""
    user = os.geteuid() or 65534
    with tempfile.TemporaryDirectory() as base, contextlib.ExitStack() as stack:
        os.chown(base, user, -1)
        if os.geteuid() == 0:
            os.seteuid(user)
            stack.callback(os.seteuid, 0)
        (Path(base) / "work").mkdir()
        made = WorkspaceLayer(Path(base) / "work", Path(base), LIMIT_BYTES)
        stack.callback(made.remove)
        yield made


@pytest.mark.parametrize("mode", [0o300, 0o400, 0])
def test_a_folder_that_can_not_be_read_is_named_once_and_the_rest_gets_through(ordinary, mode):
    (ordinary.upper / "odd").mkdir()
    (ordinary.upper / "odd" / "in.csv").write_text("x")
    (ordinary.upper / "odd").chmod(mode)
    (ordinary.upper / "z.csv").write_text("z")
    found = settled(ordinary)
    assert (found["odd"].state, found["odd"].marks) == ("refused", ("a folder that can't be read",))
    assert found["z.csv"].state == "written"
    assert settled(ordinary) == {}
    assert names_of(ordinary.folder) == ["z.csv"]
    (ordinary.upper / "odd").chmod(0o700)
    assert settled(ordinary)["odd/in.csv"].state == "written"
    (ordinary.folder / "odd").chmod(0)
    (ordinary.upper / "odd" / "new.csv").write_text("x")
    assert settled(ordinary)["odd"].state == "refused"
    (ordinary.folder / "odd").chmod(0o700)
    assert settled(ordinary)["odd/new.csv"].state == "written"


def test_a_copy_of_a_read_only_folder_gets_through(ordinary):
    (ordinary.upper / "data").mkdir()
    (ordinary.upper / "data" / "in.csv").write_text("x")
    (ordinary.upper / "data").chmod(0o555)
    assert settled(ordinary)["data/in.csv"].state == "written"
    assert names_of(ordinary.folder) == ["data", "data/in.csv"]
    (ordinary.upper / "data").chmod(0o700)


def test_a_folder_with_one_that_can_not_be_read_stays_whole(ordinary):
    (ordinary.folder / "a" / "closed").mkdir(parents=True)
    (ordinary.folder / "a" / "x.csv").write_text("x")
    (ordinary.folder / "a" / "closed").chmod(0)
    (ordinary.upper / "a").write_text("a file now")
    assert settled(ordinary)["a"].marks == ("a folder that can't be read",)
    assert names_of(ordinary.folder) == ["a", "a/closed", "a/x.csv"]
    (ordinary.folder / "a" / "closed").chmod(0o700)


def test_a_file_that_can_not_be_read_is_named_once(ordinary):
    (ordinary.upper / "sealed.csv").write_text("x")
    (ordinary.upper / "sealed.csv").chmod(0)
    assert settled(ordinary)["sealed.csv"].marks == ("Permission denied",)
    assert settled(ordinary) == {}
    (ordinary.upper / "sealed.csv").chmod(0o600)
    assert settled(ordinary)["sealed.csv"].state == "written"


@pytest.mark.parametrize("mode", [0o300, 0o400])
def test_a_working_folder_that_can_not_be_read_is_named_also_at_the_end(ordinary, mode, caplog):
    (ordinary.upper / "new.csv").write_text("x")
    ordinary.upper.chmod(mode)
    found = settled(ordinary)
    assert (found["."].state, found["."].marks) == ("refused", ("a folder that can't be read",))
    assert settled(ordinary) == {}
    ordinary.upper.chmod(0o700)
    (ordinary.upper / "sealed.csv").write_text("x")
    (ordinary.upper / "sealed.csv").chmod(0)
    ordinary.finish()
    assert "1 changes of its kernel did not get there" in caplog.text
    assert names_of(ordinary.folder) == ["new.csv"]
    assert not ordinary.path.exists()
    ordinary.settle()


def test_what_can_not_be_dropped_keeps_nothing_else_from_its_decision(ordinary):
    ordinary.is_gated = True
    for name in ("a.sh", "b.sh"):
        (ordinary.upper / name).write_text("x")
    settled(ordinary)
    ordinary.upper.chmod(0o500)
    assert [change.path for change in ordinary.decide(allows=False)] == ["a.sh", "b.sh"]
    ordinary.upper.chmod(0o700)


def test_what_was_approved_and_can_not_be_written_is_asked_about_again(ordinary):
    ordinary.is_gated = True
    (ordinary.upper / "a.sh").write_text("x")
    assert settled(ordinary)["a.sh"].state == "waits"
    ordinary.folder.chmod(0o500)
    (change,) = ordinary.decide(allows=True)
    assert (change.state, change.marks[-1]) == ("refused", "Permission denied")
    ordinary.folder.chmod(0o700)
    assert settled(ordinary)["a.sh"].state == "waits"
    assert [change.state for change in ordinary.decide(allows=True)] == ["written"]
    assert (ordinary.folder / "a.sh").read_text() == "x"


def test_a_file_that_vanishes_while_it_is_looked_at_is_not_reported(layer, monkeypatch):
    def vanishing(folder, place):
        (layer.upper / "brief.tmp").unlink(missing_ok=True)
        return look(folder, place)

    look = layer_entries.look
    (layer.upper / "brief.tmp").write_text("x")
    monkeypatch.setattr(layer_entries, "look", vanishing)
    assert settled(layer) == {}


def test_a_link_that_vanishes_while_it_is_looked_at_keeps_nothing_else_back(layer, monkeypatch):
    def vanishing(folder, place):
        if place.name == "brief":
            (layer.upper / "brief").unlink(missing_ok=True)
        return target_of(folder, place)

    target_of = layer_entries.target_of
    (layer.upper / "brief").symlink_to("old.csv")
    (layer.upper / "new.csv").write_text("new")
    monkeypatch.setattr(layer_entries, "target_of", vanishing)
    assert settled(layer).keys() == {"new.csv"}


@contextlib.asynccontextmanager
async def runner(kind, folder):
    limits = Limits(writable_dir=folder, wall_s=30)
    async with contextlib.AsyncExitStack() as stack:
        if kind == "kernel":
            yield await stack.enter_async_context(KernelSession(limits, screened=False))
        else:
            zygote = await stack.enter_async_context(Zygote(()))
            yield await stack.enter_async_context(CellWorker(zygote, limits, screened=False))


async def done(runner, source):
    result = await runner.run(source)
    assert result.ok, result
    return {f"{x.kind} {x.path}": x.state for x in result.files}


@needs_view
@pytest.mark.parametrize("kind", ["kernel", "worker"])
async def test_cells_write_through_a_layer(kind, folder):
    (folder / "gone.csv").write_text("g")
    with sqlite3.connect(folder / "db.sqlite") as connection:
        connection.execute("create table t(a)")
    connection.close()
    async with runner(kind, folder) as cells:
        assert cells.containment.is_active("workspace_layer")
        assert await done(
            cells,
            "import os, shutil, sqlite3\n"
            "open('new.csv', 'w').write('n'); os.remove('gone.csv'); os.makedirs('out/in')\n"
            "open('out/in/x', 'w').write('x')",
        ) == {"made new.csv": "written", "removed gone.csv": "written", "made out/in/x": "written"}
        assert not (folder / "gone.csv").exists()
        found = await done(cells, "shutil.rmtree('out'); os.mkdir('out'); open('out/y','w')")
        # The layer is also read while the cell runs, perhaps when there is no folder.
        assert found.keys() - {"removed out"} <= {"removed out/in", "made out/y"}
        assert found.keys() & {"removed out", "removed out/in"}
        assert found["made out/y"] == "written"
        assert names_of(folder / "out") == ["y"]
        assert (
            await done(
                cells,
                "db = sqlite3.connect('db.sqlite')\nprint(list(db.execute('select * from t')))",
            )
            == {}
        )
        assert await done(cells, "db.execute('insert into t values (1)'); db.commit()") == {
            "changed db.sqlite": "written"
        }
        assert await done(cells, "os.makedirs('.git'); open('.git/config', 'w').write('x')") == {
            "made .git": "refused"
        }
        refused = await cells.run("open('book.ipynb', 'w')")
        assert refused.error.name == "OSError"
        assert refused.files == ()
    assert names_of(folder) == ["book.ipynb", "db.sqlite", "new.csv", "old.csv", "out", "out/y"]
    with sqlite3.connect(folder / "db.sqlite") as connection:
        assert connection.execute("select * from t").fetchall() == [(1,)]
    connection.close()


@needs_view
async def test_a_kernel_sees_what_the_person_does_meanwhile(folder, monkeypatch):
    monkeypatch.setattr(workspace_layer, "TEND_S", 0.05)
    async with runner("kernel", folder) as kernel:
        await done(
            kernel,
            "import os\n"
            "open('mine.csv', 'w').write('mine'); os.remove('old.csv'); os.mkdir('sub')\n"
            "open('same.csv', 'w').write('s')\n"
            "print(os.path.exists('later.csv'), os.path.exists('sub/later.csv'))",
        )
        (folder / "later.csv").write_text("later")
        (folder / "sub" / "later.csv").write_text("later")
        (folder / "mine.csv").write_text("the person's")
        (folder / "old.csv").write_text("back")
        (folder / "same.csv").unlink()
        look = (
            "print(os.path.exists('later.csv'), os.path.exists('sub/later.csv'),"
            " open('mine.csv').read(), os.path.exists('old.csv'), os.path.exists('same.csv'))"
        )

        async def sees_all():
            return (await kernel.run(look)).stdout == "True True the person's True False\n"

        await until(sees_all, "the cells see what the person changed")
        assert await done(kernel, "open('mine.csv', 'a').write(' and mine')") == {
            "changed mine.csv": "written"
        }
    assert (folder / "mine.csv").read_text() == "the person's and mine"


@needs_view
async def test_files_of_a_long_cell_get_through_while_it_runs(folder, monkeypatch):
    monkeypatch.setattr(workspace_layer, "TEND_S", 0.05)
    monkeypatch.setattr(workspace_layer, "QUIET_S", 0.1)
    async with runner("kernel", folder) as kernel:
        running = asyncio.create_task(
            kernel.run("import time\nopen('early.csv', 'w').write('x')\ntime.sleep(90)")
        )
        early = folder / "early.csv"
        await until(lambda: early.exists() and early.read_text() == "x", "the file got through")
        assert not running.done()
        await kernel.interrupt()
        await running


@needs_view
async def test_a_restart_and_the_end_lose_nothing(folder):
    async with runner("kernel", folder) as kernel:
        await kernel.run(
            "import os, signal\nopen('a.csv', 'w').write('a')\nos.kill(os.getpid(), 9)"
        )
        assert (folder / "a.csv").exists()
        await kernel.run(
            "import threading\nthreading.Timer(0.2, lambda: open('b.csv', 'w').write('b')).start()"
        )
        late = kernel._kernel.layer.upper / "b.csv"
        await until(lambda: late.exists() and late.read_text() == "b", "it wrote between cells")
        await kernel.restart()
        assert (folder / "b.csv").exists()
        await kernel.run("open('c.csv', 'w').write('c')")
    assert names_of(folder) == ["a.csv", "b.csv", "book.ipynb", "c.csv", "old.csv"]


async def test_without_namespaces_there_is_no_layer_and_it_is_said(folder):
    async with KernelSession(Limits(writable_dir=folder), isolate=False) as kernel:
        assert not kernel.containment.is_active("workspace_layer")
        assert (await kernel.run("open('x.csv', 'w').write('x')")).files == ()
    assert (folder / "x.csv").exists()


@needs_view
async def test_a_private_folder_needs_none(tmp_path):
    async with KernelSession() as kernel:
        assert kernel.containment.is_active("workspace_layer")
        assert kernel._kernel.layer is None


@needs_view
async def test_a_system_that_takes_no_layer_is_reported(folder, monkeypatch):
    def odd(self, folder, base, limit_bytes):
        made(self, folder, base, limit_bytes)
        (self.path / "work").rmdir()

    made = WorkspaceLayer.__init__
    monkeypatch.setattr(WorkspaceLayer, "__init__", odd)
    async with KernelSession(Limits(writable_dir=folder)) as kernel:
        layer = kernel.containment.get("workspace_layer")
        assert (layer.state.value, layer.reason) == (
            "refused",
            "the system does not support a layer above this folder",
        )
        await kernel.run("open('x.csv', 'w').write('x')")
        assert (folder / "x.csv").exists()
    assert Path(folder / "x.csv").exists()


def test_a_folder_of_any_depth_is_removed(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept.csv").write_text("kept")
    folder = os.open(tmp_path, os.O_RDONLY)
    os.mkdir("deep", dir_fd=folder)
    here = os.open("deep", os.O_RDONLY, dir_fd=folder)
    for _ in range(3000):  # more than the interpreter's stack, and than a path may be long
        os.mkdir("a", dir_fd=here)
        os.symlink(elsewhere, "link", dir_fd=here)
        inner = os.open("a", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    layer_entries.remove(folder, Path("deep"))
    os.close(folder)
    assert names_of(tmp_path) == ["elsewhere", "elsewhere/kept.csv"]
