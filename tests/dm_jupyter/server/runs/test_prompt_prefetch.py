"""Files that a model on this machine reads before the question comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from dm_jupyter.config import ModelChoice
from dm_jupyter.core.dialects import dialect_named
from dm_jupyter.core.errors import LocalModelError
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Completion, DataContext, Trajectory
from dm_jupyter.data.data_context import build_data_context
from dm_jupyter.data.profile_reader import ProfileReader
from dm_jupyter.models.protocols import SampleRequest, Urgency
from dm_jupyter.server.files.data_files import DataFiles
from dm_jupyter.server.kernels.registry import KernelRegistry, NoKernelError
from dm_jupyter.server.models.model_pool import ModelPool
from dm_jupyter.server.protocol import Ask, ReadAhead
from dm_jupyter.server.runs.run_preparer import PromptPrefetch
from tests.waiting import PATIENCE_S, until

NOTEBOOK = "book.ipynb"


class Reader:
    """A model that notes what it is sent, and reads on until it may stop."""

    name = "reader"
    is_served = True

    def __init__(self) -> None:
        self.requests: list[SampleRequest] = []
        self.cancelled = 0
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        self.requests.append(request)
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return Completion(".", "", 1, 1, 0.0)


class OneKernel:
    """A notebook's kernel that works beside the files: what the registry keeps of it."""

    def __init__(self) -> None:
        self.directory = self.data = self

    async def kernel_of(self, path: str) -> str:
        if path != NOTEBOOK:
            raise NoKernelError(path)
        return "kernel"

    async def data_context_of(
        self, kernel_id: str, files: Iterable[Path], folder: Path
    ) -> tuple[dict[str, Path], DataContext]:
        names = {file.relative_to(folder).as_posix(): file for file in files}
        async with ProfileReader() as reader:
            return names, await build_data_context(names, reader)


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Reader:
    for name in ("one.csv", "two.csv"):
        (tmp_path / name).write_text("city,inhabitants\nBern,134\nBasel,173\n")
    reader = Reader()

    @asynccontextmanager
    async def opened(choice: ModelChoice, on_progress: object) -> AsyncIterator[Reader]:
        if choice.model == "missing":
            raise LocalModelError("the model is not here")
        yield reader

    monkeypatch.setattr("dm_jupyter.server.models.model_pool.open_policy", opened)
    return reader


@pytest.fixture
def models() -> ModelPool:
    return ModelPool(ModelChoice("local"))


@pytest.fixture
def ahead(models: ModelPool, tmp_path: Path) -> PromptPrefetch:
    return PromptPrefetch(models, cast("KernelRegistry", OneKernel()), DataFiles(tmp_path))


def chosen(*files: str, path: str = NOTEBOOK, model: str = "") -> ReadAhead:
    return ReadAhead(path, files, model)


def question(*files: str) -> Ask:
    return Ask("request", NOTEBOOK, "How many live in Bern?", files)


async def read_by(reader: Reader, count: int) -> None:
    """Waits until the model has been sent so many requests."""
    await until(lambda: len(reader.requests) >= count, f"{count} requests")


async def ended(ahead: PromptPrefetch) -> None:
    """Waits until the reading has ended, if there is one."""
    if ahead._task is not None:
        await asyncio.wait([ahead._task], timeout=PATIENCE_S)
        assert ahead._task.done()


async def test_the_conversation_begins_with_what_was_read(
    ahead: PromptPrefetch, reader: Reader, tmp_path: Path
) -> None:
    ahead.begin(chosen("one.csv"))
    await ended(ahead)
    (request,) = reader.requests
    assert (request.max_tokens, request.urgency) == (1, Urgency.BACKGROUND)
    place = tmp_path / "one.csv"
    task = Task("1", "How many live in Bern?", (place,))
    async with ProfileReader() as files:
        data_context = await build_data_context({"one.csv": place}, files)
    asked = Trajectory(task, "markdown", data_context)
    system, first = dialect_named("markdown").messages(asked)
    assert request.messages[0] == system
    alike = request.messages[1].content.rstrip()
    assert first.content.startswith(alike)
    assert "inhabitants" in alike


async def test_the_same_files_are_read_once(ahead: PromptPrefetch, reader: Reader) -> None:
    for _ in range(3):
        ahead.begin(chosen("one.csv"))
    await ended(ahead)
    once = ahead._task
    ahead.begin(chosen("one.csv"))
    assert ahead._task is once  # no other reading has begun
    assert len(reader.requests) == 1


async def test_after_a_question_they_are_read_again(ahead: PromptPrefetch, reader: Reader) -> None:
    ahead.begin(chosen("one.csv"))
    await read_by(reader, 1)
    ahead.cancel_prefetch(question("one.csv"))
    ahead.begin(chosen("one.csv"))
    await read_by(reader, 2)
    assert reader.requests[0] == reader.requests[1]


@pytest.mark.slow
async def test_other_files_end_the_reading(ahead: PromptPrefetch, reader: Reader) -> None:
    reader.may_end.clear()
    ahead.begin(chosen("one.csv"))
    await read_by(reader, 1)
    ahead.begin(chosen("two.csv"))
    await read_by(reader, 2)
    await until(lambda: reader.cancelled == 1, "the first reading has ended")


@pytest.mark.parametrize(("file", "cancelled"), [("one.csv", 0), ("two.csv", 1)])
async def test_a_question_waits_for_a_reading_that_serves_it(
    ahead: PromptPrefetch, reader: Reader, file: str, cancelled: int
) -> None:
    reader.may_end.clear()
    ahead.begin(chosen("one.csv"))
    await read_by(reader, 1)
    reading = ahead._task
    assert reading is not None
    ahead.cancel_prefetch(question(file))
    assert reading.cancelling() == cancelled
    reader.may_end.set()
    await asyncio.wait([reading], timeout=PATIENCE_S)
    assert reader.cancelled == cancelled


async def test_nothing_goes_to_an_endpoint_before_it_is_sent(
    reader: Reader, tmp_path: Path
) -> None:
    hosted = ModelPool(ModelChoice("big", "https://models.example/v1"))
    ahead = PromptPrefetch(hosted, cast("KernelRegistry", OneKernel()), DataFiles(tmp_path))
    ahead.begin(chosen("one.csv"))
    assert ahead._task is None
    assert not reader.requests


@pytest.mark.parametrize(
    "message",
    [
        chosen(),
        chosen("gone.csv"),
        chosen("../../etc/passwd"),
        chosen("one.csv", path="other.ipynb"),
        chosen("one.csv", model="missing"),
    ],
)
async def test_what_cannot_be_read_is_left_to_the_question(
    ahead: PromptPrefetch,
    reader: Reader,
    message: ReadAhead,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ahead.begin(message)
    await ended(ahead)
    ahead.end()
    assert not reader.requests
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
