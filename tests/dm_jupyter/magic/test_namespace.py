"""A question in the output of a cell knows the notebook's variables, and leaves them alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from dm_jupyter.core.errors import UsageError
from tests.dm_jupyter.magic.test_extension import _run, _value
from tests.endpoint import ScriptedEndpoint

SET_UP = (
    "import pandas as pd\n"
    "sales = pd.DataFrame({'n': [7, 5]})\n"
    "rate = 0.25\n"
    "api_key = 'abcdefgh'\n"
    "class Mine:\n    pass\n"
    "tokens = ['secret-in-a-list']"
)
COUNT = "print('sold', sales.n.sum())\nsales['n'] = 0\n```"


async def _ask(shell: InteractiveShell, options: str = "") -> tuple[Any, str]:
    await _run(shell, SET_UP)
    await _run(shell, "sales.n.max()")
    with ScriptedEndpoint([COUNT, "12 were sold."]) as endpoint:
        where = f"--base-url {endpoint.base_url} --model tiny"
        answer = await _value(shell, f"%%analyze {options} {where}\nHow many were sold?")
    return answer, json.dumps(endpoint.bodies[0]["messages"], ensure_ascii=False)


async def test_the_variables_and_cells_are_told_and_copies_used(shell: InteractiveShell) -> None:
    answer, told = await _ask(shell)
    assert answer.text == "12 were sold."
    assert "- sales (DataFrame, 2 x 1): n (int64, e.g. 7)" in told
    assert "- rate (float): 0.25" in told
    assert "[2]\\nsales.n.max()" in told
    assert "abcdefgh" not in told
    assert "- tokens (list)" not in told
    assert answer.trajectory.steps[0].observation.count("sold 12") == 1
    # The model's cell changed its copy.
    assert list(shell.user_ns["sales"].n) == [7, 5]
    assert not [name for name in shell.user_ns if name.startswith("_dm_jupyter")]


async def test_a_question_stands_alone_where_the_person_says_so(
    shell: InteractiveShell,
) -> None:
    _, told = await _ask(shell, '"my people.csv" --alone')
    assert "sales" not in told
    assert "0.25" not in told


@pytest.mark.parametrize(
    ("part", "told_words", "kept_words"),
    [("variables", "sales.n.max()", "(DataFrame"), ("cells", "(DataFrame", "sales.n.max()")],
)
async def test_a_part_of_the_notebook_is_not_told_where_the_person_says_so(
    shell: InteractiveShell, part: str, told_words: str, kept_words: str
) -> None:
    answer, told = await _ask(shell, f'"my people.csv" --without {part}')
    assert told_words in told
    assert kept_words not in told
    is_copied = "sold 12" in answer.trajectory.steps[0].observation
    assert is_copied == (part == "cells")


async def test_without_a_file_or_a_table_there_is_nothing_to_ask_about(
    shell: InteractiveShell, folder: Path
) -> None:
    with pytest.raises(UsageError, match="at least one data file"):
        await _value(shell, "%%analyze\nHow many?")
