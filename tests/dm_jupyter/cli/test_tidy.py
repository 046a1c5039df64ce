"""`dm-jupyter tidy`: the command, on a notebook that `ask` has written."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest
from typer.testing import CliRunner

from dm_jupyter.cli.app import app
from tests.dm_jupyter.cli.test_ask import _ask, _at, folder  # noqa: F401  (a fixture)
from tests.endpoint import ScriptedEndpoint


def _tidy(*arguments: str) -> tuple[int, str]:
    outcome = CliRunner().invoke(app, ["tidy", *arguments])
    return outcome.exit_code, outcome.output


@pytest.mark.slow
def test_a_notebook_that_was_asked_for_is_tidied(folder: Path) -> None:  # noqa: F811
    texts = (
        "print(df.columns.tolist())\n```",
        "```python\nprint(df['Income'].sum())\n```",
        "```python\nprint('rows', len(df))\n```",
        "There are 3 rows.",
    )
    with ScriptedEndpoint(texts) as endpoint:
        outcome = _ask(folder, "people.csv", "How many rows?", "--out", "a.ipynb", *_at(endpoint))
    assert outcome.code == 0, outcome.err
    code, said = _tidy(str(folder / "a.ipynb"))
    assert code == 0, said
    assert "of 3 cells kept; outputs are the same" in said
    assert f"notebook: {folder / 'a-tidy.ipynb'}" in said
    cells = nbformat.read(folder / "a-tidy.ipynb", as_version=4).cells
    assert cells[0].source.startswith("## How many rows?")
    assert "There are 3 rows." in cells[-1].source
    assert not any("Income" in cell.source for cell in cells)
    code, said = _tidy(str(folder / "a.ipynb"), "--json")
    told = json.loads(said)
    assert told["notebook"].endswith("a-tidy-2.ipynb")
    assert told["is_same"] is True


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("a.txt",), 2, "ends in .ipynb"),
        (("gone.ipynb",), 6, "can't be read"),
        (("gone.ipynb", "gone.csv"), 3, "gone.csv: there is no such file"),
    ],
)
def test_what_can_not_be_tidied_is_said(arguments: tuple[str, ...], code: int, words: str) -> None:
    found, said = _tidy(*arguments)
    assert found == code
    assert words in said
