"""Which faults are put into a file to see whether the tests notice them."""

import ast

import pytest

from benchmarks.mutants import mutants_of

SOURCE = '''"""A module of 3 words."""
__all__ = ["f"]
LIMIT: int = 10


def f(x: "int | 4", y: bool = True) -> "list[5]":
    """Returns at most 7."""
    if x > LIMIT and not y:
        print(x)
    for one in range(x):
        if one in (1, 2):
            continue
    return [max(x + 1, 2)] if y else []
'''
WHOLE = """10 -> 11
True -> False
x > LIMIT and (not y) -> x > LIMIT or not y
x > LIMIT -> x >= LIMIT
not y -> y
print(x) -> pass
one in (1, 2) -> one not in (1, 2)
continue -> break
[max(x + 1, 2)] if y else [] -> [] if y else [max(x + 1, 2)]
max(x + 1, 2) -> min(x + 1, 2)
x + 1 -> x - 1
1 -> 2
2 -> 3"""


def test_each_fault_is_small_and_words_and_types_stay() -> None:
    found = mutants_of("m.py", SOURCE)
    told = {one.what.replace("  ->  ", " -> ") for one in found}
    assert set(WHOLE.splitlines()) <= told
    assert not any("4" in one or "5" in one or "7" in one or "words" in one for one in told)
    negated = [one for one in found if one.what.startswith("if ")]
    assert len(negated) == 2


def test_the_file_with_a_fault_differs_in_that_place_alone() -> None:
    before = ast.unparse(ast.parse(SOURCE)).splitlines()
    for mutant in mutants_of("m.py", SOURCE):
        after = mutant.text.splitlines()
        assert len(after) == len(before), mutant.what
        changed = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
        assert len(changed) == 1, mutant.what


def test_a_file_without_code_has_no_faults() -> None:
    assert mutants_of("m.py", '"""Nothing."""\n__all__ = ["x"]\n') == []


@pytest.mark.parametrize(
    "line",
    [
        "LONGEST_S = 60 * 3",
        "_MOST_BYTES: int = 64 * 2**20",
        "f(timeout=3)",
        "_log.debug('%s', 3)",
        "if __name__ == '__main__':\n    pass",
        "Found = Fact | None",
    ],
)
def test_bounds_of_time_and_memory_and_what_nobody_sees_get_no_fault(line: str) -> None:
    faults = {one.what.partition("  ->  ")[0] for one in mutants_of("m.py", line)}
    assert faults <= {"f(timeout=3)"}


@pytest.mark.parametrize("line", ["wanted_s = 3 if seen else 4", "ROWS = 3", "self.warning(3)"])
def test_what_is_no_bound_gets_faults(line: str) -> None:
    assert any(one.what.startswith("3") for one in mutants_of("m.py", line))
