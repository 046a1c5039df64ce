"""Latency of the side panel, in Chromium with a model that answers immediately.

1. From Enter to the first token on screen.
2. From the model's last token to the cell shown running.
   Both in an empty notebook, and in one of 300 cells with 20 tables alive.
3. The work of one frame while a run streams into a notebook of 200 cells with 5 MB of output.
4. The same, while one cell prints 5 MB.
"""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_notebook, new_output
from playwright.sync_api import Page, sync_playwright

from tests.dm_jupyter.server.jupyter import TOKEN, JupyterServer
from tests.endpoint import ScriptedEndpoint

RUNS = 15
OPTIONS = ("--DmJupyterApp.output_bytes=8388608",)
CELLS, OUTPUT_BYTES = 200, 5 * 2**20
QUICK = "print(df.sales.sum())\n```"
STREAM = "import time\nfor i in range(400):\n    print('line', i)\n    time.sleep(0.01)\n```"
FLOOD = (
    "import time\nline = 'x' * 79 + '\\n'\nfor i in range(400):\n"
    "    print(line * 160, end='')\n    time.sleep(0.01)\n```"
)
TABLES = (
    "import numpy as np, pandas as pd\n"
    "for number in range(20):\n"
    "    columns = [f'column_{place}' for place in range(12)]\n"
    "    globals()[f'table_{number}'] = pd.DataFrame(np.random.rand(10_000, 12), columns=columns)\n"
)
ANSWER = "The sales add up to 40."
# The message is handled after the callback's frame has been drawn.
FRAMES = """() => {
  window.frames_ms = [];
  const channel = new MessageChannel();
  let began = 0;
  channel.port1.onmessage = () => window.frames_ms.push(performance.now() - began);
  const tick = () => {
    began = performance.now();
    channel.port2.postMessage(0);
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
}"""
MARK = """name => {
  const marks = performance.getEntriesByName(name);
  return marks.length ? performance.timeOrigin + marks[marks.length - 1].startTime : 0;
}"""


class TimedEndpoint(ScriptedEndpoint):
    """Endpoint that starts immediately, continues at a model's pace, and notes each end."""

    def __init__(self) -> None:
        super().__init__([QUICK, ANSWER], piece_pause_s=0.05)
        self.sent_ms: list[float] = []

    def answered(self) -> None:
        """Note the time."""
        self.sent_ms.append(1000 * time.time())


def open_lab(page: Page, server: JupyterServer, path: str) -> None:
    page.goto(f"{server.url}/lab/workspaces/{Path(path).stem}/tree/{path}?token={TOKEN}&reset")
    page.wait_for_selector("#jupyterlab-splash", state="detached", timeout=90_000)
    page.get_by_text("| Idle").wait_for(timeout=90_000)
    page.keyboard.press("Control+Shift+A")
    page.get_by_test_id("dm-composer").wait_for(timeout=30_000)


def ask(page: Page, endpoint: TimedEndpoint, question: str) -> None:
    endpoint.rewind()
    done = page.locator('[data-testid="dm-run"]:not([data-state="running"])').count()
    page.get_by_test_id("dm-composer").fill(question)
    page.get_by_test_id("dm-composer").press("Enter")
    runs = page.locator('[data-testid="dm-run"]:not([data-state="running"])')
    runs.nth(done).wait_for(timeout=60_000)


def latencies(page: Page, endpoint: TimedEndpoint) -> tuple[list[float], list[float]]:
    tokens, cells = [], []
    for number in range(RUNS + 1):
        endpoint.sent_ms.clear()
        page.evaluate("() => performance.clearMarks()")
        ask(page, endpoint, f"What is the sum in sales.csv? ({number})")
        if number == 0:  # the first question loads pandas
            continue
        names = ("dm:enter", "dm:first-token", "dm:cell-running")
        enter, first, running = (page.evaluate(MARK, name) for name in names)
        if first and running:  # a frame that came too late for the text sets no mark
            tokens.append(first - enter)
            cells.append(running - endpoint.sent_ms[0])
    return tokens, cells


def frames(page: Page, endpoint: TimedEndpoint, cell: str) -> list[float]:
    endpoint.texts = [cell, ANSWER]
    page.evaluate("() => { window.frames_ms = []; }")
    ask(page, endpoint, "Print many lines from sales.csv")
    return list(page.evaluate("() => window.frames_ms"))


def large_notebook(server: JupyterServer) -> str:
    path = server.notebook("large.ipynb")
    text = "x" * 79 + "\n"
    output = new_output("stream", name="stdout", text=text * (OUTPUT_BYTES // CELLS // len(text)))
    cells = [
        new_code_cell(f"# cell {number}", outputs=[output], execution_count=number + 1)
        for number in range(CELLS)
    ]
    nbformat.write(new_notebook(cells=cells), server.root / path)
    return path


def full_notebook(server: JupyterServer) -> str:
    """Create a notebook of 300 cells, with 20 tables alive in its kernel."""
    path = server.notebook("full.ipynb")
    text = "".join(f"{row:>6} {row * 7:>12}\n" for row in range(20))
    output = new_output("stream", name="stdout", text=text)
    cells = [
        new_code_cell(f"table_{number}.describe()", outputs=[output], execution_count=number + 1)
        for number in range(300)
    ]
    nbformat.write(new_notebook(cells=cells), server.root / path)
    with ThreadPoolExecutor(1) as threads:  # Playwright's loop already runs in this thread
        threads.submit(asyncio.run, server.execute(path, TABLES)).result()
    return path


def variables_ms(server: JupyterServer, path: str) -> list[float]:
    """Return the milliseconds to ask an idle kernel for its variables, server request included."""
    taken = []
    for _ in range(RUNS + 1):
        began = time.monotonic()
        server.get(f"/dm-jupyter/api/variables?notebook={path}")
        taken.append(1000 * (time.monotonic() - began))
    return taken[1:]


def told(name: str, values: list[float]) -> str:
    ordered = sorted(values)
    p95 = ordered[int(0.95 * (len(ordered) - 1))]
    return f"{name:<44} median {statistics.median(values):6.1f} ms   95 % {p95:6.1f} ms"


def main() -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("chromium is missing: apt-get install chromium")
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {RUNS} runs")
    with (
        tempfile.TemporaryDirectory() as folder,
        TimedEndpoint() as endpoint,
        JupyterServer(Path(folder), endpoint.base_url, app="lab", options=OPTIONS) as server,
        sync_playwright() as playwright,
    ):
        (server.root / "sales.csv").write_text("month,sales\n1,10\n2,30\n")
        browser = playwright.chromium.launch(executable_path=chromium)
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        open_lab(page, server, server.notebook("small.ipynb"))
        tokens, cells = latencies(page, endpoint)
        print(f"{len(tokens)} of {RUNS} runs had both marks")
        print(told("Enter to the first token on screen", tokens))
        print(told("the model's last token to the cell running", cells))
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        path = full_notebook(server)
        open_lab(page, server, path)
        endpoint.texts = [QUICK, ANSWER]
        tokens, cells = latencies(page, endpoint)
        print(told("the same, 300 cells and 20 tables alive", tokens))
        print(told("last token to the cell running, there", cells))
        print(told("asking its idle kernel for variables", variables_ms(server, path)))
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        open_lab(page, server, large_notebook(server))
        page.evaluate(FRAMES)
        print(told("work of a frame, 200 cells, 5 MB, streaming", frames(page, endpoint, STREAM)))
        print(told("work of a frame, one cell prints 5 MB", frames(page, endpoint, FLOOD)))
        browser.close()


if __name__ == "__main__":
    main()
