"""Servers that take and return token ids, by the rules of llama.cpp and of vLLM.

The model behind them says scripted texts, each in ids drawn at random among all that say it. So
nearly no turn consists of the ids that the tokenizer would read from its text.
"""

from __future__ import annotations

import hashlib
import json
import random
from array import array
from collections.abc import Iterable, Sequence
from http.server import BaseHTTPRequestHandler
from typing import Any

from dm_jupyter.core.dialect import Message
from tests.endpoint import LocalServer
from training.tokens.chat_template import ChatTemplate

MARKS = ("<|im_start|>", "<|im_end|>", "<s>", "<|head|>", "<|tail|>", "<|eot|>")
PIECES = (
    *("</", "</c", "code", "code>", ">\n", "</code>", "</code>\n", "<code>", "```", "\n```"),
    *("```\n", "print", "(1", ")\n", "th", "the", " the", "in", "print(", "ink", "think>", "é"),
    *("\n\n", "answer", "</answer", "an", "1)", "wer>", ">\n\n"),
)
WORDS: tuple[bytes, ...] = (
    *(bytes([one]) for one in range(256)),
    *(one.encode() for one in MARKS),
    *(one.encode() for one in PIECES),
)
FIRST_MARK, FIRST_PIECE = 256, 256 + len(MARKS)


def mark_id(mark: str) -> int:
    return FIRST_MARK + MARKS.index(mark)


def said(ids: Iterable[int]) -> bytes:
    return b"".join(WORDS[one] for one in ids)


def read(text: str) -> list[int]:
    """The ids that the tokenizer makes of a text: marks first, else the longest word."""
    rest, ids = text.encode(), list[int]()
    order = sorted(range(len(WORDS)), key=lambda one: (one not in _MARK_IDS, -len(WORDS[one])))
    while rest:
        one = next(one for one in order if rest.startswith(WORDS[one]))
        ids.append(one)
        rest = rest[len(WORDS[one]) :]
    return ids


_MARK_IDS = range(FIRST_MARK, FIRST_PIECE)


def spoken(text: str, rng: random.Random) -> list[int]:
    """Ids that say a text, drawn at random among all that do; no marks."""
    rest, ids = text.encode(), list[int]()
    while rest:
        fitting = [
            one for one, word in enumerate(WORDS) if one not in _MARK_IDS and rest.startswith(word)
        ]
        ids.append(rng.choice(fitting))
        rest = rest[len(WORDS[ids[-1]]) :]
    return ids


def logprob_of(before: Sequence[int], one: int) -> float:
    """What the model gives an id after others: some number that depends on all of them."""
    digest = hashlib.sha256(array("i", [*before, one]).tobytes()).digest()
    return -1e-3 - digest[0] / 16


class TokenServer(LocalServer):
    """Either kind; a context manager."""

    def __init__(self, texts: Iterable[str], template: ChatTemplate, closing: str) -> None:
        """Answer nothing yet.

        Args:
            texts: What the model says, turn by turn; after each it closes its turn.
            template: Of the model.
            closing: The mark with which it closes a turn.
        """
        self.texts = list(texts)
        self.template = template
        self.closing = closing
        self.prompts: list[list[int]] = []
        """Those after which a turn was sampled."""
        self.sampled: list[list[int]] = []
        """What was sampled, before anything was left out of a reply."""
        self.bodies: list[dict[str, Any]] = []
        self.was_read: list[str] = []
        """All texts that were made into ids."""
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, reply = server.reply(self.path, body)
                content = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args: Any) -> None:
                pass

        self.handler = Handler

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        raise NotImplementedError

    def ids_to_say(self, body: dict[str, Any]) -> list[int]:
        """All that the model would say, were there no stop string."""
        text = self.texts[min(len(self.sampled), len(self.texts) - 1)]
        return [*spoken(text, random.Random(body["seed"])), mark_id(self.closing)]

    def sample(self, prompt: list[int], limit: int, stops: list[str], body: dict[str, Any]) -> Said:
        self.prompts.append(prompt)
        self.bodies.append(body)
        ids: list[int] = []
        for one in self.ids_to_say(body):
            ids.append(one)
            if one == mark_id(self.closing):
                return self._kept(ids, said(ids[:-1]).decode(), "eos")
            text = said(ids).decode(errors="ignore")
            found = [(text.find(stop), stop) for stop in stops if stop in text]
            if found:
                place, stop = min(found)
                return self._kept(ids, text[:place], "word", stop)
            if len(ids) == limit:
                return self._kept(ids, text, "limit")
        raise AssertionError("the closing mark comes last")

    def _kept(self, ids: list[int], text: str, kind: str, stop: str = "") -> Said:
        self.sampled.append(ids)
        return Said(ids, text, kind, stop)


class Said:
    def __init__(self, ids: list[int], text: str, kind: str, stop: str) -> None:
        self.ids, self.text, self.kind, self.stop = ids, text, kind, stop


class LlamaCppServer(TokenServer):
    """As llama.cpp's server, with what its replies leave out."""

    bos = ""
    """Left out of what the template returns, and put first where `add_special` asks for it."""

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        match path:
            case "/apply-template":
                messages = [Message(**message) for message in body["messages"]]
                return 200, {"prompt": self.template.text_of(messages).removeprefix(self.bos)}
            case "/tokenize":
                assert body["parse_special"]
                self.was_read.append(body["content"])
                first = [mark_id(self.bos)] if self.bos and body["add_special"] else []
                return 200, {"tokens": first + read(body["content"])}
            case "/detokenize":
                return 200, {"content": said(body["tokens"]).decode(errors="replace")}
            case "/completion":
                return 200, self._completion(body)
        return 404, {"error": {"message": f"no {path}"}}

    def _completion(self, body: dict[str, Any]) -> dict[str, Any]:
        assert body["return_tokens"]
        assert not body["post_sampling_probs"]
        prompt = body["prompt"]
        if "logit_bias" in body:
            ((one, _),) = body["logit_bias"]
            return {"tokens": [one], "stop_type": "limit", **self._forced(prompt, one, body)}
        out = self.sample(prompt, body["n_predict"], body["stop"], body)
        told = []
        for place, one in enumerate(out.ids):
            try:
                said(out.ids[: place + 1]).decode()
            except UnicodeDecodeError:
                continue
            told.append({"id": one, "logprob": logprob_of(prompt + out.ids[:place], one)})
        if out.kind == "word":
            told = told[: max(len(told) - len(read(out.stop)), 0)]
        return {
            "content": out.text,
            "tokens": out.ids,
            "stop_type": out.kind,
            "stopping_word": out.stop,
            **({"completion_probabilities": told} if told else {}),
        }

    def _forced(self, prompt: list[int], one: int, body: dict[str, Any]) -> dict[str, Any]:
        try:
            WORDS[one].decode()
        except UnicodeDecodeError:
            return {}
        of_all = [{"id": other, "logprob": logprob_of(prompt, other)} for other in self._ids]
        likeliest = sorted(of_all, key=lambda other: -other["logprob"])[: body["n_probs"]]
        return {"completion_probabilities": [{**of_all[one], "top_logprobs": likeliest}]}

    _ids = range(len(WORDS))


class VllmServer(TokenServer):
    """As the documentation of vLLM describes its completions, `/tokenize` and `/detokenize`."""

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        match path:
            case "/tokenize":
                assert not body["add_special_tokens"]
                self.was_read.append(body["prompt"])
                ids = read(body["prompt"])
                return 200, {"tokens": ids, "count": len(ids), "max_model_len": 4096}
            case "/detokenize":
                return 200, {"prompt": said(body["tokens"]).decode(errors="replace")}
            case "/v1/completions":
                return 200, {"choices": [self._choice(body)]}
        return 404, {"message": f"no {path}"}

    def _choice(self, body: dict[str, Any]) -> dict[str, Any]:
        assert body["return_token_ids"]
        assert body["repetition_penalty"] == 1.0
        prompt = body["prompt"]
        out = self.sample(prompt, body["max_tokens"], body["stop"], body)
        places = range(len(out.ids))
        logprobs = [logprob_of(prompt + out.ids[:at], out.ids[at]) for at in places]
        return {
            "index": 0,
            "text": out.text,
            "finish_reason": "length" if out.kind == "limit" else "stop",
            "stop_reason": out.stop or None,
            "prompt_token_ids": prompt,
            "token_ids": out.ids,
            "logprobs": {"token_logprobs": logprobs},
        }
