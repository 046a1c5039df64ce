"""Throws bytes at the parent's end of a worker; needs atheris, and runs until it is stopped.

    python tests/fuzz/fuzz_worker_wire.py -max_total_time=300

Whatever comes, nothing is raised, the connection ends, and what was kept of the outputs can be
written into a notebook.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys

import atheris

with atheris.instrument_imports(include=["kernel_sandbox", "json"]):
    from kernel_sandbox.forks.worker_wire import WorkerWire
    from kernel_sandbox.outputs import OutputCollector
    from kernel_sandbox.wire import Execution

_LOOP = asyncio.new_event_loop()
_KINDS = ("stream", "display_data", "update_display_data", "execute_result", "clear_output")
_KINDS += ("error", "cut", "reply", "ready", "started")


def _framed(kind: str, body: str) -> bytes:
    text = f'{{"kind": "{kind}", "content": {body}}}'.encode("utf-8", "replace")
    return len(text).to_bytes(4, "big") + text


async def _feed(data: bytes) -> OutputCollector:
    ours, theirs = socket.socketpair()
    ended = asyncio.get_running_loop().create_future()
    wire = WorkerWire(ours, {})
    wire.on_fault = lambda reason: ended.done() or ended.set_result(reason)
    execution = Execution(OutputCollector(1000))
    wire._running = (1, execution)
    theirs.sendall(data)
    theirs.close()
    await ended
    wire.close()
    return execution.collector


def one(data: bytes) -> None:
    """Tries one input: raw bytes, or messages whose content is the input's.

    Args:
        data: what the fuzzer thought of.
    """
    given = atheris.FuzzedDataProvider(data)
    if given.ConsumeBool():
        sent = given.ConsumeBytes(4096)
    else:
        kinds = [given.PickValueInList(list(_KINDS)) for _ in range(3)]
        sent = b"".join(_framed(kind, given.ConsumeUnicodeNoSurrogates(400)) for kind in kinds)
    collector = _LOOP.run_until_complete(_feed(sent))
    json.dumps([output.to_nbformat() for output in collector.outputs])


if __name__ == "__main__":
    asyncio.set_event_loop(_LOOP)
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
