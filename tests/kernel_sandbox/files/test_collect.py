"""The files that a trajectory's code has made, copied to where the caller wants them."""

import os

import pytest
import pytest_asyncio

from kernel_sandbox.errors import SessionClosedError, WorkspaceError
from kernel_sandbox.files.workspace import copy_files, regular_files, write_files
from kernel_sandbox.runners.pool import PoolSettings, SandboxPool, StateRetention
from kernel_sandbox.types import MIB, Limits

pytestmark = pytest.mark.asyncio(loop_scope="module")
LIMITS = Limits(wall_s=20.0, memory_bytes=700 * MIB, disk_bytes=2 * MIB)
MAKES = """
import os
from pathlib import Path
Path('deep/er').mkdir(parents=True)
Path('a.txt').write_text('a')
Path('deep/er/b.bin').write_bytes(bytes(range(256)))
Path('link').symlink_to('/etc/passwd')
Path('folder').symlink_to('/etc')
os.mkfifo('pipe')
"""


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in regular_files(folder)}


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=list(StateRetention))
async def pool(request):
    async with SandboxPool(PoolSettings(request.param, modules=()), LIMITS) as made:
        yield made


async def test_what_the_code_has_made_is_copied_and_nothing_else(pool, tmp_path):
    (tmp_path / "in.csv").write_text("secret")
    target = tmp_path / "made" / "here"
    async with pool.runner({"data.csv": tmp_path / "in.csv"}) as runner:
        assert await runner.collect(target) == ()
        assert (await runner.run(MAKES)).ok
        paths = await runner.collect(target)
        assert paths == (target / "a.txt", target / "deep/er/b.bin")
        assert contents(target) == {"a.txt": b"a", "deep/er/b.bin": bytes(range(256))}
        assert all(path.is_file() and not path.is_symlink() for path in paths)
        assert (await runner.run("open('a.txt', 'a').write('b')")).ok
        assert await runner.collect(target) == paths
        assert (target / "a.txt").read_text() == "ab"
        assert (await runner.run("print(open('a.txt').read())")).stdout == "ab\n"


async def test_branches_have_files_of_their_own(pool, tmp_path):
    async with pool.runner() as trunk:
        await trunk.run("open('f.txt', 'w').write('trunk')")
        async with trunk.branch() as branch:
            await branch.run("open('f.txt', 'a').write(' and branch')")
            await branch.run("open('g.txt', 'w').write('g')")
            await branch.collect(tmp_path / "branch")
        await trunk.collect(tmp_path / "trunk")
    assert contents(tmp_path / "branch") == {"f.txt": b"trunk and branch", "g.txt": b"g"}
    assert contents(tmp_path / "trunk") == {"f.txt": b"trunk"}


async def test_files_above_the_limit_are_not_copied_and_named(pool, tmp_path):
    async with pool.runner() as runner:
        await runner.run("open('a.bin', 'wb').write(b'x' * 100)")
        await runner.run("file = open('b.bin', 'wb'); file.truncate(3 << 20); file.close()")
        with pytest.raises(WorkspaceError, match=r"with 'b\.bin' the files take more than 2097152"):
            await runner.collect(tmp_path / "made")
        assert contents(tmp_path / "made") == {}
        assert (await runner.run("import os; os.remove('b.bin')")).ok
        assert await runner.collect(tmp_path / "made") == (tmp_path / "made/a.bin",)


async def test_a_closed_trajectory_gives_no_files(pool, tmp_path):
    async with pool.runner() as runner:
        await runner.run("open('a.txt', 'w').close()")
    with pytest.raises(SessionClosedError, match="trajectory is closed"):
        await runner.collect(tmp_path / "made")
    assert not (tmp_path / "made").exists()


async def test_layers_of_the_process_are_told(pool):
    async with pool.runner() as runner:
        await runner.run("1")
        assert runner.containment is runner.backend.containment
        assert runner.containment.is_active("environment")
        assert runner.containment.is_active("seccomp")


@pytest.mark.parametrize("strategy", [StateRetention.PERSISTENT, StateRetention.SNAPSHOT])
async def test_a_state_without_process_is_built_again_first(tmp_path, strategy):
    settings = PoolSettings(strategy, live_bytes=1, modules=())
    async with SandboxPool(settings, LIMITS) as pool, pool.runner() as runner:
        await runner.run(
            "import time; open('f.txt', 'w').write('kept'); print(time.perf_counter())"
        )
        assert pool.metrics().evictions == 1
        assert await runner.collect(tmp_path / "made") == (tmp_path / "made/f.txt",)
        assert contents(tmp_path / "made") == {"f.txt": b"kept"}
        assert pool.metrics().replayed_cells == 1
        assert pool.metrics().live_bytes <= 1
        after = await runner.run("print(open('f.txt').read())")
        assert after.stdout == "kept\n"
        assert "cell 1 (its output)" in after.message


async def test_what_came_out_differently_for_the_files_is_told_with_the_next_cell(tmp_path):
    async with SandboxPool(PoolSettings(modules=()), LIMITS) as pool, pool.runner() as runner:
        await runner.run("import time; print(time.perf_counter())")
        await runner.backend.evict()
        assert await runner.collect(tmp_path) == ()
        assert "cell 1 (its output)" in (await runner.run("1")).message
        assert not (await runner.run("1")).message


async def test_a_link_in_the_place_of_a_folder_is_not_followed(tmp_path):
    root, target, secret = (tmp_path / name for name in ("root", "target", "secret"))
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "f").write_text("own")
    secret.mkdir()
    (secret / "f").write_text("secret")
    found = regular_files(root)
    (root / "sub").rename(root / "before")
    (root / "sub").symlink_to(secret)
    with pytest.raises(WorkspaceError, match="the file 'sub/f' can't be collected"):
        await copy_files(found, root, target, 100)
    (root / "sub").unlink()
    (root / "before").rename(root / "sub")
    (target / "sub").symlink_to(secret)
    with pytest.raises(WorkspaceError, match="the file 'sub/f' can't be collected"):
        await copy_files(found, root, target, 100)
    assert (secret / "f").read_text() == "secret"


async def test_a_link_in_the_place_of_a_file_is_neither_read_nor_written(tmp_path):
    root, target = tmp_path / "root", tmp_path / "target"
    root.mkdir()
    target.mkdir()
    (tmp_path / "secret").write_text("secret")
    (root / "f").write_text("own")
    (target / "f").symlink_to(tmp_path / "secret")
    assert await copy_files([root / "f"], root, target, 100) == (target / "f",)
    assert (target / "f").read_text() == "own"
    assert not (target / "f").is_symlink()
    (root / "f").unlink()
    (root / "f").symlink_to(tmp_path / "secret")
    with pytest.raises(WorkspaceError, match="'f' can't be collected"):
        await copy_files([root / "f"], root, target, 100)
    (root / "f").unlink()
    os.mkfifo(root / "f")
    with pytest.raises(WorkspaceError, match="it is no regular file"):
        await copy_files([root / "f"], root, target, 100)
    assert (target / "f").read_text() == "own"
    assert (tmp_path / "secret").read_text() == "secret"


async def test_a_failure_leaves_no_copy(tmp_path):
    root, target = tmp_path / "root", tmp_path / "target"
    root.mkdir()
    for name in "abc":
        (root / name).write_text(name * 10)
    with pytest.raises(WorkspaceError, match="with 'c' the files take more than 29 bytes"):
        await copy_files(regular_files(root), root, target, 29)
    assert contents(target) == {}
    (target / "b").mkdir()
    with pytest.raises(WorkspaceError, match="'b' can't be collected"):
        await copy_files(regular_files(root), root, target, 30)
    assert [path.name for path in target.iterdir()] == ["b"]
    with pytest.raises(WorkspaceError, match="can't be made"):
        await copy_files([], root, root / "a", 1)


async def test_a_failure_leaves_the_files_that_were_there(tmp_path):
    root, target = tmp_path / "root", tmp_path / "target"
    root.mkdir()
    target.mkdir()
    for name in "abc":
        (root / name).write_text(name * 10)
    (target / "a").write_text("an earlier result")
    with pytest.raises(WorkspaceError, match="with 'c' the files take more than 29 bytes"):
        await copy_files(regular_files(root), root, target, 29)
    (target / "c").mkdir()
    with pytest.raises(WorkspaceError, match="'c' can't be collected"):
        await copy_files(regular_files(root), root, target, 30)
    (target / "c").rmdir()
    assert contents(target) == {"a": b"an earlier result"}
    await copy_files(regular_files(root), root, target, 30)
    assert contents(target) == {name: name.encode() * 10 for name in "abc"}


async def test_files_from_elsewhere_stay_in_their_folder(tmp_path):
    made = await write_files({"x/y": b"1", "z": b""}, tmp_path / "t", 1)
    assert made == (tmp_path / "t/x/y", tmp_path / "t/z")
    assert contents(tmp_path / "t") == {"x/y": b"1", "z": b""}
    for name in ("../out", "/tmp/out", "a/../../out"):
        with pytest.raises(WorkspaceError, match="the path leads out of the folder"):
            await write_files({name: b"1"}, tmp_path / "t", 9)
    with pytest.raises(WorkspaceError, match="more than 1 bytes"):
        await write_files({"a": b"11"}, tmp_path / "t", 1)
