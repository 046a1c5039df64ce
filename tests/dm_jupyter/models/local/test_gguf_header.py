from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np
import pytest

from dm_jupyter.models.local.gguf_header import GgufError, read_header

from .gguf_files import write_gguf

FIELDS = {
    "general.architecture": "llama",
    "a.number": 7,
    "a.share": 0.5,
    "a.switch": True,
    "a.list": [1, 2, 3],
    "words": ["one", "two", ""],
    "last": "end",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    tensors = {"blk.0.w": np.zeros((3, 5), np.float32), "norm": np.zeros(4, np.float32)}
    return write_gguf(tmp_path / "a.gguf", FIELDS, tensors)


def test_fields_and_shapes_are_read_and_lists_are_passed_over(file: Path) -> None:
    header = read_header(file)
    texts = {name: value for name, value in FIELDS.items() if not isinstance(value, list)}
    assert header.fields == texts
    assert header.shapes == {"blk.0.w": (5, 3), "norm": (4,)}


def test_a_file_of_the_reference_writer_is_read_alike(tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(tmp_path / "b.gguf", "qwen2")
    writer.add_type(gguf.GGUFType.ADAPTER)
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 16.0)
    writer.add_array("some.list", [1.5, 2.5])
    writer.add_uint64("a.long", 1 << 40)
    writer.add_tensor("blk.0.w.lora_a", np.zeros((4, 8), np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    header = read_header(tmp_path / "b.gguf")
    assert header.fields["general.type"] == "adapter"
    assert (header.fields["adapter.lora.alpha"], header.fields["a.long"]) == (16.0, 1 << 40)
    assert header.shapes == {"blk.0.w.lora_a": (8, 4)}


def test_a_file_that_is_cut_short_anywhere_in_its_head_is_refused(file: Path) -> None:
    whole = file.read_bytes()
    end = whole.index(b"norm") + len("norm") + struct.calcsize("<IQIQ")
    read_header(_cut(file, whole[:end]))
    for length in range(end):
        with pytest.raises(GgufError):
            read_header(_cut(file, whole[:length]))


def _cut(file: Path, content: bytes) -> Path:
    file.write_bytes(content)
    return file


def test_a_file_that_changed_is_read_again(file: Path) -> None:
    before = file.stat()
    assert "last" in read_header(file).fields
    write_gguf(file, {"other": "x"}, {})
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert read_header(file).fields == {"other": "x"}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "empty"),
        (b"PK\x03\x04 something else", "no GGUF file"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "version 1"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 1 << 60), "cut short"),
        (b"GGUF" + struct.pack("<IQQQ1sI", 3, 0, 1, 1, b"k", 99), "unknown kind 99"),
        (b"GGUF" + struct.pack("<IQQQ1sIIQ", 3, 0, 1, 1, b"k", 9, 4, 1 << 62), "cut short"),
        (b"GGUF" + struct.pack("<IQQQ1sIIQ", 3, 0, 1, 1, b"k", 9, 9, 1), "unknown kind 9"),
        (b"GGUF" + struct.pack("<IQQQ1sI", 3, 1, 0, 1, b"t", 5), "5 dimensions"),
    ],
)
def test_what_is_no_head_is_named(content: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / "bad.gguf").write_bytes(content)
    with pytest.raises(GgufError, match=why):
        read_header(tmp_path / "bad.gguf")
