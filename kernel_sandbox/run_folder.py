"""The private folder of one kernel: its home, its temporary files and its sockets."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from kernel_sandbox import environment
from kernel_sandbox.errors import KernelStartError
from kernel_sandbox.private_folder import PrivateFolder

__all__ = ["furnish_home", "make_run_folder"]

SOCKET_PATH_BYTES = 107
_LONGEST_SOCKET = "k-5"


def make_run_folder() -> PrivateFolder:
    """Returns a new folder with what every kernel finds in it.

    Raises:
        KernelStartError: its path is too long for a socket.
    """
    folder = PrivateFolder(environment.runtime_base(), "dmj-")
    path = folder.path
    if len(os.fsencode(path / _LONGEST_SOCKET)) > SOCKET_PATH_BYTES:
        folder.remove()
        raise KernelStartError(f"{path} is too long for a socket: set a shorter XDG_RUNTIME_DIR")
    for name in ("home", "tmp"):
        (path / name).mkdir(mode=0o700)
    furnish_home(path / "home")
    return folder


def furnish_home(home: Path) -> None:
    """Puts into an empty home folder what every kernel finds there.

    Args:
        home: the folder.
    """
    fonts = home / "matplotlib"
    fonts.mkdir()
    for cache in environment.font_caches():
        shutil.copyfile(cache, fonts / cache.name)
