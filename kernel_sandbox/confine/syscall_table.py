"""Which system calls a kernel may not make: the two tables that the filters are built from.

An argument is compared by its low 32 bits, because for each one tested here that is all the system
reads: it declares them `int`, `unsigned int` or shorter, and takes only the low half of the flags
of `clone`. A test of the high half would let a call through that means the same.

Covered: calls that reach into other processes, make namespaces or mounts, program the system, hold
memory that no watchdog sees, take another user's number, or change the machine; leases, whole-file
locks and watches, with which a reader disturbs a file's owner; files that give their owner's
rights away; rare kinds of socket; calls that are newer than the table.
Not covered: what a call does with a path or any other thing behind a pointer (no filter can read
it); sending with a file descriptor that somebody else opened; locks on a range of a file, which
databases need.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType

__all__ = [
    "ARCHITECTURE",
    "FAMILIES",
    "LAST_KNOWN",
    "LATE",
    "X32",
    "ArgumentCondition",
    "Rule",
    "SyscallRule",
    "early_rules",
]

ARCHITECTURE = 0xC000003E
"""x86-64, as the system names it to a filter."""
X32 = 0x40000000
"""From here on the numbers mean the x32 interface, which no table names and nothing needs."""
LAST_KNOWN = 469
"""The newest call when the tables were drawn up (Linux 6.18); any after it does not exist here."""


class SyscallRule(IntEnum):
    """What a filter answers, as the system encodes it."""

    ALLOW = 0x7FFF0000
    EPERM = 0x00050000 | errno.EPERM
    ENOSYS = 0x00050000 | errno.ENOSYS
    KILL = 0x80000000
    """The whole process."""


@dataclass(frozen=True, slots=True)
class ArgumentCondition:
    """Whether one argument, masked, is one of these values."""

    argument: int
    """Its place, from 0 to 5."""
    values: tuple[int, ...]
    mask: int = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Rule:
    """The verdict on one system call."""

    number: int
    otherwise: SyscallRule
    """When no clause holds."""
    clauses: tuple[tuple[ArgumentCondition, ...], ...] = ()
    """A clause holds when all its conditions do."""
    then: SyscallRule = SyscallRule.ALLOW
    """When a clause holds."""


FAMILIES: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        "other processes": {
            "ptrace": 101,
            "process_vm_readv": 310,
            "process_vm_writev": 311,
            "kcmp": 312,
            "pidfd_getfd": 438,
        },
        "namespaces": {"unshare": 272, "setns": 308},
        "mounts": {
            "pivot_root": 155,
            "chroot": 161,
            "mount": 165,
            "umount2": 166,
            "open_tree": 428,
            "move_mount": 429,
            "fsopen": 430,
            "fsconfig": 431,
            "fsmount": 432,
            "fspick": 433,
            "mount_setattr": 442,
            "open_tree_attr": 467,
        },
        "programs inside the system": {
            "init_module": 175,
            "delete_module": 176,
            "kexec_load": 246,
            "perf_event_open": 298,
            "finit_module": 313,
            "kexec_file_load": 320,
            "bpf": 321,
            "userfaultfd": 323,
            "io_uring_setup": 425,
            "io_uring_enter": 426,
            "io_uring_register": 427,
        },
        "keys": {"add_key": 248, "request_key": 249, "keyctl": 250},
        "unseen memory": {
            "shmget": 29,
            "shmat": 30,
            "shmctl": 31,
            "semget": 64,
            "semop": 65,
            "semctl": 66,
            "shmdt": 67,
            "msgget": 68,
            "msgsnd": 69,
            "msgrcv": 70,
            "msgctl": 71,
            "semtimedop": 220,
            "mq_open": 240,
            "mq_unlink": 241,
            "mq_timedsend": 242,
            "mq_timedreceive": 243,
            "mq_notify": 244,
            "mq_getsetattr": 245,
            "memfd_create": 319,
            "memfd_secret": 447,
        },
        "other users": {
            "setuid": 105,
            "setgid": 106,
            "setreuid": 113,
            "setregid": 114,
            "setgroups": 116,
            "setresuid": 117,
            "setresgid": 119,
            "setfsuid": 122,
            "setfsgid": 123,
        },
        "watching files": {
            "inotify_init": 253,
            "inotify_add_watch": 254,
            "inotify_init1": 294,
        },
        "files past their paths": {
            "lookup_dcookie": 212,
            "fanotify_init": 300,
            "fanotify_mark": 301,
            "name_to_handle_at": 303,
            "open_by_handle_at": 304,
        },
        "the machine": {
            "syslog": 103,
            "vhangup": 153,
            "adjtimex": 159,
            "acct": 163,
            "settimeofday": 164,
            "swapon": 167,
            "swapoff": 168,
            "reboot": 169,
            "sethostname": 170,
            "setdomainname": 171,
            "iopl": 172,
            "ioperm": 173,
            "quotactl": 179,
            "clock_settime": 227,
            "clock_adjtime": 305,
            "quotactl_fd": 443,
        },
    }
)
"""Calls denied whatever their arguments, as family to name to number."""

_SOCKET, _CONNECT, _SENDTO, _SENDMSG, _BIND, _LISTEN, _SOCKETPAIR = 41, 42, 44, 46, 49, 50, 53
_OPEN, _CREAT, _CHMOD, _FCHMOD, _OPENAT = 2, 85, 90, 91, 257
_FCHMODAT, _OPENAT2, _FCHMODAT2 = 268, 437, 452
_SETSOCKOPT, _SETPRIORITY, _SCHED_SETPARAM, _SCHED_SETSCHEDULER = 54, 141, 142, 144
_SCHED_SETAFFINITY, _IOPRIO_SET, _PRLIMIT, _SCHED_SETATTR = 203, 251, 302, 314
_IOCTL, _CLONE, _FCNTL, _MKNOD, _PERSONALITY, _PRCTL = 16, 56, 72, 133, 135, 157
_MKNODAT, _SENDMMSG, _CLONE3 = 259, 307, 435

_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_STREAM, _DATAGRAM, _RAW, _SEQPACKET = 1, 2, 3, 5
_TYPE = 0xF
"""The rest of a socket's type are flags."""
_IP_PROTOCOLS = (0, 6, 17)
"""The default, TCP, UDP. Over MPTCP or SCTP a rule about TCP ports would not be asked."""

_NEW_NAMESPACE = 0x7E020000
_FASTOPEN = 0x20000000
_FLOCK, _MMAP = 73, 9
_SETPIPE_SZ = 1031
_SETLEASE, _NOTIFY = 1024, 1026
_SHARED_AND_NAMELESS, _SHARING = (0x21, 0x23), 0x2F
"""MAP_SHARED, or MAP_SHARED_VALIDATE, with MAP_ANONYMOUS; and the bits that say so."""
_SET_MM = 35
_TERMINAL = (0x5412, 0x541C, 0x5423)
"""TIOCSTI and TIOCLINUX type into a terminal, TIOCSETD loads a driver for it."""
_ANOTHERS_RIGHTS = (0o2000, 0o4000, 0o6000)
"""A file with these bits runs as its owner or group, whoever starts it."""
_MAKES_A_FILE = (0o100, 0o20000000)
_SOL_SOCKET, _BUFFER_SIZES = 1, (7, 8, 32, 33)
_DEVICES, _FILE_KIND = (0x2000, 0x6000), 0xF000
_ONLY_ASK = 0xFFFFFFFF


def early_rules(network: bool) -> tuple[Rule, ...]:
    """Returns the rules for the whole life of a kernel.

    Args:
        network: whether it may reach a network. Without one it opens no UDP socket; TCP stays,
            because ipykernel talks to itself over the loopback device.
    """
    return (
        _deny(_IOCTL, ArgumentCondition(1, _TERMINAL)),
        _deny(_FCNTL, ArgumentCondition(1, (_SETPIPE_SZ, _SETLEASE, _NOTIFY))),
        # On an input it would hold up its owner; told that it does not exist, HDF5 does without.
        Rule(_FLOCK, SyscallRule.ENOSYS),
        # Its pages stay when no process maps them any more: no watchdog sees those.
        _deny(_MMAP, ArgumentCondition(3, _SHARED_AND_NAMELESS, _SHARING)),
        _deny(_PRCTL, ArgumentCondition(0, (_SET_MM,))),
        _deny(
            _SETSOCKOPT, ArgumentCondition(1, (_SOL_SOCKET,)), ArgumentCondition(2, _BUFFER_SIZES)
        ),
        *_own_process_only(),
        *_no_ones_rights(),
        _only(_CLONE, (ArgumentCondition(0, (0,), _NEW_NAMESPACE),)),
        _only(_PERSONALITY, (ArgumentCondition(0, (_ONLY_ASK,)),)),
        _only(_SOCKET, *_sockets((_STREAM, _DATAGRAM) if network else (_STREAM,))),
        _only(_SOCKETPAIR, (ArgumentCondition(0, (_UNIX,)),)),
        # It connects without `connect`, where Landlock does not look.
        *(
            _only(number, (ArgumentCondition(place, (0,), _FASTOPEN),))
            for number, place in ((_SENDTO, 3), (_SENDMSG, 2), (_SENDMMSG, 3))
        ),
        # Its flags lie behind a pointer; told that it does not exist, the C library uses `clone`.
        Rule(_CLONE3, SyscallRule.ENOSYS),
        *_deny_all(number for family in FAMILIES.values() for number in family.values()),
    )


def _own_process_only() -> Iterator[Rule]:
    """Limits and priorities of this process, and of no other: 0 stands for itself."""
    for number in (_SCHED_SETPARAM, _SCHED_SETAFFINITY, _PRLIMIT, _SCHED_SETATTR):
        yield _only(number, (ArgumentCondition(0, (0,)),))
    # libzmq gives its threads, by their numbers, the ordinary schedule that they have anyway.
    yield _only(_SCHED_SETSCHEDULER, (ArgumentCondition(0, (0,)),), (ArgumentCondition(1, (0,)),))
    yield _only(_SETPRIORITY, (ArgumentCondition(0, (0,)), ArgumentCondition(1, (0,))))
    yield _only(_IOPRIO_SET, (ArgumentCondition(0, (1,)), ArgumentCondition(1, (0,))))


def _no_ones_rights() -> Iterator[Rule]:
    """No device, and no file that gives its owner's rights to whoever runs it."""
    for number, place in ((_CREAT, 1), (_CHMOD, 1), (_FCHMOD, 1), (_FCHMODAT, 2), (_FCHMODAT2, 2)):
        yield _deny(number, _gives_rights(place))
    for number, place in ((_OPEN, 1), (_OPENAT, 2)):
        clauses = tuple(
            (ArgumentCondition(place, (flag,), flag), _gives_rights(place + 1))
            for flag in _MAKES_A_FILE
        )
        yield Rule(number, SyscallRule.ALLOW, clauses, SyscallRule.EPERM)
    for number, place in ((_MKNOD, 1), (_MKNODAT, 2)):
        device = (ArgumentCondition(place, _DEVICES, _FILE_KIND),)
        yield Rule(number, SyscallRule.ALLOW, (device, (_gives_rights(place),)), SyscallRule.EPERM)
    # Its mode lies behind a pointer; told that it does not exist, callers use `openat`.
    yield Rule(_OPENAT2, SyscallRule.ENOSYS)


def _gives_rights(place: int) -> ArgumentCondition:
    return ArgumentCondition(place, _ANOTHERS_RIGHTS, 0o6000)


def _sockets(ip_types: tuple[int, ...]) -> tuple[tuple[ArgumentCondition, ...], ...]:
    return (
        (
            ArgumentCondition(0, (_UNIX,)),
            ArgumentCondition(1, (_STREAM, _DATAGRAM, _SEQPACKET), _TYPE),
        ),
        (
            ArgumentCondition(0, (_INET, _INET6)),
            ArgumentCondition(1, ip_types, _TYPE),
            ArgumentCondition(2, _IP_PROTOCOLS),
        ),
        # To list the network devices; libzmq aborts the process when it can't.
        (
            ArgumentCondition(0, (_NETLINK,)),
            ArgumentCondition(1, (_DATAGRAM, _RAW), _TYPE),
            ArgumentCondition(2, (0,)),
        ),
    )


def _deny(number: int, *clause: ArgumentCondition) -> Rule:
    return Rule(number, SyscallRule.ALLOW, (clause,), SyscallRule.EPERM)


def _only(number: int, *clauses: tuple[ArgumentCondition, ...]) -> Rule:
    return Rule(number, SyscallRule.EPERM, clauses)


def _deny_all(numbers: Iterable[int]) -> tuple[Rule, ...]:
    return tuple(Rule(number, SyscallRule.EPERM) for number in numbers)


LATE = (
    *_deny_all((_SOCKET, _CONNECT, _BIND, _LISTEN)),
    # One end of a datagram pair can send to any socket that has a path.
    _only(
        _SOCKETPAIR,
        (ArgumentCondition(0, (_UNIX,)), ArgumentCondition(1, (_STREAM, _SEQPACKET), _TYPE)),
    ),
    # A listening socket that is shut down could be sent elsewhere by it.
    *(rule for rule in early_rules(network=False) if rule.number in {_SENDTO, _SENDMSG, _SENDMMSG}),
)
"""The rules for after a kernel has bound its sockets: those go on, and no new one comes."""
