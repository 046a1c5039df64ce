"""Which system calls a kernel may not make: the two tables that the filters are built from.

The rules name their calls and apply on every processor that `syscall_numbers` knows. The constants
below are the same on all of them (Linux's `include/uapi/asm-generic`).

The filters compare only the low 32 bits of an argument, because the system reads no more of those
tested here. It declares them `int`, `unsigned int` or shorter, and uses only the low half of the
flags of `clone`. A test of the high half would allow a call that means the same.

Covered: calls that reach into other processes, create namespaces or mounts, or program the system.
Calls that keep memory no watchdog sees, take another user id, or change the machine. Leases,
whole-file locks and watches, with which a reader disturbs a file's owner. Files that give their
owner's rights away. Rare kinds of socket. Calls that are newer than the table.
Not covered: what a call does with a path or anything else behind a pointer, which no filter can
read. Sending with a file descriptor that another process opened. Locks on a range of a file, which
databases need.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType

__all__ = [
    "FAMILIES",
    "LATE",
    "ArgumentCondition",
    "Rule",
    "SyscallRule",
    "early_rules",
]


class SyscallRule(IntEnum):
    """Verdict of a filter, as the system encodes it."""

    ALLOW = 0x7FFF0000
    EPERM = 0x00050000 | errno.EPERM
    ENOSYS = 0x00050000 | errno.ENOSYS
    KILL = 0x80000000
    """The verdict that kills the entire process."""


@dataclass(frozen=True, slots=True)
class ArgumentCondition:
    """Condition that one argument, masked, is one of these values."""

    argument: int
    """Position of the argument, from 0 to 5."""
    values: tuple[int, ...]
    mask: int = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Rule:
    """The verdict on one system call."""

    name: str
    """The call's name in `syscall_numbers.NUMBERS`."""
    otherwise: SyscallRule
    """The verdict if no clause is true."""
    clauses: tuple[tuple[ArgumentCondition, ...], ...] = ()
    """Clauses, each true if all its conditions are."""
    then: SyscallRule = SyscallRule.ALLOW
    """The verdict if a clause is true."""


FAMILIES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "other processes": (
            "ptrace",
            "process_vm_readv",
            "process_vm_writev",
            "kcmp",
            "pidfd_getfd",
        ),
        "namespaces": ("unshare", "setns"),
        "mounts": (
            "pivot_root",
            "chroot",
            "mount",
            "umount2",
            "open_tree",
            "move_mount",
            "fsopen",
            "fsconfig",
            "fsmount",
            "fspick",
            "mount_setattr",
            "open_tree_attr",
        ),
        "programs inside the system": (
            "init_module",
            "delete_module",
            "kexec_load",
            "perf_event_open",
            "finit_module",
            "kexec_file_load",
            "bpf",
            "userfaultfd",
            "io_uring_setup",
            "io_uring_enter",
            "io_uring_register",
        ),
        "keys": ("add_key", "request_key", "keyctl"),
        "unseen memory": (
            "shmget",
            "shmat",
            "shmctl",
            "semget",
            "semop",
            "semctl",
            "shmdt",
            "msgget",
            "msgsnd",
            "msgrcv",
            "msgctl",
            "semtimedop",
            "mq_open",
            "mq_unlink",
            "mq_timedsend",
            "mq_timedreceive",
            "mq_notify",
            "mq_getsetattr",
            "memfd_create",
            "memfd_secret",
        ),
        "other users": (
            "setuid",
            "setgid",
            "setreuid",
            "setregid",
            "setgroups",
            "setresuid",
            "setresgid",
            "setfsuid",
            "setfsgid",
        ),
        "watching files": ("inotify_init", "inotify_add_watch", "inotify_init1"),
        "files past their paths": (
            "lookup_dcookie",
            "fanotify_init",
            "fanotify_mark",
            "name_to_handle_at",
            "open_by_handle_at",
        ),
        "the machine": (
            "syslog",
            "vhangup",
            "adjtimex",
            "acct",
            "settimeofday",
            "swapon",
            "swapoff",
            "reboot",
            "sethostname",
            "setdomainname",
            "iopl",
            "ioperm",
            "quotactl",
            "clock_settime",
            "clock_adjtime",
            "quotactl_fd",
        ),
    }
)
"""Names of the calls denied whatever their arguments, by family."""

_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_STREAM, _DATAGRAM, _RAW, _SEQPACKET = 1, 2, 3, 5
_TYPE = 0xF
"""Mask of a socket's type; the other bits are flags."""
_IP_PROTOCOLS = (0, 6, 17)
"""The default, TCP and UDP. A rule about TCP ports would not apply to MPTCP or SCTP."""

_NEW_NAMESPACE = 0x7E020000
_FASTOPEN = 0x20000000
_SETPIPE_SZ = 1031
_SETLEASE, _NOTIFY = 1024, 1026
_SHARED_AND_NAMELESS, _SHARING = (0x21, 0x23), 0x2F
"""MAP_SHARED or MAP_SHARED_VALIDATE, with MAP_ANONYMOUS; and the mask of these bits."""
_SET_MM = 35
_TERMINAL = (0x5412, 0x541C, 0x5423)
"""TIOCSTI and TIOCLINUX, which type into a terminal, and TIOCSETD, which loads its driver."""
_ANOTHERS_RIGHTS = (0o2000, 0o4000, 0o6000)
"""Mode bits with which a file runs as its owner or group, whoever starts it."""
_MAKES_A_FILE = (0o100, 0o20000000)
"""O_CREAT, and the bit that only O_TMPFILE has."""
_SOL_SOCKET, _BUFFER_SIZES = 1, (7, 8, 32, 33)
_DEVICES, _FILE_KIND = (0x2000, 0x6000), 0xF000
_ONLY_ASK = 0xFFFFFFFF


def early_rules(network: bool) -> tuple[Rule, ...]:
    """Return the rules for the whole life of a kernel.

    Args:
        network: whether it may reach a network. Without one it opens no UDP socket. TCP stays,
            because ipykernel talks to itself over the loopback device.
    """
    return (
        _deny("ioctl", ArgumentCondition(1, _TERMINAL)),
        _deny("fcntl", ArgumentCondition(1, (_SETPIPE_SZ, _SETLEASE, _NOTIFY))),
        # A lock on an input would block its owner. On ENOSYS, HDF5 does without.
        Rule("flock", SyscallRule.ENOSYS),
        # Shared pages stay when no process maps them any more, and no watchdog sees them.
        _deny("mmap", ArgumentCondition(3, _SHARED_AND_NAMELESS, _SHARING)),
        _deny("prctl", ArgumentCondition(0, (_SET_MM,))),
        _deny(
            "setsockopt", ArgumentCondition(1, (_SOL_SOCKET,)), ArgumentCondition(2, _BUFFER_SIZES)
        ),
        *_own_process_only(),
        *_no_ones_rights(),
        _only("clone", (ArgumentCondition(0, (0,), _NEW_NAMESPACE),)),
        _only("personality", (ArgumentCondition(0, (_ONLY_ASK,)),)),
        _only("socket", *_sockets((_STREAM, _DATAGRAM) if network else (_STREAM,))),
        _only("socketpair", (ArgumentCondition(0, (_UNIX,)),)),
        # The flag connects without `connect`, which Landlock does not check.
        *(
            _only(name, (ArgumentCondition(place, (0,), _FASTOPEN),))
            for name, place in (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3))
        ),
        # Its flags are behind a pointer. On ENOSYS, the C library uses `clone`.
        Rule("clone3", SyscallRule.ENOSYS),
        *_deny_all(name for family in FAMILIES.values() for name in family),
    )


def _own_process_only() -> Iterator[Rule]:
    """Yield rules that restrict limits and priorities to this process, which 0 means."""
    for name in ("sched_setparam", "sched_setaffinity", "prlimit64", "sched_setattr"):
        yield _only(name, (ArgumentCondition(0, (0,)),))
    # libzmq sets for its threads, by id, the ordinary schedule that they have anyway.
    yield _only("sched_setscheduler", (ArgumentCondition(0, (0,)),), (ArgumentCondition(1, (0,)),))
    yield _only("setpriority", (ArgumentCondition(0, (0,)), ArgumentCondition(1, (0,))))
    yield _only("ioprio_set", (ArgumentCondition(0, (1,)), ArgumentCondition(1, (0,))))


def _no_ones_rights() -> Iterator[Rule]:
    """Yield rules against devices, and against files that run with their owner's rights."""
    for name, place in (
        ("creat", 1),
        ("chmod", 1),
        ("fchmod", 1),
        ("fchmodat", 2),
        ("fchmodat2", 2),
    ):
        yield _deny(name, _gives_rights(place))
    for name, place in (("open", 1), ("openat", 2)):
        clauses = tuple(
            (ArgumentCondition(place, (flag,), flag), _gives_rights(place + 1))
            for flag in _MAKES_A_FILE
        )
        yield Rule(name, SyscallRule.ALLOW, clauses, SyscallRule.EPERM)
    for name, place in (("mknod", 1), ("mknodat", 2)):
        device = (ArgumentCondition(place, _DEVICES, _FILE_KIND),)
        yield Rule(name, SyscallRule.ALLOW, (device, (_gives_rights(place),)), SyscallRule.EPERM)
    # Its mode is behind a pointer. On ENOSYS, callers use `openat`.
    yield Rule("openat2", SyscallRule.ENOSYS)


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
        # To list the network devices: libzmq aborts the process when it can't.
        (
            ArgumentCondition(0, (_NETLINK,)),
            ArgumentCondition(1, (_DATAGRAM, _RAW), _TYPE),
            ArgumentCondition(2, (0,)),
        ),
    )


def _deny(name: str, *clause: ArgumentCondition) -> Rule:
    return Rule(name, SyscallRule.ALLOW, (clause,), SyscallRule.EPERM)


def _only(name: str, *clauses: tuple[ArgumentCondition, ...]) -> Rule:
    return Rule(name, SyscallRule.EPERM, clauses)


def _deny_all(names: Iterable[str]) -> tuple[Rule, ...]:
    return tuple(Rule(name, SyscallRule.EPERM) for name in names)


LATE = (
    *_deny_all(("socket", "connect", "bind", "listen")),
    # One end of a datagram pair can send to any socket that has a path.
    _only(
        "socketpair",
        (ArgumentCondition(0, (_UNIX,)), ArgumentCondition(1, (_STREAM, _SEQPACKET), _TYPE)),
    ),
    # These could connect a listening socket that was shut down to another address.
    *(
        rule
        for rule in early_rules(network=False)
        if rule.name in {"sendto", "sendmsg", "sendmmsg"}
    ),
)
"""The rules for after a kernel has bound its sockets: those still work, new ones are denied."""
