"""A model's chat template, which renders a conversation as the text that the model reads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from dm_jupyter.core.dialect import Message
from dm_jupyter.core.errors import PolicyError

__all__ = ["ChatTemplate", "ChatTemplateError"]

_TEMPLATE_FILE = "chat_template.jinja"
_SETTINGS_FILE = "tokenizer_config.json"


class ChatTemplateError(PolicyError):
    """There is no template, or it refuses a conversation."""


class ChatTemplate:
    """A Jinja template from a model's files, rendered in Jinja's sandbox."""

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
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ChatTemplateError(
                f"{folder} has no chat template: {error!r}. "
                f"It needs {_SETTINGS_FILE}, and {_TEMPLATE_FILE} where that names none."
            ) from error
        if not isinstance(source, str):
            raise ChatTemplateError(f"{folder} has several chat templates; name one by its text.")
        return cls(source, _mark(settings, "bos_token"), _mark(settings, "eos_token"))

    def text_of(self, messages: Sequence[Message]) -> str:
        """Return a conversation as text, up to the start of the model's next turn.

        Raises:
            ChatTemplateError: The template refuses such a conversation.
        """
        import jinja2  # noqa: PLC0415  (only a server without a template of its own needs it)

        try:
            return str(
                self._compiled.render(
                    messages=[message.to_json() for message in messages],
                    add_generation_prompt=True,
                    **self._marks,
                )
            )
        except jinja2.TemplateError as error:
            raise ChatTemplateError(
                f"The chat template refuses the conversation: {error}"
            ) from error

    @cached_property
    def _compiled(self) -> Any:
        from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415

        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.globals["raise_exception"] = _refuse
        environment.filters["tojson"] = _to_json
        return environment.from_string(self._source)


def _mark(settings: dict[str, Any], name: str) -> str:
    """Return a special token from a tokenizer's settings: a string, or an object with one."""
    mark = settings.get(name) or ""
    return str(mark["content"]) if isinstance(mark, dict) else str(mark)


def _refuse(message: str) -> None:
    from jinja2 import TemplateError  # noqa: PLC0415

    raise TemplateError(message)


def _to_json(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON without Jinja's HTML escapes, since a model reads no HTML."""
    return json.dumps(value, ensure_ascii=False, indent=indent)
