"""Models and keys: an endpoint is chosen, listed, tested, connected and asked, by the keyboard."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from playwright.sync_api import BrowserContext, expect

from dm_jupyter.models.http_policy import TOOL_PROBE
from tests.browser.conftest import TABLE
from tests.browser.lab import LAB_OPTIONS, Lab
from tests.dm_jupyter.models.families import family
from tests.dm_jupyter.models.stand_in import ScriptedModelRequest, ScriptedTurn, StandIn
from tests.dm_jupyter.server.jupyter import TOKEN, JupyterServer

pytestmark = pytest.mark.browser

KEY = "key-0123456789-of-a-person"
FAMILY = family("groq")
THOUGHT = "The question wants one sum."


def model(request: ScriptedModelRequest) -> ScriptedTurn:
    """A model that thinks and calls tools."""
    if request.tools == (TOOL_PROBE.name,):
        return ScriptedTurn("", tool_calls=((TOOL_PROBE.name, "{}"),))
    if not request.tools:
        return ScriptedTurn("OK")
    last = request.messages[-1]
    name, arguments = "answer", {"text": "The sales add up to **40**."}
    if last["role"] != "tool":
        code = "import pandas as pd\nprint(pd.read_csv('sales.csv').sales.sum())"
        name, arguments = "run_python", {"code": code}
    return ScriptedTurn("I add the sales up.", THOUGHT, ((name, json.dumps(arguments)),))


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    with StandIn(FAMILY, model) as running:
        yield running


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, context: BrowserContext) -> Iterator[Lab]:
    """JupyterLab without a model, the panel open."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with JupyterServer(tmp_path, "", model="local", app="lab", options=LAB_OPTIONS) as server:
        (server.root / "sales.csv").write_text(TABLE)
        lab = Lab(context.new_page(), server, "")
        lab.page.goto(f"{server.url}/lab/workspaces/{uuid4().hex}?token={TOKEN}&reset")
        expect(lab.page.locator("#jupyterlab-splash")).to_have_count(0)
        lab.page.locator('.lm-TabBar-tab[data-id="dm-jupyter-panel"]').click()
        expect(lab.button("endpoint")).to_be_visible()
        yield lab
        lab.page.screenshot(path=tmp_path / "page.png")
    assert lab.faults == []


def test_an_endpoint_is_set_up_by_the_keyboard_and_answers(lab: Lab, stand_in: StandIn) -> None:
    keyboard = lab.page.keyboard
    preset = lab.button("endpoint-preset")
    preset.select_option("groq")
    expect(lab.button("endpoint-url")).to_have_value("https://api.groq.com/openai/v1")
    preset.select_option("azure")
    expect(lab.button("blank")).to_contain_text("RESOURCE")
    lab.button("endpoint-url").fill(stand_in.base_url)
    expect(preset).to_have_value("")
    lab.button("endpoint-key").focus()
    keyboard.type(KEY)
    lab.page.get_by_role("button", name="List models").press("Enter")
    expect(lab.button("endpoint-models").locator("option")).to_have_count(1)
    lab.button("endpoint-model").focus()
    keyboard.type(FAMILY.model)
    lab.page.get_by_role("button", name="Test", exact=True).press("Enter")
    row = lab.button("abilities").locator("tr", has_text="tool calls")
    expect(row).to_contain_text("yes")
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        lab.use_theme(theme)
        assert lab.violations() == []
    keyboard.press("Tab")
    lab.page.get_by_role("button", name="Connect").press("Enter")
    expect(lab.button("setup")).to_have_count(0)

    lab.composer.fill("What is the sum of sales in @sales.csv ?")
    lab.composer.press("Enter")
    lab.expect_run("answered")
    expect(lab.answer.locator("strong")).to_have_text("40")
    lab.steps.first.get_by_role("button").first.click()
    thoughts = lab.steps.first.locator("details")
    expect(thoughts).not_to_have_attribute("open", "")
    thoughts.locator("summary").click()
    expect(thoughts).to_contain_text(THOUGHT)
    assert lab.violations() == []
    assert THOUGHT not in lab.page.locator(".jp-NotebookPanel").inner_text()


def test_the_endpoint_can_be_changed_and_forgotten_later(lab: Lab, stand_in: StandIn) -> None:
    for name, text in (("url", stand_in.base_url), ("key", KEY), ("model", FAMILY.model)):
        lab.button(f"endpoint-{name}").fill(text)
    lab.page.get_by_role("button", name="Connect").click()
    expect(lab.button("setup")).to_have_count(0)
    gear = lab.page.get_by_role("button", name="Models and keys")
    gear.press("Enter")
    form = lab.button("models")
    expect(lab.button("kept-endpoint")).to_contain_text(FAMILY.model)
    expect(lab.button("kept-endpoint")).to_contain_text("In use, with a key")
    expect(lab.button("endpoint-key")).to_have_value("")
    assert KEY not in lab.page.content()
    assert lab.violations() == []
    lab.button("models-close").press("Enter")
    expect(form).to_have_count(0)
    expect(gear).to_be_focused()
    gear.press("Enter")
    lab.button("kept-forget").press("Enter")
    expect(lab.page.get_by_text("Download (1.1 GB)")).to_be_visible()


def test_of_two_kept_endpoints_the_chosen_one_answers_and_the_run_says_which(
    lab: Lab, stand_in: StandIn
) -> None:
    question = "What is the sum of sales in @sales.csv ?"
    gear = lab.page.get_by_role("button", name="Models and keys")
    picker = lab.button("model")

    def ask(number: int, host: str) -> None:
        lab.composer.fill(question)
        lab.composer.press("Enter")
        expect(lab.page.get_by_test_id("dm-run")).to_have_count(number)
        lab.expect_run("answered")
        answered_by = re.compile(re.escape(f"{FAMILY.model} at {host}"))
        expect(lab.button("meter").last).to_have_attribute("title", answered_by)

    with StandIn(FAMILY, model) as second:
        hosts = [one.base_url.split("/")[2] for one in (stand_in, second)]
        _connect(lab, stand_in)
        expect(lab.button("setup")).to_have_count(0)
        gear.press("Enter")
        _connect(lab, second)
        expect(lab.button("endpoint-said")).to_contain_text("Connected")
        uses = lab.button("kept-use")
        expect(uses).to_have_count(2)
        expect(uses.nth(1)).to_have_attribute("aria-pressed", "true")
        for theme in ("JupyterLab Dark", "JupyterLab Light"):
            lab.use_theme(theme)
            assert lab.violations() == []
        labels = [f"{FAMILY.model} ({host})" for host in hosts]
        shown = picker.locator("option").all_inner_texts()
        assert shown[:2] == labels[::-1]
        lab.button("models-close").press("Enter")
        ask(1, hosts[1])

        # By the keyboard: the other one answers from now on.
        gear.press("Enter")
        expect(uses).to_have_count(2)
        lab.page.keyboard.press("Tab")
        expect(lab.button("models-close")).to_be_focused()
        lab.page.keyboard.press("Tab")
        expect(uses.first).to_be_focused()
        lab.page.keyboard.press("Enter")
        expect(uses.first).to_have_attribute("aria-pressed", "true")
        expect(uses.first).to_be_focused()
        expect(lab.button("kept-said")).to_contain_text("answers from now on")
        lab.button("models-close").press("Enter")
        asked = len(second.bodies)
        ask(2, hosts[0])
        assert len(second.bodies) == asked

        # In the picker the second one, for the next question.
        picker.select_option(label=labels[1])
        ask(3, hosts[1])

        gear.press("Enter")
        lab.page.get_by_role("button", name=f"Forget {FAMILY.model} at {second.base_url}").press(
            "Enter"
        )
        expect(uses).to_have_count(1)
        expect(picker.locator("option", has_text=hosts[1])).to_have_count(0)
        expect(picker.locator("option").first).to_have_text(labels[0])
        assert KEY not in lab.page.content()


def _connect(lab: Lab, stand_in: StandIn) -> None:
    for name, text in (("url", stand_in.base_url), ("key", KEY), ("model", FAMILY.model)):
        lab.button(f"endpoint-{name}").fill(text)
    lab.page.get_by_role("button", name="Connect").press("Enter")
