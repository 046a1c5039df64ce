"""*Tidy the notebook*, asked of a real server."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any, cast

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from dm_jupyter.agent.tidy import Tidied, tidy
from dm_jupyter.core.errors import NotebookError
from dm_jupyter.server.files.data_files import DataFiles
from dm_jupyter.server.kernels.registry import KernelDirectory, NewSession
from dm_jupyter.server.notebooks import tidy_service
from dm_jupyter.server.notebooks.tidy_service import TidyService
from kernel_sandbox.types import Limits
from tests.dm_jupyter.server.jupyter import TOKEN, JupyterServer
from tests.waiting import wait_until

URL = "/dm-jupyter/api/tidy"
SUM = "print(df.sales.sum())"
LOAD = "import pandas as pd\ndf = pd.read_csv('sales.csv')"


def _write(path: Path, *sources: str, shown: str = "40\n") -> None:
    """A notebook whose last cell shows the sum that its answer gives."""
    *others, last = [LOAD, *sources]
    outputs = [new_output("stream", name="stdout", text=shown)]
    cells = [new_code_cell(x, execution_count=1) for x in others]
    cells.append(new_code_cell(last, execution_count=2, outputs=outputs, id="sum"))
    number = {"text": "40", "start": 11, "verdict": "supported", "cell_id": "sum", "why": ""}
    mark = {"run": "r", "role": "answer", "numbers": [number]}
    answer = new_markdown_cell("## Answer\n\nThe sum is 40.", metadata={"dm_jupyter": mark})
    nbformat.write(new_notebook(cells=[*cells, answer]), path)


def _ask(server: JupyterServer, notebook: str) -> list[dict[str, Any]]:
    body = json.dumps({"notebook": notebook, "run_id": ""}).encode()
    request = urllib.request.Request(f"{server.url}{URL}", body, method="POST")
    request.add_header("Authorization", f"token {TOKEN}")
    with urllib.request.urlopen(request, timeout=120) as answer:
        return [json.loads(line) for line in answer]


def test_a_tidy_copy_is_written_beside_the_notebook(server: JupyterServer, root: Path) -> None:
    folder = root / "tidy"
    folder.mkdir()
    (folder / "sales.csv").write_text("month,sales\n1,10\n2,30\n")
    _write(folder / "work.ipynb", "unused = 1", SUM)
    before = (folder / "work.ipynb").read_bytes()
    *progress, last = _ask(server, "tidy/work.ipynb")
    assert [one["progress"] for one in progress] == [
        "running cell 1 of 2", "running cell 2 of 2",
    ]  # fmt: skip
    tidied = last["tidied"]
    assert tidied["notebook"] == "tidy/work-tidy.ipynb"
    assert tidied["is_same"]
    assert len(tidied["left_out"]) == 1
    assert "2 of 3 cells kept" in tidied["words"]
    assert (folder / "work.ipynb").read_bytes() == before
    copy = nbformat.read(folder / "work-tidy.ipynb", as_version=4)
    assert [one.source for one in copy.cells if one.cell_type == "code"] == [LOAD, SUM]


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("sales.csv", "must end in .ipynb"),
        ("nowhere.ipynb", "save the notebook"),
        (".hidden.ipynb", "save the notebook"),
        ("../outside.ipynb", "save the notebook"),
        ("linked.ipynb", "behind a link"),
        ("linked-folder/outside.ipynb", "behind a link"),
        ("", "must end in .ipynb"),
    ],
)
def test_what_is_no_notebook_below_the_folder_is_refused(
    server: JupyterServer, root: Path, path: str, why: str
) -> None:
    outside = root.parent / "outside.ipynb"
    _write(outside, SUM)
    _write(root / ".hidden.ipynb", SUM)
    for link, target in (("linked.ipynb", outside), ("linked-folder", root.parent)):
        (root / link).unlink(missing_ok=True)
        (root / link).symlink_to(target)
    (line,) = _ask(server, path)
    assert why in line["error"]
    assert not list(root.parent.glob("*-tidy.ipynb")) + list(root.glob("*-tidy.ipynb"))


def test_a_cell_reads_nothing_that_the_notebook_does_not_name(
    server: JupyterServer, root: Path
) -> None:
    (root / "secret.txt").write_text("SECRET")
    folder = root / "spying"
    folder.mkdir()
    (folder / "sales.csv").write_text("month,sales\n1,10\n2,30\n")
    spying = "import os; print(open(os.path.join('..', 'secret' + '.txt')).read()); print(40, df)"
    _write(folder / "work.ipynb", spying)
    last = _ask(server, "spying/work.ipynb")[-1]
    assert "FileNotFoundError" in last["error"] or "PermissionError" in last["error"]
    assert not (folder / "work-tidy.ipynb").exists()


def test_hanging_up_ends_the_work(server: JupyterServer, root: Path) -> None:
    (root / "sales.csv").write_text("month,sales\n1,10\n2,30\n")
    _write(root / "slow.ipynb", "import time; time.sleep(600); print(df.sales.sum())")
    body = json.dumps({"notebook": "slow.ipynb"}).encode()
    request = urllib.request.Request(f"{server.url}{URL}", body, method="POST")
    request.add_header("Authorization", f"token {TOKEN}")
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert json.loads(answer.readline()) == {"progress": "running cell 1 of 2"}
        assert json.loads(answer.readline()) == {"progress": "running cell 2 of 2"}
        assert "being tidied already" in _ask(server, "slow.ipynb")[-1]["error"]
    _write(root / "slow.ipynb", SUM)

    def ended() -> Any:
        last = _ask(server, "slow.ipynb")[-1]
        return "already" not in last.get("error", "") and last

    last = wait_until(ended, "the work ends that nobody waits for")
    assert last["tidied"]["notebook"] == "slow-tidy.ipynb"


async def test_a_folder_that_becomes_a_link_meanwhile_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cells read private copies, and the new notebook is placed by descriptors."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root / "work", outside):
        folder.mkdir(parents=True)
    (root / "work" / "sales.csv").write_text("month,sales\n1,10\n2,30\n")
    (outside / "sales.csv").write_text("SECRET")
    _write(root / "work" / "a.ipynb", SUM)
    seen: list[Path] = []

    async def tidy_while_a_link_is_laid(path: Path, *rest: Any) -> Tidied:
        seen.append(path)
        (root / "work").rename(root / "gone")
        (root / "work").symlink_to(outside)
        return await tidy(path, *rest)

    monkeypatch.setattr(tidy_service, "tidy", tidy_while_a_link_is_laid)
    service = TidyService(DataFiles(root), cast("KernelDirectory", Kernels()))
    with pytest.raises(NotebookError, match=r"work/a-tidy\.ipynb can't be written"):
        await service.tidy("work/a.ipynb", "", lambda _: None)
    assert sorted(x.name for x in outside.iterdir()) == ["sales.csv"]
    assert not seen[0].is_relative_to(root)
    assert not seen[0].parent.exists()  # the private copies are gone
    (root / "work").unlink()
    (root / "gone").rename(root / "work")
    monkeypatch.undo()
    tidied = await service.tidy("work/a.ipynb", "", lambda _: None)
    again = await service.tidy("work/a.ipynb", "", lambda _: None)
    assert [str(one.path) for one in (tidied, again)] == [
        "work/a-tidy.ipynb", "work/a-tidy-2.ipynb",
    ]  # fmt: skip


class Kernels:
    """Settings as a server has them that nobody has configured."""

    are_confined = True

    def new_session_settings(self) -> NewSession:
        return NewSession(Limits(), None, is_isolated=True)
