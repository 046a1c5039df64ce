"""The files that a kernel sees: a root of its own, built in its mount namespace.

Covered: system folders, the interpreter and the inputs, read-only; the working folder and the run
folder, to write, but for the protected paths in them, which stay where they are (`held_paths`);
small private /tmp and /dev/shm; a /proc of its own processes that takes no write. Nothing else of
the machine has a name in there.
Not covered: a protected path that is made only after the start.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

import kernel_sandbox
from kernel_sandbox.contain import held_paths, system
from kernel_sandbox.contain.real_paths import opened
from kernel_sandbox.contain.system import MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_REC
from kernel_sandbox.policy import Policy

__all__ = [
    "DEVICES",
    "UNLISTED",
    "base_paths",
    "build",
    "has_process_limit",
    "process_numbers",
]

TEMPORARY_BYTES = 256 * 1024**2
SHARED_MEMORY_BYTES = 64 * 1024**2
"""Both live in memory where no watchdog of processes sees them: hence small."""

UNLISTED = Path("/.unlisted")
"""An empty file that no rule names: who can read it is held by nothing but the view."""
DEVICES = ("null", "zero", "full", "random", "urandom")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
_ETC = ("ld.so.cache", "alternatives", "fonts", "ssl", "localtime", "timezone", "mime.types")
_ETC_NETWORK = ("resolv.conf", "hosts", "nsswitch.conf", "ca-certificates", "pki")
_RESERVED_PIDS = 300
"""The system never gives numbers below this one twice."""
_THREADS = 256


@functools.cache
def base_paths(network: bool) -> tuple[Path, ...]:
    """Returns what every kernel may read: the system and its interpreter. Missing paths, too.

    Args:
        network: whether the kernel may reach one.
    """
    etc = (*_ETC, *_ETC_NETWORK) if network else _ETC
    return tuple(map(Path, (*_SYSTEM, *(f"/etc/{name}" for name in etc), *_interpreter_paths())))


def _interpreter_paths() -> list[str]:
    """The interpreter and this package: exactly their folders, never the home around them."""
    package = str(Path(kernel_sandbox.__file__).parent)
    program = str(Path(sys.executable).resolve().parents[1])
    roots = [sys.prefix, sys.base_prefix, program]
    kept: list[str] = []
    for path in (*roots, *map(os.path.realpath, roots), package):
        if not any(f"{path}/".startswith(f"{other}/") for other in (*_SYSTEM, *kept)):
            kept.append(path)
    return kept


def build(policy: Policy) -> None:
    """Moves this process into the view, for good; it is the first of its process namespace.

    Args:
        policy: what to show, and how many processes there may be.

    Raises:
        OSError: a mount was refused, or a path of the policy is gone or has a link in it by now.
    """
    root = Path(policy.run_dir) / "view"
    root.mkdir(mode=0o700, exist_ok=True)
    system.mount("", "/", flags=MS_REC | system.MS_PRIVATE)
    system.mount("tmpfs", str(root), "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m")
    _make_proc(root, process_numbers(policy))
    _make_devices(root)
    _make_temporary(root)
    _touch(f"{root}{UNLISTED}")
    for path in base_paths(policy.network):
        if path.exists():
            _show(root, path)
    own = (policy.run_dir, policy.workspace)
    outside = (x for x in policy.readable if Path(policy.workspace) not in Path(x).parents)
    # The upper ones first: a mount hides what was mounted below its place before.
    for name in sorted((*outside, *own), key=lambda name: name.count("/")):
        with opened(Path(policy.readable.get(name, name))) as found:
            is_folder = stat.S_ISDIR(os.fstat(found).st_mode)
            place = _make_place(f"{root}{name}", is_folder=is_folder)
            # The run folder without the mounts below it: this view is one of them.
            below = name != policy.run_dir
            system.bind(found, place, read_only=name not in own, recursive=below)
    workspace = f"{root}{policy.workspace}"
    held_paths.hold(workspace, _inside(policy, policy.readable), _inside(policy, policy.protected))
    _enter(root)
    os.chdir(policy.workspace)


def _inside(policy: Policy, paths: Iterable[str]) -> list[Path]:
    """Those of the paths that lie below the working folder, relative to it."""
    workspace = Path(policy.workspace)
    return [path.relative_to(workspace) for path in map(Path, paths) if workspace in path.parents]


def _show(root: Path, path: Path) -> None:
    """Shows a file or folder at its own place, read-only; a link of the system stays a link."""
    if str(path) in _SYSTEM and path.is_symlink():
        (root / path.relative_to("/")).symlink_to(path.readlink())
        return
    target = _make_place(f"{root}{path}", is_folder=path.is_dir())
    system.mount(str(path.resolve()), target, flags=MS_BIND | MS_REC)
    system.make_read_only(target, recursive=True)


def _make_place(target: str, *, is_folder: bool) -> str:
    """Makes what is mounted upon, unless it is there; returns it."""
    if is_folder:
        os.makedirs(target, exist_ok=True)  # noqa: PTH103 (for each worker a score of times)
    elif not os.path.exists(target):  # noqa: PTH110
        os.makedirs(os.path.dirname(target), exist_ok=True)  # noqa: PTH103, PTH120
        _touch(target)
    return target


def _touch(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666))


def process_numbers(policy: Policy) -> int:
    """Returns how many process numbers a kernel's namespace has: its only limit for root."""
    return _RESERVED_PIDS + policy.processes + _THREADS


def has_process_limit(policy: Policy) -> bool:
    """Whether the process namespace of this process has the limit that the view set."""
    try:
        text = Path("/proc/sys/kernel/pid_max").read_text(encoding="utf-8")
    except OSError:
        return False
    return int(text) <= process_numbers(policy)


def _make_proc(root: Path, numbers: int) -> None:
    proc = root / "proc"
    proc.mkdir()
    system.mount("proc", str(proc), "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    with contextlib.suppress(OSError):  # before Linux 6.14; the step `pid_limit` says so
        (proc / "sys/kernel/pid_max").write_text(str(numbers), encoding="utf-8")
    # The settings of the system belong to root's number, which no namespace changes.
    system.make_read_only(str(proc), recursive=True)


def _make_devices(root: Path) -> None:
    folder = root / "dev"
    folder.mkdir()
    for name in DEVICES:
        _touch(f"{folder}/{name}")
        system.mount(f"/dev/{name}", f"{folder}/{name}", flags=MS_BIND)
    (folder / "fd").symlink_to("/proc/self/fd")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        (folder / name).symlink_to(f"/proc/self/fd/{number}")
    _temporary(folder / "shm", SHARED_MEMORY_BYTES)


def _make_temporary(root: Path) -> None:
    _temporary(root / "tmp", TEMPORARY_BYTES)


def _temporary(folder: Path, size_bytes: int) -> None:
    folder.mkdir()
    flags = MS_NOSUID | MS_NODEV
    system.mount("tmpfs", str(folder), "tmpfs", flags, f"mode=1777,size={size_bytes}")


def _enter(root: Path) -> None:
    old = root / "old"
    old.mkdir()
    system.pivot_root(str(root), str(old))
    os.chdir("/")
    system.detach("/old")
    Path("/old").rmdir()
    system.make_read_only("/", recursive=False, devices=True)
