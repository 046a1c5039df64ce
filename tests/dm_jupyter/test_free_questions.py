"""The real local model on questions people ask; each answer is checked against hand-made values."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from dm_jupyter.analysis import Analysis, AnalysisSettings, analyze
from dm_jupyter.config import ModelChoice
from dm_jupyter.core.task import Task
from dm_jupyter.models.local.cache import is_present
from dm_jupyter.models.local.catalogue import DEFAULT_MODEL, resolve
from dm_jupyter.models.opening import open_policy
from examples.questions import QUESTIONS, FreeQuestion

pytestmark = [
    pytest.mark.model,
    pytest.mark.skipif(
        not is_present(resolve(DEFAULT_MODEL)), reason="skipped: run `make model` first"
    ),
]


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


async def _answer(question: FreeQuestion, folder: Path) -> Analysis:
    data = Path(shutil.copy(question.path, folder))
    task = Task(data.stem, question.text, (data,))
    settings = AnalysisSettings(notebook=folder / "answer.ipynb")
    async with open_policy(ModelChoice()) as policy:
        return await analyze(task, policy, settings, lambda _: None)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.text[:40])
def test_a_free_question_is_answered_right(
    question: FreeQuestion, tmp_path: Path, loop: asyncio.Runner
) -> None:
    analysis = loop.run(_answer(question, tmp_path))
    answer = analysis.trajectory.answer or ""
    assert question.missing(answer) == []
    assert analysis.trajectory.unsupported == ()
    nbformat.validate(nbformat.read(tmp_path / "answer.ipynb", as_version=4))
