"""A model that answers the same request the same way, without being asked again.

Two ways of asking differ by chance as well where each draws its own turns. With one memory for
both, everything up to the first request that differs is shared: what is left is the difference.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from dm_jupyter.core.trajectory import Completion
from dm_jupyter.models.protocols import Policy, SampleRequest, Urgency

__all__ = ["AskedOnce"]


class AskedOnce:
    """Implements `Policy` over another one; its memory is a file, which a later run reads."""

    def __init__(self, policy: Policy, file: Path) -> None:
        """Reads what the file remembers; a last line that was not finished is dropped.

        Args:
            policy: asked for what nobody has asked for yet.
            file: a line of JSON for each request; made with its folder.

        Raises:
            OSError: the file can't be read or its folder made.
        """
        self._policy = policy
        self._file = file
        self._known: dict[str, Completion] = {}
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        file.parent.mkdir(parents=True, exist_ok=True)
        whole = []
        for line in file.read_text("utf-8").splitlines(keepends=True) if file.exists() else ():
            if line.endswith("\n"):
                row = json.loads(line)
                self._known[row["request"]] = Completion(**row["completion"])
                whole.append(line)
        if file.exists():
            file.write_text("".join(whole), "utf-8")

    @property
    def name(self) -> str:
        """The other model's name."""
        return self._policy.name

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        """Returns the turn that this request got before, at once, or asks for it."""
        key = _digest(self.name, request)
        async with self._turns[key]:
            if known := self._known.get(key):
                on_text(known.text)
                return known
            found = await self._policy.sample(request, on_text)
            self._known[key] = found
            row = {"request": key, "completion": asdict(found)}
            with self._file.open("a", encoding="utf-8") as out:
                out.write(json.dumps(row) + "\n")
            return found


def _digest(model: str, request: SampleRequest) -> str:
    """Tells requests apart by all that the model gets of them."""
    sent = replace(request, urgency=Urgency.QUESTION, on_wait=None)
    return hashlib.sha256(f"{model}\n{sent!r}".encode()).hexdigest()
