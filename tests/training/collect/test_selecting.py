"""Which of the right runs stay."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import (
    Completion,
    RunCell,
    Step,
    StopReason,
    Trajectory,
    Turn,
)
from kernel_sandbox.types import CellResult
from tests.fakes import printed
from tests.training.outcomes import tried
from training.collect.examining import CollectedRun, is_grounded, program_of
from training.collect.selecting import (
    balance_of,
    first_of_each_question,
    held_ids,
    shortest_of_equals,
)


def a_run(
    name: str, trial: int = 0, *, program: str = "p", turns: int = 2, tokens: int = 9,
    category: str = "c", tables: tuple[str, ...] = ("t",),
) -> CollectedRun:  # fmt: skip
    data = {table: f"hash of {table}" for table in tables}
    record = tried(name, True, trial, turns=turns, data=data)
    return CollectedRun(record, Path("runs"), trial, category, {}, program, tokens)


def test_of_equal_programs_the_shortest_stays() -> None:
    runs = [
        a_run("q", 0, turns=3), a_run("q", 1, turns=2, tokens=8), a_run("q", 2, turns=2),
        a_run("q", 3, program="other", turns=9), a_run("r", 0, turns=7),
    ]  # fmt: skip
    assert [run.key for run in shortest_of_equals(runs)] == [("q", 1), ("q", 3), ("r", 0)]


def test_of_a_question_the_shortest_runs_stay() -> None:
    runs = [a_run("q", trial, program=str(trial), turns=4 - trial) for trial in range(4)]
    assert [run.key for run in first_of_each_question(runs, 2)] == [("q", 3), ("q", 2)]


@pytest.mark.parametrize(
    ("sizes", "share", "limit"),
    [
        # By hand: the largest L with L <= share * (sum of min(size, L)).
        ((10, 10, 10, 10), 0.25, 10),  # the share is then 2/4: 10 <= 20
        ((100, 10, 10, 10), 0.1, 30),  # 2/4: 30 <= 0.5 * 60, and 31 > 0.5 * 61
        ((100, 100, *[3] * 18), 0.12, 8),  # 8 <= 0.12 * 70 = 8.4, and 9 > 0.12 * 72 = 8.64
        ((50, 2), 0.1, 50),  # two categories: no limit
        ((7,), 0.1, 7),
        ((), 0.1, 0),
    ],
)
def test_the_limit_of_a_category_is_the_largest_that_keeps_the_share(
    sizes: tuple[int, ...], share: float, limit: int
) -> None:
    runs = [
        a_run(f"{category}-{number}", category=str(category))
        for category, size in enumerate(sizes)
        for number in range(size)
    ]
    balance = balance_of(runs, share, seed=1)
    assert balance.limit == limit
    left = Counter(run.category for run in balance.runs)
    assert sorted(left.values()) == sorted(min(size, limit) for size in sizes)
    assert balance_of(list(reversed(runs)), share, seed=1).runs == list(reversed(balance.runs))


def test_second_runs_of_a_question_go_before_first_ones() -> None:
    large = [a_run(f"q{n}", trial, category="large") for n in range(6) for trial in (0, 1)]
    small = [a_run(f"{name}{n}", category=name) for name in "abc" for n in range(2)]
    balance = balance_of([*large, *small], 0.1, seed=3)
    kept = [run for run in balance.runs if run.category == "large"]
    assert balance.limit == 6
    assert [run.trial for run in kept] == [0] * 6


def test_questions_about_one_table_are_held_back_together() -> None:
    runs = [a_run(f"q{n}", tables=(f"t{n // 4}",)) for n in range(40)]
    held = held_ids(runs, 0.2, seed=5)
    assert len(held) == 8
    assert {len(held & {f"q{4 * at + one}" for one in range(4)}) for at in range(10)} == {0, 4}
    assert held_ids(runs, 0.2, seed=5) == held
    assert held_ids(runs, 0.2, seed=6) != held
    assert held_ids(runs, 0.0, seed=5) == set()


def test_tables_that_a_question_joins_are_on_one_side() -> None:
    runs = [a_run("a", tables=("s",)), a_run("b", tables=("t",)), a_run("c", tables=("s", "t")),
            a_run("d", tables=("u",))]  # fmt: skip
    assert held_ids(runs, 0.3, seed=1) in ({"d"}, {"a", "b", "c"})
    assert held_ids(runs, 0.1, seed=1) == {"d"}  # at least one file


def test_of_one_table_whole_questions_are_held_back() -> None:
    runs = [a_run(f"q{n}", trial) for n in range(5) for trial in (0, 1)]
    assert len(held_ids(runs, 0.2, seed=1)) == 1
    assert held_ids([a_run("only")], 0.5, seed=1) == set()


def ended(answer: str, *cells: tuple[str, CellResult], form: str = "@n[value]") -> Trajectory:
    steps = [
        Step(Completion(source), Turn("", RunCell(source, language)), result)
        for source, result, language in ((*one, "python") for one in cells)
    ]
    task = Task("q", "How many?", answer_format=form)
    return Trajectory(task, "datamind", steps=tuple(steps), stop=StopReason.ANSWERED, answer=answer)


@pytest.mark.parametrize(
    ("answer", "output", "is_supported"),
    [
        ("@n[3]", "3\n", True),
        ("@n[3.14]", "pi 3.14159\n", True),
        ("@n[4]", "3\n", False),
        ("@n[34.65, 12, 7]", "a 34.6512\nb 12\nc 7\n", True),
        ("@n[34.65, 13, 7]", "a 34.6512\nb 12\nc 7\n", False),
        ("@n[yes]", "no\n", True),
    ],
)
def test_every_number_of_an_answer_has_its_output(
    answer: str, output: str, is_supported: bool
) -> None:
    assert is_grounded(ended(answer, ("x", printed(output)))) is is_supported


def test_layout_and_comments_make_no_other_program() -> None:
    one = ended("@n[1]", ("x = 1  # one\n\nprint( x )", printed("1")))
    same = ended("@n[1]", ("x = 1\nprint(x)", printed("1")))
    other = ended("@n[1]", ("x = 2\nprint(x)", printed("2")))
    magic = ended("@n[1]", ("%time  x", printed("1")))
    assert program_of(one) == program_of(same)
    assert len({program_of(run) for run in (one, other, magic)}) == 3
