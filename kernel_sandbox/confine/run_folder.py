"""The private folder of one kernel: its home, its temporary files, its settings, its sockets.

The kernel writes in `home` and `tmp`, and only reads `ipython`, IPython's settings. All three are
recreated at each start, so that nothing a kernel left behind runs in the next one. `work` is its
working folder if it has no other. `k-1` to `k-5` are the sockets of its channels, bound by the
process that starts it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from kernel_sandbox import environment
from kernel_sandbox.confine.spec import WRITABLE
from kernel_sandbox.errors import KernelStartError
from kernel_sandbox.files.folders import PrivateFolder, remove_tree

__all__ = ["furnish", "furnish_home", "make_run_folder"]

SOCKET_PATH_BYTES = 107
_LONGEST_SOCKET = "k-5"
_IPYTHON_FOLDERS = ("security", "log", "pid", "startup", "db")


def make_run_folder() -> PrivateFolder:
    """Return a new private folder with what every kernel finds in it.

    Raises:
        KernelStartError: its path is too long for a socket, or it can't be filled.
    """
    folder = PrivateFolder(environment.runtime_base(), "dmj-")
    path = folder.path
    if len(os.fsencode(path / _LONGEST_SOCKET)) > SOCKET_PATH_BYTES:
        folder.remove()
        raise KernelStartError(f"{path} is too long for a socket: set a shorter XDG_RUNTIME_DIR")
    try:
        furnish(path)
    except BaseException:
        folder.remove()
        raise
    return folder


def furnish(run_dir: Path) -> None:
    """Recreate what a start needs, without traces of an earlier kernel; no kernel may be running.

    Args:
        run_dir: the private folder.

    Raises:
        KernelStartError: something of an earlier kernel can't be removed, or the disk is full.
    """
    try:
        for name in (*WRITABLE, environment.IPYTHON):
            remove_tree(run_dir / name)
            (run_dir / name).mkdir(mode=0o700)
        profile = run_dir / environment.IPYTHON / "profile_default"
        for name in _IPYTHON_FOLDERS:  # IPython would create them, and can't
            (profile / name).mkdir(parents=True)
        furnish_home(run_dir / "home")
    except OSError as error:
        text = f"the private folder of the kernel can't be filled: {error}. Free space on its disk"
        raise KernelStartError(f"{text}, or shut the kernel down and start a new one") from error


def furnish_home(home: Path) -> None:
    """Fill an empty home folder with what every kernel finds there.

    Args:
        home: the folder.
    """
    fonts = home / "matplotlib"
    fonts.mkdir()
    style = environment.chart_style()
    for file in (*environment.font_caches(), style):
        shutil.copyfile(file, fonts / file.name)
