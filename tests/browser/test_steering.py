"""What the person can say to a run: stop, yes, yes but so, no, take it back."""

import pytest
from playwright.sync_api import expect

from tests.browser.lab import Lab

pytestmark = pytest.mark.browser

SLOW = "import time\nprint('begun', flush=True)\ntime.sleep(600)\n```"
RISKY = "import os\nos.system('echo by the shell')\nprint('as written')\n```"
ANSWER = "It is done."


def test_stop_ends_the_cell_within_seconds_and_keeps_its_output(lab: Lab, say) -> None:
    say(SLOW, ANSWER)
    lab.ask("Sleep")
    expect(lab.cell("begun").locator(".jp-OutputArea")).to_contain_text("begun")
    lab.button("stop").click()
    lab.expect_run("stopped")
    lab.wait_until_idle()
    expect(lab.prompt("time.sleep")).not_to_have_text("[*]:")
    document = lab.saved_document(cells=5)
    assert document.cells[2].outputs[0].text == "begun\n"
    # The kernel is the same one, and free.
    lab.run_cell(lab.cells.first)
    expect(lab.prompt("mine = 1")).to_have_text("[2]:")


def test_a_risky_cell_runs_after_the_person_approved_it(lab: Lab, say) -> None:
    say(RISKY, ANSWER)
    lab.ask("List")
    expect(lab.steps.last).to_have_attribute("data-status", "waiting")
    expect(lab.run).to_contain_text("os.system")
    expect(lab.prompt("as written")).to_have_text("[ ]:")
    lab.button("approve").click()
    lab.expect_run("answered")
    expect(lab.prompt("as written")).to_have_text("[1]:")
    assert "as written" in lab.saved_document(cells=5).cells[2].outputs[-1].text


def test_a_risky_cell_runs_as_the_person_changed_it(lab: Lab, say) -> None:
    say(RISKY, ANSWER)
    lab.ask("List")
    lab.button("edit").click()
    editor = lab.panel.get_by_role("textbox", name="Text of the cell")
    expect(editor).to_be_focused()
    editor.fill("print('as changed')")
    lab.button("approve").click()
    lab.expect_run("answered")
    cell = lab.saved_document(cells=5).cells[2]
    assert cell.source == "print('as changed')"
    assert [output.text for output in cell.outputs] == ["as changed\n"]


def test_a_waiting_cell_may_be_changed_in_the_notebook_itself(lab: Lab, say) -> None:
    say(RISKY, ANSWER)
    lab.ask("List")
    expect(lab.button("approve")).to_be_visible()
    lab.write_cell(lab.cell("as written"), "print('changed in place')")
    lab.button("approve").click()
    lab.expect_run("answered")
    cell = lab.saved_document(cells=5).cells[2]
    assert cell.source == "print('changed in place')"
    assert [output.text for output in cell.outputs] == ["changed in place\n"]


def test_a_skipped_cell_leaves_the_notebook(lab: Lab, say) -> None:
    say(RISKY, "print('another way')\n```", ANSWER)
    lab.ask("List")
    lab.button("skip").click()
    lab.expect_run("answered")
    expect(lab.cell("os.system")).to_have_count(0)
    assert lab.saved_document(cells=5).cells[2].outputs[0].text == "another way\n"


def test_undo_takes_out_the_runs_cells_and_no_other(lab: Lab, say) -> None:
    say("print(df.sales.sum())\n```", ANSWER)
    lab.ask("Sum")
    lab.expect_run("answered")
    lab.saved_document(cells=5)
    lab.button("undo").click()
    lab.expect_run("undone")
    expect(lab.cells).to_have_count(2)
    left = lab.saved_document(cells=2)
    assert [cell.source for cell in left.cells] == ["mine = 1", "other = 2"]


def test_undo_leaves_a_cell_that_the_person_changed(lab: Lab, say) -> None:
    say("print(df.sales.sum())\n```", ANSWER)
    lab.ask("Sum")
    lab.expect_run("answered")
    lab.write_cell(lab.cell("df.sales.sum"), "  # a note of mine", at_end=True)
    lab.button("undo").click()
    lab.expect_run("undone")
    left = lab.saved_document(cells=3)
    assert [cell.source for cell in left.cells][::2] == ["mine = 1", "other = 2"]
    assert left.cells[1].source.endswith("# a note of mine")
