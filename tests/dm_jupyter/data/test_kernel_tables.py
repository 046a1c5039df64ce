"""A kernel's variables are read with no trust in the kernel's text."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest

from dm_jupyter.data.kernel_tables import Alive, alive_from_text, variables_text
from kernel_sandbox.jupyter.attached import reply_text

COLUMN = {"name": "a", "dtype": "int64", "samples": ["1", "2"]}
TABLE: dict[str, Any] = {"name": "df", "kind": "DataFrame", "shape": [2, 1], "columns": [COLUMN]}
VALUE = {"name": "n", "kind": "int", "text": "3"}


def test_what_the_kernel_lists_is_taken() -> None:
    series = {**TABLE, "kind": "Series", "shape": [2], "columns": []}
    found = alive_from_text(json.dumps({"tables": [TABLE, series], "values": [VALUE]}))
    assert found == Alive((TABLE, series), (VALUE,))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "'[]'",
        "{}",
        "[]",
        '{"tables": {}, "values": 5}',
        "5",
        "[" * 100_000,
        "(" * 300 + ")" * 300,
        "[" + "1" * 10_000 + "]",
        json.dumps("[]"),
        json.dumps({"tables": [TABLE] * 4000}),
        "[NaN]",
    ],
)
def test_what_is_no_list_of_variables_gives_none(text: str) -> None:
    assert alive_from_text(text) == Alive()


@pytest.mark.parametrize(
    "change",
    [
        {"name": 5},
        {"name": ""},
        {"kind": "Popen"},
        {"kind": []},
        {"shape": []},
        {"shape": [-1]},
        {"shape": [True]},
        {"shape": [2**60]},
        {"shape": [1, 1, 1]},
        {"shape": "22"},
        {"columns": None},
        {"columns": [5]},
        {"columns": [{**COLUMN, "samples": [1]}]},
        {"columns": [{**COLUMN, "dtype": {}}]},
    ],
)
def test_a_table_of_another_shape_is_left_out(change: dict[str, Any]) -> None:
    assert alive_from_text(json.dumps({"tables": [{**TABLE, **change}, TABLE]})).tables == (TABLE,)


@pytest.mark.parametrize("change", [{"name": 5}, {"name": ""}, {"text": None}, {"kind": []}])
def test_a_value_of_another_shape_is_left_out(change: dict[str, Any]) -> None:
    found = alive_from_text(json.dumps({"values": [{**VALUE, **change}, 3, VALUE]}))
    assert found.values == (VALUE,)


def test_what_is_too_much_is_cut() -> None:
    column = {"name": "n" * 999, "dtype": "d" * 999, "samples": ["s" * 99] * 9, "odd": 1}
    table = {**TABLE, "columns": [column] * 40, "odd": 1}
    long = {"name": "n" * 99, "kind": "k" * 99, "text": "t" * 99, "odd": 1}
    told = {"tables": [table] + [TABLE] * 40, "values": [long] * 40}
    alive = alive_from_text(json.dumps(told))
    found, values = alive.tables, alive.values
    assert len(values) == 30
    assert values[0] == {"name": "n" * 80, "kind": "k" * 80, "text": "t" * 80}
    assert len(found) == 20
    assert {*found[0]} == {*TABLE}
    assert len(found[0]["columns"]) == 30
    cut = {"name": "n" * 80, "dtype": "d" * 80, "samples": ["s" * 40] * 3}
    assert found[0]["columns"][0] == cut


@pytest.mark.parametrize("odd", [None, 5, "x", [], {"value": 5}, {"value": {"data": []}}])
def test_a_reply_without_a_value_has_no_text(odd: object) -> None:
    assert reply_text({"user_expressions": odd}) is None
    assert reply_text({}) is None


def test_the_text_of_a_value() -> None:
    data = {"text/plain": "[]"}
    assert reply_text({"user_expressions": {"value": {"data": data}}}) == "[]"
    assert reply_text({"user_expressions": {"value": {"data": {"text/plain": 5}}}}) is None


class Slow:
    """Its texts would keep a kernel busy."""

    def __str__(self) -> str:
        raise AssertionError("nobody may ask")

    __repr__ = __str__


class OddFrame(pd.DataFrame):
    """Cannot be looked at."""

    @property
    def iloc(self) -> Any:
        """Raises."""
        raise RuntimeError("not now")


def test_what_a_class_of_the_persons_says_is_not_asked_for() -> None:
    items = [Slow(), [Slow()], {"a": 10**9_000}]
    frame = pd.DataFrame({"odd": pd.Series(items, dtype=object), "n": [1, 2, 3]})
    frame["date"] = pd.Timestamp("2024-05-06")
    alive = alive_from_text(variables_text({"frame": frame, "one": Slow()}))
    odd, n, date = alive.tables[0]["columns"]
    assert odd["samples"] == ["<Slow>", "1 items", "1 items"]
    assert n["samples"] == ["1", "2", "3"]
    assert date["samples"][0] == "2024-05-06 00:00:00"


def test_one_variable_that_cannot_be_told_does_not_hide_the_others() -> None:
    names = {"large": 10**9_000, "odd": OddFrame({"a": [1]}), "n": 3}
    names |= {"sales": pd.DataFrame({"day": [[1, 2]], "raw": [b"x" * 999]})}
    alive = alive_from_text(variables_text(names))
    assert [(one["name"], one["text"]) for one in alive.values] == [
        ("large", "a long number"),
        ("odd", "a table that can't be looked at"),
        ("n", "3"),
    ]
    assert [column["samples"] for column in alive.tables[0]["columns"]] == [
        ["[1, 2]"],
        [str(b"x" * 40)[:40]],
    ]
