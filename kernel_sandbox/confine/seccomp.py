"""A filter of system calls (seccomp), written as a classic BPF program.

A denied call fails with EPERM, so that Python raises PermissionError and the kernel keeps running.
A filter applies for good to the process, its threads and all that they start. One more filter can
only tighten, so installing one stays allowed. `syscall_table` lists what is denied.

The rules name calls, and `assemble` turns them into the numbers of one processor.

Covered: the calls in the tables, on x86-64 and aarch64. Calls through another interface, such as
the 32-bit one, kill the process; those of x32 fail.
Not covered: other processors, and whatever the tables allow. The filter for aarch64 was tested on
an emulated processor only (QEMU, Linux 6.12). After `late`, whatever needs a new socket fails:
multiprocessing's Manager and its start method forkserver do not work. What a forked child prints
through ipykernel is lost after 3 seconds. Binding zmq to tcp:// aborts.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import platform
import struct
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from kernel_sandbox.confine import syscall_table, system
from kernel_sandbox.confine.layers import Layer, LayerState
from kernel_sandbox.confine.privileges import drop_privileges
from kernel_sandbox.confine.syscall_numbers import (
    AARCH64,
    LAST_KNOWN,
    Architecture,
    current_architecture,
    number_here,
)
from kernel_sandbox.confine.syscall_table import ArgumentCondition, Rule, SyscallRule

__all__ = [
    "assemble",
    "early",
    "early_program",
    "install",
    "late",
    "late_program",
    "prepare_programs",
]

Instruction = tuple[int, int, int, int]
"""Operation, lines to skip when true, lines to skip when false, constant."""

_LOAD, _AND, _EQUAL, _GREATER, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x25, 0x35, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_ALL_BITS = 0xFFFFFFFF
_PACKED = struct.Struct("=HBBI")

_SET_MODE_FILTER = 1
_ALL_THREADS = 1
_FILTERED = "2"

_EARLY_REASON = "calls that no analysis needs fail: other processes, mounts, namespaces, ..."
_LATE_REASON = "no new socket: neither opened nor connected nor bound"
_CAVEATS = {AARCH64: "on aarch64 it was tried in an emulator only"}
"""What a reason adds, so that it claims no more than was tested."""


def assemble(rules: Sequence[Rule], architecture: Architecture) -> bytes:
    """Return the program that gives the verdicts of these rules and allows everything else.

    Args:
        rules: at most one for each system call; a rule for a call that the processor lacks is
            left out.
        architecture: the processor that the program is for.

    Raises:
        KeyError: a rule names a call that is in no table.
    """
    program: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 1, 0, architecture.audit),
        (_RETURN, 0, 0, SyscallRule.KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    if architecture.foreign_from is not None:
        program += [
            (_AT_LEAST, 0, 1, architecture.foreign_from),
            (_RETURN, 0, 0, SyscallRule.EPERM),
        ]
    program += [(_GREATER, 0, 1, LAST_KNOWN), (_RETURN, 0, 0, SyscallRule.ENOSYS)]
    for rule in rules:
        number = architecture.number(rule.name)
        program += _rule(rule, number) if number is not None else []
    program.append((_RETURN, 0, 0, SyscallRule.ALLOW))
    return b"".join(map(_PACKED.pack, *zip(*program, strict=True)))


def _rule(rule: Rule, number: int) -> list[Instruction]:
    body: list[Instruction] = []
    for clause in rule.clauses:
        body += _clause(clause, rule.then)
    body.append((_RETURN, 0, 0, rule.otherwise))
    return [(_EQUAL, 0, len(body), number), *body]


def _clause(clause: Sequence[ArgumentCondition], verdict: SyscallRule) -> list[Instruction]:
    """Return lines that end with the verdict; if a condition fails, execution skips past them."""
    lines: list[Instruction] = [(_RETURN, 0, 0, verdict)]
    for condition in reversed(clause):
        # The low half comes first: both processors are little-endian.
        head: list[Instruction] = [(_LOAD, 0, 0, _ARGUMENTS_AT + 8 * condition.argument)]
        if condition.mask != _ALL_BITS:
            head.append((_AND, 0, 0, condition.mask))
        last = len(condition.values) - 1
        matches = [
            (_EQUAL, last - place, len(lines) if place == last else 0, value)
            for place, value in enumerate(condition.values)
        ]
        lines = [*head, *matches, *lines]
    return lines


@functools.cache
def early_program(network: bool, architecture: Architecture) -> bytes:
    """Return the program that `early` installs on that processor."""
    return assemble(syscall_table.early_rules(network), architecture)


@functools.cache
def late_program(architecture: Architecture) -> bytes:
    """Return the program that `late` installs on that processor."""
    return assemble(syscall_table.LATE, architecture)


def prepare_programs() -> None:
    """Assemble this processor's early programs, before workers are forked."""
    here = current_architecture()
    if here is not None:
        early_program(False, here)
        early_program(True, here)


def early(network: bool) -> Layer:
    """Deny this process what no data analysis needs and return the layer, after a check.

    Args:
        network: whether the kernel may reach a network; see `syscall_table.early_rules`.
    """
    return _apply("seccomp", lambda here: early_program(network, here), _unshares, _EARLY_REASON)


def late() -> Layer:
    """Deny this process new sockets and return the layer, after a check.

    Called once a kernel has bound its own sockets: these still accept, read and write.
    """
    return _apply("late_seccomp", late_program, _opens_a_socket, _LATE_REASON)


def _apply(
    name: str,
    program: Callable[[Architecture], bytes],
    probe: Callable[[], bool],
    reason: str,
) -> Layer:
    here = current_architecture()
    if here is None:
        where = f"{sys.platform} on {platform.machine()}"
        reason = f"it has tables for x86-64 and aarch64 only, and this is {where}"
        return Layer(name, LayerState.ABSENT, reason)
    drop_privileges()  # the system takes no filter from a process that could still gain rights
    before = _filters()
    outcome = install(program(here))
    if outcome == -errno.ENOSYS:
        return Layer(name, LayerState.ABSENT, "this system has no seccomp")
    if outcome < 0:
        return Layer(name, LayerState.REFUSED, f"seccomp: {os.strerror(-outcome)} ({-outcome})")
    if outcome > 0:
        return Layer(name, LayerState.REFUSED, f"thread {outcome} has another filter of its own")
    if not _is_seen(before, _filters()) or probe():
        return Layer(
            name, LayerState.REFUSED, "the filter was accepted but was not seen to take effect"
        )
    return Layer(name, LayerState.ACTIVE, "; ".join(filter(None, (reason, _CAVEATS.get(here)))))


def install(program: bytes) -> int:
    """Install a program on all threads of this process, which needs `no_new_privs`.

    Returns:
        0 on success. A positive number is the thread that could not take the program, and then no
        thread has it. A negative number is an error number.

    Raises:
        OSError: no table includes this processor.
    """
    lines = ctypes.create_string_buffer(program, len(program))
    # The padding of this structure (a count, then a pointer) is the C compiler's.
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(lines))
    call = ctypes.c_long(number_here("seccomp"))
    outcome = int(system.library().syscall(call, _SET_MODE_FILTER, _ALL_THREADS, header))
    return outcome if outcome >= 0 else -ctypes.get_errno()


def _filters() -> tuple[str, int | None]:
    """Return the mode, and the number of filters if the system reports it (Linux 5.9)."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return "", None
    fields = dict(line.split(":\t", 1) for line in lines if line.startswith("Seccomp"))
    count = fields.get("Seccomp_filters")
    return fields.get("Seccomp", ""), None if count is None else int(count)


def _is_seen(before: tuple[str, int | None], after: tuple[str, int | None]) -> bool:
    if before[1] is not None and after[1] is not None and after[1] <= before[1]:
        return False
    return after[0] == _FILTERED


def _unshares() -> bool:
    """Whether a denied call that changes nothing succeeds."""
    return _call("unshare", 0) != -errno.EPERM


def _opens_a_socket() -> bool:
    opened = _call("socket", 1, 1, 0)
    if opened >= 0:
        os.close(opened)
    return opened != -errno.EPERM


def _call(name: str, *arguments: int) -> int:
    outcome = int(system.library().syscall(ctypes.c_long(number_here(name)), *arguments))
    return outcome if outcome >= 0 else -ctypes.get_errno()
