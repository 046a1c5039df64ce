"""Which files a process may open, enforced by the system: Landlock, which needs no privileges.

Covered: from `restrict` on, this thread and its children use files only below the folders of the
rules, whatever the path: links, `..`, `/proc/self/root`. That means to open, run, create, remove
and rename them.
Without the network, there is no TCP from ABI 4 on. From ABI 6 on there is no abstract socket and
no signal to a process outside. A later `restrict` can only tighten.
Not covered: files that are open already. Names, sizes, owners and modes of files outside, which
can be read, and changed where the user may. Other threads of this process, whose presence makes
the layer refused. UDP, and unix sockets that have a path. Writing to a protected entry of a
writable folder: a right on a folder applies to everything below it, so code that may create a file
beside `.git` may also move one into it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

from kernel_sandbox.confine import system
from kernel_sandbox.confine.layers import Layer, LayerState
from kernel_sandbox.confine.privileges import drop_privileges
from kernel_sandbox.files.beneath import opened

__all__ = ["LandlockRules", "abi", "restrict"]

NAME = "landlock"
MAXIMUM_LAYERS = 16

# The same numbers on every processor that Linux runs Python on, except the Alpha.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_MAKE_AND_REMOVE = sum(1 << bit for bit in (4, 5, 7, 8, 9, 10, 12))  # no device is ever made
_FIRST_RIGHTS = (1 << 13) - 1
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_WRITE = _READ_FILE | _READ_DIR | _WRITE_FILE | _TRUNCATE | _REFER | _MAKE_AND_REMOVE
_TCP = 0b11
_SCOPES = 0b11

_DEVICES = tuple(Path("/dev") / name for name in ("null", "full", "urandom", "random"))
_SINCE = (
    (2, "renaming between folders is always refused"),
    (3, "truncating files outside"),
    (4, "TCP"),
    (5, "ioctl on devices"),
    (6, "signals and abstract unix sockets"),
)


@dataclass(frozen=True, slots=True)
class LandlockRules:
    """What a process may still open; a path that is missing, or has a link in it, is skipped."""

    readable: tuple[Path, ...] = ()
    """Files and whole folder trees that may be read and executed. `/proc` must be listed."""
    writable: tuple[Path, ...] = ()
    """Read, written, created, removed and renamed; executed only if `readable` lists it too."""
    listable: tuple[Path, ...] = ()
    """Folders in whose whole tree the names of files can be read, but no content."""
    network: bool = False
    """Whether TCP stays open."""
    system: tuple[Path, ...] = ()
    """Like `readable`, but links are followed: restricted code can't create one there."""


@dataclass(frozen=True, slots=True)
class _Handled:
    """What one version of the mechanism can deny."""

    files: int
    network: int
    scopes: int


def abi() -> int:
    """Return the Landlock version of this system; 0 if it has none or has it off."""
    if not sys.platform.startswith("linux"):
        return 0
    try:
        return _call(_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)
    except OSError:
        return 0


def restrict(rules: LandlockRules, probe_outside: Path | None = None) -> Layer:
    """Restrict this thread and its children for good, and return the layer as it turned out.

    Call it while the process has one thread, because other threads keep their access. At most 16
    calls add up, and a child can't send a signal to one that was started between two calls.

    Args:
        rules: what stays possible.
        probe_outside: a file or folder that can be read now and that the rules leave out; the
            layer is active only if it can't be opened afterwards. `None` means the folder `/`.
    """
    version = abi()
    if version == 0:
        return Layer(NAME, LayerState.ABSENT, "this system has no Landlock, or has it off")
    probe = probe_outside or Path("/")
    was_open = _opening_fails(probe) == 0
    try:
        _apply(rules, _handled(version, rules.network))
    except OSError as error:
        return Layer(NAME, LayerState.REFUSED, _why(error))
    problem = _hole(probe, was_open)
    if problem:
        return Layer(NAME, LayerState.REFUSED, f"applied, but {problem}")
    return Layer(NAME, LayerState.ACTIVE, _describe(version, rules.network))


def _handled(version: int, network: bool) -> _Handled:
    files = _FIRST_RIGHTS
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEV)):
        if version >= since:
            files |= right
    has_tcp = version >= 4 and not network
    return _Handled(files, _TCP if has_tcp else 0, _SCOPES if version >= 6 else 0)


def _apply(rules: LandlockRules, handled: _Handled) -> None:
    attributes = struct.pack("=QQQ", handled.files, handled.network, handled.scopes)
    # An older system accepts the longer structure as long as the fields it does not know are zero.
    ruleset = _call(_CREATE_RULESET, attributes, len(attributes), 0)
    try:
        for path in rules.system:
            _allow(ruleset, path.resolve(), _READ & handled.files)
        for path in rules.readable:
            _allow(ruleset, path, _READ & handled.files)
        for path in rules.listable:
            _allow(ruleset, path, _READ_DIR & handled.files)
        for path in (*rules.writable, *_DEVICES):
            _allow(ruleset, path, _WRITE & handled.files)
        drop_privileges()  # without it, only root may restrict itself
        _call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: Path, rights: int) -> None:
    with contextlib.ExitStack() as stack:
        try:
            target = stack.enter_context(opened(path))
        except OSError:  # one rule fewer never loosens
            return
        if not stat.S_ISDIR(os.fstat(target).st_mode):
            rights &= _FILE_RIGHTS
        rule = struct.pack("=Qi", rights, target)
        _call(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0)


def _opening_fails(path: Path) -> int:
    """Return the error number of opening the path for reading; 0 if that works."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        return error.errno or -1
    return 0


def _hole(probe: Path, was_open: bool) -> str:
    """Return why the restriction does not work, by trying it; empty if it works."""
    if not was_open:
        return f"not verified: {probe} could not be read before either"
    if _opening_fails(probe) != errno.EACCES:
        return f"not effective: {probe} can still be read"
    threads = _thread_count()
    if threads == 1:
        return ""
    return (
        f"{threads - 1} other threads stay free"
        if threads
        else "/proc is not there to look for threads"
    )


def _thread_count() -> int:
    """Return the number of threads of this process; 0 if it is unknown."""
    try:  # the count of links can be read after the restriction, too
        return Path("/proc/self/task").stat().st_nlink - 2
    except OSError:
        return 0


def _why(error: OSError) -> str:
    if error.errno == errno.E2BIG:
        return (
            f"{MAXIMUM_LAYERS} restrictions are already active, the most that the system allows "
            "(E2BIG)"
        )
    return f"the system refused it: {error}"


def _describe(version: int, network: bool) -> str:
    missing = [text for since, text in _SINCE if version < since and since > 2]
    if network and version >= 4:
        missing.append("TCP (left to other layers)")
    missing += ["UDP", "unix sockets with a path"]
    line = f"Landlock ABI {version}: files only below the listed folders"
    if version < _SINCE[0][0]:
        line += f"; {_SINCE[0][1]}"
    return f"{line}; not covered: {', '.join(missing)}"


def _call(number: int, *arguments: int | bytes | None) -> int:
    """Make a system call.

    Raises:
        OSError: the system refused it.
    """
    # The C function is variadic, so every argument must be as wide as a register.
    wide = [ctypes.c_long(x) if isinstance(x, int) else ctypes.c_char_p(x) for x in arguments]
    result = int(system.library().syscall(ctypes.c_long(number), *wide))
    if result < 0:
        number_of_error = ctypes.get_errno()
        raise OSError(number_of_error, os.strerror(number_of_error))
    return result
