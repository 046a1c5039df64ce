"""Another user's run: who may enter which folder, and a real user that starts a kernel."""

import json
import os
import pwd
import secrets
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kernel_sandbox.conformance import other_user, selfcheck

NOBODY_I_KNOW = 54321


def _open_to_all(folder: Path) -> None:
    """Opens a test's folder and those of pytest above it."""
    for one in (folder, *folder.parents):
        if one == Path(tempfile.gettempdir()):
            break
        one.chmod(0o755)


def test_the_outermost_closed_folder_is_found(tmp_path):
    outer, inner = tmp_path / "outer", tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    path = inner / "program"
    path.touch()
    _open_to_all(tmp_path)
    for folder in (outer, inner):
        folder.chmod(0o755)
    assert other_user.closed_ancestor(path, NOBODY_I_KNOW, []) is None
    inner.chmod(0o700)
    assert other_user.closed_ancestor(path, NOBODY_I_KNOW, []) == inner
    assert other_user.closed_ancestor(path, os.getuid(), []) is None
    outer.chmod(0o710)
    assert other_user.closed_ancestor(path, NOBODY_I_KNOW, []) == outer
    assert other_user.closed_ancestor(path, NOBODY_I_KNOW, [outer.stat().st_gid]) == inner
    outer.chmod(0o077)
    assert other_user.closed_ancestor(path, os.getuid(), []) == outer


def test_only_root_becomes_another_and_only_one_that_exists(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: 1000)
        with pytest.raises(PermissionError, match="only root can become nobody"):
            other_user.run_as("nobody", "this", [])
        assert selfcheck.main(["--user", "nobody"]) == 2
    if os.geteuid() == 0:
        with pytest.raises(ValueError, match="there is no user 'no-such-user'"):
            other_user.run_as("no-such-user", "this", [])


OPEN_WAY = f"""
import os, sys
from pathlib import Path
from kernel_sandbox.conformance import other_user
from kernel_sandbox.confine import system
closed = Path(sys.argv[1])
system.unshare(0x20000)
system.mount("none", "/", flags=system.MS_REC | system.MS_PRIVATE)
print(other_user.open_way([closed / "a", closed / "a" / "b", closed / "f"], {NOBODY_I_KNOW}, []))
os.setresuid(*[{NOBODY_I_KNOW}] * 3)
texts = [(closed / name).read_text() for name in ("a/b/x", "f")]
print(sorted(os.listdir(closed)), *texts)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_only_what_is_needed_is_shown_in_a_closed_folder(tmp_path):
    closed = tmp_path / "closed"
    (closed / "a" / "b").mkdir(parents=True)
    for name in ("a/b/x", "f", "secret"):
        (closed / name).write_text(f"this is {name}")
    _open_to_all(tmp_path)
    closed.chmod(0o700)
    done = subprocess.run(
        [sys.executable, "-c", OPEN_WAY, str(closed)], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    covered, seen = done.stdout.splitlines()
    assert covered == f"(PosixPath('{closed}'),)"
    assert seen == "['a', 'f'] this is a/b/x this is f"
    assert sorted(path.name for path in closed.iterdir()) == ["a", "f", "secret"]


@pytest.fixture
def user():
    if os.geteuid() != 0 or shutil.which("useradd") is None:
        pytest.skip("only root can make a user, with useradd")
    name = f"dmt{secrets.token_hex(3)}"
    subprocess.run(["useradd", "-M", name], check=True)
    yield name
    subprocess.run(["userdel", name], check=True)


def test_attacks_run_as_another_user(user, tmp_path, capfd):
    number = pwd.getpwnam(user).pw_uid
    mine = f"print('BLOCKED' if os.getuid() == {number} and os.getgroups() in ([], [{number}])"
    attack = {"id": "1", "name": "who am I", "wrapped": True, "expect": ["BLOCKED"], "wall_s": 5}
    attack["code"] = f"{mine} else 'ESCAPED', os.getuid(), os.getgroups())"
    path = tmp_path / "attacks.jsonl"
    path.write_text(json.dumps(attack))
    command = ["--attacks", str(path), "--user", user, "--only", "1", "--fast", "--no-namespaces"]
    assert selfcheck.main(command) == 0, capfd.readouterr().err
    assert "1 of 1 attacks contained" in capfd.readouterr().out
