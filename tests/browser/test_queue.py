"""Questions that are sent while a run works: they wait in sight, and go when it has answered."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.lab import Lab

pytestmark = pytest.mark.browser

SLOW = "import time\nprint('begun', flush=True)\ntime.sleep(4)\nlate = 30\n```"
SLEEPING = "import time\nprint('begun', flush=True)\ntime.sleep(60)\n```"


def _ask_slowly(lab: Lab) -> None:
    lab.ask("How slow?")
    expect(lab.cell("begun").locator(".jp-OutputArea")).to_contain_text("begun")


def _queue(lab: Lab, text: str) -> None:
    before = lab.button("waiting-question").count()
    lab.composer.fill(text)
    lab.composer.press("Enter")
    expect(lab.button("waiting-question")).to_have_count(before + 1)
    expect(lab.composer).to_have_value("")


def test_a_question_waits_for_the_answer_and_goes_below_it(
    lab: Lab, say: Callable[..., None]
) -> None:
    say(SLOW, "It is slow.", "print('twice', 2 * late)\n```", "Twice is 60.")
    _ask_slowly(lab)
    _queue(lab, "And twice that?")
    expect(lab.button("waiting")).to_contain_text("And twice that?")
    assert lab.violations() == []
    lab.use_theme("JupyterLab Dark")
    assert lab.violations() == []
    expect(lab.runs).to_have_count(2)
    lab.expect_run("answered")
    expect(lab.answer).to_contain_text("Twice is 60.")
    expect(lab.button("waiting")).to_have_count(0)
    cells = [cell["source"] for cell in lab.open_document()["cells"]]
    first = next(place for place, text in enumerate(cells) if "It is slow." in text)
    assert next(place for place, text in enumerate(cells) if "2 * late" in text) > first
    expect(lab.cell("2 * late").locator(".jp-OutputArea")).to_contain_text("twice 60")


def test_after_stop_and_a_reload_nothing_is_sent_and_nothing_lost(
    lab: Lab, say: Callable[..., None]
) -> None:
    say(SLEEPING, "It has slept.")
    _ask_slowly(lab)
    _queue(lab, "And twice that?")
    _queue(lab, "And in words?")
    lab.button("waiting-take-back").last.click()
    expect(lab.composer).to_have_value("And in words?")
    lab.composer.press("Enter")
    lab.button("waiting-edit").first.click()
    lab.button("waiting-input").fill("And thrice that?")
    lab.button("waiting-input").press("Enter")
    lab.button("stop").click()
    lab.expect_run("stopped")
    expect(lab.button("waiting")).to_contain_text("Not sent, because the run was stopped")
    lab.wait_until_idle()

    lab.reload()
    expect(lab.button("waiting-question")).to_have_text(["And thrice that?", "And in words?"])
    say("print(3)\n```", "Thrice.", "print(4)\n```", "In words.")
    lab.button("waiting-send").click()
    expect(lab.runs).to_have_count(2)
    expect(lab.answer).to_contain_text("In words.")
    expect(lab.runs.first).to_contain_text("Thrice.")
