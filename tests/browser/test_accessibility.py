"""What axe finds in the panel, in both themes."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.lab import Lab
from tests.browser.test_files import HAND_OVER

pytestmark = pytest.mark.browser

RISKY = "import os\nos.system('echo by the shell')\n```"


@pytest.fixture(params=["JupyterLab Light", "JupyterLab Dark"])
def themed_lab(request: pytest.FixtureRequest, lab: Lab) -> Iterator[Lab]:
    lab.use_theme(request.param)
    yield lab
    lab.use_theme("JupyterLab Light")


def test_the_welcome_screen_has_no_serious_violation(themed_lab: Lab) -> None:
    expect(themed_lab.button("welcome")).to_contain_text("What leaves this machine")
    assert themed_lab.violations() == []
    assert themed_lab.violations("[data-testid=dm-kernel-status]") == []


def test_a_run_has_no_serious_violation(themed_lab: Lab, say) -> None:
    lab = themed_lab
    say("print(df.sales.sum())\n```", "The sum is **40**, says `df.sales.sum()`.")
    lab.ask("Sum")
    lab.expect_run("answered")
    lab.steps.first.get_by_role("button").first.click()
    expect(lab.button("outputs")).to_contain_text("40")
    lab.button("more").click()
    expect(lab.panel.get_by_role("menuitem").first).to_be_focused()
    assert lab.violations() == []
    lab.page.keyboard.press("Escape")
    expect(lab.button("more")).to_be_focused()
    say(RISKY, "Done.")
    lab.ask("List")
    expect(lab.button("approve")).to_be_visible()
    assert lab.violations() == []
    lab.composer.fill("About @")
    expect(lab.button("completion")).to_be_visible()
    assert lab.violations() == []
    lab.button("stop").click()
    lab.expect_run("stopped")
    assert lab.violations() == []


def test_files_that_wait_or_are_wanted_have_no_serious_violation(themed_lab: Lab, say) -> None:
    lab = themed_lab
    say("open('sales.csv', 'w').close()\nopen('tool.py', 'w').close()\nprint(1)\n```", "Done.")
    lab.ask("Write")
    expect(lab.button("files-approval")).to_be_visible()
    assert lab.violations() == []
    lab.button("files-discard").click()
    lab.expect_run("answered")
    (lab.server.root / "above.csv").write_text("a\n1\n")
    lab.write_cell(lab.cells.first, HAND_OVER % "above.csv")
    lab.run_cell(lab.cells.first)
    expect(lab.button("wanted")).to_be_visible()
    assert lab.violations() == []


def test_the_history_has_no_serious_violation(themed_lab: Lab, say) -> None:
    lab = themed_lab
    say("print(df.sales.sum())\n```", "The sum is 40.")
    lab.ask("Sum")
    lab.expect_run("answered")
    lab.panel.get_by_role("button", name="History of runs").click()
    expect(lab.button("history")).to_contain_text("The sum is 40.")
    assert lab.violations() == []


def test_the_choice_of_a_kernel_has_no_serious_violation(open_lab, say) -> None:
    say("print(1)\n```", "One.")
    lab = open_lab(kernel="python3")
    lab.composer.fill("One?")
    lab.composer.press("Enter")
    expect(lab.dialog).to_be_visible()
    assert lab.violations(".jp-dm-KernelChoices") == []
    lab.dialog.get_by_role("button", name="Cancel").click()
    expect(lab.composer).to_have_value("One?")
