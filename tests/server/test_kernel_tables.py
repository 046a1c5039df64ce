"""The tables among a kernel's variables are read with no trust in the kernel's text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dm_jupyter.server.kernel_tables import tables_from_text
from kernel_sandbox.attached import value_text

COLUMN = {"name": "a", "dtype": "int64", "samples": ["1", "2"]}
TABLE: dict[str, Any] = {"name": "df", "kind": "DataFrame", "shape": [2, 1], "columns": [COLUMN]}


def test_what_the_kernel_lists_is_taken() -> None:
    series = {**TABLE, "kind": "Series", "shape": [2], "columns": []}
    assert tables_from_text(json.dumps([TABLE, series])) == [TABLE, series]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "'[]'",
        "{}",
        "5",
        "[" * 100_000,
        "(" * 300 + ")" * 300,
        "[" + "1" * 10_000 + "]",
        json.dumps("[]"),
        json.dumps([TABLE] * 4000),
        "[NaN]",
    ],
)
def test_what_is_no_list_of_tables_gives_none(text: str) -> None:
    assert tables_from_text(text) == []


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
    assert tables_from_text(json.dumps([{**TABLE, **change}, TABLE])) == [TABLE]


def test_what_is_too_much_is_cut() -> None:
    column = {"name": "n" * 999, "dtype": "d" * 999, "samples": ["s" * 99] * 9, "odd": 1}
    table = {**TABLE, "columns": [column] * 40, "odd": 1}
    found = tables_from_text(json.dumps([table] + [TABLE] * 40))
    assert len(found) == 20
    assert {*found[0]} == {*TABLE}
    assert len(found[0]["columns"]) == 30
    cut = {"name": "n" * 80, "dtype": "d" * 80, "samples": ["s" * 40] * 3}
    assert found[0]["columns"][0] == cut


@pytest.mark.parametrize("odd", [None, 5, "x", [], {"value": 5}, {"value": {"data": []}}])
def test_a_reply_without_a_value_has_no_text(odd: object) -> None:
    assert value_text({"user_expressions": odd}) is None
    assert value_text({}) is None


def test_the_text_of_a_value() -> None:
    data = {"text/plain": "[]"}
    assert value_text({"user_expressions": {"value": {"data": data}}}) == "[]"
    assert value_text({"user_expressions": {"value": {"data": {"text/plain": 5}}}}) is None
