"""Fuzz targets for everything that a kernel can send, with one call per input.

A target is created once. `prepare` creates an input, which is not timed. It returns the call that
the event loop (or, for files, a thread of the server) would make with it. A call may raise only
what its target documents, and it checks the result of the input.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.fuzz.files import HANDED_OVER, FileNames, HandOver, LayerChanges, fill
from benchmarks.fuzz.target import Call, OnLoop, Target
from benchmarks.fuzz.values import (
    hostile_bytes,
    hostile_json,
    large_message,
    mutated,
)
from dm_jupyter.core.codec import encode_json
from dm_jupyter.data.kernel_tables import alive_from_text
from dm_jupyter.server.kernels.handoff import Handoffs
from dm_jupyter.server.notebooks.output_stream import joined, operation_of
from dm_jupyter.server.protocol import Operated
from dm_jupyter.server.protocol.operations import InsertCell, apply, new_cell
from kernel_sandbox.cells.cell import outcome_of_reply
from kernel_sandbox.cells.outputs import Change, OutputCollector
from kernel_sandbox.cells.zmq_channels import MALFORMED, Execution, ZmqChannels, new_session
from kernel_sandbox.confine.layers import LAYER_NAMES
from kernel_sandbox.files import beneath
from kernel_sandbox.files.workspace_layer import WorkspaceLayer
from kernel_sandbox.forkserver.frames import Decoder, FrameError
from kernel_sandbox.forkserver.worker_client import WorkerClient
from kernel_sandbox.jupyter.attached import reply_text
from kernel_sandbox.jupyter.launch_pipes import report_from_bytes
from kernel_sandbox.messages import decode
from kernel_sandbox.types import Limits

__all__ = ["KernelMessage", "opened_targets"]

KEY = b"the key that the code in a kernel holds, too"
OUTPUT_BYTES = 4 * 1024**2
READ_BYTES = 256 * 1024
COMM = {
    "comm_id": "c1",
    "target_name": "dm-jupyter",
    "data": HANDED_OVER,
}
_VALUE = {"name": "n", "kind": "int", "text": "3"}
_TABLE = {
    "name": "df",
    "kind": "DataFrame",
    "shape": [2, 1],
    "columns": [{"name": "a", "dtype": "int64", "samples": ["1", "2"]}],
}
_BUNDLE = {
    "data": {"text/plain": ["a", "b"], "application/json": {"a": [1]}},
    "metadata": {"a": {"b": 1}},
    "transient": {"display_id": "d"},
}
_REPLY = {
    "status": "ok",
    "execution_count": 1,
    "ename": "E",
    "evalue": "",
    "user_expressions": {"value": {"status": "ok", "data": {"text/plain": "[]"}}},
}
OUTPUTS = (
    ("stream", {"name": "stdout", "text": "x\n"}),
    ("display_data", _BUNDLE),
    ("update_display_data", _BUNDLE),
    ("execute_result", {**_BUNDLE, "execution_count": 1}),
    ("error", {"ename": "E", "evalue": "v", "traceback": ["a", "b"]}),
    ("clear_output", {"wait": True}),
)
SPOKEN = (
    *OUTPUTS,
    ("execute_reply", _REPLY),
    ("status", {"execution_state": "idle"}),
    ("execute_input", {"code": "1"}),
    ("comm_open", COMM),
    ("comm_msg", COMM),
    ("comm_close", COMM),
    ("iopub_welcome", {}),
)
FRAMES = (
    *OUTPUTS,
    ("stream", {"name": "stderr", "text": "x", "at": 1.5, "is_flush": False}),
    ("reply", {**_REPLY, "id": 1}),
    ("ready", {"layers": [{"name": "seccomp", "state": "active", "reason": ""}]}),
    ("cut", {"bytes": 10}),
    ("started", {}),
)


class Comm(OnLoop):
    """Messages of a comm, as a kernel's attachment receives them."""

    documented = (ValueError,)

    def prepare(self, random: Random) -> Call:
        """Return the call for the next input."""
        bodies = [
            (random.choice(("comm_open", "comm_msg", "comm_close")), hostile_json(random, COMM))
            for _ in range(3)
        ]

        def call() -> None:
            spawned: list[Any] = []
            handoffs = Handoffs(_taken, _answered, lambda _: None, spawned.append)
            channel = ZmqChannels(None)  # type: ignore[arg-type]  (it is not opened)
            channel.on_comm = handoffs.hear
            try:
                for kind, body in bodies:
                    with contextlib.suppress(*MALFORMED):
                        channel._iopub(
                            {"msg_type": kind, "parent_header": {}, "content": decode(body)}
                        )
            finally:
                for work in spawned:
                    work.close()

        return call


async def _taken(_: object) -> dict[str, Any]:
    return {"kind": "refused"}


async def _answered(*_: object) -> None:
    pass


class LaunchReport(OnLoop):
    """Report of a launch."""

    def prepare(self, random: Random) -> Call:
        """Return the call for the next input."""
        layers = [{"name": name, "state": "active", "reason": ""} for name in LAYER_NAMES[:4]]
        body = hostile_json(random, {"pid": 7, "layers": layers})[: 64 * 1024]

        def call() -> None:
            report = report_from_bytes(body)
            if report is not None:
                assert report.pid > 0
                json.dumps(report.containment.with_layers([]).to_json()).encode()
                report.containment.summary()

        return call


class Variables(OnLoop):
    """Text with a kernel's variables, and the reply that carries it."""

    def prepare(self, random: Random) -> Call:
        """Return the call for the next input."""
        alive = {"tables": [_TABLE, _TABLE], "values": [_VALUE]}
        text = hostile_json(random, alive).decode("utf-8", "replace")
        reply = json.loads(json.dumps(_REPLY))
        reply["user_expressions"]["value"]["data"]["text/plain"] = text
        if random.randrange(2):
            reply = mutated(random, reply)

        def call() -> None:
            found = alive_from_text(reply_text(reply) or "")
            assert len(json.dumps([found.tables, found.values])) < 1_000_000
            for value in found.values:
                assert {*value} == {"name", "kind", "text"}
            for table in found.tables:
                assert {*table} == {"name", "kind", "shape", "columns"}
                " x ".join(map(str, table["shape"])).encode()
                ", ".join(x for column in table["columns"] for x in column["samples"]).encode()

        return call


class KernelMessage(OnLoop):
    """A message on a kernel's channels, from its signed parts to the outputs of a cell."""

    documented = MALFORMED
    weight = 30

    def __init__(self) -> None:
        self._session = new_session(KEY)

    def prepare(self, random: Random) -> Call:
        """Return the call for the next input."""
        kind, content = random.choice(SPOKEN)
        header = {
            "msg_id": str(random.random()),
            "msg_type": kind,
            "version": "5.3",
            "date": "2026-01-01T00:00:00Z",
        }
        parts = [json.dumps(x).encode() for x in (header, {"msg_id": "m"}, {}, content)]
        at = random.choice((0, 1, 2, 3, 3, 3, 3))
        parts[at] = hostile_json(random, (header, {"msg_id": "m"}, {}, content)[at])
        signature = self._session.sign(parts)
        if random.randrange(20) == 0:
            signature = hostile_bytes(random, signature)
            parts = parts[: random.randrange(5)]
        buffers = [b"x"] * random.randrange(3)

        def call() -> None:
            message = self._session.deserialize([signature, *parts, *buffers])
            channel, execution = ZmqChannels(None), Execution(OutputCollector(OUTPUT_BYTES))  # type: ignore[arg-type]
            channel._running = ("m", execution)
            for handle in (channel._iopub, channel._shell):
                handle(message)
            check_outputs(execution.collector)

        return call


class LargestMessage(OnLoop):
    """A message of the largest size that is unpacked, of a slow kind."""

    documented = MALFORMED
    weight = 0.03

    def __init__(self) -> None:
        self._session = new_session(KEY)

    def prepare(self, random: Random) -> Call:
        """Return the call for the next input."""
        kind, body = large_message(random)
        header = {"msg_id": str(random.random()), "msg_type": kind}
        parts = [json.dumps(header).encode(), b'{"msg_id": "m"}', b"{}", body]
        signature = self._session.sign(parts)

        def call() -> None:
            message = self._session.deserialize([signature, *parts])
            channel, execution = ZmqChannels(None), Execution(OutputCollector(OUTPUT_BYTES))  # type: ignore[arg-type]
            channel._running = ("m", execution)
            channel._iopub(message)

        return call


class LargestOutput(OnLoop):
    """The largest outputs that are kept, on their way into the journal, to a tab and a cell."""

    documented = MALFORMED
    weight = 0.03

    def prepare(self, random: Random) -> Call:
        """Return the call for the next input."""
        kind, body = large_message(random)
        document = {"cells": [new_cell(InsertCell("c", "code", ""))]}

        def operate(operation: Any) -> None:
            message = Operated(run_id="r", seq=1, operation=operation)
            encode_json(message).encode()  # to the journal
            encode_json(message).encode()  # to a tab
            apply(operation, document)

        changes: list[Change] = []
        channel = ZmqChannels(None)  # type: ignore[arg-type]
        channel._running = ("m", Execution(OutputCollector(OUTPUT_BYTES, changes.append)))
        with contextlib.suppress(*MALFORMED):
            channel._iopub(
                {"msg_type": kind, "parent_header": {"msg_id": "m"}, "content": decode(body)}
            )
        operations = [operation_of("c", change) for change in joined(changes)]  # in a thread

        def call() -> None:
            for operation in operations:
                operate(operation)

        return call


class CellOutputs(OnLoop):
    """Outputs of a cell, from messages to lines of the journal and a cell of the notebook."""

    documented = MALFORMED
    weight = 30

    def prepare(self, random: Random) -> Call:
        """Return the call for the next input."""
        spoken = [random.choice(OUTPUTS) for _ in range(random.randrange(1, 5))]
        messages = [(kind, hostile_json(random, content)) for kind, content in spoken]

        def call() -> None:
            document = {"cells": [new_cell(InsertCell("c", "code", ""))]}
            lines: list[str] = []

            def operate(operation: Any) -> None:
                message = Operated(run_id="r", seq=1, operation=operation)
                lines.append(encode_json(message))
                apply(operation, document)

            channel = ZmqChannels(None)  # type: ignore[arg-type]
            changes: list[Change] = []
            collector = OutputCollector(OUTPUT_BYTES, changes.append)
            channel._running = ("m", Execution(collector))
            for kind, body in messages:
                with contextlib.suppress(*MALFORMED):
                    content = decode(body)
                    channel._iopub(
                        {"msg_type": kind, "parent_header": {"msg_id": "m"}, "content": content}
                    )
            for change in joined(changes):
                operate(operation_of("c", change))
            check_outputs(collector)
            "".join(lines).encode()

        return call


def check_outputs(collector: OutputCollector) -> None:
    """Assert that a notebook can contain the kept outputs."""
    kept = 0
    for output in collector.outputs:
        raw = output.to_nbformat()
        kept += len(json.dumps(raw, allow_nan=False).encode())
        count = raw.get("execution_count")
        assert count is None or type(count) is int, count
    assert type(collector.cut_bytes) is int
    assert 0 <= collector.cut_bytes < 2**60
    assert kept < 8 * OUTPUT_BYTES


class Reply(OnLoop):
    """Outcome of a cell from its kernel's reply."""

    def prepare(self, random: Random) -> Call:
        """Return the call for the next input."""
        bodies = [hostile_json(random, _REPLY) for _ in range(2)]

        def call() -> None:
            for body in bodies:
                channel = ZmqChannels(None)  # type: ignore[arg-type]
                future: asyncio.Future[Any] = asyncio.get_event_loop().create_future()
                channel._replies["m"] = future
                with contextlib.suppress(*MALFORMED):
                    message = {"msg_type": "execute_reply", "parent_header": {"msg_id": "m"}}
                    channel._shell({**message, "content": decode(body)})
                reply = future.result() if future.done() else {}
                outcome_of_reply(reply, was_interrupted=True)
                count = reply.get("execution_count")
                assert count is None or type(count) is int

        return call


class WorkerFrames(OnLoop):
    """Bytes that a worker sends, up to the outputs of a cell."""

    documented = (FrameError,)
    weight = 30

    def __init__(self, channel: WorkerClient) -> None:
        self._channel = channel

    def prepare(self, random: Random) -> Call:
        """Return the call for the next input."""
        data = b""
        for _ in range(random.randrange(1, 4)):
            kind, content = random.choice(FRAMES)
            whole = {"kind": kind, "content": mutated(random, content)}
            damaged = hostile_json(random, whole)
            body = damaged if random.randrange(5) == 0 else json.dumps(whole).encode()
            data += len(body).to_bytes(4, "big") + body
            if len(data) > READ_BYTES:  # more than one read of the server
                break
        if random.randrange(10) == 0:
            data = hostile_bytes(random, data)

        def call() -> None:
            channel, decoder = self._channel, Decoder()
            execution = Execution(OutputCollector(OUTPUT_BYTES))
            channel._running = (1, execution)
            try:
                for kind, content in decoder.feed(data):
                    channel._handle(kind, content)
            finally:
                channel._order.flush_all()
                channel._running = None
            check_outputs(execution.collector)

        return call


@contextmanager
def opened_targets(folder: Path) -> Iterator[tuple[Target, ...]]:
    """Open the targets with their files and sockets, in the thread of a running event loop.

    Args:
        folder: an empty one for their files.
    """
    root = folder / "root"
    for name in ("in", "work", ".hidden", ".ssh"):
        (root / name).mkdir(parents=True)
    fill(root / "work")
    for name in ("in/a.csv", ".hidden/a.csv"):
        (root / name).write_text("a")
    (root / "secret.csv").write_text("secret")
    (root / ".ssh" / "id_rsa").write_text("secret")
    (root / "folder").symlink_to("in")
    (root / "loop").symlink_to("loop")
    os.mkfifo(root / "in" / "pipe.csv")
    with ExitStack() as opened:
        ours, theirs = socket.socketpair()
        opened.callback(theirs.close)
        channel = WorkerClient(ours, {})
        opened.callback(channel.close)
        held = opened.enter_context(beneath.held(root / "work"))
        layer = WorkspaceLayer(root / "work", folder, Limits().disk_bytes)
        opened.callback(layer.remove)
        yield (
            HandOver(root), Comm(), LaunchReport(), Variables(), KernelMessage(), CellOutputs(),
            LargestMessage(), LargestOutput(),
            Reply(), WorkerFrames(channel), FileNames(held, root), LayerChanges(layer, root),
        )  # fmt: skip
