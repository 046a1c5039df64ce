"""How the system counts a kernel's processes where no process namespace does.

It counts by user. As root, who is not counted, a kernel takes a number that nobody else has; its
files stay root's, since only its real number is another. As an ordinary user it is counted with
all that this user runs, so its limit lies that much higher.

Covered: the count can't be outgrown, whatever the kernel forks and how fast; `end_user` ends all
processes of a number at once, and none of them can fork meanwhile.
Not covered: a root that may use one number only, as in some containers; a kernel without the
filter of system calls, which could take root's number back; a program that such a kernel starts
has the other number altogether, and reads only what everybody may.
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
"""Where no system gives out numbers: one that is drawn there is nobody's."""
_NARROW = 1000
"""As many at the end of a container's range: drawn there, it is looked whether one is free."""
_DRAWS = 20
_EVERYBODY = -1
_BOTH = 0o770
"""What may be done in a folder of the number's by the number, and by root without its rights."""


def unused_user() -> int:
    """Returns the number of a user that nobody is, as far as can be seen; 0 for none."""
    numbers = _range()
    taken = () if numbers == _WIDE else set(_users())
    for _ in range(_DRAWS if numbers else 0):
        number = numbers.start + secrets.randbelow(len(numbers))
        if number not in taken:
            return number
    return 0


def _range() -> range:
    """The numbers of which one may be taken; none where there are too few."""
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
    """The users of all processes, as often as they have one."""
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit():
                yield entry.stat().st_uid


def tasks_of_user() -> int:
    """Returns how many processes and threads this process's user has."""
    user, found = os.getuid(), 0
    for entry in os.scandir("/proc"):
        with suppress(OSError, ValueError):
            if entry.name.isdigit() and entry.stat().st_uid == user:
                found += os.stat(f"/proc/{entry.name}/task").st_nlink - 2  # noqa: PTH116
    return found


def take_user(number: int, private: Iterable[str] = ()) -> None:
    """Makes the number this process's real one; what it may read and write stays root's.

    Args:
        number: as `unused_user` gave it.
        private: folders that programs with the number write as well.

    Raises:
        OSError: the system does not let it.
    """
    for folder in private:
        os.chown(folder, number, 0)
        os.chmod(folder, _BOTH)  # noqa: PTH101
    os.setresuid(number, 0, 0)


def end_user(number: int) -> None:
    """Kills every process that has taken the number, all at once.

    Args:
        number: as `unused_user` gave it; nothing of this process has it.

    Raises:
        OSError: this process may not act as that user.
    """
    with _acting_as(number):
        _call("kill", _EVERYBODY, signal.SIGKILL)


@contextmanager
def _acting_as(number: int) -> Iterator[None]:
    """This thread alone is that user meanwhile: a signal to everybody reaches nobody else."""
    _call("setresuid", number, number, 0)
    try:
        yield
    finally:
        _call("setresuid", 0, 0, 0)


def _call(name: str, *arguments: int) -> None:
    # Straight to the system: the C library would change all threads of this process.
    wide = [ctypes.c_long(argument) for argument in (number_here(name), *arguments)]
    if system.library().syscall(*wide) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
