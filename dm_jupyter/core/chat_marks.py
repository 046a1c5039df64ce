"""Marks of chat templates, such as `<|im_end|>`, in text that quotes them.

Templates separate messages with them, and a tokenizer reads one as a single token wherever it is in
a prompt. So a data file or a printed line could end its own message and begin one of the system.

Covered: the marks of ChatML, Llama, Mistral, Gemma, DeepSeek and templates like theirs. Not
covered: other marks, the opening of a turn, which may name a file, and a request in plain words.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["with_broken_marks"]

_MARK: Final = re.compile(
    r"<(?=[|｜][^\s<>]{1,60}>)"  # <|im_start|>, <|turn>; DeepSeek's bars are wide
    r"|<(?=\w{1,60}[|｜]>)"  # <turn|>
    r"|<(?=(?:/?s|bos|eos|start_of_turn|end_of_turn)>)"
    r"|<(?=</?SYS>>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])"
)
"""The first character of each mark."""


def with_broken_marks(text: str) -> str:
    """Return a text with a space in each mark: no tokenizer reads `< |im_end|>` as one token."""
    return _MARK.sub(lambda first: f"{first[0]} ", text)
