"""A notebook to hand on: numbers that lead to their cells, and the tidy copy."""

import nbformat
import pytest
from playwright.sync_api import expect

from tests.browser.lab import Lab

pytestmark = pytest.mark.browser

FAILS = "print(undefined)\n```"
SUMS = " a name was undefined.\nprint('the sum is', df.sales.sum())\n```"
ANSWER = "The sales add up to **40**."


@pytest.fixture
def answered(lab: Lab, say) -> Lab:
    """A notebook with a failed attempt, the cell that works, and the answer."""
    say(FAILS, SUMS, ANSWER)
    lab.ask("What is the sum of sales?")
    lab.expect_run("answered")
    return lab


def test_a_number_in_the_notebook_leads_to_its_cell_also_after_a_reload(answered: Lab) -> None:
    lab = answered
    number = lab.page.locator(".jp-MarkdownCell .jp-dm-Number", has_text="40")
    expect(number).to_have_count(1)
    number.click()
    expect(lab.cell("the sum is")).to_be_in_viewport()
    lab.saved_document(cells=6)
    lab.reload()
    expect(number).to_have_count(1)
    number.dblclick()  # the person edits the answer and draws it again
    editor = lab.page.locator(".jp-MarkdownCell", has_text="add up to").locator(".cm-content")
    expect(editor).to_be_visible()
    editor.press("Shift+Enter")
    expect(number).to_have_count(1)


def test_the_tidy_copy_opens_and_says_what_it_kept(answered: Lab) -> None:
    lab = answered
    lab.button("answer").wait_for()
    lab.page.get_by_role("button", name="More about this run").click()
    lab.page.get_by_role("menuitem", name="Tidy the notebook").click()
    note = lab.page.locator(".Toastify__toast", has_text="cells kept")
    expect(note).to_contain_text("outputs are the same", timeout=60_000)
    tidy = lab.path.replace(".ipynb", "-tidy.ipynb")
    expect(lab.page.locator(".lm-TabBar-tab.jp-mod-current")).to_contain_text("-tidy.ipynb")
    copy = nbformat.read(lab.server.root / tidy, as_version=4)
    sources = [cell.source for cell in copy.cells if cell.cell_type == "code"]
    assert not any("undefined" in source for source in sources)
    assert any("df.sales.sum()" in source for source in sources)
    number = lab.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-dm-Number")
    expect(number).to_have_text("40")


def test_a_notebook_without_an_answer_says_why_it_stays(lab: Lab) -> None:
    lab.page.evaluate("window.jupyterapp.commands.execute('dm-jupyter:tidy')")
    note = lab.page.locator(".Toastify__toast", has_text="can't be tidied")
    expect(note).to_contain_text("contains no answer")
