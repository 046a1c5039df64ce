from __future__ import annotations

import csv
import io
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.scoring.tables import read_csv, tables_equal, tables_identical

CELLS = st.one_of(
    st.none(),
    st.integers(-(10**12), 10**12),
    st.floats(-1e9, 1e9),
    st.sampled_from(["a", "B", "2015-01-01", "x y", "7.50"]),
)
TABLES = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.tuples(*[CELLS] * width), min_size=1, max_size=6)
)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (5, "5.0", True),
        (0.1 + 0.2, "0.3", True),
        (123456789, "123456790", False),
        (10000001, "10000000.0", False),
        (10000001, "10000001.0", True),
        (10000001.0, "1e7", False),
        (10000001, "10000000.5", True),
        (1.2345678901234567e17, "1.2345678901234568e+17", True),
        (0.333333, "0.33", False),
        (None, "", True),
        (float("nan"), "NULL", True),
        (0, None, False),
        ("2015-01-01", "2015-01-01 00:00:00", True),
        ("2015-01-01", "2015-01-01 06:00:00", False),
        ("1 ", "1", True),
        ("x", "X", False),
        ("10012-2612", "10012", False),
        ("12%", "12", False),
        (10**400, "1e5", False),
        (12345678.91, "12345678.92", False),
        ("12345678.90", "12345678.91", False),
        (158314.450361634, "158314.45", True),
        (158314.450361634, "158314.46", False),
        ("2015-01-01", "January 1, 2015", True),
        ("03/04/2024", "2024-04-03", False),
        ("March of the Penguins", "March of the Penguins", True),
        (5.551115123125783e-17, "0.0", True),
    ],
)
def test_cells(one: object, other: object, same: bool) -> None:
    assert tables_equal([(one,)], [(other,)]) is same
    assert tables_equal([(other,)], [(one,)]) is same


def test_rows_stay_whole_and_duplicates_count() -> None:
    assert not tables_equal([(1, 2), (3, 4)], [(1, 4), (3, 2)])
    assert not tables_equal([(1,), (2,)], [(1,), (2,), (2,)])
    assert not tables_equal([(1,), (2,), (2,)], [(1,), (1,), (2,)])


def test_order_matters_only_where_asked() -> None:
    assert tables_equal([(10,), (9,)], [("9",), ("10",)])
    assert not tables_equal([(10,), (9,)], [("9",), ("10",)], order_matters=True)
    assert tables_equal([(10,), (9,)], [("10",), ("9",)], order_matters=True)


def test_columns_may_be_permuted_all_rows_alike() -> None:
    gold = [("rock", 3), ("jazz", 5)]
    assert tables_equal(gold, [(5, "jazz"), (3, "rock")])
    assert not tables_equal(gold, [(3, "jazz"), (5, "rock")])
    assert tables_equal(gold, [(3, "rock"), (5, "jazz")], order_matters=True)
    assert not tables_equal([(1, 1)], [(1,)])


def test_wide_tables_keep_their_column_order() -> None:
    row = tuple(range(7))
    assert tables_equal([row], [row])
    assert not tables_equal([row], [row[::-1]])


def test_dust_in_two_columns_of_numbers_pairs_off() -> None:
    gold = [(1.0, 5.0), (1.0, 7.0)]
    said = [(1.0 + 1e-12, 5.0), (1.0, 7.0 + 1e-12)]
    assert tables_equal(gold, said)
    assert not tables_equal(gold, [(1.0 + 1e-12, 5.0), (1.0, 8.0)])


@pytest.mark.parametrize("count", [10, 1200])
def test_rows_pair_off_whatever_dust_their_first_column_has(count: int) -> None:
    for share in (0.3, 0.3000005):  # the second is where six digits round up or down
        gold = [(share + (row % 2 - 0.5) * 1e-12, row) for row in range(count)]
        said = [(str(share), str(row)) for row in range(count)]
        assert tables_equal(gold, said)
        assert tables_equal(said, gold)
        assert not tables_equal(gold, [*said[:-1], (str(share), "0")])


def test_rows_pair_off_though_rounding_changes_their_order() -> None:
    gold = [(0.3, 0.50000001), (0.30000002, 0.50000002)]
    said = [(0.30000002, 0.50000002), (0.30000003, 0.50000001)]
    assert tables_equal(gold, said)
    assert not tables_equal(gold, [said[0], (0.30000003, 0.50000003)])
    assert not tables_equal(gold, [said[0], said[0]])


def test_a_whole_number_lies_close_to_what_is_none() -> None:
    gold = [(10000000, "a"), (10000001, "b"), (10000001.5, "c")]
    assert tables_equal(gold, [(10000000.5, "a"), (10000001, "b"), (10000001.46, "c")])
    assert not tables_equal(gold, [(10000002, "a"), (10000001, "b"), (10000001.5, "c")])


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.integers(-99, 99)), max_size=30), st.randoms())
def test_dust_changes_no_table(rows: list[tuple[float, int]], chance: random.Random) -> None:
    dusty = [(first * (1 + chance.uniform(-1e-12, 1e-12)), second) for first, second in rows]
    chance.shuffle(dusty)
    assert tables_equal(rows, dusty)


def test_empty_tables() -> None:
    assert tables_equal([], [])
    assert not tables_equal([], [(1,)])
    assert not tables_equal([(1,), (1, 2)], [(1,), (1, 2)])


def test_csv_is_read_below_its_header() -> None:
    assert read_csv('\ufeffa,b\n1,x\n\n2,"y, z"\n') == [["1", "x"], ["2", "y, z"]]
    assert read_csv("a\n1\n\n2\n") == [["1"], [""], ["2"]]
    assert read_csv("n\n5\n\n\n") == [["5"]]
    assert read_csv('n\n5\n""\n') == [["5"], [""]]
    assert read_csv(",a\n0,7\n1,8\n") == [["7"], ["8"]]
    assert read_csv(",a\n5,7\n") == [["5", "7"]]
    with pytest.raises(ValueError, match="no header line"):
        read_csv("")
    with pytest.raises(ValueError, match="not a csv table"):
        read_csv("a\n" + "x" * 200_000)


@given(TABLES, st.randoms(use_true_random=False), st.booleans())
def test_a_shuffled_table_is_itself(
    table: list[tuple[object, ...]], random: object, flag: bool
) -> None:
    rows = list(table)
    random.shuffle(rows)  # type: ignore[attr-defined]
    assert tables_equal(table, rows)
    assert tables_equal(table, table, order_matters=flag)


@given(TABLES, TABLES)
def test_equality_is_symmetric(
    one: list[tuple[object, ...]], other: list[tuple[object, ...]]
) -> None:
    assert tables_equal(one, other) == tables_equal(other, one)


@given(TABLES)
def test_a_table_survives_csv(table: list[tuple[object, ...]]) -> None:
    text = io.StringIO()
    csv.writer(text).writerows([["h"] * len(table[0]), *table])
    assert tables_equal(table, read_csv(text.getvalue()))


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        rows = read_csv(text)
    except ValueError:
        return
    assert tables_equal(rows, rows) or len({len(row) for row in rows}) > 1


@pytest.mark.parametrize(
    ("gold", "said", "same"),
    [
        (5, "5.0", True),
        (0.1 + 0.2, "0.30000000000000004", True),
        (0.1 + 0.2, "0.3", False),
        (10**30, str(10**30), True),
        (1e-7, "1e-07", True),
        (None, "", True),
        (None, "NULL", False),
        (float("nan"), "", True),
        ("007", "007", True),
        ("007", "7", False),
        ("2015-01-01", "2015-01-01 00:00:00", False),
        ("x", "x ", False),
    ],
)
def test_identical_cells_are_the_same_digit_by_digit(gold: object, said: str, same: bool) -> None:
    assert tables_identical([[gold]], [[said]]) is same
    assert tables_identical([[said]], [[gold]]) is same


def test_identical_tables_keep_columns_and_asked_rows_in_order() -> None:
    gold = [("rock", 3), ("jazz", 5)]
    assert tables_identical(gold, [("jazz", "5"), ("rock", "3")])
    assert not tables_identical(gold, [("jazz", "5"), ("rock", "3")], order_matters=True)
    assert not tables_identical(gold, [("3", "rock"), ("5", "jazz")])
    assert not tables_identical(gold, [*gold, gold[0]])
    assert tables_identical([], [])


def test_an_index_stays_where_it_is_asked_for() -> None:
    assert read_csv(",a\n0,7\n1,8\n", keep_index=True) == [["0", "7"], ["1", "8"]]


@given(TABLES, TABLES)
def test_identical_tables_are_equal_ones(
    one: list[tuple[object, ...]], other: list[tuple[object, ...]]
) -> None:
    assert tables_identical(one, one, order_matters=True)
    assert tables_identical(one, other) == tables_identical(other, one)
    assert tables_equal(one, other) or not tables_identical(one, other)


@given(TABLES, st.randoms())
def test_tables_equal_as_written_are_equal_in_any_order(
    rows: list[tuple[object, ...]], chance: random.Random
) -> None:
    said = [["" if cell is None else str(cell) for cell in row] for row in rows]
    assert tables_equal(rows, said, order_matters=True)
    chance.shuffle(said)
    assert tables_equal(rows, said)


def test_a_table_of_another_shape_is_told_without_reading_a_cell() -> None:
    class Unreadable:
        def __str__(self) -> str:
            raise AssertionError

    rows = [(Unreadable(), Unreadable())]
    assert not tables_equal(rows, [])
    assert not tables_equal(rows, [("1",)])
    assert not tables_equal([*rows, (1,)], [*rows, (1, 2)])
    assert not tables_identical(rows, [])


def test_a_truth_value_is_not_its_own_word() -> None:
    assert not tables_equal([(True,)], [("True",)])
    assert tables_equal([(True,)], [("1",)])
