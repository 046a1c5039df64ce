"""What is learned of an endpoint: from its refusals, on disk, and for how long."""

import json
import time

import pytest

from dm_jupyter.models.capabilities import (
    Capabilities,
    CapabilityMemory,
    largest_limit,
    named_field,
    names_context,
    refuses_prefill,
)

SENT = ("temperature", "top_p", "max_tokens", "stop", "n", "seed", "continue_final_message")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (
            {
                "message": "Unsupported parameter: 'max_tokens' is not supported with this model. "
                "Use 'max_completion_tokens' instead.",
                "param": "max_tokens",
            },
            "max_tokens",
        ),
        ({"message": "Unsupported value: 'temperature' does not support 0.2"}, "temperature"),
        (
            {"detail": [{"loc": ["body", "continue_final_message"], "type": "extra_forbidden"}]},
            "continue_final_message",
        ),
        ({"message": "'n' must be 1"}, "n"),
        ({"message": "only n=1 is supported"}, "n"),
        ({"message": "n must be 1 when using greedy sampling, got 2."}, "n"),
        ({"message": "n cannot be greater than 4"}, "n"),
        ({"message": "an error in one line of the request"}, ""),
        ({"message": "'logprobs' is not supported"}, ""),
        ("`stop` is not supported", "stop"),
        ("the request was stopped", ""),
    ],
)
def test_a_refusal_names_a_field_that_was_sent(body, field):
    assert named_field(body, SENT) == field


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("max_tokens=9000 cannot be greater than max_model_len=8192. (value=9000)", 8192),
        ("max_tokens is too large: 9000. This model supports at most 4096 completion tokens", 4096),
        ("max_tokens: 9000 > 8192, which is the maximum allowed number for this model", 8192),
        ("`max_tokens` must be less than or equal to `8192`", 8192),
        ("o3-2025-04-16 does not support 'max_tokens'. Use 'max_completion_tokens' instead.", 0),
        ("max_tokens must be at least 16384", 0),
    ],
)
def test_a_limit_that_is_too_large_tells_the_largest(text, most):
    assert largest_limit({"message": text}, 9000) == most


@pytest.mark.parametrize(
    "body",
    [
        {"message": "This model's maximum context length is 8192 tokens."},
        {"message": "too long", "code": "context_length_exceeded"},
        {"message": "Your input exceeds the context window of this model."},
        {"message": "the request exceeds the available context size"},
        {"message": "prompt is too long: 210000 tokens > 200000 maximum"},
        [{"error": {"message": "The input token count (12) exceeds the maximum number (10)."}}],
        {"message": "This model's maximum prompt length is 131072 but the request has 537812."},
        "inputs tokens + max_new_tokens must be <= 4096",
        "`inputs` tokens + `max_new_tokens` must be <= 4096",
        "Input is too long for requested model.",
        "Request too large for model `x` on tokens per minute (TPM): Limit 6000",
    ],
)
def test_a_full_context_is_recognized(body):
    assert names_context(body)


@pytest.mark.parametrize(
    "text",
    [
        "context canceled",
        "context deadline exceeded",
        "max_tokens: 9000 exceeds the maximum 8192",
        "max_tokens is too large: 9000. This model supports at most 4096 completion tokens",
        "413 Request Entity Too Large",
        "image too large: 9000 pixels",
        "invalid token in the context",
    ],
)
def test_other_refusals_are_not_of_a_full_context(text):
    assert not names_context({"message": text})


def test_a_refused_limit_has_another_name_and_then_none():
    known = Capabilities().without("max_tokens")
    assert known.token_limit == "max_completion_tokens"
    assert known.without("max_completion_tokens").token_limit == ""
    assert known.without("max_completion_tokens").without("seed").refused == {"seed"}


@pytest.mark.parametrize(
    "text",
    [
        "This model does not support assistant message prefill. The conversation must end with "
        "a user message.",
        "Expected last role User or Tool for serving but got assistant",
    ],
)
def test_a_refused_opening_is_recognized(text):
    assert refuses_prefill({"message": text})
    assert not refuses_prefill({"message": "'temperature' is not supported"})


def test_what_was_learned_is_there_after_a_restart(tmp_path):
    path = tmp_path / "new" / "endpoints.json"
    learned = Capabilities(False, True).without("stop", "max_tokens")
    CapabilityMemory(path).keep("http://x/v1", "m", learned)
    assert CapabilityMemory(path).recall("http://x/v1/", "m") == learned
    assert CapabilityMemory(path).recall("http://x/v1", "other") is None
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("entry", "context", "images", "price"),
    [
        (
            {"context_length": 8192, "pricing": {"prompt": "1e-6", "completion": "2e-6"}},
            8192,
            None,
            (1, 2),
        ),
        (
            {"max_model_len": 4096, "architecture": {"input_modalities": ["text"]}},
            4096,
            False,
            None,
        ),
        ({"context_window": 1, "architecture": {"input_modalities": ["image"]}}, 1, True, None),
        ({"max_context_length": 5, "capabilities": {"vision": True}}, 5, True, None),
        (
            {"context_length": True, "pricing": {"prompt": "free"}, "architecture": 3},
            None,
            None,
            None,
        ),
        (
            {"context_length": -1, "pricing": {"prompt": "nan", "completion": "-1"}},
            None,
            None,
            None,
        ),
        ({"max_model_len": "long", "pricing": 3, "capabilities": ["vision"]}, None, None, None),
        ({"architecture": {"input_modalities": 5}}, None, None, None),
        ({}, None, None, None),
    ],
)
def test_a_list_of_models_may_say_more(entry, context, images, price, tmp_path):
    learned = Capabilities(tools=True).listed(entry)
    assert (learned.context_tokens, learned.images) == (context, images)
    assert learned.price == (pytest.approx(price) if price else None)
    memory = CapabilityMemory(tmp_path / "endpoints.json")
    memory.keep("http://a/v1", "m", learned)
    assert memory.recall("http://a/v1", "m") == learned


def test_a_price_is_shown_for_a_question():
    rows = {name: how for name, _, how in Capabilities(price=(0.4, 1.6)).described()}
    assert "$0.4 per million tokens read, $1.6 written: about $0.01" in rows["price"]
    assert "price" not in {name for name, _, _ in Capabilities().described()}


def test_what_was_learned_expires(tmp_path, monkeypatch):
    memory = CapabilityMemory(tmp_path / "endpoints.json")
    memory.keep("http://x/v1", "m", Capabilities(tools=True))
    later = time.time() + 31 * 24 * 3600
    monkeypatch.setattr(time, "time", lambda: later)
    assert memory.recall("http://x/v1", "m") is None


def test_only_so_many_endpoints_are_kept(tmp_path):
    path = tmp_path / "endpoints.json"
    memory = CapabilityMemory(path)
    for number in range(205):
        memory.keep(f"http://x{number}/v1", "m", Capabilities())
    assert len(json.loads(path.read_text())) == 200
    assert memory.recall("http://x4/v1", "m") is None
    assert memory.recall("http://x204/v1", "m") == Capabilities()


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"http://x/v1 m": 3}',
        '{"http://x/v1 m": {"learned_at": 9e12, "capabilities": {"tools": "yes"}}}',
        '{"http://x/v1 m": {"learned_at": 9e12, "capabilities": {"refused": ["model"]}}}',
        '{"http://x/v1 m": {"learned_at": 9e12, "capabilities": {"colour": "red"}}}',
    ],
)
def test_a_damaged_memory_is_none(tmp_path, text):
    path = tmp_path / "endpoints.json"
    path.write_text(text)
    assert CapabilityMemory(path).recall("http://x/v1", "m") is None
    CapabilityMemory(path).keep("http://x/v1", "m", Capabilities(tools=False))
    assert CapabilityMemory(path).recall("http://x/v1", "m") == Capabilities(tools=False)


def test_a_folder_that_can_not_be_made_is_no_fault(tmp_path):
    (tmp_path / "file").write_text("")
    memory = CapabilityMemory(tmp_path / "file" / "endpoints.json")
    memory.keep("http://x/v1", "m", Capabilities())
    assert memory.recall("http://x/v1", "m") is None


def test_all_of_it_can_be_shown():
    rows = Capabilities(True, False, "", frozenset({"n"}), "<think>").described()
    states = {name: state for name, state, _ in rows}
    assert states["continues an opening"] is True
    assert (states["tool calls"], states["n"], states["seed"]) == (False, False, True)
    assert states["limit of length"] is False
