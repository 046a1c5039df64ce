"""Namespaces and a minimal view of the files, through the program `bwrap`.

Covered: the kernel sees system folders, its interpreter and its inputs, all read-only, and writes
only to its working folder and its run folder; it sees no other process and has no network unless
that is allowed; when it ends, everything that it started ends.
Not covered: system calls (no filter here), and the clock and processor of the machine.
"""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import kernel_sandbox
from kernel_sandbox.containment import LayerState
from kernel_sandbox.environment import find_program

__all__ = ["Probe", "View", "arguments", "probe"]

PROGRAM = "bwrap"
REMEDY = "install it, for example with `apt-get install bubblewrap`"
TEMPORARY_BYTES = 256 * 1024**2
SHARED_MEMORY_BYTES = 64 * 1024**2
"""Both live in memory where no watchdog of processes sees them: hence small."""

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
_ETC = ("ld.so.cache", "alternatives", "fonts", "ssl", "localtime", "timezone", "mime.types")
_ETC_NETWORK = ("resolv.conf", "hosts", "nsswitch.conf", "ca-certificates", "pki")
_NEWER = ("--disable-userns",)
_PROBE_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Probe:
    """Whether `bwrap` works here, found by running it."""

    program: str | None
    """Its absolute path; `None` where it can't be used."""
    state: LayerState
    reason: str = ""
    options: tuple[str, ...] = ()
    """Options that this `bwrap` knows and an older one does not."""


@dataclass(frozen=True, slots=True)
class View:
    """What a kernel sees of the machine."""

    workspace: Path
    """Read and written, and the current folder."""
    run_dir: Path
    """Read and written: the sockets live in it."""
    readable: tuple[Path, ...] = ()
    """Files at their own absolute paths, read-only."""
    network: bool = False


def arguments(program: str, view: View, options: Sequence[str] = ()) -> list[str]:
    """Returns the command line that runs what follows it inside the view.

    Args:
        program: the absolute path of `bwrap`.
        view: what it shows.
        options: what the probe found it to know.
    """
    return [
        program,
        *options,
        *_namespaces(view.network),
        *_read_only(_system_paths(view.network)),
        *("--proc", "/proc"),
        # For a kernel that root starts, the settings of the system would be writable through
        # /proc: they belong to root's number, which no namespace changes.
        *("--ro-bind", "/proc/sys", "/proc/sys"),
        *("--ro-bind-try", "/proc/sysrq-trigger", "/proc/sysrq-trigger"),
        *("--dev", "/dev"),
        *("--size", str(SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm"),  # noqa: S108
        *("--remount-ro", "/dev"),
        # First the empty /tmp, then what may lie below it.
        *("--size", str(TEMPORARY_BYTES), "--tmpfs", "/tmp"),  # noqa: S108
        *_read_only(_interpreter_paths()),
        *("--bind", str(view.workspace), str(view.workspace)),
        *("--bind", str(view.run_dir), str(view.run_dir)),
        # After the working folder: an input inside it stays read-only.
        *_read_only(view.readable, must_exist=True),
        # Last: what was bound stays as it is, the empty folders around it take no file.
        *("--remount-ro", "/"),
        *("--chdir", str(view.workspace)),
        "--",
    ]


def _namespaces(network: bool) -> list[str]:
    unshared = ["user", "pid", "ipc", "uts"] + ([] if network else ["net"])
    return [
        *(f"--unshare-{name}" for name in unshared),
        *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
        *("--hostname", "sandbox"),
    ]


def _system_paths(network: bool) -> list[Path]:
    names = (*_ETC, *_ETC_NETWORK) if network else _ETC
    return [Path(path) for path in _SYSTEM] + [Path("/etc") / name for name in names]


def _interpreter_paths() -> list[Path]:
    """The interpreter and this package: exactly their folders, never the home around them."""
    package = Path(kernel_sandbox.__file__).parent
    roots = [Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parents[1]]
    candidates = [*roots, *(root.resolve() for root in roots), package]
    seen = [Path(path) for path in _SYSTEM]
    kept: list[Path] = []
    for path in candidates:
        if not any(path.is_relative_to(other) for other in (*seen, *kept)):
            kept.append(path)
    return kept


def _read_only(paths: Iterable[Path], must_exist: bool = False) -> list[str]:
    option = "--ro-bind" if must_exist else "--ro-bind-try"
    return [part for path in paths for part in (option, str(path), str(path))]


def probe() -> Probe:
    """Returns whether `bwrap` can be used, by running it; remembered for each program found."""
    return _run(find_program(PROGRAM))


@functools.cache
def _run(program: str | None) -> Probe:
    if program is None:
        return Probe(None, LayerState.ABSENT, f"`{PROGRAM}` is not installed: {REMEDY}")
    command = [*_namespaces(network=False), *_read_only(_system_paths(network=False))]
    command += ["--proc", "/proc", "--dev", "/dev", "--", "true"]
    if not _failure([program, *_NEWER, *command]):
        return Probe(program, LayerState.ACTIVE, options=_NEWER)
    refusal = _failure([program, *command])
    if not refusal:
        return Probe(program, LayerState.ACTIVE)
    hint = "this system does not let it make namespaces (user.max_user_namespaces, AppArmor)"
    return Probe(None, LayerState.REFUSED, f"{program} failed: {refusal}; {hint}")


def _failure(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=_PROBE_TIMEOUT_S, check=False, text=True
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else (done.stderr.strip() or f"status {done.returncode}")
