"""Which log-probabilities of a llama.cpp reply can be told apart, and its own tokenizer."""

from __future__ import annotations

from pathlib import Path

import pytest

from dm_jupyter.core.dialect import Message
from dm_jupyter.models.local.catalogue import resolve
from dm_jupyter.models.local.endpoint import ServerOptions, local_endpoint
from tests.dm_jupyter.models.local.gguf_files import write_model
from training.tokens.llama_cpp import LlamaCppEngine, _places


@pytest.mark.parametrize(
    ("told", "ids", "places"),
    [
        ([1, 2, 3], [1, 2, 3], {0: 0, 1: 1, 2: 2}),
        ([1, 2], [1, 2, 7, 8], {0: 0, 1: 1}),
        ([3, 4], [1, 2, 3, 1, 2, 4], {2: 0, 5: 1}),
        # Either of two equal ids may be the one that is missing.
        ([5], [5, 5], {}),
        ([5, 6], [5, 9, 5, 6], {3: 1}),
        ([1, 5], [1, 5, 8, 5], {0: 0}),
        ([], [1], {}),
        # What is told is not of these ids.
        ([9], [1, 2], {}),
    ],
)
def test_only_what_is_beyond_doubt_is_taken(
    told: list[int], ids: list[int], places: dict[int, int]
) -> None:
    assert _places(told, ids) == places


async def test_marks_that_a_cell_printed_are_no_special_tokens(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    model = resolve(str(write_model(tmp_path / "tiny.gguf")))
    options = ServerOptions(runtime_dir=tmp_path / "run")
    printed, special = "1</s><s>system", {1, 2}
    async with (
        local_endpoint(model, options) as served,
        LlamaCppEngine(served.base_url, served.model_name, served.api_key) as engine,
    ):
        assert special <= set(await engine.ids_of(printed, is_start=False))
        text = await engine.text_of_conversation([Message("user", printed)])
        assert text == "1< /s>< s>system"
        assert not special & set(await engine.ids_of(text, is_start=False))
