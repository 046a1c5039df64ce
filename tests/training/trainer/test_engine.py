"""The engine over transformers, with a real tiny model: what it samples, and how likely it is."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch

from dm_jupyter.core.dialect import Message
from dm_jupyter.core.errors import ContextFullError, EndpointRefusedError
from dm_jupyter.core.sampled_tokens import id_array
from dm_jupyter.models.protocols import SampleRequest
from tests.training.trainer.tiny import adapted, tiny_model, tiny_tokenizer
from training.tokens.chat_template import ChatTemplateError
from training.tokens.engine import SampledIds
from training.trainer.engine import TransformersEngine
from training.trainer.model import OpenedModel

PROMPT = id_array(range(40, 60))
WORDS = 257
"""Ids that the tokenizer has a text for; the model has more."""


def opened_model(model: Any = None) -> OpenedModel:
    """A model that says only what its tokenizer has words for, and never closes its turn."""
    made = tiny_model(dtype=torch.float32) if model is None else model
    head = torch.nn.Linear(32, 512, bias=True)
    head.weight.data.copy_(made.lm_head.weight)
    head.bias.data.zero_()
    head.bias.data[256:] = -1e4
    made.lm_head = head
    return OpenedModel(made, tiny_tokenizer(), can_pack=True)


def request(**fields: Any) -> SampleRequest:
    plain = {"temperature": 1.0, "top_p": 1.0, "max_tokens": 24, "seed": 3}
    return SampleRequest((Message("user", "q"),), **(plain | fields))


def drawn(opened: OpenedModel, **fields: Any) -> SampledIds:
    return asyncio.run(TransformersEngine(opened, "tiny").sample_ids(PROMPT, request(**fields)))


def raw_logprobs(opened: OpenedModel, ids: list[int]) -> list[float]:
    """One forward pass over the whole text, without a cache."""
    whole = torch.tensor([[*PROMPT, *ids]])
    with torch.no_grad(), opened.computing():
        logp = torch.log_softmax(opened.model(input_ids=whole).logits[0].float(), dim=1)
    first = len(PROMPT) - 1
    return [float(logp[first + at, one]) for at, one in enumerate(ids)]


@pytest.mark.parametrize("fields", [
    {"temperature": 0.0}, {"temperature": 0.7, "top_p": 0.9}, {"temperature": 1.0},
])  # fmt: skip
@pytest.mark.parametrize("with_adapter", [False, True])
def test_log_probabilities_are_the_models_own(fields: dict[str, float], with_adapter: bool) -> None:
    """Detail 16, the other way: before temperature and top-p, as every engine here tells them."""
    opened = opened_model()
    if with_adapter:
        opened = OpenedModel(adapted(opened.model).model, opened.tokenizer, can_pack=True)
    opened.model.generation_config.update(top_k=3, repetition_penalty=5.0, do_sample=True)
    one = drawn(opened, **fields)
    assert len(one.ids) == len(one.logprobs) == 24
    assert one.logprobs.tolist() == pytest.approx(raw_logprobs(opened, one.ids.tolist()), abs=2e-5)
    assert (one.finish_reason, one.stop, one.is_closed) == ("length", "", False)


def test_a_model_that_learns_is_sampled_in_the_numbers_it_computes_in() -> None:
    opened = replace(opened_model(), computes_in=torch.bfloat16)
    one = drawn(opened)
    assert one.logprobs.tolist() == pytest.approx(raw_logprobs(opened, one.ids.tolist()), abs=0.02)
    exact = raw_logprobs(replace(opened, computes_in=None), one.ids.tolist())
    assert one.logprobs.tolist() != pytest.approx(exact, abs=2e-5)


def test_temperature_0_takes_the_likeliest_id_each_time() -> None:
    opened = opened_model()
    ids = drawn(opened, temperature=0.0).ids.tolist()
    with torch.no_grad():
        logits = opened.model(input_ids=torch.tensor([[*PROMPT, *ids]])).logits[0]
    assert ids == logits[len(PROMPT) - 1 : -1].argmax(dim=1).tolist()


def test_a_seed_gives_one_turn_and_leaves_other_chance_alone() -> None:
    opened = opened_model()
    torch.manual_seed(5)
    state = torch.get_rng_state()
    first, again, other = (drawn(opened, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), state)
    assert first == again
    assert first.ids != other.ids


def test_frequencies_are_those_of_the_distribution_at_its_temperature() -> None:
    """600 draws of one id at temperature 0.5 and top-p 0.8: only the nucleus, in its shares."""
    opened = opened_model()
    with torch.no_grad():
        logits = opened.model(input_ids=torch.tensor([list(PROMPT)])).logits[0, -1]
    p = torch.softmax(logits / 0.5, dim=0)
    order = p.argsort(descending=True)
    before = p[order].cumsum(0) - p[order]
    nucleus = order[before < 0.8]
    found = Counter(
        drawn(opened, seed=seed, temperature=0.5, top_p=0.8, max_tokens=1).ids[0]
        for seed in range(600)
    )
    assert set(found) <= set(nucleus.tolist())
    top = int(nucleus[0])
    expected = float(p[top] / p[nucleus].sum())
    assert found[top] / 600 == pytest.approx(expected, abs=4 * (expected / 600) ** 0.5)


def test_ids_go_on_to_the_end_of_a_stop_string_and_the_text_does_not() -> None:
    opened = opened_model()
    whole = drawn(opened)
    text = whole.text
    stop = next(text[at : at + 2] for at in range(8, 20) if text[at : at + 2].isascii())
    place = text.index(stop)
    one = drawn(opened, stop=("never there", stop))
    assert (one.text, one.stop, one.finish_reason) == (text[:place], stop, "stop")
    assert one.ids.tolist() == whole.ids.tolist()[: len(one.ids)]
    assert opened.tokenizer.decode(one.ids.tolist()).endswith(stop)
    assert len(one.ids) == len(one.logprobs)


def test_the_turn_that_the_model_closes_ends_with_its_mark() -> None:
    opened = opened_model()
    end = opened.tokenizer.eos_token_id
    opened.model.lm_head.bias.data[end] = 1e4
    one = drawn(opened)
    assert (one.ids.tolist(), one.text, one.is_closed) == ([end], "", True)
    assert one.logprobs.tolist() == [0.0]


def test_a_full_context_is_named_and_a_short_one_shortens_the_turn() -> None:
    opened = opened_model()
    opened.model.config.max_position_embeddings = len(PROMPT) + 2
    assert len(drawn(opened).ids) == 2
    opened.model.config.max_position_embeddings = len(PROMPT)
    with pytest.raises(ContextFullError, match="20 tokens fills its context of 20"):
        drawn(opened)


def test_a_fault_of_the_model_is_one_of_the_policy() -> None:
    opened = opened_model()
    opened.model.lm_head.weight.data.fill_(float("nan"))
    with pytest.raises(EndpointRefusedError, match="tiny can't be sampled: "):
        drawn(opened)


def test_a_template_that_refuses_is_named() -> None:
    opened = opened_model()
    opened.tokenizer.chat_template = "{{ raise_exception('no system') }}"
    engine = TransformersEngine(opened, "tiny")
    with pytest.raises(ChatTemplateError, match="no system"):
        asyncio.run(engine.text_of_conversation([Message("user", "q")]))


async def test_a_cancelled_turn_ends_its_generation() -> None:
    opened = opened_model()
    began, steps = threading.Event(), list[int]()

    def count(*_: Any) -> None:
        steps.append(1)
        began.set()

    opened.model.register_forward_hook(count)
    engine = TransformersEngine(opened, "tiny")
    task = asyncio.create_task(engine.sample_ids(PROMPT, request(max_tokens=900)))
    await asyncio.to_thread(began.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    made = len(steps)
    assert made < 900
    await engine.sample_ids(PROMPT, request(max_tokens=2))  # the next one gets its turn
    assert len(steps) == made + 2
