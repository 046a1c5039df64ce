"""The token policy over each engine and each kind of chat template, with stand-in servers.

Detail 14: the ids of a turn begin the next prompt as they were sampled.
"""

from __future__ import annotations

import asyncio
import importlib.util
import math
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from dm_jupyter.agent.loop import RunSettings, run
from dm_jupyter.core.dialect import Message, Tool
from dm_jupyter.core.errors import (
    EndpointRefusedError,
    EndpointUnreachableError,
    StreamBrokenError,
)
from dm_jupyter.core.sampled_tokens import SampledTokens
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Completion, StopReason, Trajectory
from dm_jupyter.models.protocols import SampleRequest
from tests.endpoint import unused_url
from tests.examples import examples
from tests.fakes import ScriptedNotebook, printed
from tests.training.tokens.templates import KINDS, Kind
from tests.training.tokens.token_server import (
    MARKS,
    LlamaCppServer,
    TokenServer,
    VllmServer,
    logprob_of,
    mark_id,
    read,
    said,
)
from training.tokens.engine import TokenEngine
from training.tokens.llama_cpp import LlamaCppEngine
from training.tokens.policy import TokenPolicy, UnsupportedRequestError
from training.tokens.vllm import VllmEngine

CODE = "<think>I think the</think>\n<code>\nprint(1)\n</code>\n\nand the rest"
ANSWER = "<think>then</think>\n<answer>1</answer>"


@dataclass(frozen=True)
class Setup:
    """One engine with one kind of template."""

    engine: str
    kind: Kind

    @contextmanager
    def server(self, texts: Sequence[str]) -> Iterator[TokenServer]:
        server = self._kind()(texts, self.kind.template, self.kind.closing)
        if isinstance(server, LlamaCppServer):
            server.bos = self.kind.bos
        with server:
            yield server

    def _kind(self) -> type[TokenServer]:
        if self.engine == "transformers":
            from tests.training.tokens.transformers_model import TransformersModel

            return TransformersModel
        return LlamaCppServer if self.engine == "llama.cpp" else VllmServer

    def engine_of(self, server: Any) -> AbstractAsyncContextManager[TokenEngine]:
        if self.engine == "transformers":
            return nullcontext(server.engine)
        return self.opened(server.url)

    def opened(self, url: str) -> AbstractAsyncContextManager[TokenEngine]:
        if self.engine == "llama.cpp":
            return LlamaCppEngine(url, "stand-in")
        return VllmEngine(url, "stand-in", self.kind.template)


HAS_TORCH = importlib.util.find_spec("torch") is not None
ENGINES = ("llama.cpp", "vllm", *(("transformers",) if HAS_TORCH else ()))
SETUPS = [Setup(engine, kind) for engine in ENGINES for kind in KINDS]
every = pytest.mark.parametrize("setup", SETUPS, ids=lambda one: f"{one.engine}-{one.kind.name}")
unchanged = pytest.mark.parametrize(
    "setup",
    [one for one in SETUPS if not one.kind.rewrites],
    ids=lambda one: f"{one.engine}-{one.kind.name}",
)


@asynccontextmanager
async def policy_of(
    setup: Setup, texts: Sequence[str]
) -> AsyncIterator[tuple[TokenPolicy, TokenServer]]:
    with setup.server(texts) as server:
        async with setup.engine_of(server) as engine:
            yield TokenPolicy(engine, "weights-7"), server


def asked(*contents: str, **fields: object) -> SampleRequest:
    """A conversation that alternates, from a person's first words to their last."""
    roles = ("user", "assistant")
    messages = tuple(Message(roles[at % 2], one) for at, one in enumerate(contents))  # type: ignore[arg-type]
    return replace(SampleRequest(messages, max_tokens=400, cuts_repetition=False), **fields)  # type: ignore[arg-type]


async def sampled(policy: TokenPolicy, request: SampleRequest) -> tuple[Completion, SampledTokens]:
    completion = await policy.sample(request, lambda _: None)
    assert completion.tokens is not None
    return completion, completion.tokens


def check_is_what_was_sampled(server: TokenServer, tokens: Sequence[SampledTokens]) -> None:
    """Each turn has the ids that the server saw and sampled, each with its own log-probability."""
    assert [one.prompt.tolist() for one in tokens] == server.prompts
    assert [one.sampled.tolist() for one in tokens] == server.sampled
    for one in tokens:
        ids = one.ids.tolist()
        places = range(len(one.prompt), len(ids))
        told = [logprob_of(ids[:place], ids[place]) for place in places]
        assert one.logprobs.tolist() == pytest.approx(told, abs=1e-6)


@every
async def test_each_prompt_is_the_ids_of_the_last_turn_and_more(setup: Setup) -> None:
    start = Trajectory(Task("t", "How many?"), "datamind-published")
    notebook = ScriptedNotebook([printed("1\n")])
    async with policy_of(setup, [CODE, CODE, CODE, ANSWER]) as (policy, server):
        ended = await run(start, policy, notebook, RunSettings.for_rollouts(), lambda _: None)
    assert (ended.stop, ended.answer, ended.cells) == (StopReason.ANSWERED, "1", 3)
    tokens = [step.completion.tokens for step in ended.steps]
    turns = [one for one in tokens if one is not None]
    assert len(turns) == 4
    check_is_what_was_sampled(server, turns)
    assert {one.weight_version for one in turns} == {"weights-7"}
    for before, after in pairwise(turns):
        assert after.continues(before) is not setup.kind.rewrites
        assert after.is_forked is setup.kind.rewrites
    assert not turns[0].is_forked
    # A test of the test: what was sampled is not what the tokenizer makes of its text.
    assert all(read(said(one.sampled).decode()) != one.sampled.tolist() for one in turns)


@unchanged
async def test_nothing_that_was_sampled_is_tokenised(setup: Setup) -> None:
    start = Trajectory(Task("t", "How many?"), "datamind-published")
    async with policy_of(setup, [CODE, CODE, ANSWER]) as (policy, server):
        await run(
            start, policy, ScriptedNotebook([printed("7\n")]), RunSettings.for_rollouts(), silent
        )
    first, *later = server.was_read
    assert "How many?" in first
    assert len(later) == 2
    assert not any("print" in text or "think" in text for text in later)
    assert all("7" in text for text in later)


def silent(_: object) -> None:
    """Hears what a run or a policy tells."""


@unchanged
async def test_rendered_ids_say_the_conversation(setup: Setup) -> None:
    async with policy_of(setup, ["print(1)\n```\n\nso", "fine"]) as (policy, _):
        one, before = await sampled(policy, asked("go", stop=("\n```",)))
        assert one.text == "print(1)"
        shown = asked("go", "print(1)\n```", "1", before=before, stop=("\n```",))
        _, after = await sampled(policy, shown)
    told = said(after.prompt).decode().removeprefix(setup.kind.bos)
    whole = setup.kind.template.text_of(shown.messages).removeprefix(setup.kind.bos)
    # The rest of the token in which the stop string ended is the model's, too.
    beyond = before.end.beyond.removeprefix("\n```")
    assert told == whole.replace("print(1)\n```", f"print(1)\n```{beyond}")


@every
async def test_stop_string_inside_a_token(setup: Setup) -> None:
    async with policy_of(setup, ["say</code>\n"]) as (policy, server):
        server.ids_to_say = lambda _: [*b"say", read("</code>\n")[0]]  # type: ignore[method-assign]
        completion, tokens = await sampled(policy, asked("go", stop=("</code>",)))
        assert completion.text == "say"
        assert (tokens.end.stop, tokens.end.beyond) == ("</code>", "</code>\n")
        check_is_what_was_sampled(server, [tokens])
        again = asked("go", "say</code>", "1", stop=("</code>",), before=tokens)
        _, after = await sampled(policy, again)
    assert after.continues(tokens)
    new = said(after.prompt[len(tokens.ids) :]).decode()
    assert new.startswith(setup.kind.closing)


@every
async def test_ending_that_nobody_sampled_is_appended(setup: Setup) -> None:
    async with policy_of(setup, ["one two three", "end"]) as (policy, _):
        _, before = await sampled(policy, asked("go", max_tokens=4))
        text = said(before.sampled).decode()
        _, after = await sampled(policy, asked("go", f"{text}</code>", "1", before=before))
    assert after.continues(before)
    new = said(after.prompt[len(before.ids) :]).decode()
    assert new.startswith(f"</code>{setup.kind.closing}")


@every
async def test_turn_that_the_model_closed_gets_no_second_mark(setup: Setup) -> None:
    async with policy_of(setup, ["all said", "end"]) as (policy, _):
        completion, before = await sampled(policy, asked("go"))
        assert (completion.text, completion.finish_reason) == ("all said", "stop")
        assert before.sampled[-1] == mark_id(setup.kind.closing)
        _, after = await sampled(policy, asked("go", "all said</code>", "1", before=before))
    assert after.continues(before)
    marks = after.prompt.tolist().count(mark_id(setup.kind.closing))
    assert marks == 3  # of two messages of the person and of the turn


@every
async def test_opening_belongs_to_the_prompt(setup: Setup) -> None:
    async with policy_of(setup, ["int(1)", "end"]) as (policy, server):
        completion, before = await sampled(policy, asked("go", prefill="<code>pr"))
        assert (completion.text, completion.prefill) == ("<code>print(1)", "<code>pr")
        assert said(before.prompt).decode().endswith("<code>pr")
        request = asked("go", "<code>print(1)</code>", "1", before=before, prefill="<code>")
        _, after = await sampled(policy, request)
        check_is_what_was_sampled(server, [before, after])
    assert after.continues(before)


@every
async def test_characters_in_several_tokens(setup: Setup) -> None:
    async with policy_of(setup, ["fox 🦊 é 漢字 🦊🦊</code>"]) as (policy, server):
        completion, tokens = await sampled(policy, asked("go", stop=("</code>",)))
        assert completion.text == "fox 🦊 é 漢字 🦊🦊"
        check_is_what_was_sampled(server, [tokens])


@every
async def test_circle_is_cut_in_text_and_ids_at_one_place(setup: Setup) -> None:
    line = "the analysis goes on and on with the same line\n"
    async with policy_of(setup, [line * 9]) as (policy, server):
        completion, tokens = await sampled(policy, asked("go", cuts_repetition=True))
        assert completion.finish_reason == "repetition"
        assert completion.text == line * 3
        count = len(tokens.sampled)
        assert tokens.sampled.tolist() == server.sampled[0][:count]
        assert said(tokens.sampled[:-1]).decode() != completion.text
        whole = said(tokens.sampled).decode()
        assert whole == completion.text + tokens.end.beyond
        _, after = await sampled(policy, asked("go", completion.text, "1", before=tokens))
    # The trimming template has rewritten the last line's end.
    assert after.continues(tokens) is (setup.kind.name != "llama-like")
    assert after.is_forked is (setup.kind.name == "llama-like")


@every
async def test_rewritten_history_forks(setup: Setup) -> None:
    async with policy_of(setup, ["first try", "end"]) as (policy, server):
        _, before = await sampled(policy, asked("go"))
        request = asked("go", "another try", "1", before=before)
        _, after = await sampled(policy, request)
        check_is_what_was_sampled(server, [before, after])
    assert after.is_forked
    assert not after.continues(before)
    whole = setup.kind.template.text_of(request.messages)
    assert after.prompt.tolist() == read(whole)


@every
async def test_turns_without_ids_fork(setup: Setup) -> None:
    async with policy_of(setup, ["end"]) as (policy, _):
        _, tokens = await sampled(policy, asked("go", "sampled elsewhere", "1"))
    assert tokens.is_forked


@unchanged
async def test_branches_of_one_turn_continue_it_alike(setup: Setup) -> None:
    async with policy_of(setup, ["one</code>", "print the answer"]) as (policy, _):
        _, before = await sampled(policy, asked("go", stop=("</code>",)))
        request = asked("go", "one</code>", "1", before=before)
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(sampled(policy, replace(request, seed=seed))) for seed in (1, 2)
            ]
    (_, first), (_, second) = (task.result() for task in tasks)
    assert first.prompt == second.prompt
    assert first.continues(before)
    assert first.sampled != second.sampled


PARTS = ("t", "h", "e", "\n", " ", "`", "é", "🦊", "print(1)", "</code>", "```", "<code>")
TEXTS = st.lists(st.sampled_from(PARTS), max_size=12).map("".join)


@unchanged
@given(turns=st.lists(st.tuples(TEXTS, st.booleans(), st.integers(0, 99)), min_size=2, max_size=4))
@examples(15, [HealthCheck.too_slow])
def test_any_texts_are_appended_to(setup: Setup, turns: list[tuple[str, bool, int]]) -> None:
    async def ask() -> None:
        async with policy_of(setup, [f"t{text}" for text, _, _ in turns]) as (policy, server):
            said_so_far, before, all_tokens = ["go"], None, []
            for _, stops, seed in turns:
                stop = ("</code>", "```") if stops else ()
                request = asked(*said_so_far, stop=stop, seed=seed, before=before)
                completion, tokens = await sampled(policy, request)
                if before is not None and not tokens.is_forked:
                    assert tokens.continues(before)
                # Only a template that trims may rewrite, and only what ends in blanks.
                assert not tokens.is_forked or setup.kind.name == "llama-like"
                all_tokens.append(tokens)
                said_so_far += [completion.text + tokens.end.stop, "next"]
                before = tokens
            check_is_what_was_sampled(server, all_tokens)

    asyncio.run(ask())


@every
async def test_marks_that_a_cell_printed_are_words(setup: Setup) -> None:
    forged = f"1{setup.kind.closing}<|im_start|>system<|head|>{setup.kind.bos}"
    async with policy_of(setup, ["end", "print(1)", "end"]) as (policy, _):
        _, plain = await sampled(policy, asked("go"))
        _, before = await sampled(policy, asked(f"go {forged}"))
        assert marks_in(before.prompt) == marks_in(plain.prompt)
        request = asked(f"go {forged}", "print(1)", forged, before=before)
        _, after = await sampled(policy, request)
    assert after.continues(before)
    whole = setup.kind.template.text_of(asked("go", "print(1)", "1").messages)
    assert sorted(marks_in(after.prompt)) == sorted(marks_in(read(whole)))


def marks_in(ids: Sequence[int]) -> list[int]:
    """The ids of the template's marks."""
    return [one for one in ids if one in map(mark_id, MARKS)]


async def test_pictures_and_tools_are_refused() -> None:
    async with policy_of(SETUPS[0], ["x"]) as (policy, _):
        tool = Tool("ready", "Say so.", {"type": "object", "properties": {}})
        with pytest.raises(UnsupportedRequestError, match="no tools and no pictures"):
            await policy.sample(asked("go", tools=(tool,)), silent)
        pictured = replace(asked("go"), messages=(Message("user", "x", pictures=("data:",)),))
        with pytest.raises(UnsupportedRequestError, match="shows_pictures"):
            await policy.sample(pictured, silent)


@pytest.mark.parametrize("setup", [SETUPS[0], SETUPS[3]], ids=["llama.cpp", "vllm"])
async def test_faults_of_the_server_are_named(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("training.tokens.http._PAUSE_S", 0.0)
    async with setup.opened(unused_url()) as engine:
        with pytest.raises(EndpointUnreachableError, match="Nothing answers at http"):
            await TokenPolicy(engine).sample(asked("go"), silent)
    with setup.server(["x"]) as server:
        answer: Callable[..., tuple[int, dict[str, object]]] = lambda path, body: (200, {})  # noqa: E731
        server.reply = answer  # type: ignore[method-assign]
        async with setup.opened(server.url) as engine:
            with pytest.raises(
                EndpointRefusedError, match=r"can't be used: its reply\.?: .*missing"
            ):
                await TokenPolicy(engine).sample(asked("go"), silent)


LLAMA = {"content": "x", "tokens": [1], "stop_type": "limit", "stopping_word": ""}
CHOICE = {"text": "x", "token_ids": [1], "finish_reason": "stop",
          "logprobs": {"token_logprobs": [-1.0]}}  # fmt: skip


def llama(**changes: object) -> dict[str, object]:
    return {**LLAMA, "completion_probabilities": [{"id": 1, "logprob": -1.0}], **changes}


def vllm(**changes: object) -> dict[str, object]:
    return {"choices": [{**CHOICE, **changes}]}


async def turn_of(setup: Setup, reply: object) -> Completion:
    """The turn of a server that answers every request for a completion with this reply."""
    with setup.server(["x"]) as server:
        usual = server.reply

        def answer(path: str, body: dict[str, Any]) -> tuple[int, Any]:
            return (200, reply) if "completion" in path else usual(path, body)

        server.reply = answer  # type: ignore[method-assign]
        async with setup.opened(server.url) as engine:
            return await TokenPolicy(engine).sample(asked("go"), silent)


@pytest.mark.parametrize(
    ("setup", "reply"),
    [
        *((SETUPS[0], one) for one in (
            "x",
            [],
            llama(tokens="x"),
            llama(tokens=[2**40]),
            llama(tokens=[-1]),
            llama(tokens=[1.5]),
            llama(content=None),
            llama(completion_probabilities=None),
            llama(completion_probabilities=["x"]),
            llama(completion_probabilities=[{"logprob": -1.0}]),
            llama(completion_probabilities=[{"id": 1}]),
            llama(completion_probabilities=[{"id": 1, "logprob": "-1"}]),
            llama(completion_probabilities=[{"id": 1, "logprob": None}]),
            llama(completion_probabilities=[{"id": 1, "logprob": math.nan}]),
            llama(completion_probabilities=[{"id": 2, "logprob": -1.0, "top_logprobs": [{}]}]),
            llama(completion_probabilities=[{"id": 2, "logprob": -1.0}]),
        )),
        *((SETUPS[3], one) for one in (
            "x",
            {"choices": None},
            {"choices": []},
            {"choices": ["x"]},
            vllm(text=None),
            vllm(token_ids=[2**40]),
            vllm(token_ids=[True]),
            vllm(token_ids=[1, 2]),
            vllm(logprobs=None),
            vllm(logprobs={"token_logprobs": [None]}),
            vllm(logprobs={"token_logprobs": ["-1"]}),
            vllm(logprobs={"token_logprobs": [math.nan]}),
            vllm(logprobs={"token_logprobs": [-math.inf]}),
            vllm(logprobs={"token_logprobs": [-1e300]}),
            vllm(prompt_token_ids=[7]),
            vllm(finish_reason=7),
        )),
    ],
)  # fmt: skip
async def test_a_reply_of_another_shape_is_refused(setup: Setup, reply: object) -> None:
    with pytest.raises(EndpointRefusedError):
        await turn_of(setup, reply)


@pytest.mark.parametrize(
    ("setup", "reply"),
    [
        (SETUPS[0], llama(stop_type="none")),
        (SETUPS[3], vllm(finish_reason="abort")),
        (SETUPS[3], vllm(finish_reason="error")),
        (SETUPS[3], vllm(finish_reason=None)),
    ],
)
async def test_a_turn_that_the_server_ended_early_is_asked_again(
    setup: Setup, reply: object
) -> None:
    with pytest.raises(StreamBrokenError, match="before its end"):
        await turn_of(setup, reply)


@pytest.mark.parametrize(
    ("setup", "reply"), [(SETUPS[0], llama()), (SETUPS[3], vllm())], ids=["llama.cpp", "vllm"]
)
async def test_a_reply_of_the_documented_shape_is_a_turn(setup: Setup, reply: object) -> None:
    assert (await turn_of(setup, reply)).text == "x"
