"""What a Jupyter server loads of ours when it starts, and what it leaves for the first use."""

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_notebook

from dm_jupyter.server.history.journal import Journal
from dm_jupyter.server.history.summaries import Summary
from dm_jupyter.server.protocol.operations import InsertCell

LOADED_AT_START = {
    "dm_jupyter",
    "dm_jupyter.config",
    "dm_jupyter.core",
    "dm_jupyter.core.plain_text",
    "dm_jupyter.core.errors",
    "dm_jupyter.server",
    "dm_jupyter.server.app",
    "dm_jupyter.server.handlers",
    "dm_jupyter.server.history",
    "dm_jupyter.server.history.summaries",
    "dm_jupyter.server.kernels",
    "dm_jupyter.server.kernels.packages",
    "dm_jupyter.server.kernels.page_filter",
    "kernel_sandbox",
    "kernel_sandbox.errors",
    "kernel_sandbox.packages",
    "kernel_sandbox.packages.overlay_place",
    "kernel_sandbox.packages.pip_child",
}
"""All that a server pays for at its start; `dm_jupyter.server.bootstrap` loads the rest."""

PROGRAM = """
import asyncio, json, sys
from jupyter_server.serverapp import ServerApp

async def live(manager):
    await manager.start_all_extensions()
    await manager.stop_all_extensions()

app = ServerApp()
app.initialize(sys.argv[1:], find_extensions=False, new_httpserver=False)
before = set(sys.modules)
app.extension_manager.add_extension("dm_jupyter", enabled=True)
app.extension_manager.link_extension("dm_jupyter")
app.extension_manager.load_extension("dm_jupyter")
loaded = sorted(set(sys.modules) - before)
asyncio.run(live(app.extension_manager))
print(json.dumps([loaded, "dm_jupyter.server.bootstrap" in sys.modules]))
"""


def _live(
    folder: Path, *options: str, root: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Starts and stops a server's extension, which nobody asks anything."""
    names = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    settings = [
        "--allow-root",
        "--no-browser",
        "--ServerApp.port=0",
        "--ServerApp.reraise_server_extension_failures=True",
        f"--ServerApp.root_dir={root or folder}",
        f"--DmJupyterApp.history_dir={folder / 'runs'}",
    ]
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *settings, *options],
        env=os.environ | dict.fromkeys(names, str(folder / "jupyter")),
        capture_output=True,
        text=True,
        check=False,
    )


def _keep_run(folder: Path, stop: str | None, root: Path | None = None) -> Path:
    run = folder / "runs" / "20260101-000000-0000"
    run.mkdir(parents=True)
    where = str(root or folder)
    summary = Summary(run.name, "n.ipynb", "Why?", (), 1.0, "local", stop=stop, root=where)
    (run / "summary.json").write_text(json.dumps(summary.to_json()))
    return run


def test_a_start_loads_little(tmp_path: Path) -> None:
    done = _live(tmp_path)
    assert done.returncode == 0, done.stderr
    loaded, _ = json.loads(done.stdout.splitlines()[-1])
    ours = {name for name in loaded if name.startswith(("dm_jupyter", "kernel_sandbox"))}
    others = {name.partition(".")[0] for name in loaded} - {"dm_jupyter", "kernel_sandbox"}
    assert "dm_jupyter.server.app" in ours
    assert ours <= LOADED_AT_START
    assert others <= sys.stdlib_module_names


def test_a_server_that_nobody_asks_ends_without_the_analyst(tmp_path: Path) -> None:
    _keep_run(tmp_path, stop="answered")
    done = _live(tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])[1] is False


def test_a_start_ends_the_run_that_was_cut_off(tmp_path: Path) -> None:
    run = _keep_run(tmp_path, stop=None)
    done = _live(tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])[1] is True
    assert json.loads((run / "summary.json").read_text())["stop"] == "fault"


def test_a_start_in_another_folder_leaves_run_and_notebook_alone(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for root in (one, other):
        root.mkdir()
        nbformat.write(new_notebook(), root / "n.ipynb")
    run = _keep_run(tmp_path, stop=None, root=one)
    Journal(run).operate(InsertCell("a", "code", "salaries = 1"))
    cells = {}
    for root in (other, one):
        done = _live(tmp_path, root=root)
        assert done.returncode == 0, done.stderr
        stop = json.loads((run / "summary.json").read_text())["stop"]
        cells[root] = [len(nbformat.read(x / "n.ipynb", 4).cells) for x in (one, other)], stop
    assert cells == {other: ([0, 0], None), one: ([1, 0], "fault")}


@pytest.mark.parametrize("name", ["max_turns", "cell_seconds"])
def test_a_limit_that_allows_nothing_is_refused_at_the_start(tmp_path: Path, name: str) -> None:
    done = _live(tmp_path, f"--DmJupyterApp.{name}=0")
    assert done.returncode != 0
    assert f"DmJupyterApp.{name} must be positive" in done.stderr


@pytest.mark.parametrize("name", ["model_idle_s", "reconnect_grace_s"])
def test_a_time_below_zero_is_refused_at_the_start(tmp_path: Path, name: str) -> None:
    done = _live(tmp_path, f"--DmJupyterApp.{name}=-1")
    assert done.returncode != 0
    assert f"DmJupyterApp.{name} must not be negative, got -1.0" in done.stderr
