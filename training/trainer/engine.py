"""Token ids in and out of a transformers model in this process, without a server or llama.cpp.

    policy = TokenPolicy(TransformersEngine(opened, "my-model"))

It samples on any machine that trains, one turn at a time, and slower than a server. Use it if no
server runs, or for weights that no server can load yet.
"""

from __future__ import annotations

import asyncio
import threading
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
import transformers

from dm_jupyter.core.dialect import Message
from dm_jupyter.core.errors import ContextFullError, EndpointRefusedError, PolicyError
from dm_jupyter.core.sampled_tokens import float_array, id_array
from dm_jupyter.models.protocols import SampleRequest
from training.tokens.chat_template import TEMPLATE_FAULTS, ChatTemplateError
from training.tokens.engine import SampledIds
from training.trainer.model import OpenedModel

__all__ = ["TransformersEngine"]

_LONGEST_CHARACTER: Final = 4
"""Bytes, and so the largest number of ids."""


@dataclass(frozen=True, slots=True)
class _SampledTurn:
    ids: list[int]
    logprobs: list[float]


class _RawLogprobs(transformers.LogitsProcessor):  # type: ignore[misc]
    """Recorder of each id's log-probability, before temperature and top-p change the logits.

    An id is known only when the next one is requested, so the last distribution is kept.
    """

    def __init__(self) -> None:
        self._told: list[float] = []
        self._last_V: torch.Tensor | None = None

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self._note(input_ids)
        self._last_V = scores[0].float().log_softmax(dim=0)
        return scores

    def of(self, made_1_N: torch.Tensor) -> list[float]:
        """Return one log-probability for each sampled id; called once, at the end."""
        self._note(made_1_N)
        return self._told

    def _note(self, made_1_N: torch.Tensor) -> None:
        if self._last_V is not None:
            self._told.append(float(self._last_V[made_1_N[0, -1]]))


class _Ending(transformers.StoppingCriteria):  # type: ignore[misc]
    """Criterion that ends a turn at the id that completes a stop string, or when cancelled."""

    def __init__(
        self, text_of: Callable[[Sequence[int]], str], stops: Sequence[str], prompt_tokens: int
    ) -> None:
        self.is_cancelled = threading.Event()
        self._text_of = text_of
        self._stops = stops
        self._prompt_tokens = prompt_tokens
        self._window = max((len(one.encode()) for one in stops), default=0) + _LONGEST_CHARACTER

    def __call__(
        self,
        input_ids: torch.Tensor,
        scores: Any,  # noqa: ARG002  (the base class names it)
        **_: Any,
    ) -> torch.Tensor:
        sampled = input_ids[0, self._prompt_tokens :]
        is_over = self.is_cancelled.is_set()
        if self._stops and not is_over:
            is_over = bool(self.first_stop(self._text_of(sampled[-self._window :].tolist()))[1])
        return torch.tensor([is_over], device=input_ids.device)

    def first_stop(self, text: str) -> tuple[int | None, str]:
        """Return the index of the first stop string, and the string; else `None` and ""."""
        found = [(text.find(one), one) for one in self._stops if one in text]
        return min(found) if found else (None, "")


class TransformersEngine:
    """A transformers model as a `TokenEngine`.

    Requests run one after the other in a thread. torch has one source of random numbers, and a seed
    must give the same turn regardless of other requests.
    """

    def __init__(self, opened: OpenedModel, name: str) -> None:
        """Create an engine for a model.

        Args:
            opened: from `open_model`; its weights may change between two calls.
            name: recorded with each trajectory.
        """
        self._opened = opened
        self._model = opened.model
        self._tokenizer = opened.tokenizer
        self._name = name
        self._turn = asyncio.Lock()
        self._closing = opened.closing

    @property
    def model(self) -> str:
        """The model's name."""
        return self._name

    async def text_of_conversation(self, messages: Sequence[Message]) -> str:
        """Return the conversation rendered by the tokenizer's chat template.

        Raises:
            ChatTemplateError: There is no template, or it refuses such a conversation.
        """
        try:
            return str(
                self._tokenizer.apply_chat_template(
                    [message.to_json() for message in messages],
                    tokenize=False,
                    add_generation_prompt=True,
                )
            )
        except TEMPLATE_FAULTS as error:
            raise ChatTemplateError(
                f"The chat template refuses the conversation: {error}"
            ) from error

    async def ids_of(self, text: str, *, is_start: bool) -> array[int]:  # noqa: ARG002
        """Return the ids of a text; the template writes the first special token itself."""
        return id_array(self._tokenizer.encode(text, add_special_tokens=False))

    async def text_of_ids(self, ids: array[int]) -> str:
        """Return the text of ids, special tokens included."""
        return self._text(ids.tolist())

    async def sample_ids(self, prompt: array[int], request: SampleRequest) -> SampledIds:
        """Return one turn, after all earlier requests have finished.

        Raises:
            ContextFullError: The prompt fills the model's context.
            PolicyError: The model can't run, for example for lack of memory.
        """
        limit = getattr(self._model.config, "max_position_embeddings", None)
        room = request.max_tokens if limit is None else min(request.max_tokens, limit - len(prompt))
        if room < 1:
            raise ContextFullError(
                f"{self._name}: a prompt of {len(prompt)} tokens fills its context of {limit}."
            )
        async with self._turn:
            end = _Ending(self._text, request.stop, len(prompt))
            work = asyncio.create_task(
                asyncio.to_thread(self._generated, prompt.tolist(), request, room, end)
            )
            try:
                sampled = await asyncio.shield(work)
            except asyncio.CancelledError:
                end.is_cancelled.set()
                await asyncio.wait([work])
                raise
        return self._read(sampled, end)

    def _generated(
        self, prompt: list[int], request: SampleRequest, room: int, end: _Ending
    ) -> _SampledTurn:
        chance: dict[str, Any] = {}
        if request.temperature > 0:
            chance = {"temperature": request.temperature, "top_p": request.top_p}
        settings = self._opened.generation_config(room, **chance)
        told = _RawLogprobs()
        device = self._model.device
        ids_1_N = torch.tensor([prompt], device=device)
        self._model.eval()
        gpus = [device] if device.type == "cuda" else []
        try:
            with torch.random.fork_rng(devices=gpus), self._opened.computing():
                torch.manual_seed(request.seed)
                made = self._model.generate(
                    input_ids=ids_1_N,
                    attention_mask=torch.ones_like(ids_1_N),
                    generation_config=settings,
                    logits_processor=transformers.LogitsProcessorList([told]),
                    stopping_criteria=transformers.StoppingCriteriaList([end]),
                )
        except (RuntimeError, ValueError) as error:
            raise EndpointRefusedError(f"{self._name} can't be sampled: {error}") from error
        ids = made[0, len(prompt) :].tolist()
        return _SampledTurn(ids, told.of(made))

    def _read(self, sampled: _SampledTurn, end: _Ending) -> SampledIds:
        ids = sampled.ids
        if not ids:
            raise PolicyError(f"{self._name} sampled nothing.")
        is_closed = ids[-1] in self._closing
        text = self._text(ids[:-1] if is_closed else ids)
        place, stop = end.first_stop(text)
        if not is_closed:  # at the limit, the last character may be incomplete
            text = text.rstrip("\ufffd")
        return SampledIds(
            ids=id_array(ids),
            logprobs=float_array(sampled.logprobs),
            text=text[:place],
            finish_reason="stop" if is_closed or stop else "length",
            stop=stop,
            is_closed=is_closed,
        )

    def _text(self, ids: Sequence[int]) -> str:
        return str(
            self._tokenizer.decode(
                list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
            )
        )
