"""The folder of long work: one writer, named while it lives, and one kind of work."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dm_jupyter.core.errors import UsageError
from training.durable.folder import LOCK_FILE, ManifestError, folder_lock, kept_manifest

HOLDER = """
import sys
from pathlib import Path
from training.durable.folder import folder_lock
with folder_lock(Path(sys.argv[1]), "test"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_folder_without_locks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("training.durable.folder.fcntl.flock", no_locks)
    with pytest.raises(UsageError, match=r"run can't be locked \(Function not implemented\)"):
        folder_lock(tmp_path / "run").__enter__()


def test_a_folder_has_one_holder_who_is_named_until_it_is_killed(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "run")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        named = rf"Another test is at work in .*: process {holder.pid} on \S+, since .*another f"
        with pytest.raises(UsageError, match=named), folder_lock(tmp_path / "run", "test"):
            pass
        holder.kill()
        holder.wait()
    with folder_lock(tmp_path / "run", "test"):
        said = (tmp_path / "run" / LOCK_FILE).read_text()
        assert re.search(rf'"process": {os.getpid()}\b', said)
        with pytest.raises(UsageError), folder_lock(tmp_path / "run"):
            pass
    with folder_lock(tmp_path / "run"):
        pass


def test_a_holder_of_an_older_release_did_not_name_itself(tmp_path: Path) -> None:
    with folder_lock(tmp_path):
        (tmp_path / LOCK_FILE).write_text("")
        with pytest.raises(UsageError, match="did not name itself"), folder_lock(tmp_path):
            pass


def test_a_fault_frees_the_folder(tmp_path: Path) -> None:
    with pytest.raises(KeyError), folder_lock(tmp_path):
        raise KeyError
    with folder_lock(tmp_path):
        pass


def test_other_work_is_refused_by_the_first_setting_that_differs(tmp_path: Path) -> None:
    path, mine = tmp_path / "run.json", {"model": "m", "seed": 1, "git": "a"}
    assert kept_manifest(path, mine, ()) is None
    path.write_text(json.dumps({"model": "m", "git": "b", "more": 1}))  # an older release: no seed
    assert kept_manifest(path, mine, ("git",)) == {"model": "m", "git": "b", "more": 1}
    with pytest.raises(ManifestError, match=r"another git: 'b' there, 'a' now\. Choose another"):
        kept_manifest(path, mine, ())
    path.write_text(json.dumps({"seed": None}))
    with pytest.raises(ManifestError, match="another seed: None there, 1 now"):
        kept_manifest(path, mine, ())
    for text in ("[1]", "{", "null"):
        path.write_text(text)
        with pytest.raises(ManifestError, match="can't be read"):
            kept_manifest(path, mine, ())


def test_a_field_of_a_setting_may_differ(tmp_path: Path) -> None:
    path, mine = tmp_path / "run.json", {"settings": {"seed": 1, "context_tokens": 0}}
    path.write_text(json.dumps({"settings": {"seed": 1, "context_tokens": 4096}}))
    assert kept_manifest(path, mine, ("settings.context_tokens",)) is not None
    with pytest.raises(ManifestError, match="another settings"):
        kept_manifest(path, mine, ())
    mine["settings"]["seed"] = 2
    with pytest.raises(ManifestError, match="another settings"):
        kept_manifest(path, mine, ("settings.context_tokens",))
