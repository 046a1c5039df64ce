"""Execution of a command line of this package as another user, which only root can request.

Covered: the other user's own numbers and groups, a clean temporary home, and a way to an
interpreter in a closed folder (`/root`). The command gets its own mount namespace, where an empty
folder covers the closed one. Only what is needed is bound back at its own path.
Not covered: a folder that access control lists close. What is needed has to be readable itself.

The inner half is `python -m kernel_sandbox.conformance.other_user NAME HOME NEEDED... -- MODULE
ARGUMENT...`.
"""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import kernel_sandbox
from kernel_sandbox.confine import system

__all__ = ["closed_ancestor", "main", "open_way", "run_as"]

_CLONE_NEWNS = 0x00020000
_UMASK = 0o022


def run_as(name: str, module: str, arguments: Sequence[str], readable: Iterable[Path] = ()) -> int:
    """Run a module of this interpreter as another user; return its exit status.

    Args:
        name: the user.
        module: the module for `python -m`.
        arguments: its command line.
        readable: files that it reads, besides the interpreter and this package.

    Raises:
        PermissionError: this process is not root's.
        ValueError: there is no such user.
    """
    if os.geteuid() != 0:
        raise PermissionError(f"only root can become {name}: run it as root, or as {name} yourself")
    try:
        user = pwd.getpwnam(name)
    except KeyError as error:
        raise ValueError(f"there is no user {name!r} on this machine") from error
    needed = [*map(str, _own_folders()), *(str(path.absolute()) for path in readable)]
    with tempfile.TemporaryDirectory(prefix="dm-home-", ignore_cleanup_errors=True) as home:
        os.chown(home, user.pw_uid, user.pw_gid)
        command = [sys.executable, "-m", "kernel_sandbox.conformance.other_user", name, home]
        command += [*needed, "--", module, *arguments]
        return subprocess.run(command, env=_environment(name, home), check=False).returncode


def _own_folders() -> list[Path]:
    """Return the folders of this interpreter, its packages and this package."""
    program = Path(sys.executable).resolve()
    return [
        Path(sys.prefix),
        Path(sys.base_prefix),
        program.parents[1],
        Path(kernel_sandbox.__file__).parent,
    ]


def _environment(name: str, home: str) -> dict[str, str]:
    variables = {"PATH": os.defpath, "LANG": "C.UTF-8", "HOME": home}
    return variables | {"USER": name, "LOGNAME": name}


def closed_ancestor(path: Path, user: int, groups: Iterable[int]) -> Path | None:
    """Return the outermost folder above a path that a user can't enter, or `None`.

    Args:
        path: an absolute path that exists.
        user: the user's number.
        groups: the numbers of the user's groups.
    """
    members = frozenset(groups)
    for folder in reversed(path.parents):
        info = folder.stat()
        entry = stat.S_IXOTH
        if info.st_uid == user:
            entry = stat.S_IXUSR
        elif info.st_gid in members:
            entry = stat.S_IXGRP
        if not info.st_mode & entry:
            return folder
    return None


def open_way(  # pragma: no cover (runs in the child)
    paths: Iterable[Path], user: int, groups: Sequence[int]
) -> tuple[Path, ...]:
    """Cover the closed folders above the paths, in this mount namespace; return these folders.

    Args:
        paths: what the user has to reach.
        user: the user's number.
        groups: the numbers of the user's groups.

    Raises:
        OSError: the system refuses a mount, or a path does not exist.
    """
    covered: dict[Path, list[tuple[Path, int]]] = {}
    given = tuple(paths)
    for path in sorted({*given, *(item.resolve() for item in given)}):
        folder = closed_ancestor(path, user, groups)
        if folder is not None:  # opened before it is covered: the only way to it afterwards
            covered.setdefault(folder, []).append((path, os.open(path, os.O_PATH)))
    for folder, kept in covered.items():
        system.mount("tmpfs", str(folder), "tmpfs", system.MS_NOSUID | system.MS_NODEV, "mode=0755")
        for path, descriptor in kept:
            _bind(descriptor, path)
    return tuple(covered)


def _bind(descriptor: int, path: Path) -> None:  # pragma: no cover (runs in the child)
    """Show an open file or folder at its own path again, and close it."""
    try:
        if path.exists():  # inside a folder that was bound before
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            path.mkdir()
        else:
            path.touch()
        system.bind(descriptor, str(path), read_only=False)
    finally:
        os.close(descriptor)


def main(arguments: Sequence[str]) -> None:  # pragma: no cover (runs in the child)
    """Become the user and the module; do not return.

    Args:
        arguments: the user, the home, the paths to reach, `--`, the module, its command line.

    Raises:
        OSError: the system refuses a step.
    """
    name, home, *rest = arguments
    mark = rest.index("--")
    user = pwd.getpwnam(name)
    groups = os.getgrouplist(name, user.pw_gid)
    os.umask(_UMASK)
    system.unshare(_CLONE_NEWNS)
    system.mount("none", "/", flags=system.MS_REC | system.MS_PRIVATE)
    open_way([Path(path) for path in rest[:mark]], user.pw_uid, groups)
    os.setgroups(groups)
    os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
    os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
    os.chdir(home)
    command = [sys.executable, "-m", *rest[mark + 1 :]]
    os.execve(sys.executable, command, _environment(name, home))  # noqa: S606 (no shell is wanted)


if __name__ == "__main__":  # pragma: no cover
    main(sys.argv[1:])
