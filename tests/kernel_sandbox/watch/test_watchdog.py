"""The watchdog: growth of the folders as well as memory and processes, seen and ended."""

import asyncio
import contextlib
import os
import resource
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kernel_sandbox.types import MIB, CellStatus, Limits
from kernel_sandbox.watch import consumption, process_tree, watchdog
from kernel_sandbox.watch.watchdog import LEAST_ENTRY_BYTES, DiskUse, Watchdog, disk_use
from tests.waiting import PATIENCE_S, until

GO_ON = threading.Event()


def use(*folders, enough=None):
    return disk_use(folders, GO_ON, enough)


@pytest.fixture
def sleeper():
    """A process that does nothing, to be watched."""
    process = subprocess.Popen([sys.executable, "-I", "-c", "input()"], stdin=subprocess.PIPE)
    yield process.pid
    process.communicate()


@pytest.fixture
def pair():
    """A process with a child."""
    shell = ["/bin/sh", "-c", "cat & cat; wait"]
    process = subprocess.Popen(shell, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    yield process.pid
    process.communicate()


@pytest.fixture
def often(monkeypatch):
    monkeypatch.setattr(watchdog, "DISK_INTERVAL_S", 0.02)
    monkeypatch.setattr(watchdog, "COST_FACTOR", 1)


class Looks:
    """How often watchdogs have looked, and how often they could not."""

    def __init__(self):
        self.at_processes = self.at_folders = self.failed = 0

    async def more(self, task, kind, count=2):
        """Waits until there are so many more, or the watchdog has ended.

        The second of two looks began after this was called.
        """
        wanted = getattr(self, kind) + count
        await until(lambda: task.done() or getattr(self, kind) >= wanted, f"{count} more: {kind}")


@pytest.fixture
def looks(monkeypatch):
    """Counts the looks of the watchdogs of this test."""
    counted = Looks()

    def count(kind, look):
        async def counting(*arguments):
            try:
                found = await look(*arguments)
            except OSError:
                counted.failed += 1
                raise
            setattr(counted, kind, getattr(counted, kind) + 1)
            return found

        return counting

    monkeypatch.setattr(Watchdog, "_look", count("at_processes", Watchdog._look))
    folders = count("at_folders", Watchdog._look_at_folders)
    monkeypatch.setattr(Watchdog, "_look_at_folders", folders)
    return counted


def guard(pid, limits, *folders):
    """A running watchdog, and what it will return."""
    return asyncio.create_task(Watchdog(pid, pid, limits, folders).guard())


async def test_room_is_counted_once_without_links_and_at_least_a_block(tmp_path):
    counted, outside = tmp_path / "counted", tmp_path / "outside"
    (counted / "deep").mkdir(parents=True)
    outside.mkdir()
    (outside / "big").write_bytes(bytes(MIB))
    (counted / "file").write_bytes(os.urandom(MIB))
    (counted / "deep" / "again").hardlink_to(counted / "file")
    (counted / "link").symlink_to(outside / "big")
    (counted / "folder").symlink_to(outside)
    (counted / "loop").symlink_to(counted)
    (counted / "empty").touch()
    with (counted / "sparse").open("wb") as sparse:
        sparse.truncate(100 * MIB)
    found = use(counted)
    assert found.closed == 0
    assert MIB <= found.size_bytes <= MIB + 10 * LEAST_ENTRY_BYTES
    assert use(counted, outside).size_bytes > 2 * MIB
    assert use(tmp_path / "none", counted / "file") == DiskUse(0, 0)


def test_the_count_ends_when_it_is_enough_or_stopped(tmp_path):
    for number in range(20):
        (tmp_path / str(number)).touch()
    assert use(tmp_path, enough=3 * LEAST_ENTRY_BYTES).size_bytes == 4 * LEAST_ENTRY_BYTES
    stopped = threading.Event()
    stopped.set()
    assert disk_use((tmp_path,), stopped) == DiskUse(0, 0)


def make_deep(folder):
    """A file below more folders than a path can name."""
    folder.mkdir(parents=True)
    here = os.open(folder, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("x" * 250, dir_fd=here)
        inner = os.open("x" * 250, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(os.open("hidden", os.O_WRONLY | os.O_CREAT, dir_fd=here))
    os.close(here)


def test_a_path_too_long_to_look_at_is_counted_as_closed(tmp_path):
    make_deep(tmp_path / "deep")
    assert use(tmp_path).closed == 1
    shutil.rmtree(tmp_path / "deep")


CLOSED_FOLDER = """
import os, sys, threading
from pathlib import Path
from kernel_sandbox.watch.watchdog import disk_use
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
base = Path(os.environ["BASE"])
(base / "mine").mkdir()
(base / "mine" / "file").write_text("x")
(base / "mine").chmod(0o300)
print(disk_use((base,), threading.Event()).closed)
(base / "mine").chmod(0o700)
(base / "mine" / "file").unlink()
(base / "mine").rmdir()
"""


def test_a_folder_that_hides_its_files_is_counted_as_closed():
    base = Path(subprocess.check_output(["mktemp", "-d"], text=True).strip())
    base.chmod(0o777)
    done = subprocess.run(
        [sys.executable, "-I", "-c", CLOSED_FOLDER],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "BASE": str(base)},
    )
    base.rmdir()
    assert (done.stdout, done.stderr) == ("1\n", "")


async def violation_while(task, action):
    """What the watchdog returned, the action repeated until it did: it begins when it likes."""
    async with asyncio.timeout(PATIENCE_S):
        number = 0
        while not task.done():
            action(number)
            number += 1
            await asyncio.wait({task}, timeout=0.05)
    return task.result()


async def test_growth_ends_the_watch_and_what_was_there_does_not(tmp_path, sleeper, often, looks):
    (tmp_path / "before").write_bytes(os.urandom(3 * MIB))
    task = guard(sleeper, Limits(disk_bytes=2 * MIB), tmp_path)
    await looks.more(task, "at_folders")
    assert not task.done()
    data = os.urandom(MIB)
    violation = await violation_while(task, lambda n: (tmp_path / str(n)).write_bytes(data))
    assert violation.kind == "disk"
    assert "more than 2 MiB" in violation.message


async def test_a_folder_in_another_is_counted_once(tmp_path, sleeper, often, looks):
    inner = tmp_path / "work"
    inner.mkdir()
    task = guard(sleeper, Limits(disk_bytes=3 * MIB), inner, tmp_path)
    await looks.more(task, "at_folders", 1)
    (inner / "some").write_bytes(os.urandom(2 * MIB))
    await looks.more(task, "at_folders")
    assert not task.done()
    (inner / "more").write_bytes(os.urandom(2 * MIB))
    assert (await asyncio.wait_for(task, PATIENCE_S)).kind == "disk"


async def test_many_empty_files_are_growth_too(tmp_path, sleeper, often):
    task = guard(sleeper, Limits(disk_bytes=100_000), tmp_path)
    violation = await violation_while(
        task, lambda n: [(tmp_path / f"{n}-{i}").touch() for i in range(10)]
    )
    assert "100000 bytes" in violation.message


async def test_a_new_uncountable_folder_ends_the_watch(tmp_path, sleeper, often):
    task = guard(sleeper, Limits(), tmp_path)
    violation = await violation_while(task, lambda n: make_deep(tmp_path / "deep" / str(n)))
    shutil.rmtree(tmp_path / "deep")
    assert violation.kind == "disk"
    assert "can't be counted" in violation.message


async def test_memory_and_processes_are_still_watched_beside_the_folders(tmp_path, sleeper, pair):
    violation = await asyncio.wait_for(guard(sleeper, Limits(memory_bytes=1), tmp_path), PATIENCE_S)
    assert violation.kind == "memory"
    violation = await asyncio.wait_for(guard(pair, Limits(processes=1), tmp_path), PATIENCE_S)
    assert violation.kind == "processes"


@contextlib.contextmanager
def nothing_more_opens():
    """Lets this process open nothing, as if it had too many files open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_a_look_that_was_not_possible_is_none_that_found_nothing(sleeper, tmp_path):
    assert consumption.measure_usage([sleeper], 1).memory_bytes > 0
    with nothing_more_opens():
        for look in (
            lambda: consumption.measure_usage([sleeper], 1),
            lambda: list(process_tree.walk([sleeper])),
            lambda: consumption.usage([sleeper], 1),
            lambda: consumption.nameless_bytes([sleeper]),
            lambda: use(tmp_path),
        ):
            with pytest.raises(OSError, match="Too many open files"):
                look()


@pytest.mark.parametrize("folders", [0, 1])
async def test_what_can_not_be_watched_for_long_is_ended(
    sleeper, tmp_path, monkeypatch, looks, folders
):
    monkeypatch.setattr(watchdog, "BLIND_S", 2 * PATIENCE_S)
    monkeypatch.setattr(watchdog, "BUSY_INTERVAL_S", 0.05)
    monkeypatch.setattr(watchdog, "DISK_INTERVAL_S", 0.05)
    dog = Watchdog(sleeper, sleeper, Limits(), (tmp_path,) * folders)
    task = asyncio.create_task(dog.guard())
    dog.begin()
    await looks.more(task, "at_processes", 1)
    with nothing_more_opens():
        await looks.more(task, "failed")
    await looks.more(task, "at_folders" if folders else "at_processes")
    assert not task.done()  # it could look again in time
    monkeypatch.setattr(watchdog, "BLIND_S", 0.3)
    with nothing_more_opens():
        violation = await asyncio.wait_for(task, PATIENCE_S)
    assert violation.kind == "unwatched"
    assert "Too many open files" in violation.message


async def test_a_cancelled_watch_leaves_nothing_running(tmp_path, sleeper, looks):
    task = guard(sleeper, Limits(), tmp_path)
    await looks.more(task, "at_folders", 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        await asyncio.wait(others, timeout=PATIENCE_S)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_cell_sees_its_peak_and_wakes_the_watchdog(sleeper, looks, monkeypatch):
    monkeypatch.setattr(watchdog, "IDLE_INTERVAL_S", 10 * PATIENCE_S)
    dog = Watchdog(sleeper, sleeper, Limits())
    task = asyncio.create_task(dog.guard())
    await looks.more(task, "at_processes", 1)
    dog.begin()
    await looks.more(task, "at_processes")
    assert dog.finish() > MIB
    task.cancel()


MANY_FILES = """
import os, time
for number in range(40):
    with open(f"file{number}", "wb") as file:
        file.write(os.urandom(1 << 20))
while True:
    time.sleep(1)
"""


@pytest.mark.parametrize("isolate", [True, False], ids=["namespaces", "none"])
@pytest.mark.parametrize("folder", [".", "os.environ['TMPDIR']", "os.environ['HOME']"])
async def test_a_cell_that_fills_the_disk_is_ended(open_session, isolate, folder):
    session = await open_session(Limits(disk_bytes=20 * MIB, wall_s=60), isolate=isolate)
    where = "" if folder == "." else f"import os; os.chdir({folder})\n"
    result = await session.run(where + MANY_FILES)
    assert result.status is CellStatus.KILLED
    assert "20 MiB" in result.message
    assert "variables are gone" in result.message
    assert result.state_lost
    assert (await session.run("print(1)")).stdout == "1\n"
