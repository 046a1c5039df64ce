"""Throws bytes at the parent's end of a worker; needs atheris, and runs until it is stopped.

    python tests/fuzz/fuzz_worker_client.py -max_total_time=300

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
    from kernel_sandbox.cells.outputs import OutputCollector
    from kernel_sandbox.cells.zmq_channels import Execution
    from kernel_sandbox.forkserver.worker_client import WorkerClient

_LOOP = asyncio.new_event_loop()
_KINDS = ("stream", "display_data", "update_display_data", "execute_result", "clear_output")
_KINDS += ("error", "cut", "reply", "ready", "started")


_FIELDS = ("name", "text", "at", "is_flush", "data", "metadata", "transient", "wait", "bytes")
_FIELDS += ("id", "status", "execution_count", "ename", "evalue", "traceback", "layers")
_TEXTS = ("stdout", "stderr", "ok", "text/plain", "image/png", "display_id", "\x1b[31m", "\r", "")


def _framed(message: object) -> bytes:
    data = json.dumps(message).encode()
    return len(data).to_bytes(4, "big") + data


def _value(given: atheris.FuzzedDataProvider, depth: int = 0) -> object:
    match given.ConsumeIntInRange(0, 7 if depth < 3 else 4):
        case 0:
            return given.PickValueInList([None, True, False, 0, 1, -1, 1e308, float("nan")])
        case 1:
            return given.ConsumeInt(9)
        case 2 | 3:
            return given.PickValueInList(list(_TEXTS))
        case 4:
            return given.ConsumeUnicode(20)
        case 5:
            return [_value(given, depth + 1) for _ in range(given.ConsumeIntInRange(0, 4))]
    names = [
        given.PickValueInList([*_FIELDS, *_TEXTS]) for _ in range(given.ConsumeIntInRange(0, 4))
    ]
    return {name: _value(given, depth + 1) for name in names}


def _message(given: atheris.FuzzedDataProvider) -> bytes:
    """Mostly of the right shape: what is not is refused before it gets far."""
    likely = {"name": "stdout", "text": "x", "at": 1.0, "is_flush": False, "data": {}}
    likely |= {"metadata": {}, "transient": None, "wait": True, "bytes": 1, "id": 1}
    likely |= {"status": "ok", "execution_count": 1, "ename": "E", "evalue": "", "traceback": []}
    likely["layers"] = []
    for _ in range(given.ConsumeIntInRange(0, 4)):
        likely[given.PickValueInList(list(_FIELDS))] = _value(given)
    return _framed({"kind": given.PickValueInList(list(_KINDS)), "content": likely})


async def _feed(data: bytes) -> OutputCollector:
    ours, theirs = socket.socketpair()
    ended = asyncio.get_running_loop().create_future()
    channel = WorkerClient(ours, {})
    channel.on_fault = lambda reason: ended.done() or ended.set_result(reason)
    execution = Execution(OutputCollector(1000))
    channel._running = (1, execution)
    loop = asyncio.get_running_loop()
    theirs.setblocking(False)
    await loop.sock_sendall(theirs, data)
    theirs.close()
    await ended
    channel.close()
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
        sent = b"".join(_message(given) for _ in range(given.ConsumeIntInRange(1, 6)))
    collector = _LOOP.run_until_complete(_feed(sent))
    json.dumps([output.to_nbformat() for output in collector.outputs])


if __name__ == "__main__":
    asyncio.set_event_loop(_LOOP)
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
