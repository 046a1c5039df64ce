"""What a kernel may say on its channels, and what is made of the rest."""

import json

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_notebook

from kernel_sandbox.messages import (
    MESSAGE_ITEMS,
    MESSAGE_KEYS,
    clean_bundle,
    decode,
    has_too_many_parts,
)
from kernel_sandbox.outputs import OutputCollector
from kernel_sandbox.wire import MALFORMED, Execution, Wire

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


@settings(max_examples=400)
@given(KINDS, st.dictionaries(st.sampled_from(sorted(LIKELY)), JSON, max_size=4), JSON)
def test_whatever_a_kernel_says_is_taken_or_refused(kind, changes, parent):
    wire = Wire(None)
    heard = []
    wire.on_comm = lambda kind, content: heard.append((kind, content["comm_id"]))
    execution = Execution(OutputCollector(1000))
    wire._running = ("m", execution)
    for header in ({"msg_id": "m"}, parent):
        message = {"msg_type": kind, "parent_header": header, "content": {**LIKELY, **changes}}
        for handle in (wire._iopub, wire._shell):
            try:
                handle(decode(json.dumps(message).encode()))
            except MALFORMED:
                continue
    written = [output.to_nbformat() for output in execution.collector.outputs]
    nbformat.validate(new_notebook(cells=[new_code_cell(outputs=written)]))
    assert all(isinstance(comm_id, str) for _, comm_id in heard)
