"""The first ten minutes: a model is set up, a card is pressed, a question is asked from nowhere."""

import dataclasses
import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from uuid import uuid4

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from dm_jupyter.core.plain_text import shown_host
from tests.browser.conftest import OpenLab
from tests.browser.lab import LAB_OPTIONS, Lab, until
from tests.dm_jupyter.server.jupyter import TOKEN, JupyterServer
from tests.endpoint import ScriptedEndpoint, unused_url

pytestmark = pytest.mark.browser

PENGUINS = "species,island,mass\nAdelie,Dream,3700\nGentoo,Biscoe,5000\nAdelie,Biscoe,3800\n"
MEAN = "print(df.mass.mean().round(1))\n```"
ANSWER = "The mean is **4166.7**."
KEY = "key-0123456789-of-a-person"
CONTENT = bytes(range(256)) * 8_000


@pytest.fixture
def atlas(lab_server: JupyterServer, folder: str) -> str:
    """A folder with a table in a folder below it."""
    below = lab_server.root / folder / "data"
    below.mkdir(parents=True)
    (below / "penguins.csv").write_text(PENGUINS)
    return folder


@contextmanager
def _open(context: BrowserContext, server: JupyterServer, folder: str = "") -> Iterator[Lab]:
    """JupyterLab without a notebook, the panel open, the file browser in a folder."""
    lab = Lab(context.new_page(), server, "")
    place = f"/lab/workspaces/{uuid4().hex}" + (f"/tree/{folder}" if folder else "")
    lab.page.goto(f"{server.url}{place}?token={TOKEN}&reset")
    expect(lab.page.locator("#jupyterlab-splash")).to_have_count(0)
    yield lab
    assert lab.faults == []


def _show_panel(page: Page) -> None:
    page.locator('.lm-TabBar-tab[data-id="dm-jupyter-panel"]').click()
    expect(page.get_by_test_id("dm-panel")).to_be_visible()


def _shot(lab: Lab, tmp_path: Path, name: str) -> None:
    lab.page.screenshot(path=tmp_path / f"{name}.png")


def test_a_card_of_the_launcher_leads_to_a_question_without_a_notebook(
    context: BrowserContext, lab_server: JupyterServer, atlas: str, say, tmp_path: Path
) -> None:
    say(MEAN, ANSWER)
    with _open(context, lab_server, atlas) as lab:
        card = lab.page.locator(".jp-LauncherCard", has_text="Ask about data")
        expect(card.locator("svg")).to_be_visible()
        _shot(lab, tmp_path, "launcher")
        card.click()
        expect(lab.composer).to_be_focused()
        lab.composer.fill("What is the mean mass in penguins.csv?")
        lab.composer.press("Enter")
        lab.expect_run("answered")
        made = until(
            lab.page,
            lambda: list((lab_server.root / atlas / "data").glob("[!.]*.ipynb")),
            "a notebook beside the file",
        )
        expect(lab.answer).to_contain_text("4166.7")
        _shot(lab, tmp_path, "answered")
    assert [path.name for path in made] == ["Untitled.ipynb"]
    assert list((lab_server.root / atlas).glob("[!.]*.ipynb")) == []
    lab_server.end_kernels(atlas)


def test_an_example_made_of_the_files_at_hand_is_asked(
    context: BrowserContext, lab_server: JupyterServer, atlas: str, say, tmp_path: Path
) -> None:
    say(MEAN, ANSWER)
    with _open(context, lab_server, f"{atlas}/data") as lab:
        _show_panel(lab.page)
        examples = lab.button("example")
        expect(examples).to_have_count(3)
        expect(examples.first).to_have_text(
            "Which species in penguins.csv has the highest average mass?"
        )
        if problems := lab_server.get("/dm-jupyter/api/status")["problems"]:
            expect(lab.button("welcome")).to_contain_text(problems[0]["text"])
            expect(lab.button("safe")).to_have_count(0)
        else:
            expect(lab.button("safe")).to_contain_text("It is safe to try")
        expect(lab.panel).not_to_contain_text("landlock", use_inner_text=True)
        _shot(lab, tmp_path, "welcome")
        assert lab.violations() == []
        lab.button("details").locator("summary").click()
        expect(lab.button("details")).to_contain_text("landlock", use_inner_text=True)
        _shot(lab, tmp_path, "details")
        examples.first.click()
        expect(lab.chips).to_contain_text("penguins.csv")
        lab.button("send").click()
        lab.expect_run("answered")
    lab_server.end_kernels(atlas)


def test_at_finds_a_file_from_a_folder_above(
    open_lab: OpenLab, atlas: str, say, endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    say(MEAN, ANSWER)
    lab = open_lab()
    lab.composer.press_sequentially("What is the mean mass in @pengu")
    expect(lab.button("completion")).to_contain_text("penguins.csv")
    expect(lab.button("completion")).to_contain_text(f"{atlas}/data")
    _shot(lab, tmp_path, "completion")
    lab.composer.press("Enter")
    expect(lab.chips).to_contain_text(f"{atlas}/data/penguins.csv")
    lab.composer.press("Enter")
    lab.expect_run("answered")
    assert "species" in str(endpoint.bodies[-1]["messages"])


def test_at_that_names_nothing_is_not_sent(
    open_lab: OpenLab, atlas: str, say, endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    say(MEAN, ANSWER)
    lab = open_lab()
    endpoint.bodies.clear()
    lab.composer.fill("What is the mean mass in @penguin.csv ?")
    lab.composer.press("Enter")
    expect(lab.button("which-data")).to_contain_text("“@penguin.csv” names no file")
    lab.composer.fill("What is the mean mass in @pengins ?")
    lab.composer.press("Enter")
    expect(lab.button("which-data")).to_contain_text("“@pengins” names no file")
    _shot(lab, tmp_path, "unknown")
    assert lab.violations() == []
    expect(lab.runs).to_have_count(0)
    assert endpoint.bodies == []
    lab.button("candidate").filter(has_text=f"{atlas}/data/penguins.csv").click()
    lab.expect_run("answered")
    expect(lab.run).to_contain_text("What is the mean mass in penguins.csv")


def test_a_question_about_nothing_asks_back(
    open_lab: OpenLab, atlas: str, say, endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    say(MEAN, ANSWER)
    lab = open_lab()
    endpoint.bodies.clear()
    lab.composer.fill("What is the mean mass?")
    lab.composer.press("Enter")
    expect(lab.button("which-data")).to_contain_text("Which data is the question about?")
    _shot(lab, tmp_path, "which-data")
    assert endpoint.bodies == []
    expect(lab.composer).to_have_value("What is the mean mass?")
    lab.button("candidate").filter(has_text=f"{atlas}/data/penguins.csv").click()
    lab.expect_run("answered")


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., JupyterServer]]:
    """Makes a server that has no model, and would fetch one from this machine at most."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    servers = []

    def start(hub: str) -> JupyterServer:
        server = JupyterServer(tmp_path, "", model="local", app="lab", options=LAB_OPTIONS)
        _pin(server, hub)
        server.start()
        (server.root / "sales.csv").write_text("month,sales\n1,10\n2,30\n")
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.stop()


def _pin(server: JupyterServer, hub: str) -> None:
    """Has the server know one small model, which only the hub of the test can have."""
    config = server.folder / "private" / "config"
    config.mkdir(parents=True)
    (config / "jupyter_server_config.py").write_text(
        "import dataclasses\n"
        "from dm_jupyter.models.local import catalogue\n"
        f"catalogue._HUB = {hub!r}\n"
        "catalogue.MODELS = (dataclasses.replace(catalogue.MODELS[0], parts=None, "
        f"size_bytes={len(CONTENT)}, sha256={hashlib.sha256(CONTENT).hexdigest()!r}),)\n"
    )


@dataclasses.dataclass
class _Hub:
    """A model hub that sends half of a file, and the rest when it may."""

    goes_on: threading.Event = dataclasses.field(default_factory=threading.Event)


@pytest.fixture
def hub() -> Iterator[tuple[_Hub, str]]:
    hub = _Hub()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            start = int((self.headers.get("Range") or "bytes=0-")[6:-1])
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(CONTENT) - start))
            self.end_headers()
            half = max(start, len(CONTENT) // 2)
            self.wfile.write(CONTENT[start:half])
            while not hub.goes_on.wait(0.05):
                half += 1000  # some bytes go on coming, so that a click is heard
                self.wfile.write(CONTENT[half - 1000 : half])
            self.wfile.write(CONTENT[half:])

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield hub, f"http://127.0.0.1:{server.server_port}"
    hub.goes_on.set()
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_model_is_downloaded_on_a_click_and_send_is_off_until_then(
    context: BrowserContext, bare, hub: tuple[_Hub, str], tmp_path: Path
) -> None:
    control, url = hub
    with _open(context, bare(url)) as lab:
        _show_panel(lab.page)
        expect(lab.button("setup")).to_contain_text("Set up a model")
        expect(lab.button("why-not")).to_contain_text("Send is off until a model is set up")
        lab.composer.fill("What is the sum in sales.csv?")
        expect(lab.button("send")).to_be_disabled()
        _shot(lab, tmp_path, "setup")
        assert lab.violations() == []
        lab.button("download").click()
        expect(lab.button("progress")).to_be_visible()
        lab.button("cancel-download").click()
        expect(lab.button("download")).to_contain_text("Continue the download")
        lab.button("download").click()
        expect(lab.button("progress")).to_be_visible()
        _shot(lab, tmp_path, "progress")
        control.goes_on.set()
        expect(lab.button("setup")).to_have_count(0)
        expect(lab.button("send")).to_be_enabled()
    assert (tmp_path / "cache" / "dm-jupyter" / "models").is_dir()


def test_an_endpoint_is_set_up_in_the_panel_and_its_key_stays_out_of_sight(
    context: BrowserContext, bare, say, endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    server = bare(unused_url())
    with _open(context, server) as lab:
        _show_panel(lab.page)
        lab.button("endpoint-url").fill(unused_url())
        lab.button("endpoint-model").fill("big")
        lab.button("endpoint-key").fill(KEY)
        lab.button("connect").click()
        expect(lab.button("setup-error")).to_contain_text("Nothing answers at http://127.0.0.1")
        _shot(lab, tmp_path, "refused")
        say("OK", "print(df.sales.sum())\n```", "The sum is **40**.")
        lab.button("endpoint-url").fill(endpoint.base_url)
        lab.button("connect").click()
        expect(lab.button("setup")).to_have_count(0)
        lab.composer.fill("What is the sum in sales.csv?")
        lab.button("send").click()
        lab.expect_run("answered")
        expect(lab.panel).to_contain_text(f"Goes to big ({shown_host(endpoint.base_url)})")
        assert KEY not in lab.page.content()
        lab.path = "Untitled.ipynb"
        document = until(
            lab.page, lambda: len(lab.document().cells) > 2 and lab.document(), "cells"
        )
    assert KEY not in str(document)
    assert KEY not in server.log.read_text()
    assert endpoint.headers[-1]["authorization"] == f"Bearer {KEY}"
