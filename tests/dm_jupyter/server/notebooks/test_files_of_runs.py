"""What cells of a run do to files is decided on by what they did."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dm_jupyter.server.history.journal import Journal
from dm_jupyter.server.notebooks.approvals import Approvals, FileGate
from kernel_sandbox.confine.probe import probe
from kernel_sandbox.files import workspace, workspace_layer
from kernel_sandbox.files.workspace_layer import WorkspaceLayer
from kernel_sandbox.jupyter.attached import AttachedKernel
from kernel_sandbox.types import MIB, CellResult, CellStatus
from tests.dm_jupyter.server.jupyter import JupyterServer, Panel
from tests.waiting import until

pytestmark = pytest.mark.skipif(not probe().has_view, reason="namespaces do not work here")

ANSWER = "It is done."
SPELLINGS = {
    "remove": "import os; os.remove('old.csv')",
    "unlink": "import pathlib; pathlib.Path('old.csv').unlink()",
    "pieces": "import os; getattr(os, 're' + 'move')('old.csv')",
    "rename over": "import os; open('n','w').write('x'); os.replace('n', 'old.csv')",
    "move away": "import shutil; shutil.move('old.csv', 'elsewhere.csv')",
    "overwrite": "open('old.csv', 'w').write('x')",
    "truncate": "import os; os.truncate('old.csv', 0)",
    "in place": "f = open('old.csv', 'r+'); f.write('x'); f.close()",
    "pandas": "import pandas as pd; pd.DataFrame({'a': [1]}).to_csv('old.csv')",
    "mapped": (
        "import mmap\nf = open('old.csv', 'r+b')\nm = mmap.mmap(f.fileno(), 0)\nm[0:1] = b'x'\n"
        "m.flush()"
    ),
    "copied over": "import shutil; open('n','w').write('x'); shutil.copyfile('n', 'old.csv')",
    "code": "open('tool.py', 'w').write('x')",
    "executable": "import os; open('t', 'w').close(); os.chmod('t', 0o755)",
    "notebook": "open('new.ipynb', 'w').write('{}')",
    "link": "import os; os.symlink('old.csv', 'link.csv')",
    "folder": "import os, shutil; getattr(shutil, 'rm' + 'tree')('kept')",
    "sqlite": (
        "import sqlite3\nc = sqlite3.connect('old.db')\nc.execute('drop table t')\nc.commit()"
    ),
    "in a thread": (
        "import threading, os\nt = threading.Thread(target=os.remove, args=('old.csv',))\n"
        "t.start(); t.join()"
    ),
}


@pytest.fixture
def work(server: JupyterServer, root: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder with files of the person's, for one test."""
    folder = root / f"work-{abs(hash(request.node.name))}"
    (folder / "kept").mkdir(parents=True)
    (folder / "kept" / "x.csv").write_text("x")
    (folder / "old.csv").write_text("month,sales\n1,10\n")
    with sqlite3.connect(folder / "old.db") as connection:
        connection.execute("create table t(a)")
    connection.close()
    yield folder
    server.end_kernels(folder.name)


def state_of(folder: Path) -> dict[str, bytes]:
    found = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {str(path.relative_to(folder)): content for path, content in found.items()}


def texts(panel: Panel) -> str:
    return json.dumps([x["operation"] for x in panel.of("operated")])


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        *((name, False) for name in SPELLINGS),
        *((name, answer) for name in ("remove", "overwrite", "code") for answer in (True, None)),
    ],
)
async def test_what_is_lost_or_run_waits_for_a_yes(
    server: JupyterServer, say, work: Path, name: str, answer: bool | None
) -> None:
    say(f"{SPELLINGS[name]}\nprint('done')\n```", ANSWER)
    path = server.notebook(f"{work.name}/book.ipynb")
    before = state_of(work)
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        approval = "auto" if answer is None else "risky"
        run_id = await panel.ask(path, "Do it", files=[f"{work.name}/old.csv"], approval=approval)
        if answer is not None:
            waiting = await panel.until("files_wait")
            assert {x: y for x, y in state_of(work).items() if x in before} == before
            word = {"run_id": run_id, "cell_id": waiting["cell_id"]}
            await panel.say("decide_files", allows=answer, **word)
            decided = await panel.until("files_decided")
            assert decided["allows"] == answer
        closed = await panel.until("run_closed")
        (cell,) = panel.of("cell_closed")
    assert closed["stop"] == "answered"
    after = {x: y for x, y in state_of(work).items() if not x.endswith("book.ipynb")}
    before = {x: y for x, y in before.items() if not x.endswith("book.ipynb")}
    asked = [x for x in cell["files"] if x["kind"] != "made" or x["marks"]]
    assert asked
    assert {x["state"] for x in asked} == {"written" if answer else "refused"}
    if answer:
        assert after != before
    else:
        assert {x: y for x, y in after.items() if x in before} == before
        assert "It is as it was before the cell" in cell["message"]
        assert ("the person said no" if answer is False else "nobody is asked") in cell["message"]


async def test_what_the_person_changed_before_the_yes_stays_and_is_named(
    server: JupyterServer, say, work: Path
) -> None:
    say(f"{SPELLINGS['overwrite']}\nprint('done')\n```", ANSWER)
    path = server.notebook(f"{work.name}/book.ipynb")
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        run_id = await panel.ask(path, "Do it", files=[f"{work.name}/old.csv"], approval="risky")
        waiting = await panel.until("files_wait")
        (work / "old.csv").write_text("the person's")
        await panel.say("decide_files", allows=True, run_id=run_id, cell_id=waiting["cell_id"])
        await panel.until("run_closed")
        (cell,) = panel.of("cell_closed")
    assert (work / "old.csv").read_text() == "the person's"
    why = "it was changed meanwhile"
    assert [(x["state"], x["marks"]) for x in cell["files"]] == [("refused", [why])]
    assert f"`old.csv` was not overwritten in the folder: {why}." in cell["message"]


async def test_new_data_files_go_on_unasked_and_are_named(
    server: JupyterServer, say, work: Path
) -> None:
    code = "open('new.csv', 'w').write('a')\nopen('model.pkl', 'wb').write(b'x')"
    say(f"{code}\nprint('done')\n```", ANSWER)
    path = server.notebook(f"{work.name}/book.ipynb")
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        await panel.ask(path, "Do it", files=[f"{work.name}/old.csv"])
        await panel.until("run_closed")
    assert panel.of("files_wait") == []
    assert (work / "new.csv").read_text() == "a"
    (cell,) = panel.of("cell_closed")
    assert [(x["path"], x["state"]) for x in cell["files"]] == [
        ("model.pkl", "written"),
        ("new.csv", "written"),
    ]
    assert "made `model.pkl` (may run code when it is opened), made `new.csv`" in texts(panel)


@pytest.mark.parametrize("approval", ["risky", "ask", "auto"])
async def test_what_programs_obey_is_never_planted(
    server: JupyterServer, say, work: Path, approval: str
) -> None:
    code = """
import os
os.makedirs('.git/hooks')
for name in ('.git/config', 'polars.py', 'conftest.py', '.envrc', 'Makefile', 'kept/.env'):
    open(name, 'w').write('planted')
os.mkdir('.vscode')
open('.vscode/tasks.json', 'w').write('planted')
os.symlink('/etc/passwd', 'passwords.csv')
"""
    say(f"{code}\nprint('done')\n```", ANSWER)
    path = server.notebook(f"{work.name}/book.ipynb")
    before = {x: y for x, y in state_of(work).items() if not x.endswith("book.ipynb")}
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        run_id = await panel.ask(path, "Do", files=[f"{work.name}/old.csv"], approval=approval)
        if approval == "ask":
            waiting = await panel.until("cell_opened")
            word = {"run_id": run_id, "cell_id": waiting["cell_id"], "decision": "approve"}
            await panel.say("decide", **word)
        await panel.until("run_closed")
    (cell,) = panel.of("cell_closed")
    assert {x["state"] for x in cell["files"]} == {"refused"}
    assert "programs run or obey it unasked" in cell["message"]
    assert "hides the module polars" in cell["message"]
    assert {x: y for x, y in state_of(work).items() if not x.endswith("book.ipynb")} == before
    assert not (work / "passwords.csv").is_symlink()


LATE = """
import os, threading, time
def late():
    while not os.path.exists('go'):
        time.sleep(0.05)
    os.remove('old.csv')
threading.Thread(target=late, daemon=True).start()
"""


async def test_what_a_run_leaves_behind_writes_nothing_and_the_person_everything(
    server: JupyterServer, say, work: Path
) -> None:
    say(f"{LATE}print('done')\n```", ANSWER)
    path = server.notebook(f"{work.name}/book.ipynb")
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        await panel.ask(path, "Do it", files=[f"{work.name}/old.csv"])
        await panel.until("run_closed")
        (work / "go").touch()
        left_out = await panel.until(
            lambda x: x["kind"] == "kernel_meter" and bool(x["files_left_out"])
        )
        assert [(x["kind"], x["path"]) for x in left_out["files_left_out"]] == [
            ("removed", "old.csv")
        ]
        assert (work / "old.csv").exists()
        await panel.say("own_cell", notebook_path=path)
        await server.execute(path, "import os; print(os.listdir('.')); os.remove('old.csv')")
        await until(lambda: not (work / "old.csv").exists(), "the person's cell got through")


async def test_a_stop_while_files_wait_drops_them(server: JupyterServer, say, work: Path) -> None:
    say("open('old.csv', 'w').write('x')\n```", ANSWER)
    path = server.notebook(f"{work.name}/book.ipynb")
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        run_id = await panel.ask(path, "Do it", files=[f"{work.name}/old.csv"])
        await panel.until("files_wait")
        await panel.say("stop", run_id=run_id)
        closed = await panel.until("run_closed")
    assert closed["stop"] == "cancelled"
    assert (work / "old.csv").read_text() == "month,sales\n1,10\n"


async def test_a_kernel_that_is_not_restricted_is_compared_before_and_after(
    server: JupyterServer, say, work: Path
) -> None:
    code = "import os; os.remove('old.csv'); open('new.csv', 'w').close()"
    code += "; open('polars.py', 'w').close()"
    say(f"{code}\nprint('done')\n```", ANSWER)
    path = server.notebook(f"{work.name}/book.ipynb", kernel="python3")
    async with asyncio.timeout(60), Panel(server) as panel:
        await panel.attach(path)
        fields: dict[str, Any] = {"files": [f"{work.name}/old.csv"], "kernel": "own"}
        run_id = await panel.ask(path, "Do it", **fields)
        waiting = await panel.until("cell_opened")
        word = {"run_id": run_id, "cell_id": waiting["cell_id"], "decision": "approve"}
        await panel.say("decide", **word)
        await panel.until("run_closed")
    (cell,) = panel.of("cell_closed")
    found = {(x["kind"], x["path"]) for x in cell["files"] if x["path"].endswith(".csv")}
    assert found == {("removed", "old.csv"), ("made", "new.csv")}
    (module,) = (x for x in cell["files"] if x["path"] == "polars.py")
    assert module["marks"] == ["hides the module polars", "code"]
    assert module["state"] == "written"


class WatchedLock:
    """A layer's lock that knows which threads have taken it."""

    def __init__(self, layer: WorkspaceLayer) -> None:
        self.threads: set[int] = set()
        self._lock = layer._lock
        layer._lock = cast("Any", self)

    def __enter__(self) -> None:
        self.threads.add(threading.get_ident())
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


async def test_the_server_never_waits_for_a_layer_that_another_thread_compares(
    tmp_path: Path,
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "old.csv").write_text("old")
    layer = WorkspaceLayer(tmp_path / "work", tmp_path, MIB)
    lock = WatchedLock(layer)
    approvals = Approvals("auto", is_restricted=True)
    gate = FileGate(cast("Journal", None), approvals, tmp_path / "work")
    try:
        await gate.begin(cast("AttachedKernel", SimpleNamespace(layer=layer)))
        (layer.upper / "old.csv").write_text("other")
        (layer.upper / "new.csv").write_text("new")
        result = await gate.end("c", 1, CellResult(CellStatus.OK))
        await gate.close()
    finally:
        await asyncio.to_thread(layer.remove)
    assert {x.path: x.state for x in result.files} == {"new.csv": "written", "old.csv": "refused"}
    assert "nobody is asked" in result.message
    assert lock.threads, "the lock was never taken"
    assert threading.get_ident() not in lock.threads


async def test_more_files_than_a_layer_passes_on_are_told_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace_layer, "MOST_ENTRIES", 2)
    (tmp_path / "work").mkdir()
    layer = WorkspaceLayer(tmp_path / "work", tmp_path, MIB)
    approvals = Approvals("auto", is_restricted=True)
    gate = FileGate(cast("Journal", None), approvals, tmp_path / "work")
    try:
        await gate.begin(cast("AttachedKernel", SimpleNamespace(layer=layer)))
        for name in "abc":
            (layer.upper / name).touch()
        result = await gate.end("c", 1, CellResult(CellStatus.OK))
    finally:
        await asyncio.to_thread(layer.remove)
    assert len(list((tmp_path / "work").iterdir())) == 2
    assert result.message == f"Not every change reached the folder: {workspace_layer.TOO_MANY}."


async def test_more_files_than_are_compared_without_a_layer_are_told_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace, "MOST_FILES", 3)
    for name in "ab":
        (tmp_path / name).touch()
    approvals = Approvals("auto", is_restricted=False)
    gate = FileGate(cast("Journal", None), approvals, tmp_path)
    kernel = cast("AttachedKernel", SimpleNamespace(layer=None))
    await gate.begin(kernel)
    (tmp_path / "a").unlink()
    result = await gate.end("c", 1, CellResult(CellStatus.OK, message="It ran."))
    assert [change.path for change in result.files] == ["a"]
    assert result.message == "It ran."
    await gate.begin(kernel)
    for name in "cd":
        (tmp_path / name).touch()
    result = await gate.end("c", 1, CellResult(CellStatus.OK, message="It ran."))
    assert result.files == ()
    assert result.message == f"It ran. {workspace.TOO_MANY_TO_COMPARE}"
