"""The numbers of system calls, which differ between processors.

Source: Linux 6.18, `include/uapi/asm-generic/unistd.h` and `scripts/syscall.tbl` for aarch64,
`arch/x86/entry/syscalls/syscall_64.tbl` for x86-64. From 424 on, both use the same numbers.
`tests/kernel_sandbox/test_sandbox_syscall_numbers.py` compares each number with the system's
headers and with libseccomp, if these are installed.
"""

from __future__ import annotations

import errno
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = [
    "AARCH64",
    "LAST_KNOWN",
    "NUMBERS",
    "X86_64",
    "Architecture",
    "current_architecture",
    "number_here",
]

LAST_KNOWN = 469
"""The newest call when the tables were written (Linux 6.18), on both processors."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """A processor whose system call numbers are known here."""

    name: str
    """Its name as `platform.machine()` returns it."""
    audit: int
    """Its number in a filter: AUDIT_ARCH_... of `linux/audit.h`."""
    column: int
    """Its index in the pairs of `NUMBERS`."""
    foreign_from: int | None
    """First number of a second interface, which no table names; `None` if there is none."""

    def number(self, name: str) -> int | None:
        """Return the number of a call, or `None` if this processor has no such call.

        Raises:
            KeyError: the table lacks it.
        """
        return NUMBERS[name][self.column]


X86_64 = Architecture("x86_64", 0xC000003E, 0, 0x40000000)
"""The x86-64 processor, whose second interface is x32."""
AARCH64 = Architecture("aarch64", 0xC00000B7, 1, None)
"""The generic table, without calls that a newer one replaces (`open`, `chmod`, ...)."""


def current_architecture() -> Architecture | None:
    """Return the processor of this process, or `None` if no number is known for it."""
    if sys.platform != "linux" or sys.maxsize < 2**32:
        return None
    known = {architecture.name: architecture for architecture in (X86_64, AARCH64)}
    return known.get(platform.machine())


def number_here(name: str) -> int:
    """Return the number of a call on this processor.

    Raises:
        KeyError: the table lacks it.
        OSError: this is another processor, or it has no such call.
    """
    here = current_architecture()
    if here is not None and (number := here.number(name)) is not None:
        return number
    where = f"{sys.platform} on {platform.machine()}"
    raise OSError(errno.ENOSYS, f"{name}: no number is known for {where}")


NUMBERS: Mapping[str, tuple[int, int | None]] = MappingProxyType(
    {
        # other processes
        "ptrace": (101, 117),
        "process_vm_readv": (310, 270),
        "process_vm_writev": (311, 271),
        "kcmp": (312, 272),
        "pidfd_getfd": (438, 438),
        # namespaces
        "unshare": (272, 97),
        "setns": (308, 268),
        # mounts
        "pivot_root": (155, 41),
        "chroot": (161, 51),
        "mount": (165, 40),
        "umount2": (166, 39),
        "open_tree": (428, 428),
        "move_mount": (429, 429),
        "fsopen": (430, 430),
        "fsconfig": (431, 431),
        "fsmount": (432, 432),
        "fspick": (433, 433),
        "mount_setattr": (442, 442),
        "open_tree_attr": (467, 467),
        # programs inside the system
        "init_module": (175, 105),
        "delete_module": (176, 106),
        "kexec_load": (246, 104),
        "perf_event_open": (298, 241),
        "finit_module": (313, 273),
        "kexec_file_load": (320, 294),
        "bpf": (321, 280),
        "userfaultfd": (323, 282),
        "io_uring_setup": (425, 425),
        "io_uring_enter": (426, 426),
        "io_uring_register": (427, 427),
        # keys
        "add_key": (248, 217),
        "request_key": (249, 218),
        "keyctl": (250, 219),
        # unseen memory
        "shmget": (29, 194),
        "shmat": (30, 196),
        "shmctl": (31, 195),
        "semget": (64, 190),
        "semop": (65, 193),
        "semctl": (66, 191),
        "shmdt": (67, 197),
        "msgget": (68, 186),
        "msgsnd": (69, 189),
        "msgrcv": (70, 188),
        "msgctl": (71, 187),
        "semtimedop": (220, 192),
        "mq_open": (240, 180),
        "mq_unlink": (241, 181),
        "mq_timedsend": (242, 182),
        "mq_timedreceive": (243, 183),
        "mq_notify": (244, 184),
        "mq_getsetattr": (245, 185),
        "memfd_create": (319, 279),
        "memfd_secret": (447, 447),
        # other users
        "setuid": (105, 146),
        "setgid": (106, 144),
        "setreuid": (113, 145),
        "setregid": (114, 143),
        "setgroups": (116, 159),
        "setresuid": (117, 147),
        "setresgid": (119, 149),
        "setfsuid": (122, 151),
        "setfsgid": (123, 152),
        # watching files
        "inotify_init": (253, None),
        "inotify_add_watch": (254, 27),
        "inotify_init1": (294, 26),
        # files past their paths
        "lookup_dcookie": (212, 18),
        "fanotify_init": (300, 262),
        "fanotify_mark": (301, 263),
        "name_to_handle_at": (303, 264),
        "open_by_handle_at": (304, 265),
        # the machine
        "syslog": (103, 116),
        "vhangup": (153, 58),
        "adjtimex": (159, 171),
        "acct": (163, 89),
        "settimeofday": (164, 170),
        "swapon": (167, 224),
        "swapoff": (168, 225),
        "reboot": (169, 142),
        "sethostname": (170, 161),
        "setdomainname": (171, 162),
        "iopl": (172, None),
        "ioperm": (173, None),
        "quotactl": (179, 60),
        "clock_settime": (227, 112),
        "clock_adjtime": (305, 266),
        "quotactl_fd": (443, 443),
        # calls whose arguments decide
        "ioctl": (16, 29),
        "fcntl": (72, 25),
        "flock": (73, 32),
        "mmap": (9, 222),
        "prctl": (157, 167),
        "setsockopt": (54, 208),
        "sched_setparam": (142, 118),
        "sched_setaffinity": (203, 122),
        "prlimit64": (302, 261),
        "sched_setattr": (314, 274),
        "sched_setscheduler": (144, 119),
        "setpriority": (141, 140),
        "ioprio_set": (251, 30),
        "creat": (85, None),
        "chmod": (90, None),
        "fchmod": (91, 52),
        "fchmodat": (268, 53),
        "fchmodat2": (452, 452),
        "open": (2, None),
        "openat": (257, 56),
        "mknod": (133, None),
        "mknodat": (259, 33),
        "openat2": (437, 437),
        "clone": (56, 220),
        "clone3": (435, 435),
        "personality": (135, 92),
        "socket": (41, 198),
        "socketpair": (53, 199),
        "sendto": (44, 206),
        "sendmsg": (46, 211),
        "sendmmsg": (307, 269),
        "connect": (42, 203),
        "bind": (49, 200),
        "listen": (50, 201),
        # used by this package, or denied in one of its tests
        "capset": (126, 91),
        "kill": (62, 129),
        "seccomp": (317, 277),
    }
)
"""Call name to the number on x86-64 and on aarch64."""
