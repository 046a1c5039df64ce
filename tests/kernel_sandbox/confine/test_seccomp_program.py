"""The program of the filter, run in an interpreter of ours: it says what its table says."""

import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_sandbox.confine import seccomp
from kernel_sandbox.confine.syscall_table import (
    ARCHITECTURE,
    FAMILIES,
    LAST_KNOWN,
    LATE,
    X32,
    ArgumentCondition,
    Rule,
    SyscallRule,
    early_rules,
)

TABLES = {"offline": early_rules(False), "online": early_rules(True), "late": LATE}
PROGRAMS = {
    "offline": seccomp.early_program(False),
    "online": seccomp.early_program(True),
    "late": seccomp.late_program(),
}
LOAD, AND, EQUAL, GREATER, AT_LEAST, RETURN = 0x20, 0x54, 0x15, 0x25, 0x35, 0x06


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


def expected(rules, architecture, number, arguments):
    """The verdict, straight from the table."""
    if architecture != ARCHITECTURE:
        return SyscallRule.KILL
    if number >= X32:
        return SyscallRule.EPERM
    if number > LAST_KNOWN:
        return SyscallRule.ENOSYS
    for rule in rules:
        if rule.number == number:
            holds = any(
                all(arguments[c.argument] & c.mask in c.values for c in clause)
                for clause in rule.clauses
            )
            return rule.then if holds else rule.otherwise
    return SyscallRule.ALLOW


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
    st.sampled_from([rule.number for rule in TABLES["online"]]),
    st.integers(0, LAST_KNOWN + 2),
    st.sampled_from([X32 - 1, X32, X32 | 39, 0xFFFFFFFF]),
)


@given(
    st.sampled_from(sorted(TABLES)),
    st.sampled_from([ARCHITECTURE] * 9 + [0x40000003, 0xC00000B7]),
    NUMBER,
    st.lists(ARGUMENT, min_size=6, max_size=6),
)
def test_the_program_gives_the_verdict_of_its_table(name, architecture, number, arguments):
    data = struct.pack("=IIQ6Q", number, architecture, 0, *arguments)
    low = [argument & 0xFFFFFFFF for argument in arguments]
    wanted = expected(TABLES[name], architecture, number, low)
    assert interpret(PROGRAMS[name], data) == wanted


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_the_program_is_well_formed(name):
    lines = lines_of(PROGRAMS[name])
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
    program = seccomp.assemble(
        [Rule(7, SyscallRule.EPERM, ((condition, ArgumentCondition(0, (9,))),))]
    )
    for first, last, wanted in [
        (9, 0x11, SyscallRule.ALLOW),
        (9, 2, SyscallRule.ALLOW),
        (9, 3, SyscallRule.ALLOW),
        (9, 4, SyscallRule.EPERM),
        (8, 3, SyscallRule.EPERM),
    ]:
        data = struct.pack("=IIQ6Q", 7, ARCHITECTURE, 0, first, 0, 0, 0, 0, last)
        assert interpret(program, data) == wanted


@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_call_has_one_rule(name):
    numbers = [rule.number for rule in TABLES[name]]
    assert len(numbers) == len(set(numbers))
    assert max(numbers) <= LAST_KNOWN
    restricting_oneself = {157, 317, 444, 445, 446}
    always_denied = {rule.number for rule in TABLES[name] if not rule.clauses}
    assert not always_denied & restricting_oneself


def test_the_numbers_are_those_of_the_system():
    header = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
    if not header.exists():
        pytest.skip("the headers of the system are not installed")
    known = {
        name: int(number)
        for name, number in re.findall(r"#define __NR_(\w+) (\d+)", header.read_text())
    }
    ours = {name: number for family in FAMILIES.values() for name, number in family.items()}
    shared = ours.keys() & known.keys()
    assert {name: ours[name] for name in shared} == {name: known[name] for name in shared}
    assert len(shared) > 70
