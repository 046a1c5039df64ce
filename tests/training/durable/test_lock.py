"""One writer a folder: named while it lives, gone when it was killed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dm_jupyter.core.errors import UsageError
from training.durable.lock import LOCK_FILE, folder_lock

HOLDER = """
import sys
from pathlib import Path
from training.durable.lock import folder_lock
with folder_lock(Path(sys.argv[1]), "test"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_folder_has_one_holder_who_is_named_until_it_is_killed(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "run")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        named = rf"Another test is at work in .*: process {holder.pid} on \S+, since .*--out"
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
