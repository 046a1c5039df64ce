from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dm_jupyter.core.task import Task
from training.suites.registry import SUITES
from training.suites.suite import Sample, draw

SIZES = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 30), min_size=2)


def plain(count: int) -> list[Sample]:
    return [Sample(Task(str(number), "?"), None) for number in range(count)]


def grouped(sizes: dict[str, int]) -> list[Sample]:
    return [
        Sample(Task(f"{name}{number}", "?", metadata={"draw_group": name}), None)
        for name, size in sizes.items()
        for number in range(size)
    ]


def shares(items: list[Sample]) -> Counter[str]:
    return Counter(item.task.metadata["draw_group"] for item in items)


def test_a_draw_is_reproducible_and_keeps_the_order() -> None:
    items = plain(50)
    drawn = draw(items, 7, seed=3)
    assert drawn == draw(items, 7, seed=3)
    assert drawn != draw(items, 7, seed=4)
    assert [int(item.task.id) for item in drawn] == sorted(int(item.task.id) for item in drawn)
    assert draw(items, None, seed=3) == draw(items, 99, seed=3) == items
    with pytest.raises(ValueError, match="0 or more"):
        draw(items, -1, seed=3)


def test_only_questions_of_the_levels_are_drawn() -> None:
    items = [
        Sample(Task(f"{level}{number}", "?", level=level), None)
        for number in range(6)
        for level in ("easy", "medium", "hard")
    ]
    drawn = draw(items, 5, seed=3, levels=["easy", "medium"])
    assert {item.task.level for item in drawn} == {"easy", "medium"}
    assert drawn == draw(items, 5, seed=3, levels=["medium", "easy"])
    assert draw(items, 99, seed=3, levels=["hard"]) == items[2::3]
    with pytest.raises(
        ValueError, match=r"No question has the level simple\..* easy, hard, medium"
    ):
        draw(items, 5, seed=3, levels=["simple"])
    with pytest.raises(ValueError, match=r"Levels of this split: none"):
        draw(plain(2), 5, seed=3, levels=["easy"])


def test_without_groups_a_draw_is_what_it_always_was() -> None:
    expected = sorted(random.Random(7).sample(range(103), 40))
    assert [int(item.task.id) for item in draw(plain(103), 40, seed=7)] == expected
    assert expected[:6] == [4, 5, 6, 7, 8, 9]


def test_one_group_is_drawn_like_none() -> None:
    alone = [item.task.id[1:] for item in draw(grouped({"a": 60}), 9, seed=5)]
    assert alone == [item.task.id for item in draw(plain(60), 9, seed=5)]


def test_small_groups_leave_their_share_to_the_others() -> None:
    items = grouped({"a": 87, "b": 14, "c": 10, "d": 6, "e": 4})
    drawn = draw(items, 60, seed=7)
    assert shares(drawn) == {"a": 26, "b": 14, "c": 10, "d": 6, "e": 4}
    assert drawn == draw(items, 60, seed=7)
    assert drawn != draw(items, 60, seed=8)
    assert shares(draw(items, 20, seed=7)) == dict.fromkeys("abcde", 4)


def test_what_does_not_come_out_even_goes_to_a_group_by_chance() -> None:
    items = grouped({"a": 5, "b": 5, "c": 5})
    favoured = {shares(draw(items, 4, seed)).most_common(1)[0][0] for seed in range(20)}
    assert favoured == {"a", "b", "c"}


def test_what_does_not_come_out_even_is_not_the_smallest_groups_by_right() -> None:
    items = grouped({"a": 10, "b": 20, "c": 30})
    favoured = {shares(draw(items, 4, seed)).most_common(1)[0][0] for seed in range(20)}
    assert favoured == {"a", "b", "c"}
    assert {*shares(draw(items, 32, seed=1)).values()} == {10, 11}


@given(SIZES, st.data())
def test_no_group_gets_more_than_one_more_than_another_that_has_more(
    sizes: dict[str, int], data: st.DataObject
) -> None:
    limit = data.draw(st.integers(0, sum(sizes.values())))
    drawn = draw(grouped(sizes), limit, data.draw(st.integers(0, 99)))
    taken = shares(drawn)
    assert len({item.task.id for item in drawn}) == limit
    unfilled = [taken[name] for name in sizes if taken[name] < sizes[name]]
    assert not unfilled or max(taken.values(), default=0) <= min(unfilled) + 1


def test_sixty_sql_questions_are_drawn_with_equal_shares_of_databases(shared_data: Path) -> None:
    items = SUITES["sql"].load(shared_data / "sql")
    counts = sorted(shares(draw(items, 60, seed=7)).values())
    assert counts == [4, 6, 10, 14, 26]
