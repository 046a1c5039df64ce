"""How the system counts a kernel's processes without a process namespace: by user.

Root is not counted, so a kernel of root takes a user id that nobody else has. Its files stay
root's, since only its real user id differs. A kernel of an ordinary user is counted with all that
this user runs, so its limit is higher by that much.

Covered: the kernel can't exceed the count, whatever it forks and how fast. `end_user` ends all
processes of a user id at once, and none of them can fork meanwhile.
Not covered: a root that may use one user id only, as in some containers. A kernel without the
filter of system calls could take root's id back. A program that such a kernel starts has the other
id altogether, and reads only what everybody may read.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kernel_sandbox.confine import system
from kernel_sandbox.confine.syscall_numbers import number_here

__all__ = ["end_user", "take_user", "tasks_of_user", "unused_user"]

_WIDE = range(0x60000000, 0x6FFFFFFF)
"""Numbers that no system assigns: a number drawn from this range is nobody's."""
_NARROW = 1000
"""How many at the end of a container's range; a number drawn there is checked for use."""
_DRAWS = 20
_EVERYBODY = -1
_BOTH = 0o770
"""Mode of a folder of the user id: access for that id, and for root without capabilities."""


def unused_user() -> int:
    """Return a user id that nobody has, as far as can be seen; 0 for none."""
    numbers = _range()
    taken = () if numbers == _WIDE else set(_users())
    for _ in range(_DRAWS if numbers else 0):
        number = numbers.start + secrets.randbelow(len(numbers))
        if number not in taken:
            return number
    return 0


def _range() -> range:
    """Return the user ids to draw from; an empty range if there are too few."""
    try:
        lines = Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines()
    except OSError:
        return range(0)
    last = 0
    for first, _, count in (map(int, line.split()) for line in lines):
        if first <= _WIDE.start and _WIDE.stop <= first + count:
            return _WIDE
        last = max(last, first + count)
    return range(last - _NARROW, last) if last > 10 * _NARROW else range(0)


def _users() -> Iterator[int]:
    """Yield the user id of each process, with repetitions."""
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit():
                yield entry.stat().st_uid


def tasks_of_user() -> int:
    """Return how many processes and threads this process's user has."""
    user, found = os.getuid(), 0
    for entry in os.scandir("/proc"):
        with suppress(OSError, ValueError):
            if entry.name.isdigit() and entry.stat().st_uid == user:
                found += os.stat(f"/proc/{entry.name}/task").st_nlink - 2  # noqa: PTH116
    return found


def take_user(number: int, private: Iterable[str] = ()) -> None:
    """Set this process's real user id; what it may read and write stays root's.

    Args:
        number: the user id that `unused_user` returned.
        private: folders that programs with the id write as well.

    Raises:
        OSError: the system does not permit it.
    """
    for folder in private:
        os.chown(folder, number, 0)
        os.chmod(folder, _BOTH)  # noqa: PTH101
    os.setresuid(number, 0, 0)


def end_user(number: int) -> None:
    """Kill every process that has taken the user id, all at once.

    Args:
        number: the user id that `unused_user` returned; no thread of this process has it.

    Raises:
        OSError: this process may not act as that user.
    """
    with _acting_as(number):
        _call("kill", _EVERYBODY, signal.SIGKILL)


@contextmanager
def _acting_as(number: int) -> Iterator[None]:
    """Act as that user on this thread alone: a signal to everybody reaches nobody else."""
    _call("setresuid", number, number, 0)
    try:
        yield
    finally:
        _call("setresuid", 0, 0, 0)


def _call(name: str, *arguments: int) -> None:
    # A direct system call: the C library would change all threads of this process.
    wide = [ctypes.c_long(argument) for argument in (number_here(name), *arguments)]
    if system.library().syscall(*wide) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
