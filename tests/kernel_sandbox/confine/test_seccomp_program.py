"""The programs of the filter, run in an interpreter of ours: each says what its table says.

They are run for both processors, on whichever one the tests run. What the system does with one is
the subject of `test_sandbox_seccomp.py`, which runs on both as well: on aarch64 it takes a system
of its own, for an emulator of single programs (qemu-user) implements no filter.
"""

import itertools
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_sandbox.confine import seccomp
from kernel_sandbox.confine.syscall_numbers import AARCH64, LAST_KNOWN, NUMBERS, X86_64
from kernel_sandbox.confine.syscall_table import (
    FAMILIES,
    LATE,
    ArgumentCondition,
    Rule,
    SyscallRule,
    early_rules,
)

X32 = 0x40000000
AUDIT_ARCH = {"i386": 0x40000003, "arm": 0x40000028, "x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""As linux/audit.h has them."""
PROCESSORS = [X86_64, AARCH64]
TABLES = {"offline": early_rules(False), "online": early_rules(True), "late": LATE}
PROGRAMS = {
    (name, processor.name): seccomp.assemble(rules, processor)
    for name, rules in TABLES.items()
    for processor in PROCESSORS
}
LOAD, AND, EQUAL, GREATER, AT_LEAST, RETURN = 0x20, 0x54, 0x15, 0x25, 0x35, 0x06
ALLOW, EPERM, ENOSYS = SyscallRule.ALLOW, SyscallRule.EPERM, SyscallRule.ENOSYS

on_each = pytest.mark.parametrize("processor", PROCESSORS, ids=lambda one: one.name)
in_each = pytest.mark.parametrize("table", sorted(TABLES))


def lines_of(program):
    return list(struct.iter_unpack("=HBBI", program))


def interpret(program, data):
    """Runs a program as the system would, on the 64 bytes that describe one call."""
    lines, place, value = lines_of(program), 0, 0
    while True:
        operation, yes, no, constant = lines[place]
        place += 1
        if operation == RETURN:
            return constant
        if operation == LOAD:
            (value,) = struct.unpack_from("=I", data, constant)
        elif operation == AND:
            value &= constant
        else:
            holds = {
                EQUAL: value == constant,
                GREATER: value > constant,
                AT_LEAST: value >= constant,
            }[operation]
            place += yes if holds else no


def verdict(table, processor, call, *arguments, audit=None):
    """What the program answers to a call, by name or number; `None` if there is no such call."""
    number = processor.number(call) if isinstance(call, str) else call
    if number is None:
        return None
    wide = [argument & (2**64 - 1) for argument in (*arguments, *[0] * (6 - len(arguments)))]
    audit = AUDIT_ARCH[processor.name] if audit is None else audit
    return interpret(
        PROGRAMS[table, processor.name], struct.pack("=IIQ6Q", number, audit, 0, *wide)
    )


def expected(rules, processor, audit, number, arguments):
    """The verdict, straight from the table."""
    if audit != AUDIT_ARCH[processor.name]:
        return SyscallRule.KILL
    if processor is X86_64 and number >= X32:
        return EPERM
    if number > LAST_KNOWN:
        return ENOSYS
    for rule in rules:
        if processor.number(rule.name) == number:
            return rule_verdict(rule, arguments)
    return ALLOW


def rule_verdict(rule, arguments):
    holds = any(
        all(arguments[c.argument] & c.mask in c.values for c in clause) for clause in rule.clauses
    )
    return rule.then if holds else rule.otherwise


WORDS = sorted(
    {
        word & 0xFFFFFFFF
        for rules in TABLES.values()
        for rule in rules
        for clause in rule.clauses
        for condition in clause
        for value in condition.values
        for word in (value, value + 1, condition.mask, value | condition.mask, value | 0x80000)
    }
)
ARGUMENT = st.builds(
    lambda low, high: low | high << 32,
    st.one_of(st.sampled_from(WORDS), st.integers(0, 2**32 - 1)),
    st.sampled_from([0, 1, 0xFFFFFFFF]),
)
NUMBER = st.one_of(
    st.sampled_from([number for pair in NUMBERS.values() for number in pair if number is not None]),
    st.integers(0, LAST_KNOWN + 2),
    st.sampled_from([X32 - 1, X32, X32 | 39, 0xFFFFFFFF]),
)


@given(
    st.sampled_from(sorted(TABLES)),
    st.sampled_from(PROCESSORS),
    st.sampled_from([None] * 9 + sorted(AUDIT_ARCH.values())),
    NUMBER,
    st.lists(ARGUMENT, min_size=6, max_size=6),
)
def test_the_program_gives_the_verdict_of_its_table(table, processor, audit, number, arguments):
    audit = AUDIT_ARCH[processor.name] if audit is None else audit
    low = [argument & 0xFFFFFFFF for argument in arguments]
    wanted = expected(TABLES[table], processor, audit, number, low)
    assert verdict(table, processor, number, *arguments, audit=audit) == wanted


@on_each
@in_each
def test_every_rule_is_obeyed_in_all_its_cases(table, processor):
    """Each rule with arguments that meet and that miss each condition, in all combinations."""
    asked = 0
    for rule in TABLES[table]:
        conditions = [condition for clause in rule.clauses for condition in clause]
        places = sorted({condition.argument for condition in conditions})
        choices = [
            sorted(
                {
                    word & 0xFFFFFFFF
                    for condition in conditions
                    if condition.argument == place
                    for value in condition.values
                    for word in (value, value | ~condition.mask, value ^ 1, value + 1, ~value)
                }
            )
            for place in places
        ]
        for words in itertools.product(*choices):
            arguments = [0] * 6
            for place, word in zip(places, words, strict=True):
                arguments[place] = word
            answer = verdict(table, processor, rule.name, *arguments)
            assert answer in {None, rule_verdict(rule, arguments)}, (rule.name, arguments)
            asked += answer is not None
    assert asked > len(TABLES[table]) / 2


UNIX, INET, INET6, NETLINK = 1, 2, 10, 16
STREAM, DATAGRAM, RAW = 1, 2, 3
CLOEXEC = 0o2000000
DENIED = [
    ("ptrace", 16, 1),
    ("unshare", 0x10000000),
    ("mount", 0, 0, 0, 0, 0),
    ("bpf", 5, 0, 0),
    ("keyctl", 0),
    ("shmget", 0, 4096, 0o1600),
    ("memfd_create", 0, 0),
    ("setuid", 0),
    ("setresuid", 0, 0, 0),
    ("inotify_init", 0),
    ("inotify_init1", 0),
    ("open_by_handle_at", 0, 0, 0),
    ("iopl", 3),
    ("reboot", 0xFEE1DEAD),
    ("io_uring_setup", 1, 0),
    ("open_tree_attr", 0, 0, 0),
    ("ioctl", 0, 0x5412),
    ("ioctl", 0, -0x100000000 | 0x541C),
    ("ioctl", 0, 1 << 40 | 0x5423),
    ("fcntl", 3, 1024, 1),
    ("mmap", 0, 4096, 3, 0x21, -1, 0),
    ("mmap", 0, 4096, 3, 0x4023, -1, 0),
    ("prctl", 35),
    ("setsockopt", 3, 1, 7),
    ("prlimit64", 77, 7),
    ("sched_setscheduler", 77, 1, 0),
    ("setpriority", 1, 77, 5),
    ("clone", 0x10000000 | 17),
    ("clone", 0x02000000 | 17),
    ("personality", 0x0040000),
    ("creat", 0, 0o4755),
    ("chmod", 0, 0o2755),
    ("fchmod", 3, 0o6755),
    ("fchmodat", -100, 0, 0o4755),
    ("fchmodat2", -100, 0, 0o4755),
    ("open", 0, 0o100, 0o4755),
    ("openat", -100, 0, 0o20000000, 0o4755),
    ("mknod", 0, 0o020600, 0x103),
    ("mknodat", -100, 0, 0o060600, 0x700),
    ("socket", 17, RAW, 0),
    ("socket", INET, RAW, 1),
    ("socket", INET, STREAM, 262),
    ("socket", NETLINK, RAW, 4),
    ("socketpair", 30, STREAM, 0),
    ("sendto", 3, 0, 1, 0x20000000, 0, 0),
    ("sendmsg", 3, 0, 0x20000000),
    ("sendmmsg", 3, 0, 1, 0x20000000),
]
GONE = [("flock", 3, 2), ("clone3", 0, 88), ("openat2", -100, 0, 0, 24)]
ALLOWED = [
    ("ioctl", 0, 0x5401),
    ("fcntl", 3, 1032),
    ("mmap", 0, 4096, 3, 0x22, -1, 0),
    ("mmap", 0, 4096, 1, 0x01, 3, 0),
    ("prctl", 22),
    ("setsockopt", 3, 6, 1),
    ("prlimit64", 0, 7),
    ("sched_setscheduler", 77, 0, 0),
    ("setpriority", 0, 0, 5),
    ("ioprio_set", 1, 0, 0),
    ("clone", 17),
    ("personality", 0xFFFFFFFF),
    ("creat", 0, 0o644),
    ("chmod", 0, 0o755),
    ("fchmodat", -100, 0, 0o755),
    ("open", 0, 0, 0o4755),
    ("openat", -100, 0, 0o100, 0o644),
    ("openat", -100, 0, 0o40000 | 0o200000 | 0o100000, 0o4755),
    ("mknod", 0, 0o010600, 0),
    ("mknodat", -100, 0, 0o100600, 0),
    ("socket", UNIX, STREAM | CLOEXEC, 0),
    ("socket", INET, STREAM, 6),
    ("socket", INET6, STREAM, 0),
    ("socket", NETLINK, RAW | CLOEXEC, 0),
    ("socketpair", UNIX, DATAGRAM, 0),
    ("sendto", 3, 0, 1, 0x4000, 0, 0),
    ("connect", 3, 0, 16),
    ("bind", 3, 0, 16),
    ("kill", 0, 9),
    ("seccomp", 1, 0, 0),
    ("capset", 0, 0),
]
ONLY_ON_X86_64 = {"inotify_init", "iopl", "ioperm", "open", "creat", "chmod", "mknod"}


@on_each
@pytest.mark.parametrize("network", ["offline", "online"])
def test_what_a_kernel_may_do_is_the_same_on_both_processors(processor, network):
    """Written down by hand, apart from the tables."""
    skipped = set()
    for wanted, calls in ((EPERM, DENIED), (ENOSYS, GONE), (ALLOW, ALLOWED)):
        for call in calls:
            answer = verdict(network, processor, *call)
            assert answer in {wanted, None}, call
            skipped |= {call[0]} if answer is None else set()
    assert skipped == (ONLY_ON_X86_64 - {"ioperm"} if processor is AARCH64 else set())


@on_each
def test_a_network_and_a_bound_kernel_differ_by_their_sockets(processor):
    udp, tcp = ("socket", INET, DATAGRAM, 17), ("socket", INET, STREAM, 6)
    assert verdict("offline", processor, *udp) == EPERM
    assert verdict("online", processor, *udp) == ALLOW
    for call in (tcp, ("connect", 3, 0, 16), ("bind", 3, 0, 16), ("listen", 3, 9)):
        assert verdict("late", processor, *call) == EPERM
    assert verdict("late", processor, "socketpair", UNIX, DATAGRAM, 0) == EPERM
    assert verdict("late", processor, "socketpair", UNIX, STREAM, 0) == ALLOW
    assert verdict("late", processor, "sendto", 3, 0, 1, 0x20000000) == EPERM
    assert verdict("late", processor, "ptrace", 0) == ALLOW


@on_each
@in_each
def test_another_interface_of_the_processor_is_shut(table, processor):
    for name, audit in AUDIT_ARCH.items():
        if name != processor.name:
            for number in (0, 39, 172, LAST_KNOWN + 1, X32):
                assert verdict(table, processor, number, audit=audit) == SyscallRule.KILL
    refusal = EPERM if processor is X86_64 else ENOSYS
    for number in (X32, X32 | 39, X32 | 512, 0xFFFFFFFF):
        assert verdict(table, processor, number) == refusal
    assert verdict(table, processor, LAST_KNOWN + 1) == ENOSYS
    assert verdict(table, processor, X32 - 1) == ENOSYS
    assert verdict(table, processor, LAST_KNOWN) == ALLOW


@on_each
@in_each
def test_the_program_is_well_formed(table, processor):
    lines = lines_of(PROGRAMS[table, processor.name])
    assert 0 < len(lines) <= 4096
    for place, (operation, yes, no, constant) in enumerate(lines):
        assert operation in {LOAD, AND, EQUAL, GREATER, AT_LEAST, RETURN}
        if operation in {EQUAL, GREATER, AT_LEAST}:
            assert place + 1 + max(yes, no) < len(lines)
        else:
            assert (yes, no) == (0, 0)
        if operation == LOAD:
            assert constant % 4 == 0
            assert constant < 64
        if operation == RETURN:
            assert constant in set(SyscallRule)
    assert lines[-1] == (RETURN, 0, 0, SyscallRule.ALLOW)


def test_several_values_and_masks_are_all_compared():
    condition = ArgumentCondition(5, (1, 2, 3), 0xF)
    rule = Rule("ioctl", EPERM, ((condition, ArgumentCondition(0, (9,))),))
    program = seccomp.assemble([rule], AARCH64)
    for first, last, wanted in [
        (9, 0x11, ALLOW),
        (9, 2, ALLOW),
        (9, 3, ALLOW),
        (9, 4, EPERM),
        (8, 3, EPERM),
    ]:
        data = struct.pack("=IIQ6Q", 29, AUDIT_ARCH["aarch64"], 0, first, 0, 0, 0, 0, last)
        assert interpret(program, data) == wanted


@on_each
def test_a_rule_for_a_call_that_no_table_has_is_an_error(processor):
    with pytest.raises(KeyError):
        seccomp.assemble([Rule("opne", EPERM)], processor)


@in_each
def test_a_call_has_one_rule(table):
    names = [rule.name for rule in TABLES[table]]
    assert len(names) == len(set(names))
    restricting_oneself = {"prctl", "seccomp", "capset"}
    always_denied = {rule.name for rule in TABLES[table] if not rule.clauses}
    assert not always_denied & restricting_oneself


def test_a_call_is_in_one_family():
    named = [name for family in FAMILIES.values() for name in family]
    assert len(named) == len(set(named)) > 80
