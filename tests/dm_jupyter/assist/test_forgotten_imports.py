from __future__ import annotations

import ast
import importlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dm_jupyter.assist.repair import _LINES, missing_import
from kernel_sandbox.types import CellError
from tests.dm_jupyter.assist.failing import error_of


def _edit(cell: str, *earlier: str, variables: tuple[str, ...] = ()) -> str | None:
    error = error_of(cell, earlier)
    assert error is not None
    found = missing_import(cell, error, earlier, variables)
    return None if found is None else found.edit


def test_a_well_known_name_is_imported_above_the_cell_that_failed_for_it() -> None:
    cell = "model = LinearRegression()"
    assert _edit(cell) == f"from sklearn.linear_model import LinearRegression\n{cell}"
    assert _edit("np.mean([1])") == "import numpy as np\nnp.mean([1])"


def test_only_the_name_that_failed_is_imported() -> None:
    cell = "x = np.arange(9)\ntrain_test_split(x)"
    once = _edit(cell)
    assert once == f"import numpy as np\n{cell}"
    assert _edit(once) == f"from sklearn.model_selection import train_test_split\n{once}"


@pytest.mark.parametrize(
    ("cell", "earlier"),
    [
        ("print(stats.mean())\nstats = 1", ""),
        ("print(frame)", ""),
        ("def f(stats):\n    return stats\nstats.mean()", ""),
        ("stats.loc[1]", "stats = undefined.describe()"),
        ("{}['np']", ""),
        ("np.mean(", ""),
    ],
)
def test_a_name_that_has_another_meaning_or_is_unknown_is_left(cell: str, earlier: str) -> None:
    assert _edit(cell, *filter(None, [earlier])) is None


def test_a_variable_of_that_name_is_never_replaced() -> None:
    assert error_of("print(stats.mean())", ["import pandas as pd\nstats = pd.Series([1])"]) is None
    assert _edit("sm.mean()", variables=("sm",)) is None


def test_after_the_kernel_is_empty_the_import_is_wanted_again() -> None:
    error = error_of("np.mean([1])")
    assert error is not None
    assert missing_import("np.mean([1])", error, ["import numpy as np"]) is not None


@pytest.mark.parametrize("line", sorted(_LINES.values()))
def test_every_import_exists(line: str) -> None:
    (statement,) = ast.parse(line).body
    if isinstance(statement, ast.ImportFrom):
        module = importlib.import_module(str(statement.module))
        assert hasattr(module, statement.names[0].name)
    else:
        assert isinstance(statement, ast.Import)
        pytest.importorskip(statement.names[0].name)


@given(st.text(max_size=200), st.sampled_from(sorted(_LINES)))
def test_no_text_raises_and_all_of_it_stays(cell: str, name: str) -> None:
    found = missing_import(cell, CellError("NameError", f"name {name!r} is not defined"), [cell])
    assert found is None or (found.edit or "").endswith(cell)
