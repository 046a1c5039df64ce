"""Questions one after another: what is new comes below what it may build on."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenLab
from tests.browser.lab import Lab, until

pytestmark = pytest.mark.browser

FIRST = "total = 40\nprint('total', total)\n```"
SECOND = "print('half', total / 2)\n```"
THIRD = "print('third', total / 3)\n```"


def _sources(lab: Lab) -> list[str]:
    return ["".join(cell["source"]) for cell in lab.open_document()["cells"]]


def _place(lab: Lab, text: str) -> int:
    return next(place for place, source in enumerate(_sources(lab)) if text in source)


def _ask(lab: Lab, say, cell: str, question: str) -> None:  # type: ignore[no-untyped-def]
    say(cell, "It is done.")
    lab.ask(question)
    lab.expect_run("answered")


def _restart_and_run_all(lab: Lab) -> None:
    lab.page.evaluate("void jupyterapp.commands.execute('notebook:restart-run-all')")
    lab.dialog.get_by_role("button", name="Confirm Kernel Restart").click()
    code = [cell for cell in lab.open_document()["cells"] if cell["cell_type"] == "code"]

    def has_run() -> bool:
        counts = [
            cell.get("execution_count")
            for cell in lab.open_document()["cells"]
            if cell["cell_type"] == "code"
        ]
        return counts == list(range(1, len(code) + 1))

    until(lab.page, has_run, "all cells run in their order", 60)
    outputs = [one for cell in lab.open_document()["cells"] for one in cell.get("outputs", ())]
    assert [one["ename"] for one in outputs if one["output_type"] == "error"] == []


def test_a_follow_up_comes_below_the_run_before_it(lab: Lab, say) -> None:
    _ask(lab, say, FIRST, "What is the sum of sales?")
    _ask(lab, say, SECOND, "And the half of it?")
    _ask(lab, say, THIRD, "And a third of it?")
    expect(lab.cell("third").first).to_be_visible()
    places = [_place(lab, text) for text in ("mine", "total = 40", "half", "third", "other = 2")]
    assert places == sorted(places)
    assert places[0] == 0
    assert places[-1] == len(_sources(lab)) - 1
    _restart_and_run_all(lab)


def test_a_follow_up_comes_below_a_cell_that_the_person_has_selected(lab: Lab, say) -> None:
    _ask(lab, say, FIRST, "What is the sum of sales?")
    lab.cell("other = 2").locator(".cm-content").click()
    _ask(lab, say, SECOND, "And the half of it?")
    places = [_place(lab, text) for text in ("mine", "total = 40", "other = 2", "half")]
    assert places == sorted(places)
    # Back at the first cell: not between it and the run that was asked from it.
    lab.cell("mine = 1").locator(".cm-content").click()
    _ask(lab, say, THIRD, "And a third of it?")
    places = [_place(lab, text) for text in ("mine", "total = 40", "third", "other = 2", "half")]
    assert places == sorted(places)
    _restart_and_run_all(lab)


def test_after_a_reload_a_follow_up_comes_below_the_last_run(lab: Lab, say) -> None:
    lab.cell("other = 2").locator(".cm-content").click()
    _ask(lab, say, FIRST, "What is the sum of sales?")
    lab.save()
    lab.reload()
    _ask(lab, say, SECOND, "And the half of it?")
    places = [_place(lab, text) for text in ("mine", "other = 2", "total = 40", "half")]
    assert places == sorted(places)


def test_cells_that_ask_have_their_runs_below_them(open_lab: OpenLab, say) -> None:
    first, second = "%%analyze sales.csv\nThe sum?", "%%analyze sales.csv\nThe half?"
    lab = open_lab(sources=("%load_ext dm_jupyter", first, second, "other = 2"))
    lab.run_cell(lab.cells.first)
    expect(lab.prompt("load_ext")).to_have_text("[1]:")
    for count, (cell, asking) in enumerate(
        ((FIRST, first), (SECOND, second), (THIRD, first)), start=1
    ):
        say(cell, "It is done.")
        lab.run_cell(lab.cell(asking.splitlines()[1]).first)
        expect(lab.runs).to_have_count(count)
        lab.expect_run("answered")
    assert "reaches no model" not in str(lab.open_document())
    texts = (first, "total = 40", "third", second, "half", "other = 2")
    places = [_place(lab, text) for text in texts]
    assert places == sorted(places)
