"""Real engines through our own client: what it learns of them is what they do.

The local model's own server is a llama.cpp. A vLLM is asked where one runs:

    DM_JUPYTER_TEST_VLLM_URL=http://127.0.0.1:8000/v1 python -m pytest -m model \
        tests/dm_jupyter/models/test_real_engines.py

Nothing here depends on how clever a model is: a small one that continues a count will do.
"""

import json
import os
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from dm_jupyter.core.dialect import Message
from dm_jupyter.core.dialects.tools import TOOLS, ToolsDialect, call_text
from dm_jupyter.core.errors import ContextFullError, EndpointRefusedError
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Completion, DataContext, RunCell, Step, Trajectory, Void
from dm_jupyter.models.capabilities import Capabilities, CapabilityMemory
from dm_jupyter.models.endpoint_client import Endpoint
from dm_jupyter.models.http_policy import TOOL_PROBE, HttpPolicy
from dm_jupyter.models.local import ServerOptions, local_endpoint
from dm_jupyter.models.local.cache import is_present
from dm_jupyter.models.local.catalogue import DEFAULT_MODEL, name_without_adapter, resolve
from dm_jupyter.models.protocols import SampleRequest
from tests.dm_jupyter.models.pass_through import PassThrough

pytestmark = [pytest.mark.model, pytest.mark.asyncio(loop_scope="module")]
VLLM_URL = os.environ.get("DM_JUPYTER_TEST_VLLM_URL", "")
VLLM_MODEL = os.environ.get("DM_JUPYTER_TEST_VLLM_MODEL", "")
MOST_LOST = 2
COUNT = SampleRequest(
    (Message("user", "Count from one to twenty in digits, separated by commas. Nothing else."),),
    prefill="1, 2, 3, 4,",
    max_tokens=40,
    temperature=0.0,
)
WRITE = SampleRequest(
    (Message("user", "Write a sentence about a fox."),), max_tokens=24, temperature=1.2, top_p=1.0
)
CALL = SampleRequest(
    (
        Message("system", "You run code with the tool run_python. Always call it."),
        Message("user", "Call run_python with the code print(6 * 7)."),
    ),
    tools=TOOLS,
    max_tokens=120,
    temperature=0.0,
)
DIALECT = ToolsDialect()


@dataclass(frozen=True)
class Engine:
    """One that runs, and how to reach it."""

    name: str
    model: str
    api_key: str
    way: PassThrough

    def endpoint(self, model: str = "", known: Capabilities | None = None) -> Endpoint:
        known = known or Capabilities()
        return Endpoint(self.way.base_url, model or self.model, self.api_key, known, retries=0)

    async def says(self, **body: Any) -> dict[str, Any]:
        """Returns the message of a plain request, as the interface has it, without our client."""
        headers = {"Authorization": f"Bearer {self.api_key}"}
        body = {"model": self.model, "temperature": 0, "max_tokens": 256, **body}
        async with httpx2.AsyncClient(timeout=600, headers=headers) as client:
            answer = await client.post(f"{self.way.engine_url}/chat/completions", json=body)
        assert answer.status_code == 200, answer.text
        message: dict[str, Any] = answer.json()["choices"][0]["message"]
        return message


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["llama.cpp", "vllm"])
async def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Engine]:
    if request.param == "vllm":
        if not VLLM_URL:
            pytest.skip("no vLLM: give its address in DM_JUPYTER_TEST_VLLM_URL")
        with PassThrough(VLLM_URL) as way:
            yield Engine("vllm", VLLM_MODEL or await first_model(), "none", way)
        return
    # The default model's adapter knows the dialects that the product asks it in, and no tools.
    model = name_without_adapter(DEFAULT_MODEL)
    if not is_present(resolve(model)):
        pytest.skip("skipped: run `make model` first")
    options = ServerOptions(runtime_dir=tmp_path_factory.mktemp("run"))
    async with local_endpoint(model, options) as served:
        with PassThrough(served.base_url) as way:
            yield Engine("llama.cpp", served.model_name, served.api_key, way)


async def first_model() -> str:
    async with httpx2.AsyncClient(timeout=60) as client:
        return str((await client.get(f"{VLLM_URL}/models")).json()["data"][0]["id"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def policy(
    engine: Engine, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[HttpPolicy]:
    """Knows nothing of the engine until it has learned, opening included."""
    memory = CapabilityMemory(tmp_path_factory.mktemp("memory") / "endpoints.json")
    async with HttpPolicy(engine.endpoint(), memory) as policy:
        await policy.learn()
        await sampled(policy, COUNT)  # the opening is asked about when the first one is sent
        await policy.sample_many(WRITE, 2)
        yield policy


async def sampled(policy: HttpPolicy, request: SampleRequest) -> Completion:
    """Returns a turn, whose pieces are its text."""
    heard: list[str] = []
    done = await policy.sample(request, heard.append)
    if not request.tools:
        assert "".join(heard) == done.text
    return done


def plain(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    return [one.to_json() for one in messages]


async def test_little_is_lost_to_learning_and_what_was_learned_is_kept(
    engine: Engine, tmp_path: Path
) -> None:
    memory = CapabilityMemory(tmp_path / "endpoints.json")
    before = engine.way.refused
    async with HttpPolicy(engine.endpoint(), memory) as policy:
        learned = await policy.learn()
        for request in (COUNT, WRITE, CALL):
            await policy.sample(request, lambda _: None)
        assert learned.tools is not None
        assert policy.capabilities.continues_prefill is not None
    assert engine.way.refused - before <= MOST_LOST
    lost, asked = engine.way.refused, len(engine.way.bodies)
    async with HttpPolicy(engine.endpoint(), memory) as again:
        assert await again.learn() == policy.capabilities
        for request in (COUNT, WRITE, CALL):
            await again.sample(request, lambda _: None)
    assert (engine.way.refused, len(engine.way.bodies)) == (lost, asked + 3)


async def test_tools_are_learned_as_the_engine_takes_them(
    engine: Engine, policy: HttpPolicy
) -> None:
    asked = [{"role": "user", "content": "Call the tool `ready` now."}]
    message = await engine.says(messages=asked, tools=[TOOL_PROBE.to_json()])
    assert policy.capabilities.tools is bool(message.get("tool_calls"))


async def test_an_opening_is_continued_and_neither_answered_nor_repeated(
    policy: HttpPolicy,
) -> None:
    done = await sampled(policy, COUNT)
    if not policy.capabilities.continues_prefill:
        assert done.prefill == ""
        return
    assert done.prefill == COUNT.prefill
    assert re.match(r"1, 2, 3, 4,\s*5,\s*6", done.text)


async def test_an_opening_is_learned_as_the_engine_takes_it(
    engine: Engine, policy: HttpPolicy
) -> None:
    opened = [*plain(COUNT.messages), {"role": "assistant", "content": COUNT.prefill}]
    flags = {"continue_final_message": True, "add_generation_prompt": False}
    text = (await engine.says(messages=opened, **flags))["content"]
    goes_on = text.removeprefix(COUNT.prefill).lstrip().startswith("5")
    assert policy.capabilities.continues_prefill is goes_on


async def test_an_answer_ends_at_a_stop_string(policy: HttpPolicy) -> None:
    stopped = replace(COUNT, stop=("9",), stop_unopened=("9",))
    done = await sampled(policy, stopped)
    assert done.finish_reason == "stop"
    assert "8" in done.text
    assert "9" not in done.text


async def test_an_answer_that_is_too_long_says_so(policy: HttpPolicy) -> None:
    done = await sampled(policy, replace(WRITE, max_tokens=4))
    assert done.finish_reason == "length"
    assert done.text
    assert done.completion_tokens == 4
    assert done.prompt_tokens > 4


async def test_several_answers_come_at_once_and_differ(engine: Engine, policy: HttpPolicy) -> None:
    for is_known in (False, True):  # an engine may draw no more answers at once than it has slots
        asked = len(engine.way.bodies)
        drawn = await policy.sample_many(WRITE, 4)
        requests = engine.way.bodies[asked:]
        assert len(requests) == 1 or not policy.capabilities.takes("n")
        assert len(requests) in ((1, 4) if is_known else (1, 4, 5))
        assert len(drawn) == 4
    assert len({one.text for one in drawn}) > 1
    assert all(one.text.strip() and one.completion_tokens for one in drawn)
    assert drawn[0].prompt_tokens > 0
    for one in drawn:
        assert one.mean_probability is not None
        assert 0 < one.mean_probability <= 1


async def test_a_sure_answer_is_more_probable_than_a_free_one(policy: HttpPolicy) -> None:
    (sure, _) = await policy.sample_many(COUNT, 2)
    (free, _) = await policy.sample_many(WRITE, 2)
    assert sure.mean_probability is not None
    assert free.mean_probability is not None
    assert sure.mean_probability > free.mean_probability


async def test_a_call_is_read_as_the_model_wrote_it(engine: Engine, policy: HttpPolicy) -> None:
    """Natively, or in words: those of the engine's own template, and those of our dialect."""
    tools = [tool.to_json() for tool in TOOLS]
    message = await engine.says(messages=plain(CALL.messages), tools=tools, max_tokens=120)
    done = await sampled(policy, CALL)
    for call in message.get("tool_calls") or ():
        written = call_text(call["function"]["name"], call["function"]["arguments"])
        assert written in done.text
    for text in (message.get("content") or "", done.text):
        if '"run_python"' in text:
            assert isinstance(DIALECT.parse(text).action, RunCell), text
    assert bool(message.get("tool_calls")) is policy.capabilities.tools
    assert not isinstance(DIALECT.parse(done.text).action, Void), done.text


async def test_a_call_is_put_together_from_the_pieces_that_the_engine_streams(
    engine: Engine,
) -> None:
    """The engine is made to call, so that a model that writes its calls as text calls, too."""
    asked = [{"role": "user", "content": "Call the tool `ready` now."}]
    tools = [TOOL_PROBE.to_json()]
    message = await engine.says(messages=asked, tools=tools, tool_choice="required", max_tokens=64)
    if not message.get("tool_calls"):
        pytest.skip("this engine can't make this model call")
    engine.way.must_call = True
    try:
        async with HttpPolicy(engine.endpoint()) as policy:
            assert (await policy.learn()).tools
            done = await sampled(policy, CALL)
    finally:
        engine.way.must_call = False
    turn = DIALECT.parse(done.text)
    assert done.text.startswith("<tool_call>\n")
    assert DIALECT.is_well_formed(done.text), done.text
    assert not isinstance(turn.action, Void)
    assert done.finish_reason == "stop"


async def test_a_call_and_its_result_go_back(engine: Engine, policy: HttpPolicy) -> None:
    text = "I multiply.\n" + call_text("run_python", json.dumps({"code": 'print("6 * 7 =", 42)'}))
    step = Step(Completion(text), DIALECT.parse(text), None, "6 * 7 = 42")
    start = Trajectory(Task("t", "What is 6 * 7?"), "tools", DataContext("no data"))
    messages = DIALECT.messages(start.extended(step))
    lost = engine.way.refused
    done = await sampled(policy, SampleRequest(messages, tools=TOOLS, max_tokens=120))
    assert engine.way.refused == lost
    assert done.text.strip()
    first = await sampled(policy, SampleRequest(messages[:2], tools=TOOLS, max_tokens=4))
    assert done.prompt_tokens > first.prompt_tokens + 20  # both were read


async def test_a_conversation_that_is_too_long_is_full(engine: Engine, policy: HttpPolicy) -> None:
    known = policy.capabilities
    long = SampleRequest((Message("user", "one two three four five " * 8_000),), max_tokens=8)
    with pytest.raises(ContextFullError, match=re.escape(engine.model)):
        await policy.sample(long, lambda _: None)
    assert policy.capabilities == known


async def test_a_limit_above_the_context_costs_nothing_else(
    engine: Engine, policy: HttpPolicy
) -> None:
    stopped = replace(COUNT, stop=("9",), stop_unopened=("9",), max_tokens=1_000_000)
    async with HttpPolicy(engine.endpoint(known=policy.capabilities)) as fresh:
        done = await sampled(fresh, stopped)
        assert replace(fresh.capabilities, most_tokens=0) == policy.capabilities
        lost = engine.way.refused
        await sampled(fresh, stopped)
    assert "8" in done.text
    assert engine.way.refused == lost


async def test_a_model_that_is_not_there_is_named(engine: Engine) -> None:
    async with HttpPolicy(engine.endpoint("no-such-model")) as policy:
        if engine.name == "llama.cpp":  # serves one model, whatever it is called
            assert (await policy.learn()).continues_prefill
            return
        with pytest.raises(EndpointRefusedError, match=r"404.*no-such-model.*--model") as caught:
            await policy.learn()
        assert caught.value.status == 404
        assert policy.capabilities == Capabilities()


async def test_no_request_is_refused_any_more(engine: Engine, policy: HttpPolicy) -> None:
    lost = engine.way.refused
    for request in (COUNT, WRITE, CALL):
        await policy.sample(request, lambda _: None)
        await policy.sample_many(request, 2)
    assert engine.way.refused == lost
