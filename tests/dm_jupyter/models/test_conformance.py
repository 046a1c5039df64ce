"""Every family answers every question, and loses few requests to what it does not take."""

import asyncio
import json
import re
from dataclasses import replace
from functools import partial

import pytest
import pytest_asyncio

from dm_jupyter.agent.loop import RunSettings, run
from dm_jupyter.agent.notebook import HeadlessNotebook
from dm_jupyter.core.dialect import Message
from dm_jupyter.core.errors import EndpointRefusedError
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import DataContext, StopReason, Trajectory
from dm_jupyter.models.capabilities import Capabilities, CapabilityMemory
from dm_jupyter.models.endpoint_client import Endpoint
from dm_jupyter.models.http_policy import PROBE_OPENING, TOOL_PROBE, HttpPolicy
from dm_jupyter.models.opening import AUTO, chosen_dialect
from dm_jupyter.models.protocols import SampleRequest
from dm_jupyter.presets import presets
from kernel_sandbox.runners.session import KernelSession
from tests.dm_jupyter.models.families import FAMILIES, family
from tests.dm_jupyter.models.scripted_replies import Replies, failing, turn
from tests.dm_jupyter.models.stand_in import Fault, ScriptedModelRequest, ScriptedTurn, StandIn

pytestmark = pytest.mark.asyncio(loop_scope="module")
QUESTIONS = (6, pytest.param(20, marks=pytest.mark.slow))
"""So many; half of them come after a restart."""
OPENING = "import pandas as pd\nimport numpy as np\n"
MOST_LOST = 2
ASKED = SampleRequest((Message("user", "How many?"),))
OPENED = replace(ASKED, prefill="```python\nimport pandas\n", stop=("\n```",))
families = pytest.mark.parametrize("one", FAMILIES, ids=lambda one: one.name)


def model(request: ScriptedModelRequest) -> ScriptedTurn:
    """A capable model: computes in a cell, then says what the cell printed."""
    asked = next(one["content"] for one in request.messages if one["role"] == "user")
    if request.tools == (TOOL_PROBE.name,):
        return ScriptedTurn("", tool_calls=((TOOL_PROBE.name, "{}"),))
    if TOOL_PROBE.name in asked:  # the same without the tool, where that was refused
        return ScriptedTurn("I have no tools.")
    if "Count from one" in asked:
        numbers = " four five six seven eight nine"
        return ScriptedTurn(numbers if request.prefill else PROBE_OPENING + numbers)
    number = re.search(r"question (\d+)", asked)[1]
    printed = re.findall(r"result is (\d+)", str(request.messages[-1]["content"]))
    thought = "The question wants one number. ```python\nnot this\n```"
    if request.tools:
        return ScriptedTurn("One step more.", thought, (_call(number, printed),))
    if printed:
        return ScriptedTurn(f"It is {printed[-1]}.", thought)
    code = f"print('result is', {number} * 111)\n```\nThe output is 12345."
    opening = "" if request.prefill else "I compute it.\n```python\n"
    return ScriptedTurn(opening + code, "" if request.prefill else thought)


def model_that_counts(request):
    """Continues the opening that finds out whether it is continued; any other one, too."""
    if "Count from one" in str(request.messages):
        return ScriptedTurn(" four five six")
    return ScriptedTurn("print(3)")


def _call(number, printed):
    if printed:
        return "answer", json.dumps({"text": f"It is {printed[-1]}."})
    return "run_python", json.dumps({"code": f"print('result is', {number} * 111)"})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kernel():
    async with KernelSession() as session:
        yield session


async def answered(kernel, policy, number, dialect=AUTO):
    dialect = await chosen_dialect(dialect, policy)
    task = Task(f"q{number}", f"This is question {number}: what is {number} * 111?")
    start = Trajectory(task, dialect, DataContext("no data", OPENING))
    notebook = HeadlessNotebook(kernel, (), None)
    notebook.ask(task)
    return await run(start, policy, notebook, RunSettings(max_turns=4), lambda _: None)


def endpoint_of(stand_in, one, **kwargs):
    return Endpoint(stand_in.base_url, one.model, "key", retries=0, **kwargs)


@families
@pytest.mark.parametrize("dialect", [AUTO, "markdown"])
@pytest.mark.parametrize("questions", QUESTIONS)
async def test_every_question_is_answered_and_few_requests_are_lost(
    kernel, one, dialect, questions, tmp_path
):
    memory = CapabilityMemory(tmp_path / "endpoints.json")
    numbers = range(1, questions + 1)
    first = numbers[: questions // 2]
    with StandIn(one, model) as stand_in:
        for part in (first, numbers[len(first) :]):
            async with HttpPolicy(endpoint_of(stand_in, one), memory) as policy:
                for number in part:
                    done = await answered(kernel, policy, number, dialect)
                    assert (done.stop, done.answer) == (
                        StopReason.ANSWERED,
                        f"It is {number * 111}.",
                    ), done.stop_detail
                    assert done.turns == 2
                    assert all("not this" not in step.completion.text for step in done.steps)
            if part is first:
                lost = stand_in.refused
                assert lost <= MOST_LOST
        assert stand_in.refused == lost  # none after a restart


@families
async def test_what_a_preset_says_loses_no_more(kernel, one, tmp_path):
    name = {"openai-chat": "openai", "llama-cpp": "llama.cpp"}.get(one.name, one.name)
    if name not in presets():
        pytest.skip("no preset for this family")
    known = Capabilities.from_json(presets()[name].capabilities)
    memory = CapabilityMemory(tmp_path / "endpoints.json")
    with StandIn(one, model) as stand_in:
        async with HttpPolicy(endpoint_of(stand_in, one, capabilities=known), memory) as policy:
            assert (await answered(kernel, policy, 3)).answer == "It is 333."
        assert stand_in.refused <= 1


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("name", ["openai-chat", "vllm-plain"])
async def test_a_fault_ends_in_a_message_or_is_got_over(kernel, name, fault):
    one = family(name)
    known = Capabilities(name == "vllm-plain", name != "vllm-plain")
    with StandIn(one, model, fault=fault, fault_times=1, slow_s=0.3) as stand_in:
        endpoint = replace(endpoint_of(stand_in, one, capabilities=known), retries=2)
        async with HttpPolicy(endpoint) as policy:
            done = await answered(kernel, policy, 4)
            if done.stop is StopReason.FAULT:
                assert one.model in done.stop_detail
                assert done.turns == 0
                done = await answered(kernel, policy, 4)
    assert done.answer == "It is 444."


async def test_an_endpoint_that_always_fails_is_told_at_once(kernel):
    one = family("openai-chat")
    ask = partial(endpoint_of, one=one, capabilities=Capabilities(False, True))
    for fault in Fault:
        if fault in (Fault.SLOW, Fault.NO_USAGE, Fault.ODD_FINISH):
            continue
        with StandIn(one, model, fault=fault, fault_times=99) as stand_in:
            async with HttpPolicy(ask(stand_in)) as policy:
                done = await answered(kernel, policy, 4)
            assert (done.stop, done.turns) == (StopReason.FAULT, 0), fault
            assert len(stand_in.bodies) <= MOST_LOST + 1


async def test_several_turns_come_from_every_family():
    for one in FAMILIES:
        with StandIn(one, lambda _: ScriptedTurn("It is 3.")) as stand_in:
            async with HttpPolicy(endpoint_of(stand_in, one)) as policy:
                drawn = await policy.sample_many(ASKED, 3)
                assert [turn.text for turn in drawn] == ["It is 3."] * 3, one.name


@pytest.mark.parametrize(
    ("name", "context", "images", "price"),
    [
        ("openrouter", 131_072, True, (0.4, 1.6)),
        ("groq", 131_072, None, None),
        ("mistral", 32_768, False, None),
        ("vllm", 8_192, None, None),
        ("deepseek", None, None, None),
    ],
)
async def test_what_a_list_of_models_says_is_shown_and_kept(name, context, images, price, tmp_path):
    one, memory = family(name), CapabilityMemory(tmp_path / "endpoints.json")
    with StandIn(one, model) as stand_in:
        endpoint = endpoint_of(stand_in, one)
        async with HttpPolicy(endpoint, memory) as policy:
            found = await policy.describe()
    assert (found.context_tokens, found.images) == (context, images)
    assert found.price == (pytest.approx(price) if price else None)
    assert memory.recall(endpoint.address, one.model) == found


async def test_a_model_that_thinks_at_length_gets_room_for_it(kernel):
    """Its thoughts use up the first limit, that of the tiny question about tools included."""
    one = family("vllm")

    def thinks(request):
        turn = model(request)
        return replace(turn, reasoning="so " * 1500)

    with StandIn(one, thinks) as stand_in:
        async with HttpPolicy(endpoint_of(stand_in, one)) as policy:
            done = await answered(kernel, policy, 6)
            assert policy.capabilities.tools
    assert done.answer == "It is 666."


async def test_turns_sampled_at_once_wait_for_what_is_learned():
    one = family("openrouter")  # answers an opening instead of continuing it

    def writes(request):
        if "Count from one" in request.messages[0]["content"]:
            return ScriptedTurn(PROBE_OPENING)
        return ScriptedTurn("```python\nprint(3)\n```")

    with StandIn(one, writes) as stand_in:
        async with HttpPolicy(endpoint_of(stand_in, one)) as policy, asyncio.TaskGroup() as group:
            tasks = [group.create_task(policy.sample(OPENED, lambda _: None)) for _ in range(5)]
    assert {task.result().prefill for task in tasks} == {""}
    assert len(stand_in.bodies) == 6


@pytest.mark.parametrize(
    ("fault", "status"), [(Fault.UNAUTHORIZED, "401"), (Fault.SERVER_ERROR, "500")]
)
async def test_a_wrong_key_or_an_outage_is_no_ability(fault, status, tmp_path):
    one = family("openai-chat")
    memory = CapabilityMemory(tmp_path / "endpoints.json")
    with StandIn(one, model, fault=fault, fault_times=9) as stand_in:
        async with HttpPolicy(endpoint_of(stand_in, one), memory) as policy:
            with pytest.raises(EndpointRefusedError, match=status):
                await policy.learn()
            assert policy.capabilities == Capabilities()
        assert memory.recall(stand_in.base_url, one.model) is None


async def test_several_turns_without_chance_are_asked_for_one_by_one():
    """A vLLM refuses `n` at temperature 0, and that says nothing of what else it takes."""
    one = family("vllm")
    with StandIn(one, model_that_counts) as stand_in:
        async with HttpPolicy(endpoint_of(stand_in, one)) as policy:
            await policy.sample(OPENED, lambda _: None)
            learned = policy.capabilities
            drawn = await policy.sample_many(replace(OPENED, temperature=0.0), 3)
            assert policy.capabilities == learned
            assert learned.continues_prefill
    assert [turn.prefill for turn in drawn] == [OPENED.prefill] * 3
    assert all(turn.mean_probability for turn in drawn)
    assert stand_in.refused == 0


async def test_what_has_worked_is_not_dropped_for_a_refusal_that_names_nothing():
    one = replace(family("vllm"), refuses={"n": ""}, refused_says="This can't be done.")
    with StandIn(one, model_that_counts) as stand_in:
        async with HttpPolicy(endpoint_of(stand_in, one)) as policy:
            await policy.sample(OPENED, lambda _: None)
            drawn = await policy.sample_many(OPENED, 3)
            assert policy.capabilities.continues_prefill
            assert policy.capabilities.takes("continue_final_message")
            assert not policy.capabilities.takes("n")
    assert [turn.prefill for turn in drawn] == [OPENED.prefill] * 3
    assert stand_in.refused == 1


async def test_a_limit_that_is_too_large_becomes_a_smaller_one(tmp_path):
    one = replace(family("vllm"), most_tokens=700)
    memory = CapabilityMemory(tmp_path / "endpoints.json")
    with StandIn(one, model_that_counts) as stand_in:
        for _ in range(2):
            async with HttpPolicy(endpoint_of(stand_in, one), memory) as policy:
                assert (await policy.sample(ASKED, lambda _: None)).text
                assert (policy.capabilities.token_limit, policy.capabilities.refused) == (
                    "max_tokens",
                    frozenset(),
                )
        assert stand_in.bodies[-1]["max_tokens"] == 700
        assert stand_in.refused == 1


@pytest.mark.parametrize("name", ["vllm-plain", "vllm"])
async def test_tools_that_an_endpoint_does_not_take_are_told_in_words(kernel, name):
    """The dialect `tools` was chosen, and the model writes its calls as text."""
    one = family(name)

    def writes(request):
        if "Count from one" in str(request.messages):
            return ScriptedTurn(" four five six")
        told = request.messages[0]["content"]
        if request.tools or "<tool_call>" not in told or '"query"' not in told:
            return ScriptedTurn("I can't.")
        seen = str(request.messages[-1]["content"])
        printed = re.findall(r"result is (\d+)", seen)
        assert {one["role"] for one in request.messages} <= {"system", "user", "assistant"}
        if len(request.messages) > 2:
            assert "<tool_call>" in request.messages[-2]["content"]
            assert printed
        name, arguments = _call("7", printed)
        call = json.dumps({"name": name, "arguments": json.loads(arguments)})
        return ScriptedTurn(f"I multiply.\n<tool_call>\n{call}\n</tool_call>")

    with StandIn(one, writes) as stand_in:
        async with HttpPolicy(endpoint_of(stand_in, one)) as policy:
            done = await answered(kernel, policy, 7, "tools")
            assert policy.capabilities.tools is False
    assert (done.stop, done.answer) == (StopReason.ANSWERED, "It is 777."), done.stop_detail
    assert stand_in.refused <= 1


@pytest.mark.parametrize(
    ("status", "said"),
    [(400, "Budget has been exceeded! Max budget: 10.0"), (500, "the tool of billing failed")],
)
async def test_a_refusal_of_every_request_is_not_one_of_tools(status, said, tmp_path):
    memory = CapabilityMemory(tmp_path / "endpoints.json")
    with Replies(lambda _: failing(status, said)) as server:
        endpoint = Endpoint(server.base_url, "m", "key-0123", retries=0)
        async with HttpPolicy(endpoint, memory) as policy:
            with pytest.raises(EndpointRefusedError, match=said):
                await policy.learn()
            assert policy.capabilities == Capabilities()
    assert "tools" not in server.bodies[-1]
    assert memory.recall(endpoint.address, "m") is None


async def test_an_endpoint_that_takes_a_request_without_tools_has_none(tmp_path):
    memory = CapabilityMemory(tmp_path / "endpoints.json")

    def reply(body):
        return failing(400, "bad request") if body.get("tools") else turn("four")

    with Replies(reply) as server:
        endpoint = Endpoint(server.base_url, "m", "key-0123", retries=0)
        async with HttpPolicy(endpoint, memory) as policy:
            assert (await policy.learn()).tools is False
    assert memory.recall(endpoint.address, "m").tools is False


@pytest.mark.parametrize(
    ("said", "is_allowed", "refused"),
    [
        ("temperature: range: 0..1", lambda t: t <= 1, ()),
        ("`temperature` must be strictly positive", lambda t: t > 0, ()),
        ("temperature is not supported", lambda _: False, ("temperature", "top_p")),
    ],
)
async def test_a_temperature_out_of_range_says_nothing_of_another(
    said, is_allowed, refused, tmp_path
):
    memory = CapabilityMemory(tmp_path / "endpoints.json")

    def reply(body):
        return turn("3") if is_allowed(body.get("temperature", 0.5)) else failing(400, said)

    def reply_without(body):
        return failing(400, said) if "temperature" in body else turn("3")

    known = Capabilities(False, True)
    with Replies(reply_without if refused else reply) as server:
        endpoint = Endpoint(server.base_url, "m", "key-0123", known, retries=0)
        async with HttpPolicy(endpoint, memory) as policy:
            await policy.sample(replace(ASKED, temperature=0.0), lambda _: None)
            await policy.sample(replace(ASKED, temperature=0.7), lambda _: None)
            assert policy.capabilities.refused == set(refused)
    assert server.bodies[-1].get("temperature") == (None if refused else 0.7)


async def test_a_chosen_temperature_that_is_out_of_range_is_refused():
    known = Capabilities(False, True)
    with Replies(lambda _: failing(400, "temperature: range: 0..1")) as server:
        endpoint = Endpoint(server.base_url, "m", "key-0123", known, retries=0)
        async with HttpPolicy(endpoint) as policy:
            with pytest.raises(EndpointRefusedError, match=r"range: 0\.\.1"):
                await policy.sample(replace(ASKED, temperature=1.5), lambda _: None)
            assert policy.capabilities == known
    assert len(server.bodies) == 1
