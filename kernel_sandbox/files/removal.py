"""Removes what code has left behind: folders of any depth, without rights, with any names."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from itertools import count

__all__ = ["empty_folder", "remove_tree"]

_OPEN = stat.S_IRWXU


def remove_tree(path: str | os.PathLike[str]) -> None:
    """Removes a folder with all in it, as far as that is possible; follows no link, never raises.

    Goes down one level only: what lies deeper is moved up first. So neither the length of a path
    nor the interpreter's stack sets a limit to the depth.

    Args:
        path: the folder; one that is not there is no error.
    """
    root = os.fspath(path)
    names = (os.path.join(root, f".removed-{number}") for number in count())  # noqa: PTH118
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        with contextlib.suppress(OSError):
            if os.path.islink(folder):  # noqa: PTH114
                return
            os.chmod(folder, _OPEN)  # noqa: PTH101
            with os.scandir(folder) as entries:
                found = list(entries)
            for entry in found:
                _take_out(entry, folder, root, names, waiting)
        if folder != root:
            with contextlib.suppress(OSError):
                os.rmdir(folder)  # noqa: PTH106
    with contextlib.suppress(OSError):
        os.rmdir(root)  # noqa: PTH106


def empty_folder(path: str | os.PathLike[str], keep: str = "") -> None:
    """Removes what is in a folder, as `remove_tree` would; the folder itself stays.

    Args:
        path: the folder.
        keep: the name of an entry that stays.
    """
    with contextlib.suppress(OSError):
        os.chmod(path, _OPEN)  # noqa: PTH101
        with os.scandir(path) as entries:
            found = [entry for entry in entries if entry.name != keep]
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                remove_tree(entry.path)
            else:
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)  # noqa: PTH108


def _take_out(
    entry: os.DirEntry[str], folder: str, root: str, names: Iterator[str], waiting: list[str]
) -> None:
    """Removes a file, or moves a folder to where it can be emptied."""
    with contextlib.suppress(OSError):
        if not entry.is_dir(follow_symlinks=False):
            os.unlink(entry.path)  # noqa: PTH108
        elif folder == root:
            waiting.append(entry.path)
        else:
            os.chmod(entry.path, _OPEN)  # noqa: PTH101 (a folder that can't be written can't move)
            place = next(names)
            os.rename(entry.path, place)  # noqa: PTH104
            waiting.append(place)
