from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dm_jupyter.core.dialect import Message
from dm_jupyter.models.protocols import SampleRequest
from training.marking.asking import ReplyCache, cache_key

ASKED = SampleRequest((Message("user", "How many?"),), temperature=0.0, top_p=1.0)
KEY = "ab" * 32
WRITER = """
import sys
from pathlib import Path
from training.marking.asking import ReplyCache
cache = ReplyCache(Path(sys.argv[1]))
for _ in range(150):
    cache.write(sys.argv[2], sys.argv[3] * 20_000, {})
"""


def test_the_key_is_of_all_that_a_reply_depends_on() -> None:
    others = [
        cache_key("other", "f", ASKED),
        cache_key("m", "other", ASKED),
        *(
            cache_key("m", "f", replace(ASKED, **change))
            for change in (
                {"messages": (Message("user", "How many??"),)},
                {"messages": (Message("system", "How many?"),)},
                {"prefill": "x"}, {"stop": ("x",)}, {"temperature": 0.1}, {"top_p": 0.9},
                {"max_tokens": 7}, {"seed": 1},
            )
        ),
    ]  # fmt: skip
    key = cache_key("m", "f", ASKED)
    assert key == cache_key("m", "f", replace(ASKED))
    assert len({key, *others}) == len(others) + 1
    assert len(key) == 64


def test_an_entry_is_whole_or_not_there(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "new" / "folder")
    assert cache.read(KEY) is None
    cache.write(KEY, "Ja \u2603 \ud800", {"model": "m"})
    assert cache.read(KEY) == "Ja \u2603 \ud800"
    (entry,) = cache.folder.iterdir()
    entry.unlink()
    entry.mkdir()
    assert cache.read(KEY) is None
    with pytest.raises(OSError, match=KEY):
        cache.write(KEY, "x", {})
    assert list(cache.folder.iterdir()) == [entry]


def test_processes_that_write_at_the_same_time_never_show_half_an_entry(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path)
    cache.write(KEY, "a" * 20_000, {})
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), KEY, letter])
        for letter in "ab"
    ]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        seen.add(cache.read(KEY))
    assert [writer.returncode for writer in writers] == [0, 0]
    assert seen <= {"a" * 20_000, "b" * 20_000}
    assert [path.name for path in tmp_path.iterdir()] == [f"{KEY}.json"]
