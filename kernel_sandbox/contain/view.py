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
import sys
from collections.abc import Iterable
from pathlib import Path

import kernel_sandbox
from kernel_sandbox.contain import held_paths, system
from kernel_sandbox.contain.system import MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_REC
from kernel_sandbox.policy import Policy

__all__ = [
    "DEVICES",
    "UNLISTED",
    "base_paths",
    "build",
    "has_process_limit",
    "process_numbers",
    "readable_paths",
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


def readable_paths(policy: Policy) -> tuple[Path, ...]:
    """Returns what a kernel may read: the system, its interpreter, its inputs. Missing ones too."""
    return (*base_paths(policy.network), *map(Path, policy.readable))


@functools.cache
def base_paths(network: bool) -> tuple[Path, ...]:
    """Returns what every kernel may read, missing paths too.

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
        OSError: a mount was refused.
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
    # The run folder alone, without the mounts below it: this view is one of them.
    _bind(root, Path(policy.run_dir), Path(policy.run_dir), flags=MS_BIND)
    _bind(root, Path(policy.workspace), Path(policy.workspace))
    # After the working folder: what is inside it stays read-only.
    for path in map(Path, policy.readable):
        if Path(policy.workspace) not in path.parents:
            _show(root, path)
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
    system.make_read_only(_bind(root, path.resolve(), path), recursive=True)


def _bind(root: Path, source: Path, place: Path, flags: int = MS_BIND | MS_REC) -> str:
    target = f"{root}{place}"
    if source.is_dir():
        os.makedirs(target, exist_ok=True)  # noqa: PTH103 (for each worker a score of times)
    elif not os.path.exists(target):  # noqa: PTH110
        os.makedirs(os.path.dirname(target), exist_ok=True)  # noqa: PTH103, PTH120
        _touch(target)
    system.mount(str(source), target, flags=flags)
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
