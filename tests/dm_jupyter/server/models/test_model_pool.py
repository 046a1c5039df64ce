"""Models that are closing, and local ones whose server has died."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from dm_jupyter.config import ModelChoice
from dm_jupyter.core.errors import EndpointUnreachableError, StreamBrokenError
from dm_jupyter.core.trajectory import DataContext
from dm_jupyter.models.local import catalogue
from dm_jupyter.models.local.adapters import own_adapter
from dm_jupyter.models.local.catalogue import name_with_adapter
from dm_jupyter.server.history.journal import Journal
from dm_jupyter.server.kernels.registry import KernelRegistry
from dm_jupyter.server.models.model_pool import ModelPool
from dm_jupyter.server.protocol import Ask
from dm_jupyter.server.runs.run import Run, RunContext
from kernel_sandbox.confine.layers import Containment
from tests.dm_jupyter.models.local.gguf_files import (
    adapter_tensors,
    model_tensors,
    write_adapter_file,
    write_model,
)
from tests.waiting import PATIENCE_S

LOCAL = ModelChoice("local")
HOSTED = ModelChoice("big", "https://models.example/v1")


class Model:
    """A model whose server has died."""

    name = "gone"
    is_closed = False
    is_served = True

    async def sample(self, *_: object) -> Any:
        raise EndpointUnreachableError("nothing answers")


class Opened:
    """Stands for `open_policy`: notes what it opened, and closes when it may."""

    def __init__(self) -> None:
        self.models: list[Model] = []
        self.is_closing = asyncio.Event()
        self.may_close = asyncio.Event()
        self.may_close.set()

    @asynccontextmanager
    async def __call__(self, *_: object) -> AsyncIterator[Model]:
        model = Model()
        self.models.append(model)
        yield model
        model.is_closed = True
        self.is_closing.set()
        await self.may_close.wait()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    opened = Opened()
    monkeypatch.setattr("dm_jupyter.server.models.model_pool.open_policy", opened)
    return opened


@pytest.mark.parametrize(
    ("default", "name", "chosen"),
    [
        (LOCAL, "", LOCAL),
        (LOCAL, "smollm2-135m", ModelChoice("smollm2-135m")),
        (HOSTED, "big", HOSTED),
        (HOSTED, "local", LOCAL),
        (HOSTED, "mine.gguf", ModelChoice("mine.gguf")),
        (HOSTED, "bigger", ModelChoice("bigger", HOSTED.base_url)),
    ],
)
def test_a_name_stands_for_a_local_model_or_one_at_the_servers_endpoint(
    default: ModelChoice, name: str, chosen: ModelChoice
) -> None:
    pool = ModelPool(default)
    assert pool.choice(name) == chosen
    if name in ("bigger", "mine.gguf"):
        with pytest.raises(ValueError, match=f"a cell can't choose '{name}'"):
            pool.refuse_unlisted(name)
    else:
        pool.refuse_unlisted(name)


NEAR = ModelChoice("big", "http://127.0.0.1:8000/v1", "key")
SAME = ModelChoice("big", "https://bob:s3cret@models.example/v2?key=s3cret", "key")
OTHER = ModelChoice("smollm2-135m", "https://other.example/v1")


@pytest.mark.parametrize("default", [LOCAL, HOSTED, OTHER])
def test_every_kept_endpoint_has_a_name_of_its_own(default: ModelChoice) -> None:
    pool = ModelPool(default)
    pool.kept = (HOSTED, NEAR, SAME, OTHER)
    listed = pool.listed()
    first = pool.choice(listed[0]["name"])
    assert first.is_local if default is LOCAL else first == default
    hosted = [one for one in listed if not one["is_local"]]
    assert {pool.choice(one["name"]) for one in hosted} == set(pool.kept)
    assert {one["name"]: one["label"] for one in hosted} == {
        "big @ models.example/v1": "big (models.example/v1)",
        "big @ models.example/v2": "big (models.example/v2)",
        "big @ http://127.0.0.1:8000/v1": "big (127.0.0.1:8000)",
        "smollm2-135m @ other.example/v1": "smollm2-135m (other.example)",
    }
    assert "s3cret" not in str(listed)
    for one in listed:
        if one["is_local"]:
            assert pool.choice(one["name"]).is_local


def test_what_is_no_kept_endpoint_means_what_it_did() -> None:
    pool = ModelPool(HOSTED)
    pool.kept = (HOSTED, NEAR, OTHER, ModelChoice("one", "https://other.example/v1"))
    assert pool.choice("big") == HOSTED
    assert pool.choice("one") == pool.kept[-1]
    assert pool.choice("bigger") == ModelChoice("bigger", HOSTED.base_url)
    assert pool.choice("smollm2-135m") == ModelChoice("smollm2-135m")
    forgotten = pool.choice("big @ forgotten.example/v1")
    assert forgotten.is_local
    assert "big @ forgotten.example" in pool.obstacle(forgotten.model)


def test_a_cell_can_not_choose_another_kept_endpoint() -> None:
    pool = ModelPool(HOSTED)
    pool.kept = (HOSTED, NEAR, ModelChoice("one", "https://other.example/v1"))
    pool.refuse_unlisted("big @ models.example/v1")
    pool.refuse_unlisted("big")
    for name in ("big @ http://127.0.0.1:8000/v1", "one", "one @ other.example/v1"):
        with pytest.raises(ValueError, match="a cell can't choose"):
            pool.refuse_unlisted(name)
    pool.default = LOCAL
    with pytest.raises(ValueError, match="a cell can't choose"):
        pool.refuse_unlisted("big @ models.example/v1")


async def test_a_run_records_which_endpoint_answered(opened: Opened, tmp_path: Path) -> None:
    pool = ModelPool(LOCAL)
    pool.kept = (HOSTED, SAME)
    kernels = cast("KernelRegistry", Folder(tmp_path))
    context = RunContext("kernel", is_restricted=True, notebook_folder=tmp_path)
    told = []
    for number, name in enumerate(("local", "big @ models.example/v2")):
        folder = tmp_path / str(number)
        folder.mkdir()
        journal = Journal(folder)
        run = Run(Ask("r", "n.ipynb", "Why?", model=name), context, journal, kernels, pool, _nobody)
        pool.default = HOSTED  # chosen while the run is being prepared: it stays with its own
        await run.start()
        assert run.trajectory is not None
        opening = journal.to_json()[0]
        assert run.summary.endpoint == run.trajectory.endpoint == opening["endpoint"]
        told.append((run.summary.endpoint, run._choice))
    assert told == [("", ModelChoice("local")), ("https://models.example/v2", SAME)]
    await pool.close()


def _nobody(_: object) -> None:
    return None


async def _used(pool: ModelPool, choice: ModelChoice, error: Exception | None = None) -> Any:
    async with pool.use(choice, lambda _: None) as model:
        assert not cast("Model", model).is_closed
        if error is not None:
            raise error
        return model


async def test_a_model_that_is_being_closed_is_handed_to_nobody(opened: Opened) -> None:
    opened.may_close.clear()
    pool = ModelPool(LOCAL, idle_s=0.05)
    async with asyncio.timeout(PATIENCE_S):
        first = await _used(pool, LOCAL)
        await opened.is_closing.wait()
        assert await _used(pool, LOCAL) is not first
        opened.may_close.set()
        await pool.close()


async def test_with_no_idle_time_a_model_is_closed_at_once_and_nothing_spins(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    timeout = asyncio.timeout

    def recorded(delay: float) -> asyncio.Timeout:
        waits.append(delay)
        return timeout(delay)

    pool = ModelPool(LOCAL, idle_s=0.0)
    async with asyncio.timeout(PATIENCE_S):
        monkeypatch.setattr(asyncio, "timeout", recorded)
        async with pool.use(LOCAL, lambda _: None) as first:
            assert await _used(pool, LOCAL) is first
        assert await _used(pool, LOCAL) is not first
        await opened.is_closing.wait()
        await pool.close()
    assert min(waits) >= 0.5


@pytest.mark.parametrize("error", [EndpointUnreachableError("no"), StreamBrokenError("broken")])
async def test_after_a_failure_a_local_model_is_opened_anew(
    opened: Opened, error: Exception
) -> None:
    pool = ModelPool(LOCAL)
    async with asyncio.timeout(PATIENCE_S):
        for choice, models in ((LOCAL, 2), (HOSTED, 3)):
            async with pool.use(choice, lambda _: None) as other:
                with pytest.raises(type(error)):
                    await _used(pool, choice, error)
                await _used(pool, choice)
                assert len(opened.models) == models
                assert not cast("Model", other).is_closed
        await opened.is_closing.wait()
        assert [model.is_closed for model in opened.models] == [True, False, False]
        await pool.close()
    assert all(model.is_closed for model in opened.models)


async def test_a_local_model_whose_server_ended_between_questions_is_opened_again(
    opened: Opened,
) -> None:
    pool = ModelPool(LOCAL)
    async with asyncio.timeout(PATIENCE_S):
        first = await _used(pool, LOCAL)
        first.is_served = False
        second = await _used(pool, LOCAL)
        assert second is not first
        await opened.is_closing.wait()
        assert [model.is_closed for model in opened.models] == [True, False]
        async with pool.use(LOCAL, lambda _: None):
            second.is_served = False
            assert await _used(pool, LOCAL) is opened.models[2]
            assert not second.is_closed
        await pool.close()
    assert all(model.is_closed for model in opened.models)


@pytest.mark.parametrize("replaces_weights", [False, True])
async def test_a_file_that_was_replaced_is_another_model(
    replaces_weights: bool, opened: Opened, tmp_path: Path
) -> None:
    base, file = write_model(tmp_path / "base.gguf"), write_adapter_file(tmp_path / "mine.gguf")
    choice = ModelChoice(name_with_adapter(str(base), file))
    pool = ModelPool(LOCAL)
    first = await _used(pool, choice)
    assert await _used(pool, choice) is first
    if replaces_weights:
        write_model(base, model_tensors(seed=2))
        os.utime(base, (1, 1))  # the clock of files may not have moved
    else:
        write_adapter_file(file, adapter_tensors(seed=2))
    second = await _used(pool, choice)
    assert second is not first
    assert await _used(pool, choice) is second
    assert len(opened.models) == 2
    await pool.close()


def test_the_panel_lists_models_with_an_adapter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = write_adapter_file(tmp_path / "mine.gguf")
    shipped = replace(own_adapter(file), name="shipped", licence="Apache-2.0")
    tuned = replace(catalogue.find("smollm2-135m"), name="small-tuned", adapter=shipped)
    monkeypatch.setattr(catalogue, "MODELS", (*catalogue.MODELS, tuned))
    own = name_with_adapter("local", file)
    pool = ModelPool(ModelChoice(own))
    listed = {one["name"]: one for one in pool.listed()}
    assert next(iter(listed)) == own
    assert listed[own]["label"] == "qwen2.5-coder-1.5b+mine (local)"
    assert listed["small-tuned"]["label"] == "small-tuned (local)"
    assert "dm-jupyter model pull small-tuned" in listed["small-tuned"]["detail"]
    assert pool.choice("small-tuned") == ModelChoice("small-tuned")
    for name in (own, "small-tuned", "largest"):
        pool.refuse_unlisted(name)
    for name in (str(file), f"small-tuned+{file}", f"local+{file}+", "/nowhere/a.gguf"):
        with pytest.raises(ValueError, match="add --into output"):
            pool.refuse_unlisted(name)
    assert "no adapter file at" in pool.obstacle("local+/nowhere/a.gguf")


class Folder:
    """A notebook's kernel that nothing is run in."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.directory = self.data = self

    def workspace(self, *_: object) -> Path:
        return self._folder

    def containment(self, _: str) -> Containment:
        return Containment()

    def packages(self, _: str) -> None:
        return None

    def process_of(self, _: str) -> str:
        return ""

    def begin_run(self, _: str) -> None:
        return None

    async def data_context_of(self, *_: object) -> tuple[dict[str, Path], DataContext]:
        return {}, DataContext()


async def test_a_run_whose_model_died_has_the_next_one_open_it_anew(
    opened: Opened, tmp_path: Path
) -> None:
    pool = ModelPool(LOCAL)
    kernels = cast("KernelRegistry", Folder(tmp_path))
    context = RunContext("kernel", is_restricted=True, notebook_folder=tmp_path)
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        ask = Ask("request", "n.ipynb", "Why?")
        run = Run(ask, context, Journal(folder), kernels, pool, lambda _: None)
        await run.start()
        assert (run.summary.stop, run.trajectory and run.trajectory.stop_detail) == (
            "fault", "nothing answers",
        )  # fmt: skip
    assert len(opened.models) == 2
    await pool.close()
