"""Has the scripted endpoint answer by how far each conversation has come."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.endpoint import ScriptedEndpoint

__all__ = ["Says", "tell"]

Says = Callable[[int, str], str]
"""From the number of the turn (from 0) and what the model was told last, to what it says."""


def tell(monkeypatch: pytest.MonkeyPatch, endpoint: ScriptedEndpoint, says: Says) -> None:
    """Several conversations at once may come in any order: a script of texts won't do for them."""
    answer = endpoint.next_answer
    lock = threading.Lock()

    def next_answer(body: dict[str, Any], headers: Mapping[str, str]) -> Any:
        told = [one["content"] for one in body["messages"] if one["role"] == "user"]
        with lock:
            endpoint.texts = [says(len(told) - 1, told[-1])]
            return answer(body, headers)

    monkeypatch.setattr(endpoint, "next_answer", next_answer)
