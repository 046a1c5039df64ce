"""Takes the pictures of the panel for the documentation: `make screenshots`.

The local model answers in a real JupyterLab on a copy of the example data. One picture shows what
it would hardly do when asked: a cell that meets the limit of memory comes from a script.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from playwright.sync_api import Browser, expect, sync_playwright

from dm_jupyter.models.local.cache import is_present
from dm_jupyter.models.local.catalogue import DEFAULT_MODEL, resolve
from tests.browser.lab import LAB_OPTIONS, Lab
from tests.dm_jupyter.server.jupyter import JupyterServer
from tests.endpoint import ScriptedEndpoint

EXAMPLES = Path(__file__).parent
PICTURES = Path("docs/img")
SIZE = {"width": 1400, "height": 900}
DATA = ("penguins.csv", "seattle-weather.csv", "chinook.sqlite")
LONGEST_RUN_S = 1800.0

CHART = (
    "Print and plot the mean body mass of each species as a bar chart. "
    "Which species is the heaviest?"
)
COUNT = "How many penguins live on each island?"
TRIPLES = "How alike are three penguins taken at random?"
CROSS_JOIN = """triples = df.merge(df, how="cross").merge(df, how="cross")
print(triples.shape)
```"""
SMALLER = """```python
import pandas as pd
df = pd.read_csv("penguins.csv")
sample = df.sample(20, random_state=0)[["species"]]
triples = sample.merge(sample, how="cross").merge(sample, how="cross")
print((triples.nunique(axis=1) == 1).mean().round(3))
```"""
ALIKE = "In a sample, a share of 0.244 of the triples is of one species."


def main() -> int:
    """Takes all pictures; returns 1 when something that they need is missing."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    missing = [
        what
        for what, is_there in (
            ("the local model: run 'make model'", is_present(resolve(DEFAULT_MODEL))),
            ("Chromium: install the package 'chromium'", chromium is not None),
            ("the side panel: run 'make setup' with Node.js", _is_built()),
        )
        if not is_there
    ]
    if missing:
        print("No pictures were taken. Missing: " + "; ".join(missing), file=sys.stderr)
        return 1
    PICTURES.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=60_000)
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        with (
            patch.dict(os.environ, XDG_CACHE_HOME=folder),  # where there is no model
            _lab(browser, JupyterServer(Path(folder, "c"), "", model="local", **_LAB)) as lab,
        ):
            _take_setup(lab)
        with _lab(browser, JupyterServer(Path(folder, "a"), "", model="local", **_LAB)) as lab:
            _take_runs(lab)
        with (
            ScriptedEndpoint([CROSS_JOIN, SMALLER, ALIKE]) as endpoint,
            _lab(browser, JupyterServer(Path(folder, "b"), endpoint.base_url, **_LAB)) as lab,
        ):
            _take_limit(lab)
    return 0


_LAB = {"app": "lab", "options": LAB_OPTIONS}


def _is_built() -> bool:
    return Path("dm_jupyter/labextension/static/style.js").is_file()


@contextmanager
def _lab(browser: Browser, server: JupyterServer) -> Iterator[Lab]:
    """JupyterLab on a copy of the example data, with a notebook of one empty cell."""
    for name in DATA:
        shutil.copy(EXAMPLES / name, server.root)
    with server:
        path = server.notebook("penguins.ipynb", sources=("",))
        page = browser.new_page(viewport=SIZE)
        yield Lab(page, server, path).open()
        page.close()


def _take_setup(lab: Lab) -> None:
    expect(lab.button("download")).to_be_visible()
    expect(lab.button("example").first).to_be_attached()
    _take(lab, "lab-setup")


def _take_runs(lab: Lab) -> None:
    expect(lab.button("example")).to_have_count(3)
    _take(lab, "lab-welcome")
    lab.ask(CHART, "penguins.csv")
    lab.expect_run("answered", LONGEST_RUN_S)
    lab.cells.locator(".jp-RenderedImage").last.scroll_into_view_if_needed()
    _take(lab, "lab")
    lab.use_theme("JupyterLab Dark")
    _take(lab, "lab-dark")
    lab.use_theme("JupyterLab Light")

    lab.button("approval-mode").select_option("ask")
    lab.cells.last.click()
    lab.ask(COUNT, "penguins.csv")
    expect(lab.button("approve")).to_be_visible(timeout=LONGEST_RUN_S * 1000)
    lab.cells.last.scroll_into_view_if_needed()
    _take(lab, "lab-approval")
    lab.button("approval-mode").select_option("auto")
    lab.button("approve").click()
    _let_end(lab)
    lab.panel.get_by_role("button", name="History of runs").click()
    expect(lab.button("history")).to_contain_text(COUNT)
    _take(lab, "lab-history")


def _let_end(lab: Lab) -> None:
    """Waits for the run's end; whatever cell waits meanwhile may run."""
    while lab.run.get_attribute("data-state") == "running":
        lab.page.wait_for_timeout(500)
        if lab.button("approve").is_visible():
            lab.button("approve").click()


def _take_limit(lab: Lab) -> None:
    lab.ask(TRIPLES, "penguins.csv")
    lab.expect_run("answered")
    # JupyterLab's own word on the kernel that it restarts.
    lab.dialog.get_by_role("button", name="Ok").click()
    lab.cell('how="cross"').first.scroll_into_view_if_needed()
    _take(lab, "lab-limit")


def _take(lab: Lab, name: str) -> None:
    lab.page.mouse.move(700, 5)
    lab.page.screenshot(path=PICTURES / f"{name}.png", animations="disabled")
    print(f"{PICTURES / name}.png")


if __name__ == "__main__":
    sys.exit(main())
