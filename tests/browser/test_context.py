"""The model is told of the open notebook, and the person can look at what it was told."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.lab import Lab
from tests.endpoint import ScriptedEndpoint

pytestmark = pytest.mark.browser

SOURCE = (
    "import pandas as pd\ncosts = pd.DataFrame({'month': [1, 2], 'cost': [5, 7]})\ncosts.cost.sum()"
)

DRAW = """
from IPython.display import display
bars = {"type": "bar", "x": ["north", "south"], "y": [7, 5]}
display({"application/vnd.plotly.v1+json": {"data": [bars], "layout": {}}}, raw=True)
""".strip()


def test_the_selected_cell_and_the_variables_are_told_and_shown(
    open_lab: Callable[..., Lab], endpoint: ScriptedEndpoint, say: Callable[..., None]
) -> None:
    lab = open_lab(sources=(SOURCE, "other = 2"))
    lab.run_cell(lab.cells.first)
    expect(lab.cells.first).to_contain_text("12")
    say("print(costs.cost.sum())\n```", "It is 12.")
    endpoint.bodies.clear()
    lab.composer.fill("Where does this number come from?")
    lab.composer.press("Enter")
    lab.expect_run("answered")
    told = json.dumps(endpoint.bodies[0]["messages"], ensure_ascii=False)
    assert "The selected cell:\\n[1]\\nimport pandas" in told
    assert "showed:\\nnp.int64(12)" in told
    assert "other = 2" in told

    lab.page.get_by_text("What the model saw").click()
    shown = lab.button("told")
    expect(shown).to_contain_text("costs.cost.sum()")
    expect(shown).to_contain_text("Files near by")
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        lab.use_theme(theme)
        assert lab.violations() == []


def test_what_goes_to_an_endpoint_is_said_before_and_can_be_left_out(
    open_lab: Callable[..., Lab], endpoint: ScriptedEndpoint, say: Callable[..., None]
) -> None:
    lab = open_lab(sources=(SOURCE, "other = 2", "third = 'not for everybody'"))
    lab.run_cell(lab.cells.first)
    expect(lab.cells.first).to_contain_text("12")
    say("print(costs.cost.sum())\n```", "It is 12.")
    endpoint.bodies.clear()
    lab.composer.fill("Where does this number come from?")
    line = lab.button("leaving")
    says = "the question, the selected cell, 2 cells, 1 variable, 1 file name"
    expect(line).to_contain_text(f"Sends to scripted (endpoint): {says}")
    assert endpoint.bodies == []
    line.locator("summary").click()
    expect(line).to_contain_text("third = 'not for everybody'")
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        lab.use_theme(theme)
        assert lab.violations() == []
    lab.button("tell-cells").uncheck()
    expect(line).not_to_contain_text("third = 'not for everybody'")
    lab.composer.press("Enter")
    lab.expect_run("answered")
    told = json.dumps(endpoint.bodies[0]["messages"], ensure_ascii=False)
    assert "not for everybody" not in told
    assert "The selected cell" in told


def test_a_figure_as_json_is_told_in_words_and_a_switch_reaches_the_cells_questions(
    open_lab: Callable[..., Lab], endpoint: ScriptedEndpoint, say: Callable[..., None]
) -> None:
    magic = "%%analyze sales.csv --into cells\nWhat is the sum?"
    lab = open_lab(sources=(DRAW, "%load_ext dm_jupyter", magic))
    for place in range(2):
        lab.run_cell(lab.cells.nth(place))
    lab.wait_until_idle()
    lab.cells.first.click()
    lab.composer.fill("What does it show?")
    line = lab.button("leaving")
    line.locator("summary").click()
    expect(line).to_contain_text("bars of 2: lowest 5 at south, highest 7 at north")
    for part in ("cells", "earlier", "files"):
        lab.button(f"tell-{part}").uncheck()
    say("print(12)\n```", "It is 12.")
    endpoint.bodies.clear()
    lab.run_cell(lab.cells.nth(2))
    lab.expect_run("answered")
    lab.page.get_by_text("What the model saw").click()
    expect(lab.button("told")).to_contain_text("The data")
    expect(lab.button("told")).not_to_contain_text("display(")
    assert "Files near by" not in lab.button("told").inner_text()
