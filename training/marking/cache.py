"""Replies of a model kept on disk, one file a question, so that none is paid for twice.

The files hold what was replied and never what was asked. Any number of processes may share the
folder: an entry appears whole or not at all, and what can't be read counts as not there.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from dm_jupyter.models.protocols import SampleRequest

__all__ = ["ReplyCache", "cache_key"]


def cache_key(model: str, fingerprint: str, request: SampleRequest) -> str:
    """Returns the sha256 of all that a reply depends on, as hex digits.

    Args:
        model: the model's name.
        fingerprint: of the prompt.
        request: what is asked, its sampling settings included.
    """
    parts = {
        "model": model,
        "prompt": fingerprint,
        "messages": [message.to_json() for message in request.messages],
        "prefill": request.prefill,
        "stop": list(request.stop),
        "temperature": request.temperature,
        "top_p": request.top_p,
        "max_tokens": request.max_tokens,
        "seed": request.seed,
    }
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ReplyCache:
    """A folder of replies; made when the first one is kept."""

    folder: Path

    def read(self, key: str) -> str | None:
        """Returns the reply kept under a key; `None` where there is none, or no whole one."""
        try:
            entry = json.loads(self._path(key).read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return None
        reply = entry.get("reply") if isinstance(entry, dict) else None
        return reply if isinstance(reply, str) else None

    def write(self, key: str, reply: str, about: Mapping[str, str]) -> None:
        """Keeps a reply, in the place of an earlier one.

        Args:
            key: of the question.
            reply: the model's words.
            about: what a person who looks into the folder wants to know, such as the model.

        Raises:
            OSError: the folder can't be written; an earlier entry is then as it was.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        descriptor, part = tempfile.mkstemp(dir=self.folder, prefix=f".{key[:12]}-")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(json.dumps({**about, "reply": reply}) + "\n")
            Path(part).replace(self._path(key))
        except BaseException:
            Path(part).unlink(missing_ok=True)
            raise

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"
