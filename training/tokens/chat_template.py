"""A model's chat template, which renders a conversation as the text that the model reads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from jinja2 import Template, TemplateError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from dm_jupyter.core.dialect import Message
from dm_jupyter.core.errors import PolicyError

__all__ = ["TEMPLATE_FAULTS", "ChatTemplate", "ChatTemplateError"]

_TEMPLATE_FILE = "chat_template.jinja"
_SETTINGS_FILE = "tokenizer_config.json"
TEMPLATE_FAULTS: Final = (
    TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What a template's own expressions may raise."""


class ChatTemplateError(PolicyError):
    """There is no template, or it refuses a conversation."""


class _GenerationBlock(Extension):
    """A plain block for `{% generation %}`, with which transformers finds the model's words."""

    tags = {"generation"}  # noqa: RUF012  (jinja2's own declaration is no class variable)

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


class ChatTemplate:
    """A Jinja template from a model's files, rendered in Jinja's sandbox.

    It has the filters, functions and blocks that transformers gives to templates.
    """

    def __init__(self, source: str, bos_token: str = "", eos_token: str = "") -> None:
        """Store the template; the first use compiles it.

        Args:
            source: The template.
            bos_token: The token that begins the model's texts; empty for none.
            eos_token: The token that ends them.
        """
        self._source = source
        self._marks = {"bos_token": bos_token, "eos_token": eos_token}

    @classmethod
    def of_folder(cls, folder: Path) -> ChatTemplate:
        """Return the template of a model's folder in the model hub's layout.

        Raises:
            ChatTemplateError: There is none, or it can't be read.
        """
        try:
            settings = json.loads((folder / _SETTINGS_FILE).read_text("utf-8"))
            own_file = folder / _TEMPLATE_FILE
            source = own_file.read_text("utf-8") if own_file.exists() else settings["chat_template"]
            marks = [_mark(settings, name) for name in ("bos_token", "eos_token")]
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise ChatTemplateError(
                f"{folder} has no chat template: {error!r}. "
                f"It needs {_SETTINGS_FILE}, and {_TEMPLATE_FILE} where that names none."
            ) from error
        if not isinstance(source, str):
            raise ChatTemplateError(f"{folder} has several chat templates; name one by its text.")
        return cls(source, *marks)

    def text_of(self, messages: Sequence[Message]) -> str:
        """Return a conversation as text, up to the start of the model's next turn.

        Raises:
            ChatTemplateError: The template refuses such a conversation.
        """
        try:
            return self._compiled.render(
                messages=[message.to_json() for message in messages],
                add_generation_prompt=True,
                **self._marks,
            )
        except TEMPLATE_FAULTS as error:
            raise ChatTemplateError(
                f"The chat template refuses the conversation: {error}"
            ) from error

    @cached_property
    def _compiled(self) -> Template:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[_GenerationBlock, "jinja2.ext.loopcontrols"],
        )
        environment.globals["raise_exception"] = _refuse
        environment.globals["strftime_now"] = _now
        environment.filters["tojson"] = _to_json
        return environment.from_string(self._source)


def _mark(settings: dict[str, Any], name: str) -> str:
    """Return a special token from a tokenizer's settings: a string, or an object with one."""
    mark = settings.get(name) or ""
    return str(mark["content"]) if isinstance(mark, dict) else str(mark)


def _refuse(message: str) -> None:
    raise TemplateError(message)


def _now(form: str) -> str:
    """Return the local time; a template writes the date into its system prompt."""
    return datetime.now().astimezone().strftime(form)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Return a value as JSON without Jinja's HTML escapes, with the arguments of transformers."""
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )
