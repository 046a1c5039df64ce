"""The numbers of system calls: those of the system's headers, and those of libseccomp."""

import ctypes
import ctypes.util
import errno
import platform
import re
from pathlib import Path

import pytest

from kernel_sandbox.confine import syscall_numbers
from kernel_sandbox.confine.syscall_numbers import (
    AARCH64,
    LAST_KNOWN,
    NUMBERS,
    X86_64,
    current_architecture,
    number_here,
)

HEADERS = {
    X86_64: Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    AARCH64: Path("/usr/include/asm-generic/unistd.h"),
}
on_each = pytest.mark.parametrize("processor", [X86_64, AARCH64], ids=lambda one: one.name)


@on_each
def test_the_numbers_are_those_of_the_headers(processor):
    """Debian's linux-libc-dev has the generic table on every processor."""
    if not HEADERS[processor].exists():
        pytest.skip("the headers of the system are not installed")
    define = r"#define\s+__NR(?:_|3264_)(\w+)\s+(\d+)"
    known = {
        name: int(number) for name, number in re.findall(define, HEADERS[processor].read_text())
    }
    ours = {name: processor.number(name) for name in NUMBERS}
    shared = ours.keys() & known.keys()
    assert {name: ours[name] for name in shared} == {name: known[name] for name in shared}
    assert len(shared) > 110
    # What the headers lack is younger than they are, or missing on this processor.
    newest = max(known.values())
    assert all(ours[name] is None or ours[name] > newest - 1 for name in ours.keys() - shared)


@on_each
def test_the_numbers_are_those_of_libseccomp(processor):
    path = ctypes.util.find_library("seccomp")
    if path is None:
        pytest.skip("libseccomp is not installed")
    resolve = ctypes.CDLL(path).seccomp_syscall_resolve_name_arch
    found = {name: resolve(ctypes.c_uint32(processor.audit), name.encode()) for name in NUMBERS}
    # It answers with a negative number of its own for a call that the processor lacks (below
    # -100), and with -1 for one that it does not know.
    known = {name: number for name, number in found.items() if number != -1}
    ours = {
        name: -1 if processor.number(name) is None else processor.number(name) for name in known
    }
    assert ours == {name: max(number, -1) for name, number in known.items()}
    assert len(known) > 110


@on_each
def test_a_number_means_one_call(processor):
    numbers = [number for name in NUMBERS if (number := processor.number(name)) is not None]
    assert len(numbers) == len(set(numbers))
    assert min(numbers) >= 0
    assert max(numbers) <= LAST_KNOWN


def test_the_younger_calls_count_alike():
    assert all(one == other for one, other in NUMBERS.values() if one >= 424)


@pytest.mark.parametrize(
    ("machine", "processor"),
    [("x86_64", X86_64), ("aarch64", AARCH64), ("arm64", None), ("aarch64_be", None)],
)
def test_the_processor_is_known_by_its_name(monkeypatch, machine, processor):
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(syscall_numbers.sys, "platform", "linux")
    assert current_architecture() is processor
    if processor is None:
        with pytest.raises(OSError, match=f"kill: no number is known for linux on {machine}"):
            number_here("kill")
    else:
        assert number_here("kill") == {"x86_64": 62, "aarch64": 129}[machine]


def test_a_call_that_the_processor_lacks_is_an_error(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(syscall_numbers.sys, "platform", "linux")
    with pytest.raises(OSError, match="open: no number") as caught:
        number_here("open")
    assert caught.value.errno == errno.ENOSYS
