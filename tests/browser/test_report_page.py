"""The page of evaluation runs as a browser shows it: from a file, without a network."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from kernel_sandbox.types import Display, Stream
from tests.training.report.report_runs import (
    PNG,
    SCRIPT,
    TREE,
    VOTE,
    a_record,
    a_trajectory,
    write_run,
)
from training.report.page import write_page

pytestmark = pytest.mark.browser

AXE = Path("node_modules/axe-core/axe.min.js")

OpenPage = Callable[..., Page]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A page about a right answer, a wrong one with hostile outputs, a vote and a tree."""
    hostile = (
        Stream("stdout", f"</pre></template>{SCRIPT}"),
        Display({"text/html": f"{SCRIPT}<b>bold</b>"}),
        Display({"image/svg+xml": f"<svg xmlns='http://www.w3.org/2000/svg'>{SCRIPT}</svg>"}),
        Display({"image/png": PNG}),
    )
    records = [
        a_record(name="fine"),
        a_record(a_trajectory(f"Why? {SCRIPT}", hostile, name="bad"), right=False),
        replace(a_record(name="voted", search=VOTE), groups={"level": ["hard"]}),
        a_record(name="searched", search=TREE),
    ]
    write_page([write_run(tmp_path / "run", *records)], tmp_path / "page.html")
    return tmp_path / "page.html"


@pytest.fixture
def open_page(browser: Browser, file: Path) -> OpenPage:
    """Opens the page in a window of its own; collects what it asks for and what goes wrong."""
    contexts = []

    def open_file(**options: Any) -> Page:
        context = browser.new_context(viewport={"width": 1000, "height": 800}, **options)
        contexts.append(context)
        page = context.new_page()
        page.asked = []  # type: ignore[attr-defined]
        page.faults = []  # type: ignore[attr-defined]
        page.on("request", lambda request: page.asked.append(request.url))  # type: ignore[attr-defined]
        page.on("pageerror", lambda error: page.faults.append(str(error)))  # type: ignore[attr-defined]
        page.goto(file.as_uri())
        return page

    yield open_file
    for context in contexts:
        context.close()


def _open_all(page: Page) -> None:
    for summary in page.locator("details.entry > summary").all():
        summary.click()
    expect(page.locator(".entry > .notebook")).to_have_count(4)


def test_a_failing_case_is_two_clicks_away(open_page: OpenPage) -> None:
    page = open_page()
    page.get_by_role("link", name="Show the failures (1)").click()
    expect(page.locator("details.entry:visible")).to_have_count(1)
    page.locator("details.entry:visible > summary").click()
    expect(page.get_by_role("article", name="bad")).to_contain_text("wrong value")


def test_a_failing_case_is_reached_by_keyboard(open_page: OpenPage) -> None:
    page = open_page()
    page.get_by_role("link", name="Show the failures (1)").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(page.get_by_role("article", name="bad")).to_be_visible()


def test_nothing_that_a_cell_left_runs_or_loads(open_page: OpenPage, file: Path) -> None:
    page = open_page()
    _open_all(page)
    assert page.evaluate("window.ran") is None
    assert page.faults == []
    assert [url for url in page.asked if not url.startswith(("data:", file.as_uri()))] == []
    picture = page.get_by_role("article", name="bad").locator("img").last
    expect(picture).to_have_js_property("naturalWidth", 1)


def test_the_policy_holds_where_escaping_would_have_failed(open_page: OpenPage, file: Path) -> None:
    text = file.read_text()
    file.write_text(text.replace("</main>", f"{SCRIPT}</main>"))
    page = open_page()
    _open_all(page)
    assert page.evaluate("window.ran") is None
    with pytest.raises(Exception, match="TrustedHTML"):
        page.evaluate("html => document.body.insertAdjacentHTML('beforeend', html)", SCRIPT)


def test_the_list_is_narrowed_by_words_and_by_choices(open_page: OpenPage) -> None:
    page = open_page()
    status, entries = page.get_by_role("status"), page.locator("details.entry:visible")
    expect(status).to_have_text("4 of 4 shown")
    page.get_by_label("Level", exact=True).select_option("hard")
    expect(status).to_have_text("1 of 4 shown")
    expect(entries).to_contain_text("voted")
    page.get_by_role("button", name="Show all").click()
    page.get_by_label("Search").fill("WHY?")
    expect(status).to_have_text("1 of 4 shown")
    page.get_by_label("Search").fill("four thousand")
    expect(status).to_have_text("3 of 4 shown")
    page.get_by_label("Failure", exact=True).select_option("wrong value")
    expect(status).to_have_text("0 of 4 shown")


def test_a_link_opens_the_question_it_names(open_page: OpenPage, file: Path) -> None:
    page = open_page()
    page.locator("#q3 > summary").click()
    expect(page).to_have_url(f"{file.as_uri()}#q3")
    page.reload()
    expect(page.get_by_role("article", name="voted")).to_contain_text("Votes of 3 candidates")
    page.locator("#q3 > summary").click()
    expect(page.locator(".entry > .notebook")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_has_no_serious_violation(open_page: OpenPage, scheme: str) -> None:
    page = open_page(color_scheme=scheme, bypass_csp=True)  # axe is a script of ours
    _open_all(page)
    for details in page.locator("details.aside > summary").all():
        details.click()
    page.add_script_tag(path=AXE)
    found = page.evaluate("axe.run()")["violations"]
    assert [one for one in found if one["impact"] in {"serious", "critical"}] == []


@pytest.mark.parametrize("width", [1280, 800, 400])
def test_the_page_is_never_wider_than_the_window(open_page: OpenPage, width: int) -> None:
    page = open_page()
    page.set_viewport_size({"width": width, "height": 800})
    _open_all(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
