"""Pictures don't call home: a server that listens hears nothing of what a run wrote."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from playwright.sync_api import expect

from tests.browser.conftest import OpenLab
from tests.browser.lab import Lab, until
from tests.dm_jupyter.server.jupyter import JupyterServer
from tests.remote import HOST, spellings

pytestmark = pytest.mark.browser

TRACKER = "@jupyterlab/notebook-extension:tracker"
SHOW = """import json
from IPython.display import display
for data in json.load(open("outputs.json")):
    display(data, raw=True)
```"""
MERMAID = "flowchart LR\n  A[\"<img src='http://remote.test/mermaid'>\"]"
VEGA = {
    "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
    "data": {"url": "http://remote.test/vega.csv"},
    "mark": "bar",
    "encoding": {"x": {"field": "a", "type": "quantitative"}},
}


class Listener:
    """A server on this machine that counts who connects."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.place = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self.heard: list[str] = []
        """The first line of each connection, or its first bytes."""
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(2)
                try:
                    first = connection.recv(4096).split(b"\r\n")[0]
                    connection.sendall(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
                except OSError:
                    first = b""
            self.heard.append(first.decode("latin-1"))

    def close(self) -> None:
        self._socket.close()

    def requests(self, lab: Lab, control: str) -> list[str]:
        """What was heard before a request that the test itself makes, once the page is quiet."""
        lab.page.wait_for_load_state("networkidle")
        lab.page.evaluate(
            "address => fetch(address, {mode: 'no-cors'}).catch(() => 0)",
            f"http://{self.place}/control-{control}",
        )
        until(lab.page, lambda: any(control in line for line in self.heard), "the control")
        heard, self.heard = self.heard, []
        return [line for line in heard if "/control-" not in line]


@pytest.fixture
def listener() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.close()


def outputs(listener: Listener) -> list[dict[str, object]]:
    """All that a cell can show, with the listener as the host."""
    made: list[dict[str, object]] = [{"text/html": text} for text in spellings("html", "svg")]
    made += [{"text/html": f'<div style="{text}">x</div>'} for text in spellings("css")]
    made += [{"image/svg+xml": text} for text in spellings("svg")]
    made += [{"text/markdown": text} for text in spellings("markdown")]
    made += [{"application/vnd.vegalite.v5+json": VEGA}, {"text/vnd.mermaid": MERMAID}]
    text = json.dumps([{**data, "text/plain": "x"} for data in made])
    aimed: list[dict[str, object]] = json.loads(text.replace(HOST, listener.place))
    return aimed


def words(listener: Listener) -> str:
    """Markdown that no dialect takes for a cell."""
    texts = [text for text in spellings("markdown") if "```" not in text]
    return "The answer.\n\n" + "\n\n".join(texts).replace(HOST, listener.place)


@pytest.fixture
def shows_all(lab_server: JupyterServer) -> Iterator[None]:
    """JupyterLab draws every output of every cell."""
    address = f"/lab/api/settings/{TRACKER}"
    settings = {"maxNumberOutputs": 10_000, "windowingMode": "none"}
    lab_server.request("PUT", address, {"raw": json.dumps(settings)})
    yield
    lab_server.request("PUT", address, {"raw": "{}"})


def scroll_through(lab: Lab) -> None:
    """Brings each output into view, as reading does."""
    for part in lab.page.locator(".jp-NotebookPanel .jp-OutputArea-child").all()[::25]:
        part.scroll_into_view_if_needed()
    for cell in lab.cells.all():
        cell.scroll_into_view_if_needed()


@pytest.mark.usefixtures("shows_all")
def test_a_notebook_of_other_making_does_call(
    open_lab: OpenLab, lab_server: JupyterServer, folder: str, listener: Listener
) -> None:
    """The same contents, not written by a run, are loaded: what is listened for does happen."""
    (lab_server.root / folder).mkdir()
    cell = new_code_cell("1")
    cell.outputs = [new_output("display_data", data=data) for data in outputs(listener)]
    own = [new_markdown_cell(text) for text in words(listener).split("\n\n")]
    document = new_notebook(cells=[cell, *own])
    document.metadata["kernelspec"] = {"name": "dm-sandbox", "display_name": "dm-sandbox"}
    nbformat.write(document, lab_server.root / folder / "other.ipynb")
    lab = open_lab("other.ipynb")
    scroll_through(lab)
    assert len(set(listener.requests(lab, "other"))) > 100


@pytest.mark.usefixtures("shows_all")
def test_what_a_run_wrote_calls_nobody(
    open_lab: OpenLab,
    lab_server: JupyterServer,
    folder: str,
    listener: Listener,
    say,
    tmp_path: Path,
) -> None:
    (lab_server.root / folder).mkdir()
    (lab_server.root / folder / "sales.csv").write_text("month,sales\n1,10\n")
    (lab_server.root / folder / "outputs.json").write_text(json.dumps(outputs(listener)))
    lab = open_lab()
    thought = f"![a](http://{listener.place}/thought)\n\n```python\nprint(40)\n```"
    say(SHOW, thought, words(listener))
    lab.ask("What is shown?")
    lab.expect_run("answered")
    scroll_through(lab)
    assert listener.requests(lab, "run") == []
    expect(lab.answer.get_by_role("button", name="not loaded").first).to_be_visible()
    stand_ins = lab.cell("outputs.json").locator(".jp-OutputArea .dm-remote")
    assert stand_ins.count() > 200

    lab.save()
    lab.reload()
    scroll_through(lab)
    lab.open_past_run("What is shown?")
    assert listener.requests(lab, "reload") == []
    assert stand_ins.count() > 200

    other = open_lab()
    scroll_through(other)
    assert listener.requests(other, "reopen") == []

    # The outputs of a cell that the person runs are trusted, and come straight from the kernel.
    cell = other.cell("outputs.json").first
    other.run_cell(cell)
    expect(cell.locator(".jp-InputPrompt")).not_to_have_text("[1]:")
    other.wait_until_idle()
    scroll_through(other)
    assert listener.requests(other, "trusted") == []
    assert cell.locator(".jp-OutputArea .dm-remote").count() > 200
    other.page.screenshot(path=tmp_path / "trusted.png")


def test_a_click_loads_one_picture(
    open_lab: OpenLab, listener: Listener, say, tmp_path: Path
) -> None:
    lab = open_lab()
    one, two = (f"http://{listener.place}/{name}" for name in ("one", "two"))
    cell = f'from IPython.display import HTML\nHTML("<p>A <img src={two}> chart</p>")\n```'
    say(cell, f"It is ![a chart]({one}) and ![another]({two}).")
    lab.ask("Show me")
    lab.expect_run("answered")
    assert listener.requests(lab, "before") == []
    lab.page.screenshot(path=tmp_path / "before.png")
    lab.answer.get_by_role("button", name="not loaded").first.click()
    until(lab.page, lambda: listener.heard, "the picture of the panel")
    assert listener.requests(lab, "panel") == ["GET /one HTTP/1.1"]

    lab.cell("import HTML").locator(".dm-remote").click()
    expect(lab.questions).to_contain_text(two)
    lab.page.screenshot(path=tmp_path / "dialog.png")
    lab.questions.get_by_role("button", name="Cancel").click()
    expect(lab.questions).to_have_count(0)
    assert listener.requests(lab, "cancelled") == []
    lab.cell("import HTML").locator(".dm-remote").click()
    lab.questions.get_by_role("button", name="Load").click()
    until(lab.page, lambda: listener.heard, "the picture of the notebook")
    assert listener.requests(lab, "notebook") == ["GET /two HTTP/1.1"]


WIDGETS = """import ipywidgets as widgets
from IPython.display import HTML, display

def picture(name):
    return f"bold <b>{{name}}</b><img src='http://{place}/{{name}}'>"

inner = widgets.Output()
with inner:
    display(HTML(picture("output")))
changed = widgets.HTML("not yet")
styled = widgets.HTML("styled", style={{"background": "url(http://{place}/style)"}})
shown = widgets.VBox([
    widgets.HTML(picture("html")), widgets.HTMLMath(picture("math")), inner, changed, styled,
    widgets.Image(format="url", value=b"http://{place}/image"),
    widgets.Accordion([widgets.Label(picture("label"))], titles=[picture("title")]),
])
display(shown)
changed.value = picture("changed")
"""


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["dm-sandbox", "python3"])
def test_widgets_of_a_run_call_nobody(
    own_server: JupyterServer, open_lab: OpenLab, listener: Listener, say, kernel: str
) -> None:
    """A kernel that is not restricted is the control: there the person's own cell does call."""
    pytest.importorskip("ipywidgets", reason="`make test-all` installs ipywidgets")
    code = WIDGETS.format(place=listener.place)
    sources = (code,) if kernel == "python3" else ("mine = 1",)
    lab = open_lab(server=own_server, kernel=kernel, sources=sources)
    if kernel == "dm-sandbox":
        say(f"{code}```", "The widgets are shown.")
        lab.ask("Show the widgets")
        lab.expect_run("answered")
        scroll_through(lab)
        assert listener.requests(lab, "run") == []
        lab.run_cell(lab.cell("import ipywidgets").last)  # now the page hears the kernel itself
    else:
        lab.run_cell(lab.cells.first)
    expect(lab.page.locator(".jupyter-widgets b", has_text="html").first).to_be_visible()
    expect(lab.page.locator(".jupyter-widgets b", has_text="changed").first).to_be_visible()
    scroll_through(lab)
    heard = listener.requests(lab, "widgets")
    assert (heard == []) is (kernel == "dm-sandbox"), heard
