"""An answered question, asked again several times at once."""

import pytest
from playwright.sync_api import expect

from tests.browser.lab import Lab
from tests.dm_jupyter.server.telling import tell
from tests.endpoint import ScriptedEndpoint

pytestmark = pytest.mark.browser

CODE = 'print("the sums are", df.sales.sum(), df.sales.sum() + 1)\n```'


def test_trying_harder_says_its_price_and_how_many_agree(
    lab: Lab, endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = ["There are 41.", "There are 41.", "The sales add up to **40**.", "It is 40.0."]
    tell(monkeypatch, endpoint, lambda turn, _: answers.pop(0) if turn else CODE)
    lab.ask("What is the sum of sales?")
    lab.expect_run("answered")
    expect(lab.answer).to_contain_text("There are 41.")
    button = lab.run.get_by_test_id("dm-try-harder")
    button.focus()
    lab.page.keyboard.press("Enter")
    expect(lab.questions).to_contain_text("Asks twice in fresh kernels, and up to 3 times")
    expect(lab.questions).to_contain_text("The last answer took")
    assert lab.violations(".jp-Dialog") == []
    lab.page.keyboard.press("Enter")
    expect(lab.runs).to_have_count(2)
    expect(lab.run.get_by_test_id("dm-tries")).to_have_text("up to 3 attempts")
    lab.expect_run("answered")
    expect(lab.run.get_by_test_id("dm-agreeing")).to_have_text("2 of 3 attempts agree")
    expect(lab.run.get_by_test_id("dm-other")).to_have_text("Another attempt says: There are 41.")
    expect(lab.answer).to_contain_text("40")
    assert lab.violations() == []
    # A question, one cell and an answer of each run, between the two cells of the person.
    document = lab.saved_document(cells=8)
    printed = [cell.outputs[0].text for cell in document.cells if cell.get("outputs")]
    assert printed == ["the sums are 40 41\n"] * 2
