"""Takes secrets and places of this machine out of what is kept for training."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = ["Redaction"]

_SHORTEST_SECRET = 8
_SECRETS = re.compile(
    r"""(?x)
    \b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}            # keys of model providers
    | \bgh[pousr]_[A-Za-z0-9]{20,}               # tokens of code hosts
    | \bAKIA[0-9A-Z]{16}\b                       # keys of clouds
    | \bxox[abprs]-[A-Za-z0-9-]{10,}             # tokens of chats
    | \beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+   # signed web tokens
    | -----BEGIN[ A-Z]*PRIVATE[ ]KEY-----.*?-----END[ A-Z]*PRIVATE[ ]KEY-----
    | (?<=://)[^/\s:@]+:[^/\s:@]+(?=@)           # user and password in an address
    """,
    re.DOTALL,
)


class Redaction:
    """Replaces what must not leave: known secrets, what looks like one, known folders.

    Covered: the texts given, and secrets of common shapes. Not covered: anything that the data
    itself holds, such as the names of people.
    """

    def __init__(self, folders: Iterable[Path], secrets: Iterable[str]) -> None:
        """Prepares the replacements.

        Args:
            folders: places of this machine; the longest match is taken.
            secrets: texts that must not stand anywhere, such as keys and tokens in use.
        """
        paths = {str(folder) for folder in folders if len(folder.parts) > 1}
        self._folders = sorted(paths, key=len, reverse=True)
        self._secrets = [secret for secret in secrets if len(secret) >= _SHORTEST_SECRET]

    def add_secret(self, secret: str) -> None:
        """Takes in a text that must not stand anywhere from now on."""
        if len(secret) >= _SHORTEST_SECRET and secret not in self._secrets:
            self._secrets.append(secret)

    def applied_to(self, value: Any) -> Any:
        """Returns a JSON value with every text in it cleaned."""
        if isinstance(value, str):
            return self._clean(value)
        if isinstance(value, dict):
            return {self._clean(str(key)): self.applied_to(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.applied_to(item) for item in value]
        return value

    def _clean(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "[secret]")
        text = _SECRETS.sub("[secret]", text)
        for folder in self._folders:
            text = text.replace(folder, "[folder]")
        return text
