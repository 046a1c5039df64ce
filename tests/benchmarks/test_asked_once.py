"""One memory for several ways of asking."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from benchmarks.agents.asked_once import AskedOnce
from dm_jupyter.core.dialect import Message
from dm_jupyter.core.trajectory import Completion
from dm_jupyter.models.protocols import SampleRequest, Urgency

REQUEST = SampleRequest((Message("user", "How many?"),), prefill="```", seed=3)


class Counting:
    """Answers with the number of the request."""

    name = "counting"
    asked = 0

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        self.asked += 1
        number = self.asked
        await asyncio.sleep(0)
        return Completion(f"```{number}", request.prefill, 10, 1, 0.5, mean_probability=0.25)


async def test_the_same_request_is_sent_once_also_at_the_same_time_and_by_a_later_run(
    tmp_path: Path,
) -> None:
    model, file = Counting(), tmp_path / "new" / "asked.jsonl"
    policy = AskedOnce(model, file)
    shown: list[str] = []
    async with asyncio.TaskGroup() as group:
        tried = [
            group.create_task(policy.sample(replace(REQUEST, urgency=one), shown.append))
            for one in (Urgency.QUESTION, Urgency.BACKGROUND)
        ]
    first, second = (one.result() for one in tried)
    assert first == second
    assert shown == ["```1"]  # the model itself shows its own
    with file.open("a") as out:
        out.write('{"request": "cut')
    later = AskedOnce(model, file)
    assert await later.sample(REQUEST, shown.append) == first
    assert model.asked == 1
    other = await later.sample(replace(REQUEST, seed=4), shown.append)
    assert (other.text, model.asked) == ("```2", 2)
    assert await AskedOnce(model, file).sample(replace(REQUEST, seed=4), shown.append) == other
    assert model.asked == 2
