"""A policy that is asked once: by several at the same time, by batches, by a later run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from dm_jupyter.core.dialect import Message, Tool
from dm_jupyter.core.errors import EndpointUnreachableError
from dm_jupyter.core.sampled_tokens import SampledTokens, TurnEnd, float_array, id_array
from dm_jupyter.core.trajectory import Completion
from dm_jupyter.models.protocols import BatchPolicy, SampleRequest, Urgency
from training.durable.kept_policy import KeptPolicy, completion_key
from training.durable.log import LogError

REQUEST = SampleRequest((Message("user", "How many?"),), prefill="```", seed=3)
TOKENS = SampledTokens(
    id_array([1, 2]), id_array([3]), float_array([-0.1]), 1.0, 1.0, TurnEnd(4, "x", 2)
)
CHANGES: dict[str, Any] = {
    "before": TOKENS,
    "messages": (Message("user", "How many?", pictures=("data:x",)),),
    "prefill": "",
    "stop": ("x",),
    "stop_unopened": ("x",),
    "tools": (Tool("run", "runs", {}),),
    "temperature": 0.5,
    "top_p": 0.5,
    "max_tokens": 5,
    "seed": 4,
    "cuts_repetition": False,
    "thinks_in_text": True,
}
WAITS_ALONE = {"urgency": Urgency.BACKGROUND, "on_wait": print}
"""What decides nothing of an answer."""


class Counting:
    """Answers with the number of the request."""

    name = "counting"
    asked = 0

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        self.asked += 1
        number = self.asked
        await asyncio.sleep(0)
        return Completion(
            f"```{number}", request.prefill, 10, 1, 0.5, "length", "thought", mean_probability=0.25
        )


class Batching(Counting):
    """Draws several turns in one request."""

    async def sample_many(self, request: SampleRequest, count: int) -> list[Completion]:
        self.asked += 1
        number = self.asked
        await asyncio.sleep(0)
        return [Completion(f"{number}.{place}") for place in range(count)]


async def _both(one: Any, other: Any) -> list[Any]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one), group.create_task(other)]
    return [task.result() for task in tasks]


async def test_the_same_request_is_sent_once_also_at_the_same_time_and_by_a_later_run(
    tmp_path: Path,
) -> None:
    model, file = Counting(), tmp_path / "new" / "calls.jsonl"
    policy = KeptPolicy(model, file)
    shown: list[str] = []
    first, second = await _both(
        policy.sample(REQUEST, shown.append),
        policy.sample(replace(REQUEST, urgency=Urgency.BACKGROUND), shown.append),
    )
    assert first == second
    assert shown == ["```1"]  # the model itself shows its own
    with file.open("a") as out:
        out.write('{"key": "cut')
    later = KeptPolicy(model, file)
    assert await later.sample(REQUEST, shown.append) == first
    assert model.asked == 1
    other = await later.sample(replace(REQUEST, seed=4), shown.append)
    assert (other.text, model.asked) == ("```2", 2)
    assert await KeptPolicy(model, file).sample(replace(REQUEST, seed=4), shown.append) == other
    assert model.asked == 2


async def test_a_batch_is_kept_as_one_call(tmp_path: Path) -> None:
    model, file = Batching(), tmp_path / "calls.jsonl"
    policy = KeptPolicy(model, file)
    first, second = await _both(policy.sample_many(REQUEST, 3), policy.sample_many(REQUEST, 3))
    assert [one.text for one in first] == ["1.0", "1.1", "1.2"]
    assert first == second == await KeptPolicy(model, file).sample_many(REQUEST, 3)
    assert model.asked == 1
    assert isinstance(policy, BatchPolicy)
    await policy.sample_many(REQUEST, 2)  # another number of turns is another call
    await policy.sample(REQUEST, print)
    assert model.asked == 3


async def test_the_ids_of_a_turn_are_kept_with_it(tmp_path: Path) -> None:
    class WithTokens(Counting):
        async def sample(
            self, request: SampleRequest, on_text: Callable[[str], None]
        ) -> Completion:
            return replace(await super().sample(request, on_text), tokens=TOKENS)

    model, file = WithTokens(), tmp_path / "calls.jsonl"
    first = await KeptPolicy(model, file).sample(REQUEST, print)
    assert first.tokens == TOKENS == (await KeptPolicy(model, file).sample(REQUEST, print)).tokens
    assert model.asked == 1


async def test_a_batch_of_a_model_without_batches_is_kept_turn_by_turn(tmp_path: Path) -> None:
    model, file = Counting(), tmp_path / "calls.jsonl"
    drawn = await KeptPolicy(model, file).sample_many(REQUEST, 3)
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:2]))  # killed
    again = await KeptPolicy(model, file).sample_many(REQUEST, 3)
    assert again[:2] == drawn[:2]
    assert model.asked == 4


async def test_a_batch_that_an_endpoint_gives_one_by_one_is_kept_so(tmp_path: Path) -> None:
    model, file = Batching(), tmp_path / "calls.jsonl"
    drawn = await KeptPolicy(model, file, lambda: False).sample_many(REQUEST, 3)
    assert [one.text for one in drawn] == ["1.0", "2.0", "3.0"]
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:2]))  # killed
    again = await KeptPolicy(model, file, lambda: False).sample_many(REQUEST, 3)
    assert again[:2] == drawn[:2]
    assert model.asked == 4


async def test_a_call_that_failed_or_was_cancelled_is_asked_by_the_next(tmp_path: Path) -> None:
    class Failing(Counting):
        async def sample(
            self, request: SampleRequest, on_text: Callable[[str], None]
        ) -> Completion:
            found = await super().sample(request, on_text)
            if self.asked == 1:
                raise EndpointUnreachableError("gone")
            if self.asked == 2:
                await asyncio.Event().wait()
            return found

    model = Failing()
    policy = KeptPolicy(model, tmp_path / "calls.jsonl")
    with pytest.raises(EndpointUnreachableError):
        await policy.sample(REQUEST, print)
    waiting = asyncio.create_task(policy.sample(REQUEST, print))
    while model.asked < 2:
        await asyncio.sleep(0)
    follower = asyncio.create_task(policy.sample(REQUEST, print))
    waiting.cancel()
    assert (await follower).text == "```3"
    assert not policy._in_flight._works  # nothing is kept of those who waited


def test_all_of_a_request_but_who_waits_for_it_decides_the_key() -> None:
    """A new field of a request must say here whether it decides what the model answers."""
    assert {one.name for one in fields(SampleRequest)} == CHANGES.keys() | WAITS_ALONE.keys()
    plain = completion_key("m", REQUEST)
    changed = [completion_key("m", replace(REQUEST, **{name: CHANGES[name]})) for name in CHANGES]
    more = [completion_key("other", REQUEST), completion_key("m", REQUEST, 1)]
    assert len({plain, *changed, *more}) == len(CHANGES) + 3
    assert completion_key("m", replace(REQUEST, **WAITS_ALONE)) == plain


async def test_damage_is_named_and_can_be_set_aside(tmp_path: Path) -> None:
    model, file = Counting(), tmp_path / "calls.jsonl"
    await KeptPolicy(model, file).sample(REQUEST, print)
    file.write_bytes(b'{"key": 1}\n' + file.read_bytes())
    policy = KeptPolicy(model, file)
    with pytest.raises(LogError, match=r"calls.jsonl, line 1: .*--salvage"):
        await policy.sample(REQUEST, print)
    policy.load(salvages=True)
    await policy.sample(REQUEST, print)
    assert model.asked == 1
