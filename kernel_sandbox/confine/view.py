"""The files that a kernel sees: a root of its own, built in its mount namespace.

Covered: system folders, the interpreter, the inputs and the run folder are read-only. The working
folder, the home folder and the folder for temporary files are writable. Protected paths in them are
not, and can't be moved (`held_paths`). There are a small private /tmp and /dev/shm, and a read-only
/proc of the kernel's own processes. Settings beside the interpreter are covered (`system_paths`).
Nothing else of the machine has a name in the view.
Not covered: a protected path that is created only after the start.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from kernel_sandbox.confine import held_paths, system
from kernel_sandbox.confine.rlimits import THREADS
from kernel_sandbox.confine.spec import ConfinementSpec
from kernel_sandbox.confine.system import MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_REC
from kernel_sandbox.confine.system_paths import (
    SYSTEM,
    base_paths,
    hidden_paths,
    interpreter_folders,
)
from kernel_sandbox.files.beneath import opened

__all__ = [
    "DEVICES",
    "UNLISTED",
    "build",
    "has_process_limit",
    "is_covered",
    "look_again",
    "process_numbers",
]

TEMPORARY_BYTES = 256 * 1024**2
SHARED_MEMORY_BYTES = 64 * 1024**2
"""Both are small because they live in memory. The watchdog counts their contents."""
TEMPORARY_FILES = 16_384
"""Most files in each: even an empty file takes memory that is in no file's size."""

UNLISTED = Path("/.unlisted")
"""An empty file that no rule names: only the view restricts a process that can read it."""
EMPTY = Path("/.empty")
"""An empty folder, likewise."""
DEVICES = ("null", "full", "random", "urandom")
"""No `zero`: memory mapped from it and shared stays when no process maps it any more."""
_RESERVED_PIDS = 300
"""The system never assigns process ids below this one twice."""
_OWN_LIMIT_SINCE = (6, 14)
"""First Linux in which a process namespace has its own `pid_max`. Before it, the file applies to
the whole machine, and root may write it from inside the view, too."""


def build(policy: ConfinementSpec) -> ConfinementSpec:
    """Move this process, the first of its process namespace, into the view, for good.

    Args:
        policy: the specification of what to show and how many processes there may be.

    Returns:
        The specification, without the layer above the working folder if the system accepts none.

    Raises:
        OSError: a mount was refused, or a path of the specification is gone or has a link in it
            by now.
    """
    root = Path(policy.run_dir) / "view"
    root.mkdir(mode=0o700, exist_ok=True)
    system.mount("", "/", flags=MS_REC | system.MS_PRIVATE)
    system.mount("tmpfs", str(root), "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m")
    _make_proc(root, process_numbers(policy))
    _make_devices(root)
    _make_temporary(root)
    _touch(f"{root}{UNLISTED}")
    Path(f"{root}{EMPTY}").mkdir()
    for path in base_paths(policy.network):
        if path.exists():
            _show(root, path)
    own = (policy.workspace, *policy.private)
    outside = (x for x in policy.readable if Path(policy.workspace) not in Path(x).parents)
    # The upper ones first: a mount hides what was mounted below its path before.
    shown = (policy.run_dir, *outside, *own)
    for name in sorted(shown, key=lambda name: name.count("/")):
        with opened(Path(policy.readable.get(name, name))) as found:
            is_folder = stat.S_ISDIR(os.fstat(found).st_mode)
            place = _make_place(f"{root}{name}", is_folder=is_folder)
            # The run folder without the mounts below it: this view is one of them.
            below = name != policy.run_dir
            if name == policy.workspace and policy.layer:
                try:
                    _cover(found, place, Path(policy.layer))
                    continue
                except OSError:  # `confine` reports it
                    policy = replace(policy, layer="")
            system.bind(found, place, read_only=name not in own, recursive=below)
    workspace = f"{root}{policy.workspace}"
    needed = (*policy.readable, *map(str, interpreter_folders()))
    held_paths.hold(workspace, _inside(policy, needed), _inside(policy, policy.protected))
    for path in hidden_paths():
        _hide(root, path)
    _enter(root)
    os.chdir(policy.workspace)
    return policy


def _cover(folder: int, place: str, layer: Path) -> None:
    """Show a folder with a layer above it, which receives all writes.

    Raises:
        OSError: the system, or the file system of the layer, does not support it.
    """
    with opened(layer / "upper") as upper, opened(layer / "work") as work:
        # By descriptors: a path may contain characters special in mount options, or a link by now.
        parts = (f"lowerdir={_through(folder)}", f"upperdir={_through(upper)}")
        options = (*parts, f"workdir={_through(work)}", "userxattr")
        system.mount("overlay", place, "overlay", MS_NOSUID | MS_NODEV, ",".join(options))


def _through(descriptor: int) -> str:
    return f"/proc/self/fd/{descriptor}"


def is_covered(workspace: str) -> bool:
    """Whether there is a layer above the working folder, as this process sees it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
            before, _, after = line.partition(" - ")
            # Blanks and similar characters are escaped in octal there.
            place = before.split()[4].encode().decode("unicode_escape", "replace")
            if place.encode("latin-1", "replace").decode("utf-8", "replace") == workspace:
                return after.startswith("overlay ")
    return False


def look_again(workspace: str) -> bool:
    """Make the system drop its cache of the working folder's names.

    Without it, changes to a folder that is below another file system are not seen.

    Args:
        workspace: the folder, as this process sees it.

    Returns:
        Whether the system did.
    """
    try:
        system.mount("", workspace, flags=system.MS_REMOUNT | MS_NOSUID | MS_NODEV)
    except OSError:
        return False
    return True


def _inside(policy: ConfinementSpec, paths: Iterable[str]) -> list[Path]:
    """Return the paths that are below the working folder, relative to it."""
    workspace = Path(policy.workspace)
    return [path.relative_to(workspace) for path in map(Path, paths) if workspace in path.parents]


def _show(root: Path, path: Path) -> None:
    """Show a file or folder at its own path, read-only; a link of the system stays a link."""
    if str(path) in SYSTEM and path.is_symlink():
        (root / path.relative_to("/")).symlink_to(path.readlink())
        return
    target = _make_place(f"{root}{path}", is_folder=path.is_dir())
    system.mount(str(path.resolve()), target, flags=MS_BIND | MS_REC)
    system.make_read_only(target, recursive=True)


def _hide(root: Path, path: Path) -> None:
    """Cover a file or folder, if it is shown, with an empty one."""
    target = f"{root}{path}"
    if os.path.lexists(target):
        cover = EMPTY if path.is_dir() else UNLISTED
        system.mount(f"{root}{cover}", target, flags=MS_BIND)
        system.make_read_only(target, recursive=False)


def _make_place(target: str, *, is_folder: bool) -> str:
    """Create the mount point, unless it exists, and return it."""
    if is_folder:
        os.makedirs(target, exist_ok=True)  # noqa: PTH103 (for each worker a score of times)
    elif not os.path.exists(target):  # noqa: PTH110
        os.makedirs(os.path.dirname(target), exist_ok=True)  # noqa: PTH103, PTH120
        _touch(target)
    return target


def _touch(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666))


def process_numbers(policy: ConfinementSpec) -> int:
    """Return how many process ids a kernel's namespace has, which is the only limit for root."""
    return _RESERVED_PIDS + policy.processes + THREADS


def has_process_limit(policy: ConfinementSpec) -> bool:
    """Whether the process namespace of this process has the limit that the view set."""
    if system.linux_version() < _OWN_LIMIT_SINCE:
        return False
    try:
        text = Path("/proc/sys/kernel/pid_max").read_text(encoding="utf-8")
    except OSError:
        return False
    return int(text) <= process_numbers(policy)


def _make_proc(root: Path, numbers: int) -> None:
    proc = root / "proc"
    proc.mkdir()
    system.mount("proc", str(proc), "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    if system.linux_version() >= _OWN_LIMIT_SINCE:
        with contextlib.suppress(OSError):  # the step `pid_limit` reports it
            (proc / "sys/kernel/pid_max").write_text(str(numbers), encoding="utf-8")
    # The settings of the system belong to root's user id, which no namespace changes.
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
    options = f"mode=1777,size={size_bytes},nr_inodes={TEMPORARY_FILES}"
    system.mount("tmpfs", str(folder), "tmpfs", flags, options)


def _enter(root: Path) -> None:
    old = root / "old"
    old.mkdir()
    system.pivot_root(str(root), str(old))
    os.chdir("/")
    system.detach("/old")
    Path("/old").rmdir()
    system.make_read_only("/", recursive=False, devices=True)
