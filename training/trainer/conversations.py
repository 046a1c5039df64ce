"""Conversations as rows: the chat template rendered, and the model's own words marked.

A message is `{"role": …, "content": …}` with three optional fields:

- `learn`: whether the model learns it; by default every `assistant` message. Set it to false for
  a turn that the assistance or a person wrote.
- `prefill`: the start of `content` that the model was given; never learned.
- `ended_by`: `model` (default) if the model closed its turn, so it learns the closing token. It is
  `stop` if sampling stopped at a stop string, so the closing token is the template's.

Marks of the chat template that a text quotes, such as `<|im_end|>`, are broken first, also in the
model's turns: only the template itself ends a message.

Each piece is tokenised alone, as in sampling: first the prompt, then the turn. So no token is half
learned, and the learned ids decode to the model's words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from jinja2 import TemplateError

from dm_jupyter.core.chat_marks import with_broken_marks
from training.durable.json_lines import numbered_lines
from training.trainer.rows import Row, TrainerError

__all__ = ["Tokenizer", "read_conversations", "row_of"]


class Tokenizer(Protocol):
    """Part of a transformers tokenizer that creates rows."""

    all_special_tokens: list[str]

    def apply_chat_template(
        self, conversation: Any, *, tokenize: bool, add_generation_prompt: bool, **options: Any
    ) -> Any:
        """Return the conversation as one text."""
        ...

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        """Return the ids of a text; names of special tokens in it become their ids."""
        ...


@dataclass(frozen=True, slots=True)
class _Piece:
    text: str
    is_learned: bool


def row_of(
    messages: Sequence[Mapping[str, Any]],
    tokenizer: Tokenizer,
    id: str,  # noqa: A002  (the field's name in the file)
    weight: float = 1.0,
    tools: Sequence[Mapping[str, Any]] = (),
) -> Row:
    """Return a conversation as a row.

    Args:
        messages: as described in this module's docstring.
        tokenizer: with a chat template.
        id: of the row.
        weight: of the row.
        tools: that the template describes to the model.

    Raises:
        TrainerError: nothing is learned, or the template rewrites the text before a turn.
    """
    ids: list[int] = []
    mask: list[int] = []
    said = [_with_broken_marks(message) for message in messages]
    for piece in _merged(_pieces(said, _renderer(tokenizer, tools), tokenizer, id)):
        tokens = tokenizer.encode(piece.text, add_special_tokens=False)
        ids += tokens
        mask += [int(piece.is_learned)] * len(tokens)
    return Row(id, np.array(ids, dtype=np.int64), np.array(mask, dtype=np.bool_), weight)


def read_conversations(
    file: Path, tokenizer: Tokenizer, ended_by: str = "model"
) -> tuple[Row, ...]:
    """Return the rows of a file of conversations, such as `python -m training.export` writes.

    A line with `"correct": false` is left out.

    Args:
        file: JSON lines with `messages`, and optionally `id`, `trial`, `variant`, `dialect`,
            `weight` and `tools`.
        tokenizer: with a chat template.
        ended_by: of the messages without this field.

    Raises:
        TrainerError: the file can't be read, or a line is not a conversation.
    """
    try:
        lines = list(numbered_lines(file))
    except (OSError, UnicodeDecodeError) as error:
        raise TrainerError(f"{file} can't be read: {error}") from error
    rows = []
    for number, line in lines:
        try:
            row = _row_of_line(json.loads(line), tokenizer, number, ended_by)
        except (TrainerError, ValueError, KeyError, TypeError, TemplateError) as error:
            raise TrainerError(f"{file}, line {number}: {error or type(error).__name__}") from error
        if row is not None:
            rows.append(row)
    return tuple(rows)


def _row_of_line(raw: Any, tokenizer: Tokenizer, number: int, ended_by: str) -> Row | None:
    if not isinstance(raw, Mapping):
        raise TrainerError("not a JSON object")
    if raw.get("correct") is False:
        return None
    name = str(raw.get("id", number))
    if "trial" in raw:
        name = f"{name} #{int(raw['trial']) + 1}"
    if variant := raw.get("variant"):  # another row than the run that it was made from
        name = f"{name}, {variant}"
    if "dialect" in raw:  # one run in two dialects is two rows
        name = f"{name} in {raw['dialect']}"
    messages = [{"ended_by": ended_by, **message} for message in raw["messages"]]
    return row_of(messages, tokenizer, name, float(raw.get("weight", 1.0)), raw.get("tools", ()))


def _with_broken_marks(value: Any) -> Any:
    """Return a JSON value, such as a message, in which no text contains a mark."""
    match value:
        case str():
            return with_broken_marks(value)
        case Mapping():
            return {name: _with_broken_marks(one) for name, one in value.items()}
        case list() | tuple():
            return [_with_broken_marks(one) for one in value]
    return value


Render = Callable[[Sequence[Mapping[str, Any]], bool], str]


def _renderer(tokenizer: Tokenizer, tools: Sequence[Mapping[str, Any]]) -> Render:
    options = {"tools": list(tools)} if tools else {}

    def render(messages: Sequence[Mapping[str, Any]], is_prompt: bool) -> str:
        text = tokenizer.apply_chat_template(
            list(messages), tokenize=False, add_generation_prompt=is_prompt, **options
        )
        return str(text)

    return render


def _pieces(
    messages: Sequence[Mapping[str, Any]], render: Render, tokenizer: Tokenizer, name: str
) -> Iterator[_Piece]:
    """Yield the conversation's text, split where learning begins and ends."""
    plain = [_without_marks(message) for message in messages]
    done = ""
    for at, message in enumerate(messages):
        if not _is_learned(message):
            continue
        prompt = _continued(done, render(plain[:at], True), name, at)
        yield _Piece(prompt, False)
        done += prompt
        rest = _continued(done, render(plain[: at + 1], False), name, at)
        yield from _turn(message, rest, tokenizer, f"{name}, message {at + 1}")
        done += rest


def _is_learned(message: Mapping[str, Any]) -> bool:
    return bool(message.get("learn", message["role"] == "assistant"))


def _without_marks(message: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in message.items()
        if name not in {"learn", "prefill", "ended_by"}
    }


def _continued(done: str, text: str, name: str, at: int) -> str:
    if not text.startswith(done):
        raise TrainerError(
            f"{name}, message {at + 1}: the chat template rewrites earlier messages, so this turn "
            "does not continue them; make a row of its own for each turn"
        )
    return text[len(done) :]


def _turn(
    message: Mapping[str, Any], rest: str, tokenizer: Tokenizer, where: str
) -> Iterator[_Piece]:
    """Yield the pieces of one learned message, as the template wrote it."""
    content, prefill = message["content"], message.get("prefill", "")
    if not isinstance(content, str) or message.get("tool_calls"):
        raise TrainerError(f"{where}: a turn must be plain text; export to another dialect")
    ended_by = message.get("ended_by", "model")
    if ended_by not in {"model", "stop"}:
        raise TrainerError(f"{where}: ended_by is {ended_by!r}, not 'model' or 'stop'")
    if not content.startswith(prefill):
        raise TrainerError(f"{where}: the content does not begin with its prefill")
    if not rest.startswith(content):
        raise TrainerError(f"{where}: the chat template changes the text of the turn")
    yield _Piece(prefill, False)
    closing = rest[len(content) :]
    own = _closing_token(closing, tokenizer, where) if ended_by == "model" else ""
    yield _Piece(content[len(prefill) :] + own, True)
    yield _Piece(closing[len(own) :], False)


def _closing_token(closing: str, tokenizer: Tokenizer, where: str) -> str:
    for token in sorted(tokenizer.all_special_tokens, key=len, reverse=True):
        if token and closing.startswith(token):
            return token
    raise TrainerError(
        f"{where}: after the turn the chat template writes {closing[:20]!r}, which begins with no "
        "special token; set ended_by to 'stop'"
    )


def _merged(pieces: Iterator[_Piece]) -> Iterator[_Piece]:
    """Merge neighbours of one kind, since the text that follows affects tokenisation."""
    last: _Piece | None = None
    for piece in pieces:
        if not piece.text:
            continue
        if last is not None and last.is_learned == piece.is_learned:
            last = _Piece(last.text + piece.text, piece.is_learned)
            continue
        if last is not None:
            yield last
        last = piece
    if last is not None and last.is_learned:
        yield last
    # Text after the last learned token teaches nothing, so it is left out.
