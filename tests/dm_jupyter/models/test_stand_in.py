"""The stand-in endpoints follow the rules of their families."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from tests.dm_jupyter.models.families import FAMILIES, Family, family
from tests.dm_jupyter.models.stand_in import Fault, ScriptedModelRequest, ScriptedTurn, StandIn

OPENING = "The mean"
TOOL = {"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}
CALLING = {"tools": [TOOL]}
QUESTION = {"role": "user", "content": "What is the mean?"}
every_family = pytest.mark.parametrize("one", FAMILIES, ids=lambda one: one.name)


def speaks(request: ScriptedModelRequest) -> ScriptedTurn:
    if request.tools:
        return ScriptedTurn("Let me see.", tool_calls=(("run", '{"code": "1 + 1"}'), ("run", "{}")))
    return ScriptedTurn(" is 4. END never" if request.prefill else "The mean is 4.", "I add up.")


def asks(stand_in: StandIn, *messages: dict[str, Any], **fields: Any) -> httpx2.Response:
    body = {"model": stand_in.family.model, "messages": [QUESTION, *messages], "stream": True}
    with httpx2.Client(timeout=60, verify=False) as client:  # all is local
        return client.post(f"{stand_in.base_url}/chat/completions", json={**body, **fields})


def events(answer: httpx2.Response) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    data = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in data if line != "[DONE]"]


def deltas(answer: httpx2.Response) -> list[dict[str, Any]]:
    choices = [choice for event in events(answer) for choice in event["choices"]]
    return [choice["delta"] for choice in choices if "delta" in choice]


def said(answer: httpx2.Response, name: str = "content") -> str:
    return "".join(delta.get(name) or "" for delta in deltas(answer))


def finishes(answer: httpx2.Response) -> list[str]:
    choices = [choice for event in events(answer) for choice in event["choices"]]
    return [choice["finish_reason"] for choice in choices if choice["finish_reason"]]


def test_there_are_enough_families_with_sources() -> None:
    assert len({one.name for one in FAMILIES}) == len(FAMILIES) >= 14
    assert all(url.startswith("https://") for one in FAMILIES for url in one.docs)
    assert all(one.docs for one in FAMILIES)


@every_family
def test_streams_text_and_reasoning_as_the_family_does(one: Family) -> None:
    with StandIn(one, speaks) as stand_in:
        answer = asks(stand_in)
        assert finishes(answer) == ["stop"]
        if one.reasoning == "think":
            assert said(answer) == "<think>\nI add up.\n</think>\n\nThe mean is 4."
        else:
            assert said(answer) == "The mean is 4."
        if one.reasoning not in {"hidden", "think"}:
            assert said(answer, one.reasoning) == "I add up."
        assert answer.text.endswith("data: [DONE]\n\n")
        comments = {line for line in answer.text.splitlines() if line.startswith(":")}
        assert comments == ({f": {one.comment}"} if one.comment else set())
        assert (not events(answer)[0]["choices"]) == one.empty_choices_first
        assert (stand_in.answered, stand_in.refused, len(stand_in.bodies)) == (1, 0, 1)


@every_family
def test_a_final_assistant_message(one: Family) -> None:
    messages = {"role": "assistant", "content": OPENING}
    with StandIn(one, speaks) as stand_in:
        plain = asks(stand_in, messages)
        if one.last_assistant in {"refuses", "prefix"}:
            assert plain.status_code == 400
            assert one.last_assistant_says in plain.text
            assert (stand_in.refused, stand_in.answered, stand_in.seen) == (1, 0, [])
        elif one.last_assistant == "continues":
            assert said(plain).startswith(OPENING) == one.echoes_prefill
            assert said(plain).endswith(" is 4. END never")
        else:
            assert said(plain).endswith("The mean is 4.")
            assert stand_in.seen[0].prefill == ""


@pytest.mark.parametrize("name", ["mistral", "deepseek-beta", "vllm", "vllm-plain"])
def test_continues_only_where_it_is_told_to(name: str) -> None:
    prefixed = family(name).last_assistant == "prefix"
    message = {"role": "assistant", "content": OPENING, **({"prefix": True} if prefixed else {})}
    flags = {"continue_final_message": True, "add_generation_prompt": False}
    with StandIn(family(name), speaks) as stand_in:
        answer = asks(stand_in, message, stop=[" END"], **({} if prefixed else flags))
        assert said(answer).endswith(" is 4.")
        assert said(answer).startswith(OPENING) == family(name).echoes_prefill
        assert stand_in.seen[0].prefill == OPENING


@pytest.mark.parametrize(
    ("name", "fields", "status", "says"),
    [
        ("openai", {"max_tokens": 9}, 400, "Use 'max_completion_tokens' instead."),
        ("openai", {"stop": ["x"]}, 400, "'stop' is not supported with this model"),
        ("openai", {"temperature": 0.5}, 400, "'temperature' does not support 0.5"),
        ("openai", {"top_p": 0.9}, 400, "top_p"),
        ("openai", {"logprobs": True}, 400, "logprobs"),
        ("openai-chat", {"continue_final_message": True}, 400, "Unrecognized request argument"),
        ("azure", {"chat_template_kwargs": {}}, 400, "Unrecognized request argument"),
        ("anthropic", {"n": 2}, 400, "n: must be 1"),
        ("anthropic", {"stop": ["\n"]}, 400, "non-whitespace"),
        ("gemini", {"seed": 1}, 400, 'Unknown name \\"seed\\"'),
        ("mistral", {"seed": 1}, 422, "extra_forbidden"),
        ("mistral", {"max_completion_tokens": 9}, 422, "extra_forbidden"),
        ("groq", {"logprobs": True}, 400, "logprobs"),
        ("groq", {"n": 2}, 400, "'n'"),
        ("groq", {"continue_final_message": True}, 400, "is unsupported"),
        ("deepseek", {"logprobs": True}, 400, "logprobs"),
        ("fireworks", {"made_up": 1}, 400, "field: 'made_up', value: 1."),
        ("litellm", {"seed": 1}, 400, "does not support parameters: ['seed']"),
        ("vllm", {"continue_final_message": True}, 400, "Cannot set both"),
        ("vllm-plain", CALLING, 400, "--tool-call-parser"),
        ("llama-cpp", {"logprobs": True, **CALLING}, 400, "tools + stream"),
        ("llama-cpp-thinking", {"n": 2}, 400, "Only one completion choice"),
    ],
)
def test_refuses(name: str, fields: dict[str, Any], status: int, says: str) -> None:
    with StandIn(family(name), speaks) as stand_in:
        answer = asks(stand_in, **fields)
        assert answer.status_code == status
        assert says in answer.text
        assert (stand_in.refused, stand_in.answered, stand_in.seen) == (1, 0, [])


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("openai", {"max_completion_tokens": 90, "temperature": 1}),
        ("anthropic", {"seed": 1, "logprobs": True, "n": 1}),
        ("mistral", {"random_seed": 1}),
        ("openrouter", {"made_up": 1, "continue_final_message": True}),
        ("deepseek", {"temperature": 0.5}),
        ("litellm-drops", {"seed": 1, "n": 2}),
        ("ollama", {"n": 3, "continue_final_message": True}),
        ("lm-studio", {"logprobs": True, "n": 2}),
    ],
)
def test_takes_without_effect(name: str, fields: dict[str, Any]) -> None:
    with StandIn(family(name), speaks) as stand_in:
        answer = asks(stand_in, **fields)
        assert said(answer) == "The mean is 4."
        assert "logprobs" not in answer.text


def test_errors_have_the_shape_of_the_family() -> None:
    shapes = {}
    for one in FAMILIES:
        with StandIn(one, speaks, fault=Fault.UNAUTHORIZED) as stand_in:
            shapes[one.name] = asks(stand_in).json()
    assert isinstance(shapes["gemini"], list)
    assert shapes["mistral"]["message"] == "Invalid API key"
    assert shapes["openrouter"]["error"]["code"] == 401
    assert shapes["anthropic"]["type"] == "error"
    with StandIn(family("openai"), speaks) as stand_in:
        error = asks(stand_in, max_tokens=9).json()["error"]
    assert (error["param"], error["code"]) == ("max_tokens", "unsupported_parameter")


@every_family
def test_calls_tools_as_the_family_does(one: Family) -> None:
    if one.tools_refused:
        return
    with StandIn(one, speaks) as stand_in:
        answer = asks(stand_in, **CALLING)
        pieces = [call for delta in deltas(answer) for call in delta.get("tool_calls", ())]
        joined = "".join(piece["function"]["arguments"] for piece in pieces)
        assert joined == '{"code": "1 + 1"}{}'
        assert (len(pieces) > 2) == one.arguments_in_pieces
        assert all(("index" in piece) == one.tool_index for piece in pieces)
        assert finishes(answer) == [one.tool_finish]
        assert stand_in.seen[0].tools == ("run",)


@every_family
def test_the_usage_comes_as_the_family_sends_it(one: Family) -> None:
    known = "stream_options" in one.known
    asked = {"stream_options": {"include_usage": True}} if known else {}
    with StandIn(one, speaks) as stand_in:
        unasked = [event for event in events(asks(stand_in)) if event.get("usage")]
        assert bool(unasked) == (one.usage == "always")
        last = events(asks(stand_in, **asked))[-1]
        assert last["usage"]["completion_tokens"] == 7
        assert bool(last["choices"]) == (one.usage_in == "last chunk")


def test_stop_strings_limits_choices_and_probabilities_work() -> None:
    with StandIn(family("vllm"), speaks) as stand_in:
        stopped = asks(stand_in, stop=" is")
        assert (said(stopped), finishes(stopped)) == ("The mean", ["stop"])
        cut = asks(stand_in, max_tokens=5)
        assert (said(cut), finishes(cut)) == ("The mean", ["length"])  # after three of reasoning
        two = asks(stand_in, n=2, logprobs=True)
        assert finishes(two) == ["stop", "stop"]
        assert two.text.count('"logprob": -0.1') == 8
        whole = asks(stand_in, stream=False).json()["choices"][0]["message"]
        assert (whole["content"], whole["reasoning"]) == ("The mean is 4.", "I add up.")
        called = asks(stand_in, stream=False, **CALLING).json()["choices"][0]["message"]
        arguments = [call["function"]["arguments"] for call in called["tool_calls"]]
        assert arguments == ['{"code": "1 + 1"}', "{}"]
    with StandIn(replace(family("vllm"), ends_with_done=False), speaks) as stand_in:
        assert "[DONE]" not in asks(stand_in).text


def test_no_tool_is_called_where_none_was_sent() -> None:
    with StandIn(family("ollama"), lambda _: ScriptedTurn("", "", (("run", "{}"),))) as stand_in:
        assert (said(asks(stand_in)), finishes(asks(stand_in))) == ("", ["stop"])
        assert "tool_calls" not in asks(stand_in).text


def test_a_limit_that_a_family_ignores_is_none() -> None:
    with StandIn(family("ollama"), speaks) as stand_in:
        assert finishes(asks(stand_in, max_completion_tokens=1)) == ["stop"]
        assert finishes(asks(stand_in, max_tokens=1)) == ["length"]


@every_family
def test_lists_its_model(one: Family) -> None:
    with StandIn(one, speaks) as stand_in, httpx2.Client(timeout=60, verify=False) as client:
        answer = client.get(f"{stand_in.base_url}/models")
        assert answer.status_code == (200 if one.lists_models else 404)
        assert not one.lists_models or answer.json()["data"][0]["id"] == one.model
        assert client.post(stand_in.base_url + "/elsewhere", json={}).status_code == 404


@pytest.mark.parametrize(
    ("fault", "status"),
    [(Fault.RATE_LIMIT, 429), (Fault.SERVER_ERROR, 500), (Fault.UNAUTHORIZED, 401)],
)
def test_an_error_comes_as_often_as_it_is_told_to(fault: Fault, status: int) -> None:
    with StandIn(family("groq"), speaks, fault=fault, fault_times=2, retry_after="3") as stand_in:
        answers = [asks(stand_in) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [status, status, 200]
        assert (answers[0].headers.get("retry-after") == "3") == (status == 429)
        assert (stand_in.refused, stand_in.answered) == (0 if status == 500 else 2, 1)
        assert len(stand_in.bodies) == 3


@pytest.mark.parametrize("fault", [Fault.RESET, Fault.HALF])
def test_a_connection_breaks_once(fault: Fault) -> None:
    with StandIn(family("ollama"), speaks, fault=fault) as stand_in:
        with pytest.raises(httpx2.TransportError):
            asks(stand_in)
        assert said(asks(stand_in)) == "The mean is 4."
        assert (stand_in.answered, len(stand_in.bodies)) == (1, 2)


def test_a_spoilt_answer_comes_once() -> None:
    asked = {"stream_options": {"include_usage": True}}
    spoilt = {}
    for fault in (Fault.SLOW, Fault.HTML, Fault.EMPTY_CHOICES, Fault.NO_USAGE, Fault.ODD_FINISH):
        with StandIn(family("azure"), speaks, fault=fault, slow_s=0.2) as stand_in:
            spoilt[fault] = asks(stand_in, **asked)
            good = asks(stand_in, **asked)
            assert (said(good), finishes(good)) == ("The mean is 4.", ["stop"])
            assert '"usage"' in good.text
    assert spoilt[Fault.SLOW].elapsed.total_seconds() >= 0.2
    assert spoilt[Fault.HTML].headers["content-type"] == "text/html"
    assert deltas(spoilt[Fault.EMPTY_CHOICES]) == []
    assert '"usage"' not in spoilt[Fault.NO_USAGE].text
    assert finishes(spoilt[Fault.ODD_FINISH]) == ["vibes_exhausted"]
