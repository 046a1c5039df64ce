"""What a kernel may say on its channels, and what is made of the rest."""

import asyncio
import json

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_notebook

from kernel_sandbox.cells.outputs import OutputCollector
from kernel_sandbox.cells.zmq_channels import MALFORMED, Execution, ZmqChannels, new_session
from kernel_sandbox.forkserver.frames import Decoder, FrameError, encode
from kernel_sandbox.jupyter.launch_pipes import report_from_bytes
from kernel_sandbox.messages import (
    MESSAGE_BYTES,
    MESSAGE_ITEMS,
    MESSAGE_KEYS,
    clean_bundle,
    decode,
    has_too_many_parts,
)
from tests.examples import examples

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("body", "is_too_much"),
    [
        (json.dumps("," * (MESSAGE_ITEMS + 1)).encode(), False),
        (json.dumps('{"a": [1, 2]}' * 100_000).encode(), False),
        (json.dumps('\\", [' * 100_000).encode(), False),
        (json.dumps([1] * MESSAGE_ITEMS).encode(), False),
        (json.dumps([1] * (MESSAGE_ITEMS + 1)).encode(), True),
        (json.dumps(dict.fromkeys(map(str, range(MESSAGE_KEYS + 1)))).encode(), True),
        (json.dumps(["12:00"] * (MESSAGE_ITEMS // 2)).encode(), False),
        (b'"",' * MESSAGE_ITEMS * 2, True),
        (b"[" * 50_000, False),
    ],
    ids=[
        "commas",
        "quoted json",
        "escapes",
        "items",
        "one more",
        "keys",
        "times",
        "quotes",
        "deep",
    ],
)
def test_parts_are_counted_outside_of_texts(body, is_too_much):
    assert has_too_many_parts(body) == is_too_much


@pytest.mark.parametrize("text", ["[" * 50_000, "NaN", '{"a": Infinity}', "{", "", "1" * 5000])
def test_what_can_not_be_unpacked_is_one_kind_of_error(text):
    with pytest.raises(ValueError, match=r"\w"):
        decode(text.encode())


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", ["\ud83d"], {"\udc00": ["\ud800"]}])
def test_half_characters_become_whole_ones(text):
    json.dumps(decode(json.dumps(text).encode()), ensure_ascii=False).encode()
    assert decode(b'"\\ud83d\\ude00"') == "\N{GRINNING FACE}"


@given(st.dictionaries(st.text(max_size=9) | st.just("application/x+json"), JSON, max_size=4))
def test_a_bundle_can_always_be_written_into_a_notebook(data):
    output = {"output_type": "display_data", "data": clean_bundle(data), "metadata": {}}
    nbformat.validate(new_notebook(cells=[new_code_cell(outputs=[output])]))


def test_a_bundle_keeps_what_is_proper():
    proper = {"text/plain": "a", "application/geo+json": {"a": [1]}, "application/json": 5}
    odd = {"image/png": 5, "text/html": ["a", 1], "": "x", "x" * 300: "x", "text/x": None}
    assert clean_bundle(proper | odd | {"text/y": ["a", "b"]}) == proper | {"text/y": "ab"}


KINDS = st.sampled_from(
    (
        *("stream", "display_data", "update_display_data", "execute_result", "error", "status"),
        *("clear_output", "execute_input", "execute_reply", "comm_open", "comm_msg", "comm_close"),
    )
)
LIKELY = {
    "name": "stdout",
    "text": "x",
    "data": {"text/plain": "x"},
    "metadata": {},
    "wait": True,
    "transient": {"display_id": "d"},
    "ename": "E",
    "evalue": "",
    "traceback": [],
    "status": "ok",
    "execution_count": 1,
    "execution_state": "idle",
    "comm_id": "c",
    "target_name": "dm-jupyter",
}


@examples(400)
@given(KINDS, st.dictionaries(st.sampled_from(sorted(LIKELY)), JSON, max_size=4), JSON)
def test_whatever_a_kernel_says_is_taken_or_refused(kind, changes, parent):
    channel = ZmqChannels(None)
    heard = []
    channel.on_comm = lambda kind, content: heard.append((kind, content["comm_id"]))
    execution = Execution(OutputCollector(1000))
    channel._running = ("m", execution)
    for header in ({"msg_id": "m"}, parent):
        message = {"msg_type": kind, "parent_header": header, "content": {**LIKELY, **changes}}
        for handle in (channel._iopub, channel._shell):
            try:
                handle(decode(json.dumps(message).encode()))
            except MALFORMED:
                continue
    written = [output.to_nbformat() for output in execution.collector.outputs]
    nbformat.validate(new_notebook(cells=[new_code_cell(outputs=written)]))
    assert all(isinstance(comm_id, str) for _, comm_id in heard)


@pytest.mark.parametrize(
    "body",
    [
        b"[" + b"1" * 501 + b"]",
        b" " * MESSAGE_BYTES + b"1",
        b'{"a":' * 9000,
    ],
    ids=["digits", "bytes", "deep"],
)
def test_what_takes_long_to_unpack_is_refused(body):
    with pytest.raises(ValueError, match=r"too (many|long|deeply)"):
        decode(body)


def test_wrong_bytes_of_a_long_text_are_question_marks():
    assert decode(b'"a\xff\xc3\xa4"') == "a\ufffd\u00e4"
    long = decode(b'"' + b"\xff" * 300_000 + b'"')
    assert long == "?" * 300_000


def signed(session, header, content, parent=None):
    parts = [json.dumps(x).encode() for x in (header, parent or {"msg_id": "m"}, {}, content)]
    return [session.sign(parts), *parts]


def test_a_kernels_message_is_read_without_its_buffers():
    session = new_session(b"key")
    parts = signed(session, {"msg_type": "status", "date": "2026-01-01T00:00:00Z"}, {"a": 1})
    message = session.deserialize([*parts, b"buffer"])
    assert message == {
        "header": {"msg_type": "status", "date": "2026-01-01T00:00:00Z"},
        "parent_header": {"msg_id": "m"},
        "msg_type": "status",
        "content": {"a": 1},
    }
    with pytest.raises(ValueError, match="a copy of one"):
        session.deserialize(parts)


def test_a_signature_of_another_is_not_kept():
    session = new_session(b"key")
    parts = signed(session, {"msg_type": "status"}, {})
    with pytest.raises(ValueError, match="not signed"):
        session.deserialize([b"x" * 10_000_000, *parts[1:]])
    assert not session.digest_history


@pytest.mark.parametrize(
    "header", [[], 5, {}, {"msg_type": 5}, {"msg_type": "status", "x": "y" * 70_000}]
)
def test_a_header_that_is_none_is_refused(header):
    session = new_session(b"key")
    with pytest.raises(ValueError, match=r"header|no kind"):
        session.deserialize(signed(session, header, {}))


def test_a_message_without_its_parts_is_refused():
    session = new_session(b"key")
    with pytest.raises(ValueError, match="parts"):
        session.deserialize([b"", b"{}"])


def test_output_that_is_too_long_to_unpack_is_counted_as_cut():
    session = new_session(b"key")
    content = {"name": "stdout", "text": "x" * MESSAGE_BYTES}
    channel, execution = ZmqChannels(None), Execution(OutputCollector(4_000_000))
    channel._running = ("m", execution)
    channel._iopub(session.deserialize(signed(session, {"msg_type": "stream"}, content)))
    assert execution.collector.outputs == ()
    assert execution.collector.cut_bytes > MESSAGE_BYTES
    assert not execution.flood.is_set()


@pytest.mark.parametrize("kind", ["display_data", "execute_result"])
@pytest.mark.parametrize("count", [[], "1", -1, True, 2**60])
def test_the_number_of_a_cell_is_one(kind, count):
    channel, execution = ZmqChannels(None), Execution(OutputCollector(1000))
    channel._running = ("m", execution)
    content = {"data": {}, "metadata": {}, "execution_count": count}
    with pytest.raises(ValueError, match="execution_count"):
        channel._iopub({"msg_type": kind, "parent_header": {"msg_id": "m"}, "content": content})


def test_a_number_that_no_notebook_can_hold_is_no_output():
    collector = OutputCollector(1000)
    content = decode(b'{"data": {"application/json": [1e999]}, "metadata": {}}')
    with pytest.raises(ValueError, match="JSON"):
        collector.add("display_data", content)
    assert collector.outputs == ()


@pytest.mark.parametrize("name", [[], {}, 5])
def test_an_odd_name_of_an_error_is_refused(name):
    channel = ZmqChannels(None)
    channel._replies["m"] = asyncio.new_event_loop().create_future()
    content = {"status": "error", "ename": name}
    with pytest.raises(ValueError, match="ename"):
        channel._shell(
            {"msg_type": "execute_reply", "parent_header": {"msg_id": "m"}, "content": content}
        )
    channel._replies["m"].get_loop().close()


LAYER = '{"name": "seccomp", "state": "active", "reason": ""}'


@pytest.mark.parametrize(
    "text",
    [
        '{"pid": Infinity, "layers": []}',
        '{"pid": 1e999, "layers": []}',
        '{"pid": "7", "layers": []}',
        '{"pid": true, "layers": []}',
        '{"pid": -1, "layers": []}',
        '{"pid": 7}',
        '{"pid": 7, "layers": {}}',
        '{"pid": 7, "layers": ["x"]}',
        '{"pid": 7, "layers": [{"name": [], "state": "active", "reason": ""}]}',
        '{"pid": 7, "layers": [{"name": "a", "state": "active", "reason": {}}]}',
        '{"pid": 7, "layers": [{"name": "a", "state": "odd", "reason": ""}]}',
        "[]",
        "[" * 30_000,
        "",
    ],
)
def test_a_report_that_is_none_is_none(text):
    assert report_from_bytes(text.encode()) is None
    report = report_from_bytes(f'{{"pid": 7, "layers": [{LAYER}]}}\n{text}'.encode())
    assert report.containment.is_active("seccomp")


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("stream", {"name": "stdout", "text": "", "at": 10**400, "is_flush": False}),
        ("stream", {"name": "stdout", "text": "", "at": float("1e308"), "is_flush": False}),
        ("cut", {"bytes": 10**30}),
        ("cut", {"bytes": -1}),
        ("cut", {}),
        ("ready", {"layers": [5]}),
        ("ready", {"layers": [{"name": {}, "state": "active", "reason": ""}]}),
        ("reply", {"id": 1, "status": "error", "ename": []}),
    ],
)
def test_a_frame_with_an_odd_value_is_refused(kind, content):
    with pytest.raises(FrameError, match="with a wrong"):
        list(Decoder().feed(encode(kind, content)))
