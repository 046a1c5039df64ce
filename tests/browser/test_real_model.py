"""The real local model answers in the panel."""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from dm_jupyter.models.local.cache import is_present
from dm_jupyter.models.local.catalogue import DEFAULT_MODEL, resolve
from examples.questions import DEMO
from tests.browser.lab import LAB_OPTIONS, Lab
from tests.dm_jupyter.server.jupyter import JupyterServer

pytestmark = [
    pytest.mark.browser,
    pytest.mark.model,
    pytest.mark.skipif(
        not is_present(resolve(DEFAULT_MODEL)), reason="skipped: run `make model` first"
    ),
]


QUESTION = DEMO[0]


@pytest.fixture
def lab(
    open_lab: Callable[..., Lab], folder: str, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Lab]:
    """A notebook beside the question's file, on a server that asks the local model."""
    model = getattr(request, "param", "local")
    with JupyterServer(tmp_path, "", model=model, app="lab", options=LAB_OPTIONS) as server:
        (server.root / folder).mkdir()
        shutil.copy(QUESTION.path, server.root / folder)
        yield open_lab(server=server)


def test_the_local_model_answers_in_the_notebook_and_tries_harder(lab: Lab) -> None:
    lab.ask(QUESTION.text, QUESTION.file)
    expect_right(lab)
    document = lab.document()
    assert document.cells[0].source == "mine = 1"
    assert any(cell.get("execution_count") == 1 for cell in document.cells)

    lab.run.get_by_test_id("dm-try-harder").click()
    expect(lab.questions).to_contain_text("Asks twice in fresh kernels, and up to 3 times")
    lab.questions.locator(".jp-mod-accept").click()
    expect(lab.runs).to_have_count(2)
    expect_right(lab)
    expect(lab.run.get_by_test_id("dm-agreeing")).to_have_text(
        re.compile(r"[23] (of 3 attempts|independent programs) agree")
    )


@pytest.mark.parametrize("lab", ["qwen2.5-coder-1.5b"], indirect=True)
def test_the_model_without_our_adapter_answers_too(lab: Lab) -> None:
    lab.ask(QUESTION.text, QUESTION.file)
    expect_right(lab)
    expect(lab.panel.get_by_test_id("dm-model")).to_have_value("qwen2.5-coder-1.5b")


def expect_right(lab: Lab) -> None:
    lab.expect_run("answered", timeout_s=900)
    answer = lab.answer.inner_text()
    assert not QUESTION.missing(answer), answer
