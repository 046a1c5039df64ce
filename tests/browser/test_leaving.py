"""Tabs that close, reload, are two, or lose the network: the run goes on and nothing is lost."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.browser.lab import Lab, until

pytestmark = pytest.mark.browser

LINES = 30
COUNT = f"""import time
for i in range({LINES}):
    print("line", i, flush=True)
    time.sleep(0.2)
```"""
ANSWER = "It counted."


def test_a_closed_tab_loses_nothing(open_lab: Callable[..., Lab], say) -> None:
    say(COUNT, ANSWER)
    lab = open_lab()
    _begin(lab)
    lab.page.close()
    again = open_lab()
    assert len(again.saved_document(cells=5).cells) == 5
    again.reload()
    again.open_past_run("Count")
    _expect_all(again)


def test_a_reloaded_page_loses_nothing(lab: Lab, say) -> None:
    say(COUNT, ANSWER)
    _begin(lab)
    lab.page.reload()
    expect(lab.cells.first).to_be_visible()
    lab.show_panel()
    lab.show_run("Count")  # a slow page comes after the run's end
    lab.expect_run("answered")
    _expect_all(lab)


def test_a_second_tab_watches_until_it_is_told_to_write(open_lab: Callable[..., Lab], say) -> None:
    first, second = open_lab(), open_lab()
    expect(first.button("owner-banner")).to_have_count(0)
    expect(second.button("owner-banner")).to_contain_text("Another tab writes this notebook")
    second.button("owner-banner").get_by_role("button", name="Write here instead").click()
    expect(second.button("owner-banner")).to_have_count(0)
    expect(first.button("owner-banner")).to_be_visible()
    say(COUNT, ANSWER)
    _begin(second)
    second.expect_run("answered")
    first.expect_run("answered")
    _expect_all(second)
    assert len(first.open_document()["cells"]) == 2


def test_the_last_tab_writes_when_the_other_is_closed(open_lab: Callable[..., Lab], say) -> None:
    say(COUNT, ANSWER)
    first, second = open_lab(), open_lab()
    _begin(first)
    first.page.close()
    expect(second.button("owner-banner")).to_have_count(0)
    second.expect_run("answered")
    _expect_all(second)


@pytest.mark.parametrize("seconds", [1, 4])
def test_a_network_that_goes_and_comes_back_loses_nothing(
    lab: Lab, context: BrowserContext, say, seconds: int
) -> None:
    say(COUNT, ANSWER)
    _begin(lab)
    context.set_offline(True)
    expect(lab.button("offline-banner")).to_contain_text("the run goes on")
    lab.page.wait_for_timeout(seconds * 1000)  # the outage is a length of time
    context.set_offline(False)
    expect(lab.button("offline-banner")).to_have_count(0)
    lab.expect_run("answered")
    _expect_all(lab)


def test_what_the_person_writes_without_a_network_is_kept(
    lab: Lab, context: BrowserContext, say
) -> None:
    say(COUNT, ANSWER)
    _begin(lab)
    context.set_offline(True)
    expect(lab.button("offline-banner")).to_be_visible()
    lab.write_cell(lab.cells.first, "mine = 'written offline'")

    def is_written() -> bool:
        return len(lab.server.document(lab.path).cells) > 1

    until(lab.page, is_written, "the server writes the file itself")
    context.set_offline(False)
    lab.expect_run("answered")
    _expect_all(lab, mine="mine = 'written offline'")


def _begin(lab: Lab) -> None:
    lab.ask("Count")
    expect(lab.cell("line 3").last).to_be_visible()


def _expect_all(lab: Lab, mine: str = "mine = 1") -> None:
    """All that the run wrote is there once, in the tab and on disk, and nobody was asked."""
    expect(lab.cells).to_have_count(5)
    document = lab.saved_document(cells=5, first=mine)
    _check(document, mine)
    _check(lab.open_document(), mine)
    expect(lab.questions).to_have_count(0)
    expect(lab.steps).to_have_count(2)


def _check(document: Any, mine: str) -> None:
    cells = document["cells"]
    ids = [cell["id"] for cell in cells]
    assert len(set(ids)) == len(ids)
    assert [cells[place]["source"] for place in (0, 4)] == [mine, "other = 2"]
    texts = ["".join(output["text"]) for output in cells[2]["outputs"]]
    assert "".join(texts).splitlines() == [f"line {i}" for i in range(LINES)]
    assert cells[2]["execution_count"] == 1
    assert ANSWER in cells[3]["source"]
