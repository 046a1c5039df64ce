from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import platformdirs
import pytest

from dm_jupyter.models.local.catalogue import LocalModel
from dm_jupyter.models.local.engine import Engine, EngineSettings
from dm_jupyter.models.local.errors import LocalModelError, ServerStartError
from dm_jupyter.models.local.runtime import Lease, ServerFolder, is_locked, live_leases, try_lock
from dm_jupyter.models.local.server import claim, serve_until_unused

SETTINGS = EngineSettings("tiny.gguf", "tiny", "secret", 100, 1, 0)


@pytest.fixture
def folder(model: LocalModel, tmp_path: Path) -> ServerFolder:
    return ServerFolder.open(model, tmp_path / "run")


def _start(settings: EngineSettings) -> Engine:
    return Engine("http://127.0.0.1:9", None)


def test_lease_counts_until_released(folder: ServerFolder) -> None:
    first, second = Lease(folder.leases), Lease(folder.leases)
    assert live_leases(folder.leases) == 2
    first.release()
    first.release()
    assert live_leases(folder.leases) == 1
    second.release()
    assert list(folder.leases.iterdir()) == []


def test_lease_of_a_dead_user_is_removed(folder: ServerFolder) -> None:
    (folder.leases / "99999-dead").touch()
    assert live_leases(folder.leases) == 0
    assert list(folder.leases.iterdir()) == []


def test_lease_released_by_its_user_is_free_in_a_fork_too(folder: ServerFolder) -> None:
    lease = Lease(folder.leases)
    copy = os.dup(lease._handle.fileno())  # what a forked child holds: the same open file
    lease.release()
    assert live_leases(folder.leases) == 0
    os.close(copy)


def test_server_stays_while_a_lease_lives(folder: ServerFolder) -> None:
    lease = Lease(folder.leases)
    with claim(folder):
        server = threading.Thread(
            target=serve_until_unused, args=(folder, SETTINGS, _start, 0.02), daemon=True
        )
        server.start()
        while folder.state() is None:
            assert server.is_alive()
        assert folder.server_pid() == os.getpid()
        state = folder.state()
        assert state is not None
        assert state.base_url == "http://127.0.0.1:9/v1"
        assert folder.key_file.read_text() == "secret"
        lock = try_lock(folder.start_lock)
        while lock is None:  # the server looks at the leases just now
            lock = try_lock(folder.start_lock)
        lease.release()
        # Nobody may end while somebody joins or leaves.
        server.join(0.2)
        assert server.is_alive()
        lock.close()
        server.join(10)
    assert not server.is_alive()
    assert folder.state() is None
    assert not folder.key_file.exists()


def test_folder_has_one_server(folder: ServerFolder) -> None:
    with claim(folder):
        assert folder.is_alive()
        with pytest.raises(ServerStartError, match="Another server"):
            claim(folder, timeout_s=0.1)
    assert folder.server_pid() is None


def test_looking_does_not_lock(folder: ServerFolder) -> None:
    assert not is_locked(folder.alive_lock)
    with claim(folder, timeout_s=0):
        assert is_locked(folder.alive_lock)


def test_state_of_a_dead_server_means_nothing(folder: ServerFolder) -> None:
    with claim(folder):
        serve_until_unused(folder, SETTINGS, _start, 0.01)
    folder.state_file.write_text("left by a killed server")
    assert folder.state() is None


def test_log_tail_is_short(folder: ServerFolder) -> None:
    assert folder.log_tail() == ""
    folder.log_file.write_text("\n".join(map(str, range(100))))
    assert folder.log_tail().splitlines() == [str(n) for n in range(85, 100)]


def test_folder_that_others_may_enter_is_closed(model: LocalModel, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir(mode=0o755)
    ServerFolder.open(model, run)
    assert run.stat().st_mode & 0o777 == 0o700


def test_planted_link_is_refused(model: LocalModel, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "theirs")
    with pytest.raises(LocalModelError, match="belongs to another account"):
        ServerFolder.open(model, tmp_path / "run")
    (tmp_path / "file").touch()
    with pytest.raises(LocalModelError, match="Not a directory"):
        ServerFolder.open(model, tmp_path / "file" / "run")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_folder_under_anothers_is_refused(model: LocalModel, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, 12345, 12345)
    with pytest.raises(LocalModelError, match="theirs belongs to another account"):
        ServerFolder.open(model, theirs / "run")


def test_cache_stands_in_for_the_runtime_folder(
    model: LocalModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setattr(platformdirs, "user_runtime_path", lambda _: blocked / "run")
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda _: tmp_path / "cache")
    folder = ServerFolder.open(model)
    assert folder.path == tmp_path / "cache" / f"run-{socket.gethostname()}" / "tiny"
