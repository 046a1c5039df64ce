"""The panel in Notebook 7, which shows one document a page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.browser.conftest import TABLE, Say
from tests.browser.lab import Lab
from tests.dm_jupyter.server.jupyter import TOKEN, JupyterServer
from tests.endpoint import ScriptedEndpoint

pytestmark = [pytest.mark.browser, pytest.mark.slow]

pytest.importorskip("notebook", reason="`make test-all` installs Notebook 7")


class Notebook7(Lab):
    """A page of Notebook 7."""

    def open(self) -> Self:
        """Opens the notebook; returns when its kernel is idle and the panel is there."""
        self.page.goto(f"{self.server.url}/notebooks/{self.path}?token={TOKEN}")
        idle = self.page.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]')
        expect(idle).to_be_visible()
        expect(self.cells.first).to_be_visible()
        self.page.keyboard.press("Control+Shift+A")
        expect(self.panel).to_contain_text("Runs in a restricted kernel")
        return self


@pytest.fixture
def notebook(
    tmp_path: Path, endpoint: ScriptedEndpoint, context: BrowserContext
) -> Iterator[Notebook7]:
    """A notebook of one cell in a restricted kernel, the panel beside it."""
    with JupyterServer(tmp_path, endpoint.base_url, app="notebook") as server:
        (server.root / "sales.csv").write_text(TABLE)
        path = server.notebook("work.ipynb", sources=("mine = 1",))
        page = Notebook7(context.new_page(), server, path).open()
        yield page
        page.page.screenshot(path=tmp_path / "page.png")
    assert page.faults == []


def test_a_question_is_answered_in_notebook_7(notebook: Notebook7, say: Say) -> None:
    say("print('the sum is', df.sales.sum())\n```", "The sales add up to **40**.")
    notebook.ask("What is the sum of sales?")
    notebook.expect_run("answered")
    expect(notebook.answer.locator("strong")).to_have_text("40")
    expect(notebook.cell("the sum is").locator(".jp-OutputArea")).to_contain_text("the sum is 40")
    document = notebook.saved_document(cells=4, first="mine = 1")
    assert document.cells[2].outputs[0].text == "the sum is 40\n"
    assert document.metadata.kernelspec.display_name == "Python (restricted)"
