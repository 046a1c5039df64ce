"""A pool that installs what the cells of its trajectories lack, outside of the sandbox."""

import asyncio
import logging
import sys

import pytest
import pytest_asyncio

from kernel_sandbox.errors import PackageError
from kernel_sandbox.forkserver.worker_process import WorkerOptions
from kernel_sandbox.packages.overlay import Overlay
from kernel_sandbox.packages.packages import AllowList, PackageInstaller
from kernel_sandbox.runners.pool import PoolSettings, SandboxPool, StateRetention
from kernel_sandbox.runners.pool_packages import PoolPackages
from kernel_sandbox.types import CellStatus, Limits
from tests.examples import some_quick
from tests.wheels import index_variables, make_wheel

pytestmark = pytest.mark.asyncio(loop_scope="module")
ALLOWED = AllowList({"dm_alpha": "dm-alpha", "dm_beta": "dm-beta", "dm_gone": "dm-gone"})
PRINT = "import dm_alpha\nprint(dm_alpha.version)"


@pytest_asyncio.fixture(loop_scope="module")
async def installer(tmp_path, monkeypatch):
    folder = tmp_path / "index"
    folder.mkdir()
    for name, value in index_variables(folder).items():
        monkeypatch.setenv(name, value)
    make_wheel(folder, "dm_alpha")
    make_wheel(folder, "dm_beta")
    lines = []
    made = PackageInstaller(Overlay(tmp_path / "overlays"), ALLOWED, on_progress=lines.append)
    made.lines = lines
    return made


def pool_with(installer, strategy=StateRetention.PERSISTENT, **settings):
    settings = PoolSettings(strategy, modules=(), **settings)
    return SandboxPool(settings, Limits(wall_s=30), installer=installer)


@pytest.mark.parametrize("strategy", some_quick(sorted(StateRetention), 3))
async def test_trajectories_that_lack_the_same_package_install_it_once(installer, strategy, caplog):
    caplog.set_level(logging.INFO, "kernel_sandbox")
    async with pool_with(installer, strategy, cells_at_once=2) as pool:

        async def trajectory():
            async with pool.runner() as runner:
                assert (await runner.run("x = 1")).ok  # the package comes to a process that runs
                return await runner.run(PRINT)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(trajectory()) for _ in range(4)]
        for task in tasks:
            assert (task.result().stdout, task.result().message) == ("1.0\n", "")
        async with pool.runner() as runner:
            await runner.run("import dm_beta")
            async with runner.branch() as branch:
                assert (await branch.run("dm_beta.version + '!'")).ok
    assert installer.lines.count("Looking for dm-alpha") == 1
    assert installer.lines.count("Looking for dm-beta") == 1
    assert "installed for the trajectories of a pool: dm_alpha 1.0" in caplog.text


async def test_what_can_not_be_had_is_tried_once_and_told_where_the_import_fails(installer):
    async with pool_with(installer) as pool, pool.runner() as one, pool.runner() as other:
        results = [await runner.run("import dm_gone") for runner in (one, other)]
        for result in results:
            assert result.error.name == "ModuleNotFoundError"
            assert result.message.startswith("dm-gone was not installed: there is no wheel of it")
        assert installer.lines.count("Looking for dm-gone") == 1
        unlisted = await one.run("import dm_alfa")
        assert "is not among the packages that may be installed" in unlisted.message
        assert "use one of `dm_alpha`" in unlisted.message
        await one.run("open('own.py', 'w').write('x = 3')")
        own = await one.run("import own\nprint(own.x)")
        assert (own.stdout, own.message) == ("3\n", "")
        await one.run("if False:\n    import dm_alfa")
        assert not (await one.run("1/0\nimport dm_alfa")).message


async def test_a_refused_cell_installs_nothing(installer):
    async with pool_with(installer) as pool, pool.runner() as runner:
        result = await runner.run("import os, dm_alpha\nos.system('ls')")
        assert result.status is CellStatus.DENIED
        assert installer.lines == []


async def test_one_that_is_stopped_while_it_installs_leaves_it_to_the_next(installer):
    began, packages = asyncio.Event(), PoolPackages(installer)
    installer._on_progress = lambda _: began.set()
    first = asyncio.create_task(packages.prepare(PRINT))
    await began.wait()
    second = asyncio.create_task(packages.prepare(PRINT))
    assert (await packages.prepare("import os\nx = 1")).message == ""  # waits for nobody
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert [package.name for package in (await second).installed] == ["dm_alpha"]
    assert (await packages.prepare(PRINT)).installed == ()


async def test_an_interpreter_that_can_not_be_asked_is_a_fault(tmp_path):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\n[ -e {tmp_path}/broken ] && exit 1\nexec {sys.executable} "$@"')
    python.chmod(0o700)
    packages = PoolPackages(PackageInstaller(Overlay(tmp_path / "overlays", python), ALLOWED))
    (tmp_path / "broken").touch()
    with pytest.raises(PackageError):
        await packages.prepare(PRINT)


async def test_a_folder_of_packages_that_can_not_be_made_keeps_a_pool_from_opening(tmp_path):
    (tmp_path / "taken").touch()
    installer = PackageInstaller(Overlay(tmp_path / "taken"), ALLOWED)
    with pytest.raises(PackageError, match="can't be made"):
        await pool_with(installer).__aenter__()


async def test_an_overlay_and_an_installer_contradict_each_other(installer, tmp_path):
    options = WorkerOptions(overlay=tmp_path)
    with pytest.raises(ValueError, match="an overlay or an installer"):
        SandboxPool(options=options, installer=installer)
