"""A question, from the completion of a file's name to the notebook on disk."""

import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import expect

from tests.browser.conftest import OpenLab
from tests.browser.lab import Lab, until
from tests.dm_jupyter.server.jupyter import JupyterServer

pytestmark = pytest.mark.browser

CHART = """import time
print("the sum is", df.sales.sum(), flush=True)
time.sleep(2)
ax = df.plot(x="month", y="sales")
```"""
ANSWER = "The sales add up to **40**."


def test_a_question_becomes_cells_outputs_and_an_answer(lab: Lab, say) -> None:
    say(CHART, ANSWER)
    lab.ask("What is the sum of sales?")
    cell = lab.cell("the sum is")
    expect(lab.prompt("the sum is")).to_have_text("[*]:")
    expect(cell.locator(".jp-OutputArea")).to_contain_text("the sum is 40")
    lab.expect_run("answered")
    expect(lab.prompt("the sum is")).to_have_text("[1]:")
    expect(cell.locator("img")).to_be_visible()
    expect(lab.answer.locator("strong")).to_have_text("40")
    expect(lab.steps).to_have_count(2)
    expect(lab.steps.first).to_have_attribute("data-status", "ok")
    used = re.compile(r"s · 2 steps · 1 cell · \d+ of .* tokens")
    expect(lab.button("meter")).to_have_attribute("title", used)
    expect(lab.cells.nth(3)).to_contain_text("Answer")

    document = lab.saved_document(cells=5)
    assert [document.cells[place].source for place in (0, 4)] == ["mine = 1", "other = 2"]
    printed, picture = document.cells[2].outputs
    assert printed.text == "the sum is 40\n"
    assert picture.data["image/png"]
    assert document.cells[2].execution_count == 1
    assert ANSWER in document.cells[3].source


def test_a_failed_attempt_folds_away_and_one_click_brings_it_back(lab: Lab, say) -> None:
    again = " a name was undefined.\nprint('the sum is', df.sales.sum())\n```"
    say("print(undefined)\n```", again, ANSWER)
    lab.ask("What is the sum of sales?")
    lab.expect_run("answered")
    failed = lab.cells.nth(2)
    folded = failed.locator(".jp-Placeholder")
    expect(folded.first).to_be_visible()
    expect(failed.locator(".jp-OutputArea-output")).to_be_hidden()
    expect(lab.cell("the sum is").locator(".jp-OutputArea-output")).to_contain_text("40")
    document = lab.saved_document(cells=6)
    hidden = [
        cell.metadata.get("jupyter", {}).get("source_hidden", False) for cell in document.cells
    ]
    assert hidden == [False, False, True, False, False, False]
    folded.first.click()
    expect(failed).to_contain_text("undefined")
    failed.locator(".jp-OutputPlaceholder").click()
    expect(failed.locator(".jp-OutputArea-output")).to_contain_text("NameError")


def _kept_share(lab: Lab) -> float:
    """The right area's share of the page's width, as the server has it."""
    workspace = lab.page.url.partition("/workspaces/")[2].partition("/")[0]
    kept = lab.server.get(f"/lab/api/workspaces/{workspace}")["data"]
    sizes: list[float] = kept.get("layout-restorer:data", {}).get("relativeSizes") or [1.0]
    return sizes[-1]


def test_the_panel_opens_wide_enough_and_then_keeps_the_persons_width(lab: Lab) -> None:
    width = "document.querySelector('#dm-jupyter-panel').clientWidth"
    until(lab.page, lambda: 360 <= lab.page.evaluate(width) <= 400, "a wide panel")
    box = lab.page.locator("#dm-jupyter-panel").bounding_box()
    assert box is not None
    edge = box["x"] - 1
    lab.page.mouse.move(edge, 400)
    lab.page.mouse.down()
    lab.page.mouse.move(edge + 100, 400, steps=5)
    lab.page.mouse.up()
    narrow = lab.page.evaluate(width)
    assert 240 <= narrow < 340
    share = narrow / lab.page.evaluate("document.querySelector('#jp-main-split-panel').clientWidth")
    until(lab.page, lambda: abs(_kept_share(lab) - share) < 0.02, "JupyterLab keeps the layout")
    lab.reload()
    assert abs(lab.page.evaluate(width) - narrow) < 15


def test_a_step_goes_to_its_cell_and_shows_its_code_and_picture(lab: Lab, say) -> None:
    say(CHART, ANSWER)
    lab.ask("What is the sum of sales?")
    lab.expect_run("answered")
    step = lab.steps.first
    expect(step).to_contain_text("Drew a chart")
    lab.page.locator(".jp-Notebook").evaluate("node => node.scrollTo(0, 0)")
    step.get_by_role("button", name="Drew a chart").click()
    expect(lab.cell("the sum is")).to_be_in_viewport()
    toggle = step.get_by_role("button", name="Details of step 1")
    toggle.click()
    expect(step.locator(".jp-dm-Code")).to_contain_text("ax = df.plot(")
    expect(step.locator(".jp-dm-Code span").first).to_be_visible()  # it is coloured
    expect(lab.button("outputs")).to_contain_text("the sum is 40")
    expect(lab.button("outputs").locator("img")).to_be_visible()
    toggle.click()
    expect(lab.button("outputs")).to_have_count(0)


def test_of_a_long_output_the_ends_are_drawn_and_all_is_kept(lab: Lab, say) -> None:
    say("for n in range(20_000):\n    print('line', n)\n```", ANSWER)
    lab.ask("Print many lines")
    lab.expect_run("answered")
    output = lab.cell("for n in range").locator(".jp-OutputArea-output")
    expect(output).to_contain_text("line 19999")
    expect(output).not_to_contain_text("line 10000\n")
    lines = "".join(f"line {n}\n" for n in range(20_000))
    assert lab.saved_document(cells=5).cells[2].outputs[0].text == lines
    output.get_by_test_id("dm-long-text").click()
    expect(output).to_contain_text("line 10000\n")
    expect(output.get_by_test_id("dm-long-text")).to_have_count(0)


def test_cells_come_below_the_active_cell(lab: Lab, say) -> None:
    say(CHART, ANSWER)
    lab.run_cell(lab.cells.nth(1))
    lab.ask("What is the sum of sales?")
    lab.expect_run("answered")
    document = lab.saved_document(cells=5)
    assert [cell.source for cell in document.cells[:2]] == ["mine = 1", "other = 2"]
    assert ANSWER in document.cells[-1].source


def test_a_file_dropped_on_the_composer_becomes_a_chip(lab: Lab) -> None:
    file = lab.page.locator(".jp-DirListing-item", has_text="sales.csv")
    file.drag_to(lab.composer)
    expect(lab.chips).to_contain_text("sales.csv")


def test_a_file_is_analyzed_from_its_context_menu(lab: Lab) -> None:
    file = lab.page.locator(".jp-DirListing-item", has_text="sales.csv")
    file.click(button="right")
    lab.page.locator(".lm-Menu-item", has_text="Analyze this file").click()
    expect(lab.chips).to_contain_text("sales.csv")
    expect(lab.composer).to_be_focused()


def test_an_error_of_the_person_is_fixed_on_request(lab: Lab, say, endpoint) -> None:
    say("print('mended')\n```", "It works now.")
    lab.write_cell(lab.cells.first, "print(not_there)")
    lab.run_cell(lab.cells.first)
    cell = lab.cells.first
    expect(cell).to_contain_text("NameError")
    cell.click(button="right")
    lab.page.locator(".lm-Menu-item", has_text="Fix this error").click()
    lab.expect_run("answered")
    expect(lab.run).to_contain_text("Fix the error in this cell")
    assert "name 'not_there' is not defined" in str(endpoint.bodies[-1]["messages"])
    document = lab.saved_document(cells=5)
    assert document.cells[0].source == "print(not_there)"
    assert document.cells[2].outputs[0].text == "mended\n"


def test_a_toolbar_button_appears_on_a_cell_that_failed(lab: Lab) -> None:
    button = lab.cells.first.get_by_role("button", name="Ask the data analyst for a corrected cell")
    lab.write_cell(lab.cells.first, "1 / 0")
    expect(button).to_have_count(0)
    lab.run_cell(lab.cells.first)
    expect(button).to_be_visible()


def test_another_kernel_is_switched_when_the_person_says_so(open_lab, say) -> None:
    say(CHART, ANSWER)
    lab = open_lab(kernel="python3")
    expect(lab.button("kernel-status")).to_contain_text("Not restricted")
    lab.composer.fill("What is the sum of sales? ")
    lab.attach("sales.csv")
    lab.composer.press("Enter")
    expect(lab.dialog).to_contain_text("notebook's kernel is not restricted")
    lab.dialog.get_by_text("Without the variables").click()
    lab.dialog.get_by_role("radio", name="Switch this notebook").check()
    lab.dialog.get_by_role("button", name="Continue").click()
    lab.expect_run("answered")
    expect(lab.button("kernel-status")).to_have_attribute("data-restricted", "true")
    assert lab.saved_document(cells=5).metadata.kernelspec.name == "dm-sandbox"


def test_a_notebook_that_has_the_kernels_former_title_opens_with_the_kernel(
    open_lab: OpenLab, lab_server: JupyterServer, folder: str
) -> None:
    (lab_server.root / folder).mkdir()
    former = {"name": "dm-sandbox", "display_name": "DataMind (restricted)", "language": "python"}
    document = new_notebook(cells=[new_code_cell("mine = 1")], metadata={"kernelspec": former})
    nbformat.write(document, lab_server.root / folder / "work.ipynb")
    lab = open_lab()
    expect(lab.button("kernel-status")).to_have_attribute("data-restricted", "true")
    expect(lab.page.locator(".jp-KernelName")).to_have_text("Python (restricted)")
    expect(lab.questions).to_have_count(0)
    lab.save()
    assert lab.document().metadata.kernelspec.display_name == "Python (restricted)"
    (session,) = (x for x in lab_server.get("/api/sessions") if x["path"] == lab.path)
    assert session["kernel"]["name"] == "dm-sandbox"


def test_the_magic_writes_cells_below_its_own(open_lab, say) -> None:
    say(CHART, ANSWER)
    magic = "%%analyze sales.csv\nWhat is the sum of sales?"
    lab = open_lab(sources=("%load_ext dm_jupyter", magic, "other = 2"))
    lab.run_cell(lab.cells.first)
    expect(lab.prompt("load_ext")).to_have_text("[1]:")
    lab.run_cell(lab.cells.nth(1))
    lab.expect_run("answered")
    document = lab.saved_document(cells=6)
    assert document.cells[1].source == magic
    assert "the sum is 40\n" in document.cells[3].outputs[0].text
    assert document.cells[5].source == "other = 2"


def test_everything_works_from_the_keyboard(lab: Lab, say) -> None:
    say("import time\ntime.sleep(60)\n```")
    page = lab.page
    lab.cells.first.click()
    page.keyboard.press("Control+Shift+A")
    expect(lab.composer).to_be_focused()
    page.keyboard.type("How much? @sal")
    expect(lab.button("completion")).to_be_visible()
    page.keyboard.press("Escape")
    expect(lab.button("completion")).to_have_count(0)
    expect(lab.composer).to_be_focused()
    for _ in range(len("@sal")):
        page.keyboard.press("Backspace")
    lab.attach("sales.csv")
    page.keyboard.press("Enter")
    expect(lab.button("stop")).to_be_visible()
    _tab_to(lab, "dm-stop")
    page.keyboard.press("Enter")
    lab.expect_run("stopped")
    page.keyboard.press("Control+Shift+A")
    _tab_to(lab, "dm-undo", "Shift+Tab")
    page.keyboard.press("Enter")
    lab.expect_run("undone")


def _tab_to(lab: Lab, name: str, key: str = "Tab") -> None:
    """Goes with the Tab key to the element, which must come within a dozen of stops."""
    focused = "document.activeElement?.dataset.testid"
    for _ in range(12):
        lab.page.keyboard.press(key)
        if lab.page.evaluate(focused) == name:
            return
    raise AssertionError(f"{name} can't be reached with {key}")
