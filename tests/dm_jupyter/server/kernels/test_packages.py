"""A cell that imports a missing package: real server, kernel and pip, an index that is a folder."""

import asyncio
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dm_jupyter.server.kernels.packages import CellPackages, Packages, needs
from dm_jupyter.server.notebooks.approvals import Approvals
from kernel_sandbox.packages.packages import Missing
from tests.dm_jupyter.server.jupyter import JupyterServer, Panel
from tests.endpoint import ScriptedEndpoint
from tests.wheels import index_variables, make_wheel

AFTERWARDS = (" it is missing.\nprint('then')\n```", "It is done.")
"""What the model says after a cell that failed."""


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index")
    for name in ("tabulate", "sqlparse", "holidays", "jellyfish", "squarify"):
        make_wheel(folder, name, "9.1", files={f"{name}.py": f"where = 'the {name} of the test'\n"})
    make_wheel(folder, "ftfy", "9.1", requires=["dm-nowhere"])
    return folder


def _serve(
    folder: Path, endpoint: ScriptedEndpoint, index: Path, *options: str
) -> Iterator[JupyterServer]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in index_variables(index).items():
            patch.setenv(name, value)
        with JupyterServer(folder, endpoint.base_url, options=options) as running:
            (running.root / "sales.csv").write_text("month,sales\n1,10\n2,30\n")
            yield running


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, endpoint: ScriptedEndpoint, index: Path
) -> Iterator[JupyterServer]:
    yield from _serve(tmp_path_factory.mktemp("p"), endpoint, index)


def _cell(name: str) -> str:
    return f"import {name}\nprint({name}.where)\n```"


def _needs(name: str) -> str:
    return (
        f"it needs `{name}`, which is not installed: "
        "running it installs the package from the package index"
    )


def _printed(panel: Panel, opened: dict) -> list[str]:
    """What the cell printed and raised."""
    operations = [message["operation"] for message in panel.of("operated")]
    own = [x for x in operations if x.get("cell_id") == opened["cell_id"]]
    outputs = [x["output"] for x in own if x["op"] == "append_output"]
    return [output.get("text", output.get("ename", "")) for output in outputs]


def _installed(server: JupyterServer) -> list[str]:
    sites = (server.folder / "private" / "data" / "dm_jupyter" / "packages").glob("*/site/*.py")
    return [path.stem for path in sites]


def _told(endpoint: ScriptedEndpoint) -> str:
    """What the model was shown in its last two turns: an error that is mended is left out then."""
    messages = [message for body in endpoint.bodies[-2:] for message in body["messages"]]
    return "\n".join(message["content"] for message in messages)


async def _waiting(panel: Panel, path: str, approval: str = "risky") -> dict:
    await panel.attach(path)
    await panel.ask(path, "Use it", files=["sales.csv"], approval=approval)
    return await panel.until("cell_opened")


async def _say(panel: Panel, opened: dict, decision: str, **fields: str) -> dict:
    word = {"run_id": opened["run_id"], "cell_id": opened["cell_id"], "decision": decision}
    await panel.say("decide", **word, **fields)
    return await panel.until("cell_closed")


async def _stop(panel: Panel, opened: dict) -> None:
    """Ends the run at the next cell, which waits."""
    await panel.until("cell_opened")
    await panel.say("stop", run_id=opened["run_id"])
    await panel.until("run_closed")


async def test_a_cell_waits_and_leave_installs_and_runs_it(
    server: JupyterServer, say, endpoint: ScriptedEndpoint
) -> None:
    say(
        _cell("tabulate"), "```python\nfrom tabulate import where\nprint(where)\n```", "It is done."
    )
    path = server.notebook("approved.ipynb")
    async with asyncio.timeout(90), Panel(server) as panel:
        opened = await _waiting(panel, path)
        assert opened["waits_because"] == _needs("tabulate")
        assert "tabulate" not in _installed(server)
        closed = await _say(panel, opened, "approve")
        again = await panel.until("cell_opened")
        await panel.until("run_closed")
    assert (closed["status"], closed["message"]) == ("ok", "Installed tabulate 9.1.")
    assert again["waits_because"] == ""
    assert _printed(panel, opened) == _printed(panel, again) == ["the tabulate of the test\n"]
    assert "tabulate" in _installed(server)
    phases = [message["text"] for message in panel.of("phase")]
    assert phases[-3:] == ["Looking for tabulate", "Installing tabulate 9.1", ""]
    assert "Installed tabulate 9.1." in _told(endpoint)


async def test_a_skipped_cell_installs_nothing(server: JupyterServer, say) -> None:
    say(_cell("sqlparse"), *AFTERWARDS)
    path = server.notebook("skipped.ipynb")
    async with asyncio.timeout(90), Panel(server) as panel:
        opened = await _waiting(panel, path)
        closed = await _say(panel, opened, "skip")
        await panel.until("run_closed")
    assert closed["status"] == "skipped"
    assert _printed(panel, opened) == []
    assert "sqlparse" not in _installed(server)


async def test_a_changed_cell_gets_no_more_than_was_agreed_to(
    server: JupyterServer, say, endpoint: ScriptedEndpoint
) -> None:
    say("import holidays, sqlparse\n```", *AFTERWARDS)
    path = server.notebook("changed.ipynb")
    async with asyncio.timeout(90), Panel(server) as panel:
        opened = await _waiting(panel, path, "ask")
        assert opened["waits_because"] == (
            "you asked to see every cell first; it needs `holidays` and `sqlparse`, which are not "
            "installed: running it installs the packages from the package index"
        )
        source = "import holidays\nprint(holidays.where)\nimport jellyfish"
        closed = await _say(panel, opened, "approve", source=source)
        await _stop(panel, opened)
    assert closed["status"] == "error"
    assert closed["message"].startswith("Installed holidays 9.1. `jellyfish` was not installed, as")
    assert _printed(panel, opened) == ["the holidays of the test\n", "ModuleNotFoundError"]
    assert not {"sqlparse", "jellyfish"} & set(_installed(server))
    assert "the person was not asked for it" in _told(endpoint)


async def test_what_can_not_be_installed_is_told_and_the_cell_runs(
    server: JupyterServer, say, endpoint: ScriptedEndpoint
) -> None:
    say("print('begun')\nimport ftfy\n```", *AFTERWARDS)
    path = server.notebook("failed.ipynb")
    async with asyncio.timeout(90), Panel(server) as panel:
        opened = await _waiting(panel, path)
        closed = await _say(panel, opened, "approve")
        await panel.until("run_closed")
    assert closed["status"] == "error"
    assert closed["message"].startswith("ftfy was not installed: there is no wheel of it, or of ")
    assert _printed(panel, opened) == ["begun\n", "ModuleNotFoundError"]
    assert closed["message"] in _told(endpoint)


@pytest.mark.parametrize(
    ("name", "approval", "says"),
    [
        ("tabulatte", "risky", r"^`tabulatte` is not among .*; use one of `tabulate`, `tables`\.$"),
        ("squarify", "auto", r"^`squarify` is not installed, and no cell of this run waits"),
    ],
)
async def test_what_is_not_listed_or_not_asked_for_fails_at_once(
    server: JupyterServer, say, endpoint: ScriptedEndpoint, name: str, approval: str, says: str
) -> None:
    say(_cell(name), *AFTERWARDS)
    path = server.notebook(f"{name}.ipynb")
    async with asyncio.timeout(90), Panel(server) as panel:
        opened = await _waiting(panel, path, approval)
        closed = await panel.until("cell_closed")
        await panel.until("run_closed")
    assert opened["waits_because"] == ""
    assert (closed["status"], _printed(panel, opened)) == ("error", ["ModuleNotFoundError"])
    assert re.search(says, closed["message"])
    assert closed["message"] in _told(endpoint)
    assert name not in _installed(server)


async def test_a_run_can_be_stopped_while_a_package_is_installed(
    server: JupyterServer, say
) -> None:
    say(_cell("squarify"), *AFTERWARDS)
    path = server.notebook("stopped.ipynb")
    async with asyncio.timeout(90), Panel(server) as panel:
        opened = await _waiting(panel, path)
        word = {"run_id": opened["run_id"], "cell_id": opened["cell_id"]}
        await panel.say("decide", decision="approve", **word)
        await panel.until(lambda x: x["kind"] == "phase" and x["text"].startswith("Looking"))
        await panel.say("stop", run_id=opened["run_id"])
        closed = await panel.until("run_closed")
    assert closed["stop"] == "cancelled"
    assert panel.of("cell_closed")[0]["status"] == "interrupted"
    assert "squarify" not in _installed(server)


async def test_a_kernel_of_ones_own_gets_no_package(server: JupyterServer, say) -> None:
    say(_cell("sqlparse"), *AFTERWARDS)
    path = server.notebook("own.ipynb", kernel="python3")
    async with asyncio.timeout(90), Panel(server) as panel:
        await panel.attach(path)
        await panel.ask(path, "Use it", kernel="own", approval="ask", without_data=True)
        opened = await panel.until("cell_opened")
        assert opened["waits_because"] == "this kernel is not restricted"
        closed = await _say(panel, opened, "approve")
        await _stop(panel, opened)
    assert (closed["status"], closed["message"]) == ("error", "")
    assert "sqlparse" not in _installed(server)


@pytest.mark.slow
@pytest.mark.parametrize(
    "option",
    ["--DmJupyterApp.install_packages=never", "--SandboxProvisioner.overlay=/dev/null/else"],
)
async def test_where_it_is_switched_off_a_cell_just_fails(
    tmp_path: Path, endpoint: ScriptedEndpoint, index: Path, say, option: str
) -> None:
    say(_cell("tabulate"), *AFTERWARDS)
    for server in _serve(tmp_path, endpoint, index, option):
        path = server.notebook("never.ipynb")
        async with asyncio.timeout(90), Panel(server) as panel:
            opened = await _waiting(panel, path)
            closed = await panel.until("cell_closed")
            await panel.until("run_closed")
        assert opened["waits_because"] == ""
        assert (closed["status"], closed["message"]) == ("error", "")
        assert _printed(panel, opened) == ["ModuleNotFoundError"]
        assert _installed(server) == []


# What is said


def test_the_reason_names_modules_and_packages_that_are_called_otherwise() -> None:
    missing = Missing({"xlsxwriter": "XlsxWriter", "skimage": "scikit-image", "dask": "dask"})
    assert needs(missing) == (
        "it needs `xlsxwriter`, `skimage` (scikit-image) and `dask`, which are not installed: "
        "running it installs the packages from the package index"
    )
    assert needs(Missing(refused=(("x", "why"),))) == ""


@pytest.mark.parametrize(
    ("mode", "is_restricted", "reason"),
    [
        ("risky", True, r"^os\.system\(\) on line 2 is not allowed here; .*; it needs x$"),
        ("ask", True, "^you asked to see every cell first; it needs x$"),
        ("auto", True, "^$"),
        ("ask", False, "^this kernel is not restricted$"),
        ("risky", False, r"^os\.system\(\) on line 2 is not allowed here; .*; it needs x$"),
    ],
)
def test_what_a_cell_needs_joins_the_other_reasons(
    mode: str, is_restricted: bool, reason: str
) -> None:
    approvals = Approvals(mode, is_restricted=is_restricted)
    assert re.search(reason, approvals.reason("import os\nos.system('ls')", "it needs x"))


@pytest.fixture
def offline(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in index_variables(index).items():
        monkeypatch.setenv(name, value)


async def test_what_was_not_named_is_not_installed(tmp_path: Path, offline: None) -> None:
    said: list[str] = []
    packages = CellPackages(Packages(tmp_path / "packages"), tmp_path, said.append)
    told = await packages.missing("import squarify")
    assert needs(told) == _needs("squarify")
    source = "import squarify, jellyfish, tabulatte"
    declined = await packages.supply(source, told, is_agreed=False)
    assert declined.count("no cell of this run waits for the person: do without it.") == 2
    assert (said, list(tmp_path.iterdir())) == ([], [])
    done = await packages.supply(source, told, is_agreed=True)
    assert done.startswith("Installed squarify 9.1. `tabulatte` is not among")
    assert done.endswith(
        "`jellyfish` was not installed, as the person was not asked for it: "
        "import it in another cell to ask."
    )
    assert said == ["Looking for squarify", "Installing squarify 9.1", ""]
    assert await packages.supply("import squarify", None, is_agreed=True) == ""
    assert await CellPackages(None, tmp_path, said.append).missing("import jellyfish") is None


async def test_an_environment_that_can_not_be_asked_is_told_and_stops_no_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = CellPackages(Packages(tmp_path), tmp_path, lambda _: None)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "gone"))
    missing = await packages.missing("import squarify")
    assert needs(missing) == ""
    told = await packages.supply("import squarify", missing, is_agreed=False)
    assert re.fullmatch(r"the interpreter .* can't be asked: .*\.", told)
