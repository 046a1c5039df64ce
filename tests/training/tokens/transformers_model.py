"""A model of transformers that says scripted texts, with the vocabulary of the stand-in servers.

Its forward pass is that of a tiny Llama, cache included; only its logits are scripted. They give
the scripted id exactly `logprob_of` and all the rest to an id that says nothing. The draw itself is
scripted, too, since an unlikely id would never be drawn.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from types import SimpleNamespace, TracebackType
from typing import Any, Self

import pytest
import torch
import transformers

from tests.training.tokens.token_server import (
    WORDS,
    TokenServer,
    logprob_of,
    mark_id,
    read,
    said,
)
from training.tokens.chat_template import ChatTemplate
from training.trainer.engine import TransformersEngine
from training.trainer.model import OpenedModel

REST = len(WORDS)
"""The id that has what probability the scripted one leaves."""


class ScriptedTokenizer:
    """The part of a tokenizer that the engine uses."""

    def __init__(self, server: TransformersModel) -> None:
        self.server = server
        self.eos_token_id = mark_id(server.closing)

    def apply_chat_template(self, conversation: list[dict[str, str]], **options: Any) -> str:
        assert options == {"tokenize": False, "add_generation_prompt": True}
        messages = [SimpleNamespace(to_json=lambda one=one: one) for one in conversation]
        return self.server.template.text_of(messages)  # type: ignore[arg-type]

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        assert not add_special_tokens
        self.server.was_read.append(text)
        return read(text)

    def decode(self, ids: Iterable[int], **options: bool) -> str:
        assert options == {"skip_special_tokens": False, "clean_up_tokenization_spaces": False}
        return said(ids).decode(errors="replace")


class ScriptedLlama(transformers.LlamaForCausalLM):
    """Says what its server scripts."""

    server: Any

    def forward(self, input_ids: torch.Tensor, **fields: Any) -> Any:
        out = super().forward(input_ids=input_ids, **fields)
        out.logits[:, -1] = self.server.next_logits(input_ids[0].tolist())
        return out


class TransformersModel(TokenServer):
    """A model in this process instead of a server."""

    def __init__(self, texts: Iterable[str], template: ChatTemplate, closing: str) -> None:
        super().__init__(texts, template, closing)
        config = transformers.LlamaConfig(
            vocab_size=REST + 1, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
            num_attention_heads=1, max_position_embeddings=4096,
        )  # fmt: skip
        self._model = ScriptedLlama(config)
        self._model.server = self
        # What a model's own settings say must not reach the draw.
        self._model.generation_config.update(top_k=1, repetition_penalty=9.0, do_sample=True)
        self._script: list[int] = []
        self._patch = pytest.MonkeyPatch()

    def __enter__(self) -> Self:
        def scripted(probabilities: torch.Tensor, **_: Any) -> torch.Tensor:
            return torch.tensor([[self._script[len(self.sampled[-1]) - 1]]])

        self._patch.setattr(torch, "multinomial", scripted)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._patch.undo()

    @property
    def url(self) -> str:
        raise AssertionError("there is no server")

    @property
    def engine(self) -> TransformersEngine:
        opened = OpenedModel(self._model, ScriptedTokenizer(self), can_pack=True)
        return TransformersEngine(opened, "stand-in")

    def next_logits(self, ids: Sequence[int]) -> torch.Tensor:
        if len(ids) > 1:  # a prompt; later ids come one at a time
            self._script = self.ids_to_say({"seed": torch.initial_seed()})
            self.prompts.append(list(ids))
            self.sampled.append([])
        before, turn = self.prompts[-1], self.sampled[-1]
        one = self._script[len(turn)]
        logprob = logprob_of(array("i", [*before, *turn]).tolist(), one)
        logits = torch.full((REST + 1,), -1e9)
        logits[one] = logprob
        logits[REST] = math.log(-math.expm1(logprob))
        turn.append(one)
        return logits
