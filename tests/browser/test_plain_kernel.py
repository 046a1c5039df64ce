"""A question in a notebook whose kernel is not restricted: the variables stay, either way."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.lab import Lab
from tests.endpoint import ScriptedEndpoint

pytestmark = pytest.mark.browser

SALES = "import pandas as pd\nsales = pd.DataFrame({'n': [7, 5]})\nsales"
COUNT = "print('sold', sales.n.sum())\n```"
OUTSIDE = "import os\nlen(os.environ['SECRET_OF_THE_SERVER'])"
ANSWER = "12 were sold."
QUESTION = "How many were sold?"


@pytest.fixture
def plain(open_lab: Callable[..., Lab], endpoint: ScriptedEndpoint) -> Lab:
    """A plain kernel in which `sales` is alive."""
    endpoint.bodies.clear()
    lab = open_lab(kernel="python3", sources=(SALES, "factor = 2", "never = 1"))
    for place in range(2):
        lab.run_cell(lab.cells.nth(place))
    lab.wait_until_idle()
    expect(lab.button("kernel-status")).to_contain_text("Not restricted")
    return lab


def _ask(lab: Lab) -> None:
    lab.composer.fill(QUESTION)
    lab.composer.press("Enter")
    expect(lab.dialog).to_contain_text("notebook's kernel is not restricted")


def _continue(lab: Lab) -> None:
    lab.dialog.get_by_role("button", name="Continue").click()


def test_the_first_choice_makes_the_variables_again_in_a_restricted_kernel(
    plain: Lab, endpoint: ScriptedEndpoint, say: Callable[..., None]
) -> None:
    lab = plain
    say(COUNT, ANSWER)
    _ask(lab)
    first = lab.dialog.get_by_role("radio", name="Restart as restricted")
    expect(first).to_be_checked()
    assert lab.violations(".jp-dm-KernelChoices") == []
    _continue(lab)
    lab.expect_run("answered")
    expect(lab.button("kernel-status")).to_have_attribute("data-restricted", "true")
    told = json.dumps(endpoint.bodies[0]["messages"])
    assert "DataFrame `sales` (2 x 1)" in told
    assert "- factor (int): 2" in told
    assert "- never" not in told
    expect(lab.cell("print('sold'").locator(".jp-OutputArea")).to_contain_text("sold 12")
    # The person's cells are as they were.
    document = lab.saved_document(cells=6, first="import pandas")
    assert [cell.source for cell in document.cells if not cell.metadata.get("dm_jupyter")] == [
        SALES,
        "factor = 2",
        "never = 1",
    ]
    assert document.cells[0].outputs[0].data["text/plain"]
    assert document.metadata.kernelspec.name == "dm-sandbox"


def test_a_cell_that_fails_there_leaves_the_kernel_and_the_question(
    plain: Lab, say: Callable[..., None]
) -> None:
    lab = plain
    say(COUNT, ANSWER)
    lab.write_cell(lab.cells.nth(1), OUTSIDE)
    lab.run_cell(lab.cells.nth(1))
    lab.wait_until_idle()
    _ask(lab)
    _continue(lab)
    expect(lab.panel).to_contain_text("failed when run again in a restricted kernel")
    expect(lab.composer).to_have_value(QUESTION)
    expect(lab.runs).to_have_count(0)
    expect(lab.button("kernel-status")).to_contain_text("Not restricted")
    lab.write_cell(lab.cells.nth(1), "print('still', len(sales))")
    lab.run_cell(lab.cells.nth(1))
    expect(lab.cells.nth(1)).to_contain_text("still 2")


def test_run_here_keeps_the_kernel_and_asks_for_each_cell(
    plain: Lab, endpoint: ScriptedEndpoint, say: Callable[..., None]
) -> None:
    lab = plain
    say(COUNT, ANSWER)
    _ask(lab)
    lab.dialog.get_by_role("radio", name="Run here").check()
    _continue(lab)
    expect(lab.button("approve")).to_be_visible()
    expect(lab.run).to_contain_text("This kernel is not restricted")
    expect(lab.button("approval-mode")).to_have_value("ask")
    lab.button("approve").click()
    lab.expect_run("answered")
    assert "DataFrame `sales` (2 x 1)" in json.dumps(endpoint.bodies[0]["messages"])
    expect(lab.cell("print('sold'").locator(".jp-OutputArea")).to_contain_text("sold 12")
    expect(lab.button("kernel-status")).to_contain_text("Not restricted")


def test_run_here_asks_for_as_many_cells_as_the_person_chose(
    plain: Lab, say: Callable[..., None]
) -> None:
    lab = plain
    say(COUNT, ANSWER)
    _ask(lab)
    lab.dialog.get_by_role("radio", name="Run here").check()
    lab.dialog.get_by_label("Which cells wait for you").select_option("risky")
    _continue(lab)
    lab.expect_run("answered")
    expect(lab.button("approval-mode")).to_have_value("risky")
