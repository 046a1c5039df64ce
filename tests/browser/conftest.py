from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from tests.browser.lab import LAB_OPTIONS, Lab
from tests.dm_jupyter.server.jupyter import JupyterServer
from tests.endpoint import ScriptedEndpoint

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
BUNDLE = Path("dm_jupyter/labextension/static/style.js")
TABLE = "month,sales\n1,10\n2,30\n"

Say = Callable[..., None]
OpenLab = Callable[..., Lab]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips the tests of this folder where there is nothing to run them with."""
    reason = ""
    if CHROMIUM is None:
        reason = "no chromium on the PATH"
    elif not BUNDLE.is_file():
        reason = f"{BUNDLE} is not built: run 'make setup' with Node.js"
    if reason:
        for item in items:
            if item.get_closest_marker("browser"):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint(["nothing was scripted"]) as running:
        yield running


@pytest.fixture
def say(endpoint: ScriptedEndpoint) -> Say:
    """Scripts what the model answers next."""

    def script(*texts: str) -> None:
        endpoint.texts = list(texts)
        endpoint.rewind()

    return script


@pytest.fixture(scope="session")
def lab_server(
    tmp_path_factory: pytest.TempPathFactory, endpoint: ScriptedEndpoint
) -> Iterator[JupyterServer]:
    folder = tmp_path_factory.mktemp("lab")
    with JupyterServer(folder, endpoint.base_url, app="lab", options=LAB_OPTIONS) as running:
        yield running


@pytest.fixture
def own_server(tmp_path: Path, endpoint: ScriptedEndpoint) -> Iterator[JupyterServer]:
    """A server that a test may kill."""
    with JupyterServer(tmp_path, endpoint.base_url, app="lab", options=LAB_OPTIONS) as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=30_000)
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM)


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser without cookies."""
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    yield context
    context.close()


@pytest.fixture
def folder() -> str:
    """A folder of the server for this test alone."""
    return uuid4().hex[:8]


@pytest.fixture
def open_lab(
    request: pytest.FixtureRequest, context: BrowserContext, folder: str, tmp_path: Path
) -> Iterator[OpenLab]:
    """Opens a notebook of the test's folder in a new tab; makes it when it is not there."""
    opened: list[Lab] = []
    ends = ExitStack()
    failed_before = request.session.testsfailed

    def open_tab(
        name: str = "work.ipynb",
        kernel: str = "dm-sandbox",
        sources: tuple[str, ...] = ("mine = 1", "other = 2"),
        server: JupyterServer | None = None,
    ) -> Lab:
        if server is None:
            server = request.getfixturevalue("lab_server")
            ends.callback(_end_kernels, server, folder)
        path = f"{folder}/{name}"
        if not (server.root / path).exists():
            (server.root / folder).mkdir(exist_ok=True)
            (server.root / folder / "sales.csv").write_text(TABLE)
            server.notebook(path, kernel, sources)
        lab = Lab(context.new_page(), server, path)
        opened.append(lab)
        return lab.open()

    yield open_tab
    if request.session.testsfailed > failed_before:
        for number, page in enumerate(context.pages):
            page.screenshot(path=tmp_path / f"page-{number}.png")
    context.close()
    ends.close()
    assert [fault for lab in opened for fault in lab.faults] == []


@pytest.fixture
def lab(open_lab: OpenLab) -> Lab:
    """A notebook of two cells in a restricted kernel, the panel beside it."""
    return open_lab()


def _end_kernels(server: JupyterServer, folder: str) -> None:
    for session in server.get("/api/sessions"):
        if session["path"].startswith(folder):
            server.request("DELETE", f"/api/sessions/{session['id']}")
