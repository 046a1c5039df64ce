from __future__ import annotations

import ast
import importlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dm_jupyter.core.forgotten_imports import _LINES, with_imports

FIT = "model = LinearRegression()\nmodel.fit(x, y)"


def test_a_well_known_name_is_imported_above_the_cell() -> None:
    line = "from sklearn.linear_model import LinearRegression"
    assert with_imports(FIT, []) == f"{line}\n{FIT}"


def test_several_are_imported_in_order() -> None:
    cell = with_imports("a, b = train_test_split(np.arange(9))", [])
    assert cell.splitlines()[:2] == [
        "import numpy as np",
        "from sklearn.model_selection import train_test_split",
    ]


@pytest.mark.parametrize(
    "cell",
    [
        "from sklearn.linear_model import LinearRegression\nLinearRegression()",
        "import sklearn.linear_model as LinearRegression\nLinearRegression",
        "class LinearRegression: pass\nLinearRegression()",
        "def f(LinearRegression): return LinearRegression()",
        "LinearRegression = 3\nprint(LinearRegression)",
        "for Counter in 'ab': print(Counter)",
        "try: 1\nexcept ValueError as np: print(np)",
        "match x:\n    case [*_] as np: print(np)",
        "lm.LinearRegression()",
        "print('LinearRegression')",
        "print(frame)",
    ],
)
def test_a_name_that_has_a_meaning_or_is_unknown_is_left(cell: str) -> None:
    assert with_imports(cell, []) == cell


def test_what_earlier_cells_defined_is_not_imported_again() -> None:
    assert with_imports(FIT, ["x = 1", "LinearRegression = Mine"]) == FIT
    assert with_imports(FIT, ["from sklearn.linear_model import LinearRegression"]) == FIT
    assert with_imports(FIT, ["this is (no code"]) != FIT


def test_a_variable_of_the_person_is_not_overwritten() -> None:
    assert with_imports("sm.mean()", [], ["sm"]) == "sm.mean()"


@pytest.mark.parametrize("cell", ["LinearRegression(", "%%time\nnp.mean(x)", "\0", ""])
def test_what_does_not_parse_is_left(cell: str) -> None:
    assert with_imports(cell, []) == cell


@pytest.mark.parametrize("line", sorted(_LINES.values()))
def test_every_import_exists(line: str) -> None:
    (statement,) = ast.parse(line).body
    if isinstance(statement, ast.ImportFrom):
        module = importlib.import_module(str(statement.module))
        assert hasattr(module, statement.names[0].name)
    else:
        assert isinstance(statement, ast.Import)
        pytest.importorskip(statement.names[0].name)


@given(st.text(max_size=200))
def test_no_text_raises_and_all_of_it_stays(cell: str) -> None:
    assert with_imports(cell, [cell]).endswith(cell)
