"""System calls that Python lacks, made through the C library; each may raise `OSError`."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import re

from kernel_sandbox.confine.syscall_numbers import number_here

__all__ = [
    "DIE_WITH_PARENT",
    "MS_BIND",
    "MS_NODEV",
    "MS_NOEXEC",
    "MS_NOSUID",
    "MS_PRIVATE",
    "MS_REC",
    "MS_REMOUNT",
    "bind",
    "detach",
    "library",
    "linux_version",
    "make_read_only",
    "mount",
    "pivot_root",
    "prctl",
    "set_host_name",
    "set_namespaces",
    "unshare",
]

MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18

DIE_WITH_PARENT = 1
"""The option of `prctl` that sets the signal sent when the parent ends."""
_MNT_DETACH = 2
_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_OPEN_TREE_CLONE, _MOVE_FROM_OPEN, _MOVE_TO_OPEN = 1, 0x4, 0x40
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4
# The same numbers on every processor: these calls are younger than the common table.
_SYS_OPEN_TREE, _SYS_MOVE_MOUNT, _SYS_MOUNT_SETATTR = 428, 429, 442


class _MountAttributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("user_namespace", ctypes.c_uint64),
    )


@functools.cache
def library() -> ctypes.CDLL:
    """Return the C library, loaded once because loading costs more than a call."""
    loaded = ctypes.CDLL(None, use_errno=True)
    loaded.syscall.restype = ctypes.c_long
    return loaded


def linux_version() -> tuple[int, int]:
    """Return the first two numbers of the running system's version, or zeros if it has none."""
    found = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _call(name: str, *arguments: object) -> int:
    try:
        function = getattr(library(), name)
    except AttributeError as error:
        raise OSError(errno.ENOSYS, f"this system has no {name}()") from error
    result = int(function(*arguments))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def prctl(option: int, argument: int = 0, third: int = 0) -> int:
    """Change a property of this process; arguments that an option lacks are 0."""
    return _call("prctl", option, argument, third, 0, 0)


def unshare(flags: int) -> None:
    """Give this process namespaces of its own."""
    _call("unshare", flags)


def set_namespaces(descriptor: int, kinds: int) -> None:
    """Join the namespaces of these kinds, by a process's pidfd or an open namespace."""
    _call("setns", descriptor, kinds)


def set_host_name(name: str) -> None:
    """Set the host name that the processes of this namespace see."""
    _call("sethostname", name.encode(), len(name))


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mount a file system, or with MS_BIND a folder or file at a second path."""
    try:
        _call("mount", source.encode(), target.encode(), kind.encode(), flags, options.encode())
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}: {kind or source} at {target}") from error


def make_read_only(target: str, *, recursive: bool, devices: bool = False) -> None:
    """Make a mount read-only, with all below it if `recursive`; it can't be undone from inside.

    Args:
        target: the path where it is mounted.
        recursive: whether to change the mounts below it, too.
        devices: whether device files in it still work.
    """
    try:
        _set_read_only(_AT_FDCWD, target, _AT_RECURSIVE if recursive else 0, devices=devices)
    except OSError as error:
        raise OSError(error.errno, f"mount_setattr: {error.strerror}: {target}") from error


def _set_read_only(descriptor: int, path: str, flags: int, *, devices: bool = False) -> None:
    wanted = _ATTR_RDONLY | _ATTR_NOSUID | (0 if devices else _ATTR_NODEV)
    attributes = _MountAttributes(wanted, 0, 0, 0)
    _call(
        "syscall",
        ctypes.c_long(_SYS_MOUNT_SETATTR),
        descriptor,
        path.encode(),
        flags,
        ctypes.byref(attributes),
        ctypes.c_size_t(ctypes.sizeof(attributes)),
    )


def bind(source: int, place: int | str, *, read_only: bool, recursive: bool = True) -> None:
    """Mount a file or folder at a second path, or as a mount of its own at its own path.

    It uses open files and not paths, because a path may lead elsewhere by now.

    Args:
        source: a descriptor of the file or folder, opened with `O_PATH`.
        place: a descriptor of what the mount hides, which may be `source`; or a path that nobody
            else can change.
        read_only: whether the mount, with those below it, refuses writes.
        recursive: whether to show the mounts below the source, too.
    """
    below = _AT_RECURSIVE if recursive else 0
    flags = _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_EMPTY_PATH | below
    tree = _call("syscall", ctypes.c_long(_SYS_OPEN_TREE), source, b"", flags)
    try:
        if read_only:
            _set_read_only(tree, "", _AT_EMPTY_PATH | _AT_RECURSIVE)
        move = ctypes.c_long(_SYS_MOVE_MOUNT)
        if isinstance(place, int):
            to = (place, b"", _MOVE_FROM_OPEN | _MOVE_TO_OPEN)
        else:
            to = (_AT_FDCWD, place.encode(), _MOVE_FROM_OPEN)
        _call("syscall", move, tree, b"", *to)
    finally:
        os.close(tree)


def pivot_root(new: str, old: str) -> None:
    """Make `new` the root of the files and move the former root to `old`, a folder below it."""
    _call("syscall", ctypes.c_long(number_here("pivot_root")), new.encode(), old.encode())


def detach(target: str) -> None:
    """Detach a mount, with all below it."""
    _call("umount2", target.encode(), _MNT_DETACH)
