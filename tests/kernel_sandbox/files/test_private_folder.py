"""Private folders: who may see them, and who tidies up after a killed owner."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_sandbox.files.folders import PrivateFolder, remove_tree

OWNER = """
import os, sys
from pathlib import Path
from kernel_sandbox.files.folders import PrivateFolder
folder = PrivateFolder(Path(sys.argv[1]), "p-")
print(folder.path, flush=True)
sys.stdin.read()
"""


def age(folder):
    os.utime(folder, (1, 1))


@pytest.fixture
def owner(tmp_path):
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()


def test_the_folder_is_private_and_goes_away_once(tmp_path):
    folder = PrivateFolder(tmp_path, "p-")
    assert folder.path.stat().st_mode & 0o777 == 0o700
    (folder.path / "file").write_text("x")
    folder.remove()
    folder.remove()
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_a_living_owner_stays_and_of_a_killed_one_goes(tmp_path, owner):
    path = Path(owner.stdout.readline().strip())
    age(path)
    PrivateFolder(tmp_path, "p-").remove()
    assert path.is_dir()
    owner.kill()
    owner.wait()
    PrivateFolder(tmp_path, "p-").remove()
    assert not path.is_dir()


def test_young_folders_links_and_other_kinds_are_left_alone(tmp_path):
    target = tmp_path / "target"
    for name in ("p-young", "q-old", "target"):
        (tmp_path / name).mkdir()
    age(tmp_path / "q-old")
    (tmp_path / "p-link").symlink_to(target)
    PrivateFolder(tmp_path, "p-").remove()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "p-link",
        "p-young",
        "q-old",
        "target",
    ]


def test_folders_are_removed_whatever_names_code_gave_to_others(tmp_path):
    root = tmp_path / "home"
    for number in range(5):
        for name in (f".removed-{number}", f"a{number}"):
            (root / name / "b" / "c").mkdir(parents=True)
            (root / name / "b" / "c" / "file").write_text("x")
    remove_tree(root)
    assert not root.exists()
