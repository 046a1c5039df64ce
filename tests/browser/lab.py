"""One JupyterLab tab as a person sees it: a notebook, and the analyst's panel beside it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self
from urllib.error import HTTPError
from uuid import uuid4

from playwright.sync_api import Error, Locator, Page, expect

from tests.dm_jupyter.server.jupyter import TOKEN, JupyterServer

__all__ = ["LAB_OPTIONS", "Lab", "until"]

LAB_OPTIONS = (
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LabApp.extension_manager=readonly",
    "--LabApp.expose_app_in_browser=True",
)
"""What a `JupyterServer` for these tests is started with."""

_AXE = Path("node_modules/axe-core/axe.min.js")
_POLL_MS = 100
_SETTLING_S = 60.0
_NEWS = re.compile("Server Connection Error|Kernel Restarting")


def until(page: Page, holds: Callable[[], Any], what: str, timeout_s: float = 60.0) -> Any:
    """Waits for something that no event of the page tells, as a file on disk; returns it."""
    deadline = time.monotonic() + timeout_s
    while not (found := holds()):
        assert time.monotonic() < deadline, f"it did not come to be: {what}"
        page.wait_for_timeout(_POLL_MS)
    return found


class Lab:
    """A tab on one notebook of the server."""

    def __init__(self, page: Page, server: JupyterServer, path: str) -> None:
        """Opens nothing yet.

        Args:
            page: an empty one.
            server: a `jupyter lab`.
            path: of the notebook, below the server's root.
        """
        self.page = page
        self.server = server
        self.path = path
        self.faults: list[str] = []
        """Errors of our own scripts that nothing in the page caught."""
        self.panel = page.get_by_test_id("dm-panel")
        self.composer = page.get_by_test_id("dm-composer")
        self.chips = page.get_by_test_id("dm-file-chip")
        self.runs = page.get_by_test_id("dm-run")
        self.run = self.runs.last
        self.steps = self.run.get_by_test_id("dm-step")
        self.answer = self.run.get_by_test_id("dm-answer")
        self.cells = page.locator(".jp-NotebookPanel .jp-Notebook .jp-Cell")
        self.dialog = page.locator(".jp-Dialog")
        # JupyterLab tells by itself of its server and of a kernel that it starts again.
        self.news = self.dialog.filter(has_text=_NEWS)
        self.questions = self.dialog.filter(has_not_text=_NEWS)
        page.on("pageerror", self._on_fault)
        # A browser asks before it leaves a notebook with unsaved changes.
        page.on("dialog", lambda dialog: dialog.accept())

    def open(self) -> Self:
        """Opens the notebook in a workspace of its own; returns when its kernel is idle."""
        place = f"/lab/workspaces/{uuid4().hex}/tree/{self.path}"
        self.page.goto(f"{self.server.url}{place}?token={TOKEN}&reset")
        self.wait_until_idle()
        self.show_panel()
        return self

    def reload(self) -> None:
        """Loads the page again, as F5 does."""
        self.page.reload()
        self.wait_until_idle()
        self.show_panel()

    def wait_until_idle(self) -> None:
        """Waits until the page is there and the notebook's kernel has nothing to do."""
        expect(self.page.locator("#jupyterlab-splash")).to_have_count(0)
        expect(self.cells.first).to_be_visible()
        expect(self.page.locator("#jp-main-statusbar")).to_contain_text("| Idle")

    def show_panel(self) -> None:
        """Brings the panel to the front; JupyterLab may put back what was open meanwhile."""
        tab = self.page.locator('.lm-TabBar-tab[data-id="dm-jupyter-panel"]')
        deadline = time.monotonic() + _SETTLING_S
        while not self.panel.is_visible() and time.monotonic() < deadline:
            tab.click()
            self.page.wait_for_timeout(5 * _POLL_MS)
        expect(self.panel).to_be_visible()
        # It comes with the first word of the server about the notebook.
        expect(self.page.get_by_test_id("dm-kernel-status")).to_be_visible()

    def attach(self, name: str) -> None:
        """Names a file in the question, through the completion."""
        self.composer.press_sequentially(f"@{name[:3]}")
        expect(self.page.get_by_test_id("dm-completion")).to_contain_text(name)
        self.composer.press("Enter")
        expect(self.chips.filter(has_text=name)).to_be_visible()

    def ask(self, question: str, *files: str) -> None:
        """Asks about files of the notebook's folder; returns when the run is there."""
        before = self.runs.count()
        self.composer.fill(f"{question} ")
        for name in files or ("sales.csv",):
            self.attach(name)
        self.composer.press("Enter")
        expect(self.runs).to_have_count(before + 1)

    def open_past_run(self, question: str) -> None:
        """Unfolds a run that had ended before this page was there."""
        self.panel.get_by_role("button", name=question).click()
        expect(self.run).to_be_visible()

    def show_run(self, question: str) -> None:
        """Waits for a run that goes on, or for the line of one that has ended, and unfolds it."""
        ended = self.panel.get_by_role("button", name=question)
        expect(self.run.or_(ended).first).to_be_visible()
        if not self.run.is_visible():
            ended.click()

    def expect_run(self, state: str, timeout_s: float = 60.0) -> None:
        """Waits until the last run stands so."""
        expect(self.run).to_have_attribute("data-state", state, timeout=timeout_s * 1000)

    def button(self, name: str) -> Locator:
        """A button of the panel, by its `data-testid`."""
        return self.page.get_by_test_id(f"dm-{name}")

    def cell(self, text: str) -> Locator:
        """The cells whose text or output holds this."""
        return self.cells.filter(has_text=text)

    def prompt(self, text: str) -> Locator:
        """What stands left of a code cell's text: `[*]:`, `[1]:`."""
        return self.cell(text).locator(".jp-InputArea-prompt")

    def write_cell(self, cell: Locator, text: str, *, at_end: bool = False) -> None:
        """Types into a cell: in its text's stead, or after it."""
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Control+End" if at_end else "Control+A")
        self.page.keyboard.type(text)

    def run_cell(self, cell: Locator) -> None:
        """Runs a cell and stays on it."""
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Control+Enter")

    def open_document(self) -> Any:
        """The document as the tab holds it."""
        return self.page.evaluate("jupyterapp.shell.currentWidget.content.model.toJSON()")

    def document(self) -> Any:
        """The document on disk, valid."""

        def read() -> Any:
            try:
                return self.server.document(self.path)
            except HTTPError as error:  # it is being written
                error.close()
                return None

        return until(self.page, read, f"a readable {self.path}")

    def saved_document(self, cells: int, first: str = "") -> Any:
        """The valid document on disk, once it has so many cells and begins with this text."""

        def read() -> Any:
            document = self.document()
            is_it = len(document.cells) == cells and document.cells[0].source.startswith(first)
            return is_it and document

        try:
            return until(
                self.page, read, f"{cells} cells in {self.path}, the first of them {first!r}"
            )
        except AssertionError as error:
            held = [cell["source"] for cell in self.open_document()["cells"]]
            saved = [cell.source for cell in self.document().cells]
            shown = self.page.locator("#jp-main-statusbar, .jp-Dialog").all_inner_texts()
            raise AssertionError(f"{error}\nfile: {saved}\ntab: {held}\n{shown}") from None

    def save(self) -> None:
        """Saves the notebook, as the person does, and returns when it is saved."""
        self.page.evaluate("jupyterapp.commands.execute('docmanager:save')")

    def dismiss_news(self) -> None:
        """Closes what JupyterLab says by itself."""
        for left in reversed(range(self.news.count())):
            self.news.last.get_by_role("button").last.click()
            expect(self.news).to_have_count(left)

    def use_theme(self, name: str) -> None:
        """Changes the theme."""
        self.page.evaluate(
            "theme => jupyterapp.commands.execute('apputils:change-theme', {theme})", name
        )
        is_light = str("Light" in name).lower()
        expect(self.page.locator("body")).to_have_attribute("data-jp-theme-light", is_light)

    def violations(self, selector: str = "#dm-jupyter-panel") -> list[str]:
        """What axe finds serious or critical in a part of the page."""
        if not self.page.evaluate("'axe' in window"):
            self.page.add_script_tag(path=_AXE)
        result = self.page.evaluate("selector => axe.run(selector)", selector)
        return [
            f"{found['id']}: {node['html']} {node['failureSummary']}"
            for found in result["violations"]
            if found["impact"] in {"serious", "critical"}
            for node in found["nodes"]
        ]

    def lines(self, pattern: str) -> list[int]:
        """The numbers in the lines of output that look like this, as the page shows them."""
        text = "\n".join(self.page.locator(".jp-OutputArea-output").all_inner_texts())
        return [int(number) for number in re.findall(pattern, text)]

    def _on_fault(self, error: Error) -> None:
        if "/dm-jupyter/" in str(error.stack):
            self.faults.append(str(error.stack))
