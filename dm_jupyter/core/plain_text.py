"""Text from elsewhere, made fit for a terminal and a page.

Covered: codes that a terminal obeys, among them those that set its title or fill the clipboard.
Not covered: what a text says.
"""

from __future__ import annotations

import re

__all__ = ["harmless_text"]

_LINE_END = re.compile(r"\r\n?")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def harmless_text(text: str) -> str:
    """Returns the text without colours and control characters."""
    return _CONTROL.sub("", _LINE_END.sub("\n", text))
