"""The families of OpenAI-compatible endpoints and their rules.

A rule that a family sets without a remark is documented or reported in its `docs`. "Unverified"
marks a rule that was not found there: a stand-in needs some behaviour, and shows one that asks
more of a client. What a family leaves at the default of `Family` was not looked up for each.
"""

from __future__ import annotations

from typing import Any

from tests.dm_jupyter.models.family import STANDARD_FIELDS, Family

__all__ = ["FAMILIES", "Family", "family"]

_STRICT_MISTRAL = frozenset(
    [
        "model",
        "messages",
        "stream",
        "temperature",
        "top_p",
        "max_tokens",
        "stop",
        "random_seed",
        "n",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "response_format",
        "frequency_penalty",
        "presence_penalty",
        "prediction",
        "safe_prompt",
    ]
)
_ANTHROPIC_IGNORES = frozenset(
    [
        "logprobs",
        "top_logprobs",
        "metadata",
        "response_format",
        "presence_penalty",
        "frequency_penalty",
        "seed",
        "service_tier",
        "logit_bias",
        "store",
        "user",
        "reasoning_effort",
    ]
)
_ANTHROPIC_DOCS = "https://docs.anthropic.com/en/api/openai-sdk"
_NO_PREFILL = (
    "This model does not support assistant message prefill. "
    "The conversation must end with a user message."
)
_DEEPSEEK_DOCS = (
    "https://api-docs.deepseek.com/guides/thinking_mode",
    "https://api-docs.deepseek.com/zh-cn/guides/reasoning_model",
    "https://api-docs.deepseek.com/quick_start/rate_limit",
    "https://api-docs.deepseek.com/guides/chat_prefix_completion",
    "https://github.com/BerriAI/litellm/issues/8090",
)
_DEEPSEEK_LAST = (
    "The last message of deepseek-reasoner must be a user message, or an assistant message with "
    "prefix mode on (refer to https://api-docs.deepseek.com/guides/chat_prefix_completion)."
)
_LLAMA_DOCS = (
    "https://github.com/ggml-org/llama.cpp/pull/13174",
    "https://github.com/ggml-org/llama.cpp/pull/15404",
)

_HOSTED = (
    Family(
        name="openai",
        title="OpenAI, reasoning models",
        docs=(
            "https://github.com/fish2018/YPrompt/issues/26",
            "https://github.com/diffbot/code-gpt-docs/issues/445",
            "https://github.com/huggingface/smolagents/issues/1671",
            "https://github.com/BerriAI/litellm/pull/28662",
            "https://github.com/langchain-ai/langchain-google/pull/1266",
        ),
        model="gpt-5-mini",
        refuses_unknown=True,
        refuses={"max_tokens": " Use 'max_completion_tokens' instead.", "stop": ""},
        # the exact words for top_p and logprobs are unverified; that they are refused is not
        only={"temperature": 1, "top_p": 1, "logprobs": False},
    ),
    Family(
        name="openai-chat",
        title="OpenAI, chat models",
        docs=(
            "https://github.com/TutteInstitute/toponymy/pull/148",
            "https://github.com/davidmigloz/langchain_dart/issues/712",
            "https://github.com/simonw/llm/issues/463",  # its models are inconsistent in prefills
        ),
        model="gpt-4.1",
        refuses_unknown=True,
        refuses={"reasoning_effort": ""},  # it says "Unrecognized request argument supplied"
        refused_says="Unrecognized request argument supplied: {field}",
    ),
    Family(
        name="azure",
        title="Azure OpenAI",
        docs=(
            "https://github.com/AbanteAI/archive-old-cli-mentat/issues/429",
            "https://github.com/microsoft/autogen/issues/6465",
            "https://github.com/openai/openai-python/issues/1354",
        ),
        model="gpt-4.1-deployment",
        path="/openai/v1",
        lists_models=False,  # unverified for this path
        refuses_unknown=True,
        empty_choices_first=True,
        chunk_without_delta=True,  # with the asynchronous content filter
    ),
    Family(
        name="anthropic",
        title="Anthropic, OpenAI-compatible door",
        docs=(_ANTHROPIC_DOCS, "https://github.com/anthropics/claude-code/issues/52433"),
        model="claude-opus-4-6",
        only={"n": 1},
        only_says="{field}: must be {only}",  # unverified words
        ignores=_ANTHROPIC_IGNORES,
        blank_stop_refused=True,
        error="anthropic",  # the native shape; the door's own is unverified
        last_assistant="refuses",
        last_assistant_says=_NO_PREFILL,
    ),
    Family(
        name="gemini",
        title="Gemini, OpenAI-compatible door",
        docs=(
            "https://github.com/MinLL/SkyrimNet-GamePlugin/issues/77",
            "https://github.com/Vali-98/ChatterUI/issues/227",
            "https://github.com/googleapis/python-genai/issues/2868",
            "https://github.com/open-webui/computer/issues/224",
        ),
        model="gemini-3.5-flash",
        path="/v1beta/openai",
        # seed and frequency_penalty were unknown in 2025; logprobs is unverified at this door
        known=STANDARD_FIELDS - {"seed", "frequency_penalty", "logprobs", "top_logprobs"},
        refuses_unknown=True,
        error="google",
        unknown_says='Invalid JSON payload received. Unknown name "{field}": Cannot find field.',
        arguments_in_pieces=False,
        tool_index=False,
        tool_finish="stop",
        usage_in="last chunk",  # unverified
        role_first=False,  # unverified
    ),
    Family(
        name="mistral",
        title="Mistral",
        docs=(
            "https://github.com/editor-code-assistant/eca/issues/231",
            "https://github.com/NEKOparapa/AiNiee/issues/641",
            "https://github.com/microsoft/semantic-kernel/issues/6316",
            "https://docs.rs/crate/mistral-openapi-client/latest/source/docs/ChatCompletionRequest.md",
        ),
        model="mistral-medium-latest",
        listed={"max_context_length": 32_768, "capabilities": {"vision": False}},
        known=_STRICT_MISTRAL,  # stream_options is not in the schema that was found: unverified
        refuses_unknown=True,
        refusal_status=422,
        error="mistral",
        unknown_says="Extra inputs are not permitted",
        last_assistant="prefix",
        last_assistant_says=(
            "Expected last role User or Tool (or Assistant with prefix True) for serving but got "
            "assistant"
        ),
        echoes_prefill=True,  # unverified
        arguments_in_pieces=False,
        usage="always",  # unverified
        usage_in="last chunk",
    ),
    Family(
        name="groq",
        title="Groq",
        docs=(
            "https://console.groq.com/docs/openai",
            "https://console.groq.com/docs/prefilling",
            "https://github.com/fanenr/chatbot/issues/21",
            "https://github.com/vercel/ai/issues/1651",
            "https://github.com/ogx-ai/ogx/pull/630",
        ),
        model="llama-3.3-70b-versatile",
        listed={"context_window": 131_072},
        path="/openai/v1",
        refuses_unknown=True,
        refuses={"logprobs": "", "top_logprobs": "", "logit_bias": ""},
        only={"n": 1},
        only_says="'{field}' : number must be at most {only}",  # unverified words
        refuses_names=True,
        error="groq",
        unknown_says="property '{field}' is unsupported",
        refused_says="`{field}` is not supported with this model",
        last_assistant="continues",
        reasoning="reasoning",
        arguments_in_pieces=False,
        usage_also_under="x_groq",
    ),
    Family(
        name="openrouter",
        title="OpenRouter",
        docs=(
            "https://openrouter.ai/docs/api-reference/streaming",
            "https://openrouter.ai/docs/api-reference/overview",
            "https://openrouter.ai/docs/api/reference/errors-and-debugging",
        ),
        model="openai/gpt-4.1",
        listed={
            "context_length": 131_072,
            "architecture": {"input_modalities": ["text", "image"]},
            "pricing": {"prompt": "0.0000004", "completion": "0.0000016"},
        },
        path="/api/v1",
        error="gateway",
        # whether it continues is the model's; this one answers
        reasoning="reasoning",
        usage="always",
        comment="OPENROUTER PROCESSING",
    ),
    Family(
        name="deepseek",
        title="DeepSeek",
        docs=_DEEPSEEK_DOCS,
        model="deepseek-reasoner",
        refuses={"logprobs": "", "top_logprobs": ""},  # words unverified
        ignores=frozenset({"temperature", "top_p", "presence_penalty", "frequency_penalty"}),
        last_assistant="refuses",
        last_assistant_says=_DEEPSEEK_LAST,
        reasoning="reasoning_content",
        usage_in="last chunk",
        comment="keep-alive",
        null_content=True,  # unverified
    ),
    Family(
        name="deepseek-beta",
        title="DeepSeek, beta path",
        docs=_DEEPSEEK_DOCS,
        model="deepseek-chat",
        path="/beta",
        last_assistant="prefix",
        last_assistant_says=_DEEPSEEK_LAST,
        reasoning="reasoning_content",
        usage_in="last chunk",
    ),
    Family(
        name="fireworks",
        title="Fireworks",
        docs=(
            "https://github.com/web-infra-dev/midscene/issues/1322",
            "https://docs.getbifrost.ai/providers/supported-providers/fireworks",
        ),
        model="accounts/fireworks/models/qwen3-235b-a22b",
        path="/inference/v1",
        refuses_unknown=True,
        unknown_says="Extra inputs are not permitted, field: '{field}', value: {value}.",
        # answers a final assistant message: unverified
        reasoning="reasoning_content",
        usage="always",  # unverified
        usage_in="last chunk",
    ),
)

_LITELLM: dict[str, Any] = {
    "docs": (
        "https://docs.litellm.ai/docs/completion/drop_params",
        "https://docs.litellm.ai/docs/completion/prefix",
        "https://github.com/kaiko-ai/eva/issues/895",
        "https://github.com/ericc-ch/copilot-api/pull/261",  # the 4.5 models still continue
    ),
    "model": "claude-sonnet-4-5",
    # a field that OpenAI does not have goes on to the model's own endpoint; that this refuses it,
    # and in these words, is unverified
    "refuses_unknown": True,
    "error": "litellm",
    "unknown_says": "litellm.BadRequestError: AnthropicException - {field}: "
    "Extra inputs are not permitted",
    "last_assistant": "continues",  # unverified through this proxy
    "reasoning": "reasoning_content",
}
_VLLM_GREEDY = "n must be 1 when using greedy sampling, got {n}."  # seen with vLLM 0.32.0
_VLLM_BOTH = "Cannot set both `continue_final_message` and `add_generation_prompt` to True."
_OF_LITELLM = frozenset({"seed", "n", "logprobs", "top_logprobs", "logit_bias"})

_OWN = (
    Family(
        name="litellm",
        title="LiteLLM proxy before Claude",
        refuses=dict.fromkeys(sorted(_OF_LITELLM), ""),  # seed is reported, the others unverified
        refused_says="litellm.UnsupportedParamsError: anthropic does not support parameters: "
        "['{field}'], for model=claude-sonnet-4-5. To drop these, set `litellm.drop_params=True`",
        **_LITELLM,
    ),
    Family(
        name="litellm-drops",
        title="LiteLLM proxy before Claude, drop_params on",
        ignores=_OF_LITELLM,
        **_LITELLM,
    ),
    Family(
        name="vllm",
        title="vLLM",
        docs=(
            "https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html",
            "https://github.com/vllm-project/vllm/pull/27752",
            "https://github.com/vllm-project/vllm-gaudi/pull/1098",
        ),
        model="Qwen/Qwen3-8B",
        listed={"max_model_len": 8_192},
        both_flags_says=_VLLM_BOTH,
        greedy_says=_VLLM_GREEDY,
        error="vllm",
        last_assistant="flag",
        reasoning="reasoning",
    ),
    Family(
        name="vllm-plain",
        title="vLLM without parsers for tools and reasoning",
        docs=(
            "https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html",
            "https://github.com/langchain4j/langchain4j/issues/3475",
        ),
        model="Qwen/Qwen3-8B",
        both_flags_says=_VLLM_BOTH,
        greedy_says=_VLLM_GREEDY,
        error="vllm",
        last_assistant="flag",
        reasoning="think",  # unverified
        tools_refused='"auto" tool choice requires --enable-auto-tool-choice and '
        "--tool-call-parser to be set",
    ),
    Family(
        name="ollama",
        title="Ollama",
        docs=(
            "https://docs.ollama.com/api/openai-compatibility",
            "https://github.com/ollama/ollama/issues/6778",
            "https://github.com/dirac-run/dirac/pull/227",
        ),
        model="qwen3:8b",
        # max_completion_tokens and n are not among the fields it names as supported
        ignores=frozenset({"max_completion_tokens", "n", "logit_bias", "user", "tool_choice"}),
        last_assistant="continues",
        reasoning="reasoning",
        arguments_in_pieces=False,  # unverified
    ),
    Family(
        name="lm-studio",
        title="LM Studio",
        docs=(
            "https://lmstudio.ai/docs/developer/openai-compat/chat-completions",
            "https://lmstudio.ai/docs/developer/api-changelog",
            "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/2041",
        ),
        model="qwen3-8b",
        # not among the fields it names as supported
        ignores=frozenset({"max_completion_tokens", "n", "logprobs", "top_logprobs", "user"}),
        last_assistant="continues",
        echoes_prefill=True,  # reported of one engine version, as a bug
        reasoning="reasoning",
    ),
    Family(
        name="llama-cpp",
        title="llama.cpp server",  # its words are in the build that the extra `local` installs
        docs=_LLAMA_DOCS,
        model="qwen3.5-4b",
        refused_together=(frozenset({"logprobs", "tools", "stream"}),),
        refused_says="logprobs is not supported with tools + stream",
        # that the flag alone is enough is unverified
        both_flags_says="Cannot set both add_generation_prompt and continue_final_message to true.",
        error="llama",
        last_assistant="continues",
        reasoning="reasoning_content",
        null_content=True,  # unverified
    ),
    Family(
        name="llama-cpp-thinking",
        title="llama.cpp server of 2025, thinking model",
        docs=(*_LLAMA_DOCS, "https://github.com/ggml-org/llama.cpp/issues/21889"),
        model="qwen3-8b",
        only={"n": 1},
        only_says="Only one completion choice is allowed",
        refused_together=(frozenset({"logprobs", "tools", "stream"}),),
        refused_says="logprobs is not supported with tools + stream",
        error="llama",
        last_assistant="refuses",
        last_assistant_says="Assistant response prefill is incompatible with enable_thinking.",
        reasoning="reasoning_content",
    ),
)

FAMILIES: tuple[Family, ...] = (*_HOSTED, *_OWN)
"""All of them: first what others host, then gateways and servers of one's own."""


def family(name: str) -> Family:
    """Returns the family of that name."""
    return {one.name: one for one in FAMILIES}[name]
