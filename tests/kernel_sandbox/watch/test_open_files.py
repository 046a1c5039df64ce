"""A kernel whose cells leave no file to open goes on."""

from __future__ import annotations

import asyncio
import resource

import pytest
from jupyter_client.session import Session

from kernel_sandbox.confine.rlimits import OPEN_FILES
from kernel_sandbox.types import CellStatus
from kernel_sandbox.watch.open_files import BETWEEN_CELLS, CellFiles

NOFILE = resource.RLIMIT_NOFILE
LEAVE_NONE = """
kept = []
try:
    while True:
        kept.append(open('/dev/null'))
except OSError as error:
    print(error.strerror)
"""


async def test_the_first_cell_that_leaves_no_file_prints_and_can_be_asked_again(open_session):
    kernel = await open_session()
    assert (await kernel.run(LEAVE_NONE)).stdout == "Too many open files\n"
    assert int((await kernel.run("print(len(kept))")).stdout) < OPEN_FILES


async def test_a_client_may_connect_after_a_cell_that_leaves_no_file(open_session):
    kernel = await open_session()
    await kernel.run(LEAVE_NONE)
    manager = kernel._kernel._manager
    client = manager.client(session=Session(key=manager.session.key))
    client.start_channels(stdin=False, hb=False, control=False)
    try:
        async with asyncio.timeout(30):
            await client.kernel_info(reply=True)
    finally:
        client.stop_channels()
    again = await kernel.run("print(len(kept) > 1)")
    assert (again.status, again.stdout) == (CellStatus.OK, "True\n")


async def test_a_cell_keeps_the_limit_that_it_sets(open_session):
    kernel = await open_session()
    shown = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    assert int((await kernel.run(shown)).stdout) == OPEN_FILES
    await kernel.run("resource.setrlimit(resource.RLIMIT_NOFILE, (99, 200))")
    assert int((await kernel.run(shown)).stdout) == 99


@pytest.fixture
def limits():
    before = resource.getrlimit(NOFILE)
    yield before
    resource.setrlimit(NOFILE, before)


def test_between_cells_some_more_may_be_opened(limits):
    resource.setrlimit(NOFILE, (200, limits[1]))
    files = CellFiles()

    def interrupted(soft):
        with files.of_a_cell():
            assert resource.getrlimit(NOFILE)[0] == 200
            resource.setrlimit(NOFILE, (soft, limits[1]))
            raise KeyboardInterrupt

    for soft in (200, 190):
        with pytest.raises(KeyboardInterrupt):
            interrupted(soft)
        assert resource.getrlimit(NOFILE) == (soft + BETWEEN_CELLS, limits[1])


def test_no_limit_stays_none_and_a_hard_one_is_kept(monkeypatch):
    held = [(resource.RLIM_INFINITY, resource.RLIM_INFINITY)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: held[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: held.append(pair))
    with CellFiles().of_a_cell():
        assert held[-1] == (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        held.append((100, 110))
    assert held[-1] == (110, 110)
