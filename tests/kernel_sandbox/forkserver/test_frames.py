"""Messages of a worker: what goes in comes out, and nothing else does."""

import contextlib
import json
import tracemalloc
from datetime import date, datetime

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_notebook

from kernel_sandbox.forkserver.frames import Decoder, FrameError, encode
from kernel_sandbox.messages import MESSAGE_BYTES
from tests.examples import examples

TEXT = {"name": "stdout", "text": "x", "at": 0.0, "is_flush": False}


def frame(raw):
    data = raw if isinstance(raw, bytes) else json.dumps(raw).encode()
    return len(data).to_bytes(4, "big") + data


def decode(data, size=None):
    decoder, found = Decoder(), []
    step = size or max(1, len(data))
    for start in range(0, len(data), step):
        found += decoder.feed(data[start : start + step])
    return found


@given(st.lists(st.text(max_size=50), max_size=5), st.integers(1, 40))
def test_messages_survive_any_cutting(texts, size):
    sent = [("stream", {**TEXT, "text": text}) for text in texts]
    data = b"".join(encode(kind, content) for kind, content in sent)
    assert decode(data, size) == sent


@given(st.binary(max_size=300), st.integers(1, 40))
def test_random_bytes_are_a_fault_or_nothing(data, size):
    with contextlib.suppress(FrameError):
        assert all(isinstance(content, dict) for _, content in decode(data, size))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
KINDS = st.sampled_from(
    ["stream", "display_data", "execute_result", "error", "reply", "cut", "clear_output", "ready"]
)
FIELDS = st.sampled_from(["name", "text", "data", "metadata", "transient", "id", "traceback"])


@examples(300)
@given(KINDS, st.dictionaries(FIELDS, JSON, max_size=4))
def test_framed_objects_are_of_a_known_shape_or_a_fault(kind, content):
    from kernel_sandbox.cells.outputs import OutputCollector

    try:
        messages = decode(frame({"kind": kind, "content": content}))
    except FrameError:
        return
    collector = OutputCollector(1000)
    for found, taken in messages:
        collector.add(found, taken)
    written = [output.to_nbformat() for output in collector.outputs]
    nbformat.validate(new_notebook(cells=[new_code_cell(outputs=written)]))


@given(st.binary(min_size=1, max_size=60))
def test_noise_inside_a_frame_is_a_fault_or_a_message(body):
    with contextlib.suppress(FrameError):
        assert decode(frame(body))


BROKEN = {
    "too long": (MESSAGE_BYTES + 1).to_bytes(4, "big"),
    "no json": frame(b"{"),
    "half a character": frame(b"\xff\xfe"),
    "a number": frame(5),
    "no kind": frame({"content": {}}),
    "strange kind": frame({"kind": "comm_open", "content": {}}),
    "list as kind": frame({"kind": [], "content": {}}),
    "no content": frame({"kind": "started", "content": 5}),
    "not a number": frame(b'{"kind": "cut", "content": {"bytes": NaN}}'),
    "huge number": frame(b'{"kind": "cut", "content": {"bytes": ' + b"1" * 10_000 + b"}}"),
    "bool for a number": frame({"kind": "stream", "content": {**TEXT, "at": True}}),
    "too deep": frame(b"[" * 100_000),
    "too many": frame(b"[" + b"[]," * 1_000_000 + b"0]"),
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_what_is_no_message_is_a_fault_after_what_was_one(data):
    decoder = Decoder()
    found = []
    with pytest.raises(FrameError):
        found.extend(decoder.feed(encode("started", {}) + data))
    assert found == [("started", {})]
    with pytest.raises(FrameError, match="before"):
        list(decoder.feed(encode("started", {})))


def test_memory_stays_within_the_length_of_a_message():
    chunk = b"x" * 65536
    tracemalloc.start()
    try:
        decoder = Decoder()
        assert list(decoder.feed(MESSAGE_BYTES.to_bytes(4, "big"))) == []
        for _ in range(MESSAGE_BYTES // len(chunk) - 1):
            assert list(decoder.feed(chunk)) == []
        with pytest.raises(FrameError):
            list(decoder.feed(chunk))
        assert tracemalloc.get_traced_memory()[1] < 5 * MESSAGE_BYTES
    finally:
        tracemalloc.stop()


def test_a_message_too_long_is_not_made():
    assert len(encode("run", {"id": 1, "source": "x" * (MESSAGE_BYTES - 100)})) < MESSAGE_BYTES + 4
    with pytest.raises(FrameError, match="too long"):
        encode("run", {"id": 1, "source": "x" * MESSAGE_BYTES})


def test_what_json_can_not_say_is_said_as_jupyter_client_does():
    import numpy as np

    data = {
        "bytes": b"a",
        "day": date(2024, 1, 2),
        "moment": datetime(2024, 1, 2, 3),
        "set": {1},
        "numbers": [np.int64(3), np.float32(0.5), float("nan"), float("-inf"), 10**400],
        5: (None, True),
    }
    ((_, content),) = decode(encode("display_data", {"data": data, "metadata": {}}))
    assert content["data"] == {
        "bytes": "YQ==",
        "day": "2024-01-02",
        "moment": "2024-01-02T03:00:00",
        "set": [1],
        "numbers": [3, 0.5, "nan", "-inf", 10**400],
        "5": [None, True],
    }
    with pytest.raises(ValueError, match="Can't clean for JSON"):
        encode("display_data", {"data": {"x": object()}})


def test_half_characters_become_whole_ones():
    for text, shown in (("\udce2\udc98\udc83", "☃"), ("\udcff", "\ufffd"), ("a\ud800", "a?")):
        ((_, content),) = decode(encode("stream", {**TEXT, "text": text}))
        assert content["text"] == shown


def test_a_forged_half_character_is_taken():
    ((_, content),) = decode(frame({"kind": "stream", "content": {**TEXT, "text": "\ud800"}}))
    assert content["text"] == "?"  # as it could be in no file
