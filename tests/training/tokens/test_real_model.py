"""A trajectory of the real local model, of which nothing that was sampled is tokenised again."""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import pytest

from dm_jupyter.agent.loop import RunSettings, run
from dm_jupyter.core.events import Event
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Completion, Trajectory
from dm_jupyter.models.local.cache import is_present
from dm_jupyter.models.local.catalogue import MODELS
from dm_jupyter.models.local.endpoint import ServerOptions, local_endpoint
from dm_jupyter.models.protocols import SampleRequest
from tests.fakes import ScriptedNotebook, printed
from training.tokens.llama_cpp import LlamaCppEngine
from training.tokens.policy import TokenPolicy

PRESENT = sorted((model for model in MODELS if is_present(model)), key=lambda m: m.size_bytes)

pytestmark = [
    pytest.mark.model,
    pytest.mark.skipif(not PRESENT, reason="no local model: `dm-jupyter model pull smollm2-135m`"),
]
QUESTION = "How many rows does sales.csv have? Run code first, one short cell, then answer."
OUTPUT = "rows: 4711\n"
OPENING, CELLS = "<think>Count the rows.</think>\n<code>\nimport pandas as pd\n", 2


class ListeningEngine(LlamaCppEngine):
    """Notes each text that becomes ids."""

    was_read: list[str]

    async def ids_of(self, text: str, *, is_start: bool) -> array[int]:
        self.was_read.append(text)
        return await super().ids_of(text, is_start=is_start)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[ListeningEngine]:
    options = ServerOptions(runtime_dir=tmp_path / "run")
    async with (
        local_endpoint(PRESENT[0], options) as served,
        ListeningEngine(
            served.base_url, served.model_name, served.api_key, served.queue()
        ) as opened,
    ):
        opened.was_read = []
        yield opened


@dataclass(frozen=True)
class CodeFirst(TokenPolicy):
    """Opens the first turns inside a cell, so that the run has some, whatever the model knows."""

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        turns = sum(message.role == "assistant" for message in request.messages)
        opening = OPENING if turns < CELLS else ""
        return await super().sample(replace(request, prefill=opening), on_text)


def ignore(_: Event) -> None:
    pass


async def test_nothing_sampled_is_tokenised_again(engine: ListeningEngine) -> None:
    start = Trajectory(Task("t", QUESTION), "datamind-published")
    rollout = RunSettings.for_rollouts()
    settings = replace(rollout, stop_on_void=False, max_turns=3, turn_tokens=80, seed=11)
    notebook = ScriptedNotebook([printed(OUTPUT)])
    ended = await run(start, CodeFirst(engine), notebook, settings, ignore)
    turns = [step.completion.tokens for step in ended.steps]
    tokens = [one for one in turns if one is not None]
    assert len(tokens) == len(turns) > CELLS, ended.stop_detail

    for before, after in pairwise(tokens):
        assert not after.is_forked
        assert after.continues(before)
    # One text begins the conversation, and one is appended to each turn but the last. The letter
    # stands in for ids that are no whole character, where the server is asked about them.
    first, *appended = [text for text in engine.was_read if text != "a"]
    assert QUESTION in first
    assert len(appended) == len(tokens) - 1
    for text, step in zip(appended, ended.steps, strict=False):
        assert step.observation in text
        sampled = step.completion.text.removeprefix(OPENING).strip()
        assert sampled
        assert sampled not in text

    # The ids say the text of the turn, and no id is without its log-probability.
    for step, one in zip(ended.steps, tokens, strict=True):
        said = await engine.text_of_ids(one.sampled)
        assert step.completion.prefill + said == step.completion.text + one.end.beyond
        assert all(-60 < logprob <= 0 for logprob in one.logprobs)
    for place in (0, len(tokens[1].sampled) // 2):
        again = await engine._logprob_after(
            tokens[1].prompt + tokens[1].sampled[:place], tokens[1].sampled[place]
        )
        # Read in another batch, a prompt gives other rounding errors.
        assert again == pytest.approx(tokens[1].logprobs[place], abs=0.2)
