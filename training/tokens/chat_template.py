"""A model's chat template, which writes a conversation as the one text that the model reads."""

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
    """There is no template, or it does not take a conversation."""


class ChatTemplate:
    """A template in Jinja's language, run in its sandbox: it comes with a model's files."""

    def __init__(self, source: str, bos_token: str = "", eos_token: str = "") -> None:
        """Compile nothing yet.

        Args:
            source: The template.
            bos_token: The mark with which the model's texts begin; empty for none.
            eos_token: The mark with which they end.
        """
        self._source = source
        self._marks = {"bos_token": bos_token, "eos_token": eos_token}

    @classmethod
    def of_folder(cls, folder: Path) -> ChatTemplate:
        """Return the template of a model's folder, as the model hub lays it out.

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
        """Return a conversation as text, up to where the model's next turn begins.

        Raises:
            ChatTemplateError: The template does not take such a conversation.
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
    """A mark of a tokenizer's settings, which may be a word or a record of one."""
    mark = settings.get(name) or ""
    return str(mark["content"]) if isinstance(mark, dict) else str(mark)


def _refuse(message: str) -> None:
    from jinja2 import TemplateError  # noqa: PLC0415

    raise TemplateError(message)


def _to_json(value: Any, indent: int | None = None) -> str:
    """Jinja's own escapes what HTML does not bear; a model reads no HTML."""
    return json.dumps(value, ensure_ascii=False, indent=indent)
