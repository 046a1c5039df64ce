"""Some thousand hostile inputs for what the server reads from a kernel."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from benchmarks.fuzz.targets import KernelMessage
from benchmarks.fuzz.values import hostile_json, mutated
from benchmarks.fuzz_kernel_inputs import fuzz

MESSAGE = {"a": [1, {"b": "c"}], "d": {"e": None}}


async def test_hostile_inputs_raise_only_what_is_documented(tmp_path: Path) -> None:
    figures = fuzz(4000, 7, tmp_path)
    assert {name: dict(one.findings) for name, one in figures.items() if one.findings} == {}
    assert sum(one.inputs for one in figures.values()) == 4000
    refused = {name for name, x in figures.items() if x.inputs > 20 and x.documented == x.inputs}
    assert refused == set()


async def test_a_finding_names_its_place_and_its_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepare(self: KernelMessage, random: Random):
        return lambda: int("x")

    monkeypatch.setattr(KernelMessage, "prepare", prepare)
    monkeypatch.setattr(KernelMessage, "documented", (KeyError,))
    figures = fuzz(1000, 7, tmp_path, [3])
    found = figures["KernelMessage"].findings
    assert sum(found.values()) == figures["KernelMessage"].inputs
    (finding,) = found
    assert finding.startswith("ValueError")
    assert "test_fuzz.py" in finding
    assert "(part 3)" in finding


def test_a_seed_makes_the_same_inputs() -> None:
    first = [hostile_json(Random(n), MESSAGE) for n in range(200)]
    assert first == [hostile_json(Random(n), MESSAGE) for n in range(200)]
    assert len(set(first)) > 100
    assert mutated(Random(1), MESSAGE) != MESSAGE
    assert MESSAGE == {"a": [1, {"b": "c"}], "d": {"e": None}}
