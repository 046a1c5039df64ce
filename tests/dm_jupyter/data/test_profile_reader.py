"""Data files are read in a worker: what is too much, what breaks it, what is read only once."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import shutil
import sqlite3
import zipfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from dm_jupyter.core.errors import DataFileError
from dm_jupyter.data import profile_reader
from dm_jupyter.data.profile_reader import READING, ProfileReader, reading_for
from kernel_sandbox.runners.worker import CellWorker
from kernel_sandbox.types import MIB
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")


def _wide(path: Path, columns: int) -> Path:
    path.write_text("\n".join(",".join([cell] * columns) for cell in ("a", "1", "2")), "utf-8")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("columns", [8_000, pytest.param(32_000, marks=pytest.mark.slow)])
async def test_a_table_of_very_many_columns_is_read_and_holds_up_nobody(
    tmp_path: Path, columns: int
) -> None:
    turns = 0
    async with ProfileReader(replace(READING, wall_s=120.0)) as reader:
        reading = asyncio.create_task(reader.profile(_wide(tmp_path / "wide.csv", columns)))
        while not reading.done():
            await asyncio.sleep(0.01)  # a turn of the loop
            turns += 1
        (table,) = (await reading).tables
    assert len(table.columns) == columns
    assert turns > 20  # the loop went on meanwhile


async def test_what_takes_too_long_has_a_short_profile_and_a_sentence(tmp_path: Path) -> None:
    path = _wide(tmp_path / "wide.csv", 32_000)
    async with ProfileReader(replace(READING, wall_s=0.2)) as reader:
        profile = await reader.profile(path)
        reader._limits = READING
        again = await reader.profile(_wide(tmp_path / "small.csv", 2))
    assert profile.tables == ()
    assert profile.kind == "csv"
    assert profile.size_bytes == path.stat().st_size
    assert "more than 0 s" in profile.warnings[0]
    assert "nrows" in profile.warnings[0]
    assert len(again.tables) == 1


async def test_what_takes_too_much_memory_has_a_short_profile(tmp_path: Path) -> None:
    path = tmp_path / "lists.json"
    path.write_text("[" + "[]," * 8_000_000 + "[]]", "utf-8")
    async with ProfileReader(replace(READING, memory_bytes=320 * MIB)) as reader:
        profile = await reader.profile(path)
    assert profile.kind == "json"
    assert profile.tables == ()
    assert "took more than 320 MiB" in profile.warnings[0]


@pytest.mark.slow
async def test_a_profile_that_is_too_long_is_not_passed_on_in_part(tmp_path: Path) -> None:
    async with ProfileReader(replace(READING, output_bytes=256 * 1024)) as reader:
        profile = await reader.profile(_wide(tmp_path / "wide.csv", 4_000))
    assert profile.tables == ()
    assert "its profile is larger than 256 KiB" in profile.warnings[0]


async def test_a_reader_that_dies_is_said_and_the_next_file_is_read(
    tmp_path: Path, reader: ProfileReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _wide(tmp_path / "t.csv", 2)
    real = CellWorker.run

    async def dying(self: CellWorker, source: str) -> object:
        return await real(self, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")

    with monkeypatch.context() as patch:
        patch.setattr(CellWorker, "run", dying)
        profile = await reader.profile(path)
    assert profile.tables == ()
    assert "reading it failed" in profile.warnings[0]
    path.write_text("a,b\n1,2\n3,4\n", "utf-8")
    assert (await reader.profile(path)).tables[0].row_count == 2


async def test_a_fault_of_the_file_is_told_in_its_own_words(
    tmp_path: Path, reader: ProfileReader
) -> None:
    path = tmp_path / "not.parquet"
    path.write_bytes(b"no such thing")
    with pytest.raises(DataFileError, match=r"not\.parquet"):
        await reader.profile(path)


async def test_a_file_that_became_a_link_is_not_followed(
    tmp_path: Path, reader: ProfileReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("key\n1234\n", "utf-8")
    link = tmp_path / "sales.csv"
    link.symlink_to(secret)
    monkeypatch.setattr(profile_reader, "check_file", lambda path, name: None)
    with pytest.raises(DataFileError, match="it was replaced by a link"):
        await reader.profile(link)


async def test_a_database_is_read_with_what_lies_beside_it(
    tmp_path: Path, reader: ProfileReader
) -> None:
    path = tmp_path / "live.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma journal_mode=wal")
        connection.execute("create table t (a int)")
        connection.execute("insert into t values (1), (2)")
        connection.commit()
        assert path.with_name("live.db-wal").stat().st_size > 0
        before = await reader.profile(path)
        connection.execute("insert into t values (3)")
        connection.commit()
        after = await reader.profile(path)  # the file itself has not changed
    assert before.tables[0].row_count == 2
    assert after.tables[0].row_count == 3


async def test_a_file_is_read_again_only_when_it_has_changed(
    tmp_path: Path, reader: ProfileReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _wide(tmp_path / "t.csv", 3)
    first = await reader.profile(path)
    with monkeypatch.context() as patch:
        patch.setattr(CellWorker, "run", None)
        assert await reader.profile(path) is first
    with path.open("a", encoding="utf-8") as stream:
        stream.write("\n3,3,3")
    assert (await reader.profile(path)).tables[0].row_count == 3


async def test_another_file_of_the_same_name_is_not_taken_for_it(
    tmp_path: Path, reader: ProfileReader
) -> None:
    path = _wide(tmp_path / "t.csv", 3)
    first = await reader.profile(path)
    other = _wide(tmp_path / "other.csv", 2)
    other.write_bytes(other.read_bytes().ljust(path.stat().st_size, b" "))
    shutil.copystat(path, other)
    other.replace(path)
    second = await reader.profile(path)
    assert len(second.tables[0].columns) != len(first.tables[0].columns)


async def test_its_process_ends_when_no_file_is_read_and_comes_again(tmp_path: Path) -> None:
    async with ProfileReader(idle_s=0.05) as reader:
        await reader.profile(_wide(tmp_path / "one.csv", 2))
        await until(lambda: reader._zygote is None, "its process has ended")
        profile = await reader.profile(_wide(tmp_path / "two.csv", 2))
        assert len(profile.tables) == 1
    await reader.close()


async def test_a_worker_prints_the_profile_or_the_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile_reader.print_profile_json(str(_wide(tmp_path / "t.csv", 2)), "t.csv")
    assert '"profile"' in capsys.readouterr().out
    profile_reader.print_profile_json(str(tmp_path / "none.csv"), "none.csv")
    assert '"fault"' in capsys.readouterr().out


async def test_files_in_an_archive_are_unpacked_and_read_in_the_worker(
    tmp_path: Path, reader: ProfileReader
) -> None:
    frame = pd.DataFrame({"n": [1, 2], "t": ["a", "b"]})
    frame.to_stata(tmp_path / "a.dta", write_index=False)
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(tmp_path / "a.dta", "a.dta")
        archive.writestr("b.csv", "n,t\n" + f"1,{'x' * 97}\n" * 200_000)  # 20 MB
        archive.writestr("c.geojson", '{"type": "FeatureCollection", "features": [{}]}')
        archive.writestr("d.xml", "<?xml version='1.0'?><d><r><a>1</a></r><r><a>2</a></r></d>")
    profile = await reader.profile(path)
    assert [table.name for table in profile.tables] == ["a.dta", "b.csv", "c.geojson"]
    assert profile.tables[1].row_count == 200_000
    assert "'d.xml'" in profile.notes[1]


async def test_xml_and_statistics_files_are_read_in_the_worker(
    tmp_path: Path, reader: ProfileReader
) -> None:
    (tmp_path / "x.xml").write_text("<?xml version='1.0'?><d><r a='1'/><r a='2'/></d>")
    pd.DataFrame({"n": [1, 2]}).to_stata(tmp_path / "x.dta", write_index=False)
    for name, kind in (("x.xml", "xml"), ("x.dta", "stata")):
        profile = await reader.profile(tmp_path / name)
        assert (profile.kind, [table.row_count for table in profile.tables]) == (kind, [2])


def _large(path: Path) -> Path:
    path.write_text("a,b\n" + "".join(f"{i},{'x' * 97}\n" for i in range(400_000)), "utf-8")
    return path


async def test_how_far_a_large_file_is_read_is_told(
    tmp_path: Path, reader: ProfileReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[float] = []
    monkeypatch.setattr(profile_reader, "_TELL_EVERY_S", 0.001)
    path = tmp_path / "large.csv"  # read in four pieces: told long before the end
    names = ",".join("abcdefghij")
    path.write_text(
        f"{names}\n" + "".join(f"{i},1,2,3,4,5,6,7,{'x' * 40},9\n" for i in range(400_000))
    )
    profile = await reader.profile(path, on_progress=told.append)
    assert profile.tables[0].sampled_rows is None
    assert told == sorted(told)
    assert 0 < told[0] < 1


@pytest.mark.slow
async def test_what_a_short_time_does_not_suffice_for_is_said(tmp_path: Path) -> None:
    path = _large(tmp_path / "large.csv")
    lines = path.read_text("utf-8")
    path.write_text(lines + lines.partition("\n")[2] * 9, "utf-8")  # 400 MB
    async with ProfileReader(reading_for(2.0)) as reader:
        profile = await reader.profile(path)
    told = " ".join(profile.warnings)
    words = ("nothing is known of the rest", "more than 2 s", "no time was left")
    assert any(word in told for word in words)


@pytest.mark.parametrize("text", ["", "nonsense", "7", "nan", "-1", "0.5" * 40])
async def test_progress_that_is_none_is_not_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(profile_reader, "_TELL_EVERY_S", 0.001)
    told: list[float] = []
    (tmp_path / "said").write_text(text, "ascii")
    (tmp_path / "link").symlink_to(tmp_path / "good")
    (tmp_path / "good").write_text("0.25", "ascii")
    for name in ("said", "link", "none"):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                await profile_reader._watch(tmp_path / name, told.append)
    assert told == []
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.05):
            await profile_reader._watch(tmp_path / "good", told.append)
    assert set(told) == {0.25}


async def test_all_that_is_loaded_ahead_exists() -> None:
    # A zygote leaves out what it can't import without a word.
    assert all(importlib.util.find_spec(name) for name in profile_reader._MODULES)
