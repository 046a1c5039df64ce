"""A run that can't be kept at its start: it is over for every tab, and holds nothing."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dm_jupyter.config import ModelChoice
from dm_jupyter.server.background import Tasks
from dm_jupyter.server.history.run_history import Redaction, RunHistory
from dm_jupyter.server.models.model_pool import ModelPool
from dm_jupyter.server.notebooks.live_notebook import LiveNotebook
from dm_jupyter.server.notebooks.open_notebooks import OpenNotebooks, Tab
from dm_jupyter.server.protocol import Ask, Attach, Attached, RunClosed, RunOpened, ServerMessage
from dm_jupyter.server.runs.active_runs import ActiveRuns
from dm_jupyter.server.runs.run import RunContext
from dm_jupyter.server.runs.run_preparer import RefusedError

NOTEBOOK = "n.ipynb"


@contextmanager
def _full_disk() -> Iterator[None]:
    """Lets no file grow."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


@contextmanager
def _summaries_refused(history: RunHistory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets the history write everything but summaries."""

    def keep(_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(history, "keep", keep)
        yield


def _runs(folder: Path, history: RunHistory, open_notebooks: OpenNotebooks) -> ActiveRuns:
    class Preparation:
        async def context_for(self, ask: Ask, _: object) -> tuple[Ask, RunContext]:
            return ask, RunContext("kernel", is_restricted=True, notebook_folder=folder)

    parts: Any = Preparation()
    kernels: Any = SimpleNamespace(directory=SimpleNamespace(process_of=str))
    return ActiveRuns(parts, open_notebooks, kernels, ModelPool(ModelChoice()), history, Tasks())


@pytest.mark.parametrize("what", ["journal", "summary"])
async def test_a_run_that_can_not_be_kept_is_over_for_every_tab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    history = RunHistory(tmp_path / "runs", tmp_path, Redaction((), ()))
    open_notebooks = OpenNotebooks(SimpleNamespace(root_dir=str(tmp_path)), reconnect_grace_s=0.01)
    runs = _runs(tmp_path, history, open_notebooks)
    heard: list[ServerMessage] = []
    open_notebooks.attach(Attach(NOTEBOOK, "tab"), Tab("tab", heard.append))
    broken = _full_disk() if what == "journal" else _summaries_refused(history, monkeypatch)
    with broken, pytest.raises(RefusedError, match="the run can't be kept"):
        await runs.ask(Ask("r", NOTEBOOK, "Why?"))
    assert [type(message) for message in heard] == [Attached, RunOpened, RunClosed]
    closed = heard[-1]
    assert isinstance(closed, RunClosed)
    assert closed.stop == "fault"
    assert closed.detail.startswith("the run can't be kept")
    assert len(runs) == 0
    assert not history.is_active(closed.run_id)
    runs.refuse_busy(NOTEBOOK)
    later: list[ServerMessage] = []
    open_notebooks.attach(Attach(NOTEBOOK, "later"), Tab("later", later.append))
    assert [type(message) for message in later] == [Attached]


async def test_a_run_whose_end_fails_ends_for_every_tab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def close(_: LiveNotebook) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(LiveNotebook, "close", close)
    history = RunHistory(tmp_path / "runs", tmp_path, Redaction((), ()))
    open_notebooks = OpenNotebooks(SimpleNamespace(root_dir=str(tmp_path)), reconnect_grace_s=0.01)
    runs = _runs(tmp_path, history, open_notebooks)
    heard: list[ServerMessage] = []
    open_notebooks.attach(Attach(NOTEBOOK, "tab"), Tab("tab", heard.append))
    run = await runs.ask(Ask("r", NOTEBOOK, "Why?"))
    assert run.task is not None
    await asyncio.wait([run.task])
    assert run.task.exception() is None
    assert isinstance(heard[-1], RunClosed)
    assert heard[-1].stop == "fault"
