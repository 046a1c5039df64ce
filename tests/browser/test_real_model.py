"""The real local model answers in the panel."""

import shutil
from pathlib import Path

import pytest

from dm_jupyter.agent.local_model.cache import is_present
from dm_jupyter.agent.local_model.catalogue import DEFAULT_MODEL, resolve
from examples.questions import DEMO
from tests.browser.lab import LAB_OPTIONS
from tests.server.jupyter import JupyterServer

pytestmark = [
    pytest.mark.browser,
    pytest.mark.model,
    pytest.mark.skipif(
        not is_present(resolve(DEFAULT_MODEL)), reason="skipped: run `make model` first"
    ),
]


def test_the_local_model_answers_in_the_notebook(open_lab, folder: str, tmp_path: Path) -> None:
    question = DEMO[0]
    with JupyterServer(tmp_path, "", model="local", app="lab", options=LAB_OPTIONS) as server:
        (server.root / folder).mkdir()
        shutil.copy(question.path, server.root / folder)
        lab = open_lab(server=server)
        lab.ask(question.text, question.file)
        lab.expect_run("answered", timeout_s=900)
        answer = lab.answer.inner_text()
        assert not question.missing(answer), answer
        document = lab.document()
    assert document.cells[0].source == "mine = 1"
    assert any(cell.get("execution_count") == 1 for cell in document.cells)
