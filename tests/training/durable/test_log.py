"""Logs that are cut anywhere, damaged anywhere, and written by a process that is killed."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from training.durable.log import DurableLog, LogError, Salvaged

Row = tuple[str, object]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
ROWS = st.lists(st.tuples(st.text(max_size=8), VALUES), max_size=6, unique_by=lambda row: row[0])


def log_in(folder: Path) -> DurableLog[str, Row]:
    return DurableLog(folder / "rows.jsonl", _encoded, _decoded, lambda row: row[0], "Do this.")


def _encoded(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False)


def _decoded(line: bytes) -> Row:
    key, value = json.loads(line)
    if not isinstance(key, str):
        raise ValueError("no key")  # noqa: TRY004
    return key, value


@given(rows=ROWS, data=st.data())
@examples(60)
def test_a_log_cut_at_any_byte_is_read_to_a_prefix_and_goes_on(
    rows: list[Row], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as name:
        log = log_in(Path(name))
        ends = [0]
        for row in rows:
            log.append(row)
            ends.append(log.path.stat().st_size)
        if not rows:
            assert log.read() == []
            return
        cut = data.draw(st.integers(0, ends[-1]))
        os.truncate(log.path, cut)
        whole = [row for row, end in zip(rows, ends[1:], strict=True) if end <= cut]
        assert log.peek() == whole
        assert log.path.stat().st_size == cut  # to peek changes nothing
        if data.draw(st.booleans()):
            assert log.read() == whole
        else:  # a new process that appends without reading must not write behind the stump
            log = log_in(Path(name))
        log.append(("next", None))
        assert log.read() == [*whole, ("next", None)]
        index = log.index()
        assert [log.at(index[row[0]]) for row in whole] == whole
        assert set(log.by_key()) == {row[0] for row in whole} | {"next"}


@given(rows=ROWS.filter(bool), junk=st.binary(max_size=20), data=st.data())
@examples(60)
def test_salvage_keeps_every_row_and_every_byte(
    rows: list[Row], junk: bytes, data: st.DataObject
) -> None:
    junk = junk.replace(b"\n", b"") + b"\xff"
    with tempfile.TemporaryDirectory() as name:
        log = log_in(Path(name))
        for row in rows:
            log.append(row)
        lines = log.path.read_bytes().splitlines(keepends=True)
        lines.insert(data.draw(st.integers(0, len(lines))), junk + b"\n")
        log.path.write_bytes(b"".join(lines))
        with pytest.raises(LogError, match=r"rows.jsonl, line \d+: no record .* Do this\."):
            log.read()
        assert log.salvage() == Salvaged(len(rows), 1)
        assert log.read() == rows
        assert log.damaged_path.read_bytes() == junk + b"\n"


def test_an_append_that_fails_leaves_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_in(tmp_path)
    log.append(("a", 1))

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            log.append(("b", 2))
    log.append(("c", 3))
    assert log.read() == [("a", 1), ("c", 3)]


def test_the_last_record_of_a_key_counts_and_the_first_is_salvaged(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    for value in (1, 2):
        log.append(("a", value))
    assert log.by_key() == {"a": ("a", 2)}
    assert log.salvage() == Salvaged(1, 1)
    assert log.read() == [("a", 1)]


def test_a_log_that_was_never_written_is_empty(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    assert (log.read(), log.peek(), log.salvage()) == ([], [], Salvaged(0, 0))
    assert list(tmp_path.iterdir()) == []
