"""What a tab hears of a message that makes no sense, and that the next one is still taken."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dm_jupyter.server.connection import Connection
from dm_jupyter.server.protocol import Tells

ASK = {"kind": "ask", "request_id": "r", "notebook_path": "n.ipynb", "question": "How?"}
CELLS = [{"kind": "code", "source": ""}, {"kind": "code", "source": 1}]


class _Service:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.taken: list[Any] = []

    def receive(self, message: Any, tab: Any) -> None:
        self.taken.append(message)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (json.dumps({**ASK, "cells": CELLS}), "message.cells[1].source: Expected `str`, got `int`"),
        (json.dumps({**ASK, "approval": "all"}), "message.approval: Invalid enum value 'all'"),
        (json.dumps({**ASK, "temperature": 9}), "ask: temperature must be 0 to 2, got 9"),
        ('{"kind": "stop"}', "message: Object missing required field `run_id`"),
        ('{"kind": "smell"}', "message.kind: Invalid value 'smell'"),
        ('{"kind": "stop"', "message: Expecting"),
        ("[" * 100_000, "message: "),
        (b"\xff", "message: 'utf-8' codec can't decode"),
    ],
)
def test_a_message_that_makes_no_sense_is_answered(text: str | bytes, said: str) -> None:
    heard: list[dict[str, Any]] = []
    service = _Service()
    connection = Connection(service, lambda sent: heard.append(json.loads(sent)))  # type: ignore[arg-type]
    connection.take(text)
    (refused,) = heard
    assert (refused["kind"], refused["reason"], service.taken) == ("refused", "unknown", [])
    assert said in refused["message"]
    connection.take('{"kind": "tells", "withheld": ["cells"]}')
    assert service.taken == [Tells(("cells",))]
