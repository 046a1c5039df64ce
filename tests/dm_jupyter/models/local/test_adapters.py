"""A model with an adapter: its name, its check, its files and its server."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest

from dm_jupyter.config import ModelChoice
from dm_jupyter.core.dialect import Message
from dm_jupyter.models.local.adapters import Adapter, check_adapter, own_adapter
from dm_jupyter.models.local.cache import is_present, missing_files, require
from dm_jupyter.models.local.catalogue import (
    MODELS,
    LocalModel,
    find,
    is_local_name,
    name_with_adapter,
    name_without_adapter,
    resolve,
)
from dm_jupyter.models.local.endpoint import ServerOptions, local_endpoint, running_endpoint
from dm_jupyter.models.local.engine import obstacles
from dm_jupyter.models.local.errors import (
    AdapterError,
    ModelMissingError,
    NoSourceError,
    WrongFileError,
)
from dm_jupyter.models.local.pull import PullProgress, Sources, pull
from dm_jupyter.models.opening import adapter_hash, open_policy
from dm_jupyter.models.protocols import SampleRequest
from kernel_sandbox.packages.commands import own_command
from tests.waiting import PATIENCE_S

from .conftest import CONTENT, Hub, serving
from .gguf_files import adapter_tensors, merged, model_tensors, write_adapter_file, write_model

TINY_SERVER = Path(__file__).with_name("tiny_server.py")
Q = "blk.0.attn_q.weight"


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write_model(tmp_path / "base.gguf")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_adapter_file(tmp_path / "mine.gguf")


def test_a_name_says_the_model_and_the_adapter_by_its_content(file: Path) -> None:
    model, alone = resolve(name_with_adapter("local", file)), find("qwen2.5-coder-1.5b")
    assert (model.sha256, model.path) == (alone.sha256, None)
    assert model.name == f"{alone.name}+mine"
    assert model.served_name == f"{alone.name}+mine@{_sha256(file)[:12]}"
    assert model.adapter is not None
    assert (model.adapter.path, model.adapter.sha256) == (file, _sha256(file))
    assert model.memory_bytes == alone.memory_bytes + file.stat().st_size
    write_adapter_file(file, adapter_tensors(seed=2))
    assert resolve(name_with_adapter("local", file)).served_name != model.served_name
    assert alone.served_name == alone.name


def test_any_name_of_a_local_model_can_have_an_adapter(file: Path, base: Path) -> None:
    for name in ("smollm2-135m", "largest", str(base)):
        with_adapter = name_with_adapter(name, file)
        assert is_local_name(with_adapter)
        assert resolve(with_adapter).file_name == resolve(name).file_name


def test_a_plus_in_a_path_is_a_part_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "c++"
    folder.mkdir()
    base = write_model(folder / "a+b.gguf")
    file = write_adapter_file(folder / "c+d.gguf")
    assert resolve(str(base)).path == base
    model = resolve(name_with_adapter(str(base), file))
    assert model.path == base
    assert model.adapter is not None
    assert model.adapter.path == file


def test_a_relative_path_and_a_home_folder_are_found(
    file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    names = {name_with_adapter("local", Path(text)) for text in ("mine.gguf", "~/mine.gguf")}
    assert names == {f"local+{file}"}


def test_a_file_that_is_no_adapter_is_the_only_thing_missing(tmp_path: Path, base: Path) -> None:
    (tmp_path / "text.gguf").write_text("not a model")
    control = write_adapter_file(tmp_path / "other.gguf", fields={"adapter.type": "vector"})
    for path, why in (
        (tmp_path / "none.gguf", "There is no adapter file at"),
        (tmp_path / "text.gguf", "is not a LoRA adapter: it is no GGUF file"),
        (control, r"it is an adapter of another kind \(vector\)"),
        (base, "it is a model. Name a model with --model"),
    ):
        with pytest.raises(AdapterError, match=why) as caught:
            resolve(name_with_adapter("smollm2-135m", path))
        assert str(path) in caught.value.text
        assert caught.value.command == own_command("model", "list")
        (found,) = obstacles(name_with_adapter("smollm2-135m", path))
        assert found.text == caught.value.text


def test_an_adapter_replaces_the_one_of_the_catalogue(file: Path) -> None:
    for tuned in (model for model in MODELS if model.adapter is not None):
        alone = tuned.name.removesuffix("-analyst")
        assert resolve(name_with_adapter(tuned.name, file)) == resolve(
            name_with_adapter(alone, file)
        )
        assert resolve(name_with_adapter(tuned.name, file)).name == f"{alone}+mine"


def test_an_adapter_replaces_the_one_of_a_name(file: Path, base: Path, tmp_path: Path) -> None:
    other = write_adapter_file(tmp_path / "other.gguf", adapter_tensors(seed=2))
    for name in ("local", str(base)):
        named = name_with_adapter(name, other)
        assert name_with_adapter(named, file) == name_with_adapter(name, file)


def test_a_name_loses_its_adapter(file: Path, base: Path) -> None:
    for name in ("local", "qwen2.5-coder-1.5b-analyst", "qwen2.5-coder-1.5b"):
        assert name_without_adapter(name) == "qwen2.5-coder-1.5b"
        assert name_without_adapter(name_with_adapter(name, file)) == "qwen2.5-coder-1.5b"
    assert name_without_adapter(name_with_adapter(str(base), file)) == str(base)


def test_an_adapter_fits_the_model_that_it_was_made_for(file: Path, base: Path) -> None:
    check_adapter(own_adapter(file), file, "base", base)
    assert not list(obstacles(name_with_adapter(str(base), file)))


def _wider() -> dict[str, Any]:
    return {**adapter_tensors(), f"{Q}.lora_a": np.zeros((4, 48), np.float32)}


def _without(name: str) -> dict[str, Any]:
    return {key: value for key, value in adapter_tensors().items() if key != name}


@pytest.mark.parametrize(
    ("tensors", "fields", "why"),
    [
        (adapter_tensors, {"general.architecture": "qwen2"}, "family qwen2, and this one is llama"),
        (_wider, {}, "blk.0.attn_q.weight is 32 x 32 there and 48 x 32 in the adapter"),
        (lambda: _without(f"{Q}.lora_b"), {}, f"{Q}.lora_a without {Q}.lora_b"),
        (lambda: _without(f"{Q}.lora_a"), {}, f"{Q}.lora_b without {Q}.lora_a"),
        (lambda: {"blk.9.w.lora_a": np.zeros((4, 8)), "blk.9.w.lora_b": np.zeros((8, 4))}, {},
         "has no tensor blk.9.w"),
        (lambda: {f"{Q}.lora_a": np.zeros((4, 32)), f"{Q}.lora_b": np.zeros((32, 5))}, {},
         "have the ranks 4 and 5"),
        (lambda: {"blk.0.attn_norm.weight": np.zeros(32)}, {}, "belongs to no LoRA adapter"),
    ],
)  # fmt: skip
def test_an_adapter_of_another_model_is_named_before_a_server_starts(
    tensors: Callable[[], dict[str, Any]],
    fields: dict[str, str],
    why: str,
    base: Path,
    tmp_path: Path,
) -> None:
    file = write_adapter_file(tmp_path / "other.gguf", tensors(), fields)
    (found,) = obstacles(name_with_adapter(str(base), file))
    assert isinstance(found, AdapterError)
    assert f"The adapter {file} was made for another model than base-" in found.text
    assert why in found.text
    assert "Name the model that it was trained on." in found.text


def test_the_matrices_of_the_embedding_are_the_other_way_round(base: Path, tmp_path: Path) -> None:
    name, vocabulary = "token_embd.weight", len(model_tensors()["token_embd.weight"])
    for a, b, fits in (
        (np.zeros((vocabulary, 4)), np.zeros((32, 4)), True),
        (np.zeros((4, 32)), np.zeros((vocabulary, 4)), False),
    ):
        tensors = {f"{name}.lora_a": a, f"{name}.lora_b": b}
        file = write_adapter_file(tmp_path / "e.gguf", tensors)
        assert bool(list(obstacles(name_with_adapter(str(base), file)))) is not fits


def test_entries_with_an_adapter_are_pinned(file: Path) -> None:
    own = own_adapter(file)
    with pytest.raises(ValueError, match="SHA-256"):
        replace(own, sha256="abc")
    with pytest.raises(ValueError, match="bytes"):
        replace(own, size_bytes=0)
    with pytest.raises(ValueError, match="an address or a path"):
        replace(own, path=None)
    for model in MODELS:
        if model.adapter is not None and model.adapter.path is not None:
            assert _sha256(model.adapter.path) == model.adapter.sha256


@pytest.fixture
def adapter_hub(file: Path) -> Iterator[Hub]:
    """Another address, of the adapter alone."""
    with serving(Hub(content=file.read_bytes()), file.name) as hub:
        yield hub


@pytest.fixture
def entry(model: LocalModel, file: Path, adapter_hub: Hub) -> LocalModel:
    """An entry of the catalogue whose adapter has an address, over the weights of `model`."""
    adapter = Adapter(
        name="tiny-adapter",
        licence="CC0-1.0",
        file_name="tiny-adapter.gguf",
        size_bytes=file.stat().st_size,
        sha256=_sha256(file),
        hub_url=adapter_hub.url,
    )
    return replace(model, name="tiny-tuned", adapter=adapter)


def test_a_pull_brings_weights_and_adapter(
    entry: LocalModel, sources: Sources, hub: Hub, adapter_hub: Hub, tmp_path: Path, file: Path
) -> None:
    cache, seen = tmp_path / "cache", list[PullProgress]()
    assert [one.name for one in missing_files(entry, cache)] == ["tiny-tuned", "tiny-adapter"]
    assert pull(entry, cache, seen.append, sources=sources) == cache / "tiny.gguf"
    assert (cache / "tiny-adapter.gguf").read_bytes() == file.read_bytes()
    assert is_present(entry, cache)
    assert (len(hub.ranges), len(adapter_hub.ranges)) == (1, 1)
    assert {one.total_bytes for one in seen} == {entry.download_bytes}
    assert seen[-1].done_bytes == entry.download_bytes == len(CONTENT) + file.stat().st_size


def test_weights_that_another_model_brought_are_not_fetched_again(
    model: LocalModel, entry: LocalModel, sources: Sources, hub: Hub, tmp_path: Path
) -> None:
    pull(model, tmp_path / "cache", sources=sources)
    with pytest.raises(
        ModelMissingError, match=r"The adapter of tiny-tuned \(0\.\d MB\)"
    ) as caught:
        require(entry, tmp_path / "cache")
    assert caught.value.command.startswith(own_command("model", "pull", "tiny-tuned"))
    seen: list[PullProgress] = []
    pull(entry, tmp_path / "cache", seen.append, sources=sources)
    assert len(hub.ranges) == 1
    assert entry.adapter is not None
    assert {one.total_bytes for one in seen} == {entry.adapter.size_bytes}


def test_a_wrong_adapter_is_refused_and_deleted_and_the_weights_stay(
    entry: LocalModel, sources: Sources, adapter_hub: Hub, tmp_path: Path
) -> None:
    adapter_hub.content = bytes(len(adapter_hub.content))
    with pytest.raises(WrongFileError, match=r"tiny-adapter\.gguf is not the pinned file"):
        pull(entry, tmp_path / "cache", sources=sources)
    assert {path.name for path in (tmp_path / "cache").glob("*.gguf")} == {"tiny.gguf"}


def test_an_adapter_without_a_source_is_named(
    entry: LocalModel, sources: Sources, adapter_hub: Hub, tmp_path: Path
) -> None:
    adapter_hub.status = 404
    with pytest.raises(NoSourceError, match=r"tiny-adapter could not be fetched.*404"):
        pull(entry, tmp_path / "cache", sources=sources)


def test_an_adapter_of_the_package_is_there_and_must_be_the_pinned_one(
    base: Path, file: Path, tmp_path: Path
) -> None:
    shipped = replace(own_adapter(file), name="shipped", licence="Apache-2.0")
    entry = replace(resolve(str(base)), name="tiny-tuned", adapter=shipped)
    assert not list(obstacles(entry))
    content = file.read_bytes()
    file.write_bytes(content[:-1] + b"?")  # a file of the same length
    (found,) = obstacles(entry)
    assert f"{file} is not the adapter shipped: expected SHA-256 {shipped.sha256}" in found.text
    file.write_bytes(content[:-1])
    (found,) = obstacles(entry)
    assert f"looked for {file}" in found.text


def test_a_model_of_the_catalogue_is_pulled_by_its_own_name(file: Path, tmp_path: Path) -> None:
    model = resolve(name_with_adapter("smollm2-135m", file))
    with pytest.raises(ModelMissingError, match=r"The local model smollm2-135m\+mine") as caught:
        require(model, tmp_path)
    folder = ("--cache-dir", str(tmp_path))
    assert caught.value.command == own_command("model", "pull", "smollm2-135m", *folder)


async def test_each_adapter_has_a_server_of_its_own_and_all_users_of_it_share_that(
    tmp_path: Path, file: Path
) -> None:
    base = tmp_path / "well.gguf"
    base.write_text("well")
    options = ServerOptions(
        runtime_dir=tmp_path / "run", command=(sys.executable, str(TINY_SERVER))
    )
    name = name_with_adapter(str(base), file)
    async with local_endpoint(name, options) as first, local_endpoint(name, options) as same:
        assert first == same
        assert first.model_name == resolve(name).served_name
        async with local_endpoint(str(base), options) as plain:
            assert plain.base_url != first.base_url
        write_adapter_file(file, adapter_tensors(seed=2))  # trained on, under the same name
        assert running_endpoint(name, options.runtime_dir) is None
        async with local_endpoint(name, options) as second:
            assert second.base_url != first.base_url
            assert second.model_name != first.model_name


async def _tokens(model: str, runtime_dir: Path) -> list[int]:
    """The likeliest tokens after a prompt, by the real engine."""
    async with (
        local_endpoint(model, ServerOptions(runtime_dir=runtime_dir)) as served,
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {served.api_key}"}) as client,
    ):
        body = {
            "prompt": [1, 70, 80, 90],
            "n_predict": 24,
            "temperature": 0,
            "ignore_eos": True,
            "return_tokens": True,
        }
        url = f"{served.base_url.removesuffix('/v1')}/completion"
        answer = await client.post(url, json=body, timeout=PATIENCE_S)
        return list(answer.raise_for_status().json()["tokens"])


async def test_the_engine_adds_the_adapter_to_the_weights(base: Path, tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    run, weights, change = tmp_path / "run", model_tensors(), adapter_tensors()
    file = write_adapter_file(tmp_path / "random.gguf", change)
    nothing = write_adapter_file(tmp_path / "zero.gguf", adapter_tensors(std=0.0))
    whole = write_model(tmp_path / "whole.gguf", merged(weights, change))
    plain = await _tokens(str(base), run)
    adapted = await _tokens(name_with_adapter(str(base), file), run)
    assert len(plain) == len(adapted) == 24
    assert adapted != plain
    assert adapted == await _tokens(str(whole), run)
    assert plain == await _tokens(name_with_adapter(str(base), nothing), run)


async def test_the_policy_says_which_adapter_answered(
    base: Path, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xllamacpp")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    choice = ModelChoice(name_with_adapter(str(base), file))
    assert adapter_hash(choice) == _sha256(file)
    assert adapter_hash(ModelChoice(str(base))) == adapter_hash(ModelChoice("m", "http://h")) == ""
    async with open_policy(choice) as policy:
        assert policy.name == f"{resolve(str(base)).name}+mine@{_sha256(file)[:12]}"
        request = SampleRequest((Message("user", "Hello"),), max_tokens=4)
        completion = await policy.sample(request, lambda _: None)
        assert completion.completion_tokens > 0
