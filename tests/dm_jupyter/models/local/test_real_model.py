"""The real engine with the smallest real model of the cache."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import openai
import psutil
import pytest
from openai.types.chat import ChatCompletion

from dm_jupyter.models.local.cache import is_present
from dm_jupyter.models.local.catalogue import MODELS
from dm_jupyter.models.local.endpoint import LocalEndpoint, ServerOptions, local_endpoint
from dm_jupyter.models.local.errors import ServerStartError
from dm_jupyter.models.local.tickets import Need, Ticket, Urgency
from tests.waiting import PATIENCE_S

PRESENT = sorted((model for model in MODELS if is_present(model)), key=lambda m: m.size_bytes)

pytestmark = [
    pytest.mark.model,
    pytest.mark.skipif(not PRESENT, reason="no local model: `dm-jupyter model pull smollm2-135m`"),
]


@pytest.fixture
async def endpoint(tmp_path: Path) -> AsyncIterator[LocalEndpoint]:
    async with local_endpoint(PRESENT[0], ServerOptions(runtime_dir=tmp_path / "run")) as served:
        yield served


@pytest.fixture
async def client(endpoint: LocalEndpoint) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(
        base_url=endpoint.base_url, api_key=endpoint.api_key, max_retries=0, timeout=600
    ) as client:
        yield client


async def test_prefill_stop_logprobs_and_cached_prefix(
    endpoint: LocalEndpoint, client: openai.AsyncOpenAI
) -> None:
    question = "Count upwards. " * 40
    for turn in range(2):
        answer = await client.chat.completions.create(
            model=endpoint.model_name,
            messages=[
                {"role": "user", "content": question},
                {"role": "assistant", "content": "1, 2, 3, 4,"},
            ],
            stop=["9"],
            max_tokens=30,
            temperature=0,
            logprobs=True,
        )
        choice = answer.choices[0]
        assert choice.message.content is not None
        # The whole message comes back, prefill included; the log-probabilities begin after it.
        assert choice.message.content.startswith("1, 2, 3, 4, 5, 6")
        assert "9" not in choice.message.content
        assert choice.logprobs is not None
        assert choice.logprobs.content is not None
        assert "4" not in "".join(token.token for token in choice.logprobs.content)
        assert answer.usage is not None
        details = answer.usage.prompt_tokens_details
        assert details is not None
        cached = details.cached_tokens or 0
        assert cached > 50 if turn else cached == 0


async def test_stream_that_is_closed_stops_the_engine(
    endpoint: LocalEndpoint, client: openai.AsyncOpenAI
) -> None:
    stream = await client.chat.completions.create(
        model=endpoint.model_name,
        messages=[{"role": "user", "content": "Write a very long story about a fox."}],
        stream=True,
        max_tokens=4000,
    )
    async for _ in stream:
        break
    await stream.close()
    process = psutil.Process(int((endpoint.key_file.parent / "alive.lock").read_text()))
    async with asyncio.timeout(PATIENCE_S):
        before = -1.0
        # Quiet for half a second: a token takes milliseconds, thousands were asked for.
        while (now := process.cpu_times().user) - before > 0.05:
            before = now
            await asyncio.sleep(0.5)
    assert process.is_running()  # the engine rests, and has not died


async def test_a_prompt_that_gives_way_is_read_no_further_and_not_again(
    endpoint: LocalEndpoint, client: openai.AsyncOpenAI
) -> None:
    async def ask(_: Ticket) -> ChatCompletion:
        return await client.chat.completions.create(
            model=endpoint.model_name,
            messages=[{"role": "user", "content": "Count upwards from here. " * 400}],
            max_tokens=1,
        )

    queue = endpoint.queue()
    reading = asyncio.create_task(queue.answered(Need(Urgency.BACKGROUND, 1, 3000), ask))
    await asyncio.sleep(3)  # the engine tells nothing of a prompt that it is reading
    answer = await queue.answered(Need(Urgency.QUESTION, 1, 3000), ask)
    reading.cancel()
    await asyncio.wait([reading])
    assert answer.usage is not None
    details = answer.usage.prompt_tokens_details
    assert details is not None
    # What was read until then is kept, and it is not the whole.
    assert 0 < (details.cached_tokens or 0) < answer.usage.prompt_tokens


async def test_key_is_required_and_pages_are_kept_out(
    endpoint: LocalEndpoint, client: openai.AsyncOpenAI
) -> None:
    with pytest.raises(openai.AuthenticationError):
        await client.with_options(api_key="guess").models.list()
    answer = await client.models.with_raw_response.list(
        extra_headers={"Origin": "http://elsewhere.example"}
    )
    assert answer.headers["Access-Control-Allow-Origin"] not in {"*", "http://elsewhere.example"}
    assert [model.id for model in answer.parse().data] == [endpoint.model_name]


async def test_damaged_file_is_explained(tmp_path: Path) -> None:
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"GGUF" + bytes(1000))
    with pytest.raises(ServerStartError, match=r"(?s)bad\.gguf.*error loading model"):
        async with local_endpoint(str(bad), ServerOptions(runtime_dir=tmp_path / "run")):
            pass
