"""Notebooks that papermill runs, as a pipeline does: a process of its own, and nobody there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests.dm_jupyter.magic.kernel import LOAD, texts
from tests.endpoint import ScriptedEndpoint

FILE = "my people.csv"


def _run(folder: Path, kernel: str, *sources: str, **parameters: str) -> list[Any]:
    """Returns the cells of the notebook that papermill leaves."""
    spec = {"name": kernel, "display_name": kernel, "language": "python"}
    cells = [new_code_cell(source) for source in sources]
    cells[0].metadata["tags"] = ["parameters"]
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": spec}), folder / "in.ipynb")
    command = [sys.executable, "-m", "papermill", "in.ipynb", "out.ipynb"]
    for name, value in parameters.items():
        command += ["-p", name, value]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    document = nbformat.read(folder / "out.ipynb", as_version=nbformat.NO_CONVERT)
    nbformat.validate(document)
    return list(document.cells)


@pytest.mark.slow
def test_papermill_runs_a_notebook_that_asks(folder: Path) -> None:
    with ScriptedEndpoint(["print('rows', len(df))\n```", "There are 3 rows."]) as endpoint:
        at = f"--base-url {endpoint.base_url} --model tiny"
        asking = f"%%analyze '{FILE}' {at}\nHow many rows?"
        cells = _run(folder, "python3", "unit = 'rows'", LOAD, asking, "_.text, unit", unit="lines")
    assert texts(cells[-1]) == ["('There are 3 rows.', 'lines')"]
    assert "rows 3" in texts(cells[-2])


def test_papermill_names_no_folder_so_the_restricted_kernel_gets_a_private_one(
    folder: Path,
) -> None:
    looking = f"import os\nos.path.exists({str(folder / FILE)!r}), os.listdir()"
    cells = _run(folder, "dm-sandbox", "factor = 1", "factor", looking, factor="2")
    assert [texts(cell) for cell in cells[-2:]] == [["2"], ["(False, [])"]]
