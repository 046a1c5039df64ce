"""The page of a run that goes on, as a browser shows it: it follows the run and keeps notes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.training.report.report_runs import a_record, write_run
from training.records.records import EvalRecord
from training.report.server import LivePage, ReportServer
from training.report.source import keep_note, read_notes

pytestmark = pytest.mark.browser

AXE = Path("node_modules/axe-core/axe.min.js")
LIVE = "Live: this page follows the run."

OpenPage = Callable[[], Page]


def records(count: int) -> list[EvalRecord]:
    return [replace(a_record(name=f"q{n}", right=n % 2 == 0), tokens=n) for n in range(count)]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", *records(30))


@pytest.fixture
def server(run: Path) -> Iterator[ReportServer]:
    with ReportServer(LivePage([run])) as running:
        thread = Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def open_page(browser: Browser, server: ReportServer) -> Iterator[OpenPage]:
    contexts = []

    def open_tab() -> Page:
        context = browser.new_context(viewport={"width": 1000, "height": 800}, bypass_csp=False)
        contexts.append(context)
        page = context.new_page()
        page.faults = []  # type: ignore[attr-defined]
        page.on("pageerror", lambda error: page.faults.append(str(error)))  # type: ignore[attr-defined]
        page.goto(server.url)
        return page

    yield open_tab
    faults = [fault for one in contexts for page in one.pages for fault in page.faults]  # type: ignore[attr-defined]
    for context in contexts:
        context.close()
    assert faults == []


def _append(run: Path, *added: EvalRecord) -> None:
    with (run / "records.jsonl").open("a") as file:
        file.writelines(json.dumps(asdict(one)) + "\n" for one in added)


def _entry(page: Page, name: str):
    return page.locator("details.entry", has=page.locator(f"summary span:text-is('{name}')"))


def _note(page: Page, name: str):
    return _entry(page, name).get_by_label("Note", exact=True)


def test_the_page_follows_the_run_and_the_list_stays_as_it_was(
    open_page: OpenPage, run: Path
) -> None:
    page = open_page()
    page.get_by_label("Verdict", exact=True).select_option("wrong")
    page.get_by_label("Sort", exact=True).select_option("tokens")
    expect(page.locator("#shown")).to_have_text("15 of 30 shown")
    _entry(page, "q9").locator("summary").first.click()
    expect(_note(page, "q9")).to_be_visible()
    _entry(page, "q9").evaluate(
        "element => window.scrollBy(0, element.getBoundingClientRect().top - 90)"
    )
    top = _entry(page, "q9").evaluate("element => element.getBoundingClientRect().top")
    _append(run, *records(40)[30:])
    expect(page.locator("#shown")).to_have_text("20 of 40 shown", timeout=60_000)
    expect(page.get_by_label("Verdict", exact=True)).to_have_value("wrong")
    expect(page.get_by_label("Sort", exact=True)).to_have_value("tokens")
    expect(page.locator("details.entry:visible").first).to_contain_text("q39")
    expect(page.locator("details.entry[open]")).to_have_count(1)
    expect(_note(page, "q9")).to_be_visible()
    after = _entry(page, "q9").evaluate("element => element.getBoundingClientRect().top")
    assert abs(after - top) < 3


def test_a_note_is_kept_shown_again_and_found(open_page: OpenPage, run: Path) -> None:
    page = open_page()
    _entry(page, "q3").locator("summary").first.click()
    _note(page, "q3").fill("The gold is wrong.\n<script>window.ran = 1</script>")
    _entry(page, "q3").get_by_role("button", name="Keep").click()
    expect(_entry(page, "q3").locator("form [role=status]")).to_contain_text("notes.jsonl")
    (note,) = read_notes(run / "notes.jsonl").values()
    assert (note.id, note.text) == ("q3", "The gold is wrong.\n<script>window.ran = 1</script>")
    expect(_entry(page, "q3").locator(".noted")).to_be_visible()
    other = open_page()
    other.get_by_label("Note", exact=True).first.select_option("yes")
    expect(other.locator("#shown")).to_have_text("1 of 30 shown")
    _entry(other, "q3").locator("summary").first.click()
    expect(_note(other, "q3")).to_have_value("The gold is wrong.\n<script>window.ran = 1</script>")
    assert other.evaluate("window.ran") is None


def test_what_is_being_typed_outlives_new_records(open_page: OpenPage, run: Path) -> None:
    page = open_page()
    _entry(page, "q1").locator("summary").first.click()
    _note(page, "q1").press_sequentially("half a thou")
    _append(run, *records(31)[30:])
    with page.expect_response(lambda reply: reply.url.endswith("/state")) as told:
        pass
    _note(page, "q1").press_sequentially("ght")
    with page.expect_response(lambda reply: reply.url.endswith("/state")):
        pass
    assert told.value.ok
    expect(_note(page, "q1")).to_have_value("half a thought")
    _note(page, "q1").blur()
    expect(page.locator("#shown")).to_have_text("31 of 31 shown", timeout=60_000)
    expect(_note(page, "q1")).to_have_value("half a thought")


def test_a_note_that_another_tab_changed_is_shown_and_not_written_over(
    open_page: OpenPage, run: Path
) -> None:
    page = open_page()
    _entry(page, "q3").locator("summary").first.click()
    keep_note(run / "notes.jsonl", ("q3", 0), "theirs", "")
    _note(page, "q3").fill("mine")
    button = _entry(page, "q3").get_by_role("button", name="Keep")
    button.click()
    said = _entry(page, "q3").locator("form [role=status]")
    expect(said).to_contain_text("meanwhile the note is “theirs”")
    expect(_note(page, "q3")).to_have_value("mine")
    assert [note.text for note in read_notes(run / "notes.jsonl").values()] == ["theirs"]
    deadline = time.monotonic() + 60
    while "kept in" not in (said.text_content() or "") and time.monotonic() < deadline:
        button.press("Enter")
    assert [note.text for note in read_notes(run / "notes.jsonl").values()] == ["mine"]


def test_a_server_that_ended_is_told_and_so_is_a_note_that_it_did_not_keep(
    browser: Browser, run: Path
) -> None:
    with ReportServer(LivePage([run])) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        page = browser.new_page()
        page.goto(server.url)
        expect(page.locator("#live")).to_have_text(LIVE)
        server.shutdown()
        thread.join()
    _entry(page, "q3").locator("summary").first.click()
    _note(page, "q3").fill("lost?")
    _entry(page, "q3").get_by_role("button", name="Keep").click()
    expect(_entry(page, "q3").locator("form [role=status]")).to_contain_text("Not kept")
    expect(page.locator("#live")).to_contain_text("has ended", timeout=60_000)
    page.close()


def test_the_live_page_has_no_serious_violation(browser: Browser, server: ReportServer) -> None:
    page = browser.new_page(bypass_csp=True)  # axe is a script of ours
    page.goto(server.url)
    _entry(page, "q3").locator("summary").first.click()
    expect(_note(page, "q3")).to_be_visible()
    page.add_script_tag(path=AXE)
    found = page.evaluate("axe.run()")["violations"]
    assert [one for one in found if one["impact"] in {"serious", "critical"}] == []
    page.close()
