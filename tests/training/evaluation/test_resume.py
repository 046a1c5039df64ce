"""Runs that are resumed where something has changed or broken: through the real command."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Trajectory
from tests.dm_jupyter.models.local.gguf_files import (
    adapter_tensors,
    write_adapter_file,
    write_model,
)
from tests.endpoint import ScriptedEndpoint
from tests.fakes import ScriptedPolicy
from tests.training.outcomes import tried, write_run
from training import replay
from training.durable.data_files import DataFinder, changed_files
from training.durable.log import Salvaged
from training.evaluate import main
from training.evaluation.manifest import data_of, hash_data
from training.evaluation.repeated import recorded_files
from training.records.records import DAMAGED, RunError, read_run, salvage
from training.suites.dabench import DABench
from training.suites.suite import Sample

RIGHT = 'print(f"@n[{len(df)}]")\n```'


class Run:
    """A run of three questions on one table, given as a person gives it."""

    def __init__(self, folder: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.split, self.out = folder / "split", folder / "out"
        self._url, self._patch = url, monkeypatch
        (self.split / "tables").mkdir(parents=True)
        self.table = self.split / "tables" / "t.csv"
        self.table.write_text("a\n1\n2\n3\n")
        rows = [
            {"id": f"q{number}", "question": f"How many rows? {number}", "constraints": "",
             "format": "@n[n]", "file": "tables/t.csv", "level": "easy", "concepts": [],
             "label_pairs": [["n", "3"]]}
            for number in range(3)
        ]  # fmt: skip
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (self.split / "questions.jsonl").write_text(lines)

    def __call__(self, *more: str) -> int:
        return self.by("--policy", "scripted", "--base-url", self._url, *more)

    def by(self, *more: str) -> int:
        """The run by the model that the options name."""
        self._patch.setattr(
            sys, "argv",
            ["evaluate", "dabench", "--split", str(self.split), "--out", str(self.out),
             "--profile", "interactive", *more],
        )  # fmt: skip
        return main()

    @property
    def manifest(self) -> dict[str, object]:
        return dict(json.loads((self.out / "run.json").read_text()))

    @property
    def records(self) -> Path:
        return self.out / "records.jsonl"


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint([RIGHT]) as endpoint:
        yield endpoint


@pytest.fixture
def run(tmp_path: Path, endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(tmp_path, endpoint.base_url, monkeypatch)


def test_a_changed_data_file_stops_a_resume_until_it_is_restored(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--limit", "1") == 0
    kept = (run.out / "run.json").read_text()
    run.table.write_text("a\n1\n2\n4\n")
    assert run() == 1
    said = capsys.readouterr().err
    assert "another content of tables/t.csv (sha256" in said
    assert "Restore the file to go on, or choose another --out" in said
    assert (run.out / "run.json").read_text() == kept
    run.table.write_text("a\n1\n2\n3\n")
    assert run() == 0
    assert len(read_run(run.out)) == 3


@pytest.mark.slow
def test_a_run_goes_on_with_the_same_adapter_alone(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("xllamacpp")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    model = write_model(tmp_path / "tiny.gguf")
    file = write_adapter_file(tmp_path / "mine.gguf")
    plain = ("--model", str(model), "--max-turns", "1", "--turn-tokens", "4")
    options = (*plain, "--adapter", str(file))
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    assert run.by(*options, "--limit", "1") == 0
    assert run.manifest["adapter"] == sha256
    (record,) = read_run(run.out)
    assert record.trajectory["policy"] == run.manifest["model"]
    assert str(run.manifest["model"]).endswith(f"+mine@{sha256[:12]}")
    assert run.by(*options, "--limit", "2") == 0
    assert len(read_run(run.out)) == 2
    assert run.by(*plain) == 1
    write_adapter_file(file, adapter_tensors(seed=2))
    assert run.by(*options) == 1
    assert capsys.readouterr().err.count("holds a run with another model") == 2
    assert len(read_run(run.out)) == 2


def test_a_model_file_with_another_content_stops_a_resume(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = ScriptedPolicy([RIGHT] * 3)
    monkeypatch.setattr("training.evaluate.open_policy", lambda *_: nullcontext(policy))
    model = write_model(tmp_path / "tiny.gguf")
    assert run.by("--model", str(model), "--limit", "1") == 0
    assert run.manifest["weights"] == hashlib.sha256(model.read_bytes()).hexdigest()
    calls = (run.out / "calls.jsonl").read_bytes()
    write_adapter_file(model)
    assert run.by("--model", str(model)) == 1
    assert "holds a run with another weights: " in capsys.readouterr().err
    assert (run.out / "calls.jsonl").read_bytes() == calls
    write_model(model)
    assert run.by("--model", str(model)) == 0
    assert len(read_run(run.out)) == 3


@pytest.mark.slow
def test_a_run_of_an_older_release_is_resumed_with_a_warning_once(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--limit", "1") == 0
    older = run.manifest
    del older["data"]
    (run.out / "run.json").write_text(json.dumps(older))
    capsys.readouterr()
    assert run() == 0
    assert "run.json is from an older release without hashes" in capsys.readouterr().err
    assert "data" in run.manifest
    assert run() == 0
    assert "older release" not in capsys.readouterr().err


def test_damage_in_the_middle_is_set_aside_on_demand_alone(
    run: Run, endpoint: ScriptedEndpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 0
    first, second, third = run.records.read_bytes().splitlines()
    broken = second[:40] + b"\xff\0garbage"
    run.records.write_bytes(b"\n".join((first, broken, third, b"")))
    damaged = run.records.read_bytes()
    assert run() == 1
    assert "records.jsonl, line 2: no record" in (said := capsys.readouterr().err)
    assert "Add --salvage" in said
    assert run.records.read_bytes() == damaged
    asked = len(endpoint.bodies)
    assert run("--salvage") == 0
    assert f"kept 2 records, moved 1 damaged lines to {run.out / DAMAGED}" in (
        capsys.readouterr().err
    )
    assert (run.out / DAMAGED).read_bytes() == broken + b"\n"
    assert len(endpoint.bodies) == asked  # the try is made again, its call is kept
    assert {record.id for record in read_run(run.out)} == {"q0", "q1", "q2"}
    assert run("--salvage") == 0
    assert "no damage, all 3 records are whole" in capsys.readouterr().err


def test_salvage_keeps_every_byte_in_one_of_two_files(tmp_path: Path) -> None:
    file = write_run(tmp_path / "run", [tried("a", True), tried("b", False)]) / "records.jsonl"
    a, b = file.read_bytes().splitlines()
    bad = [b"\0" * 9, b"[]", b"{}", a[:-5], b.replace(b'"turns": 2', b'"turns": "x"'), b"[" * 9_999]
    file.write_bytes(b"\n".join([bad[0], a, *bad[1:], b, a]))
    assert salvage(file) == Salvaged(kept=2, damaged=len(bad) + 1)
    assert file.read_bytes() == a + b"\n" + b + b"\n"
    assert file.with_name(DAMAGED).read_bytes().splitlines() == [*bad, a]
    assert salvage(file) == Salvaged(kept=2, damaged=0)
    file.write_bytes(a + b"\n" + b"?\n")
    salvage(file)
    assert file.with_name(DAMAGED).read_bytes().splitlines() == [*bad, a, b"?"]


def test_salvage_of_a_run_that_has_not_begun_is_nothing(tmp_path: Path) -> None:
    assert salvage(tmp_path / "records.jsonl") == Salvaged(0, 0)
    assert list(tmp_path.iterdir()) == []


def test_a_report_of_damaged_records_names_the_way_out(tmp_path: Path) -> None:
    file = write_run(tmp_path / "run", [tried("a", True)]) / "records.jsonl"
    file.write_text("garbage\n" + file.read_text())
    with pytest.raises(RunError, match=r"line 1: not JSON .*with --salvage"):
        read_run(file)


def test_a_file_is_read_again_only_where_the_file_system_saw_a_change(run: Run) -> None:
    items = DABench().load(run.split)
    known = hash_data(items, run.split, {})
    assert list(known) == ["tables/t.csv"]
    forged = {"tables/t.csv": {**known["tables/t.csv"], "sha256": "of an earlier look"}}
    assert hash_data(items, run.split, forged) == forged
    times = run.table.stat()
    run.table.write_text("b\n1\n2\n3\n")  # as long as before
    os.utime(run.table, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert changed_files(known, hash_data(items, run.split, known)) == ["tables/t.csv"]


def test_a_file_outside_of_the_split_is_named_by_its_question(run: Run, tmp_path: Path) -> None:
    items = DABench().load(run.split)[:1]
    assert list(hash_data(items, tmp_path / "elsewhere", {})) == ["q0: t.csv"]
    run.table.unlink()
    assert hash_data(items, run.split, {}) == {}


def test_a_file_is_found_under_the_name_that_the_code_reads(tmp_path: Path) -> None:
    split = tmp_path / "split"
    for folder, name in ((split, "q: t.csv"), (tmp_path / "made", "t.csv")):
        folder.mkdir()
        (folder / name).write_text(folder.name)
        sample = Sample(Task("q", "How many?", (folder / name,)), None)
        data = data_of(sample, split, hash_data([sample], split, {}))
        assert list(data) == ["q: t.csv"]
        trajectory = Trajectory(sample.task, "markdown").to_json()
        record = tried("q", True, data=data, trajectory=trajectory)
        assert recorded_files(record, DataFinder([folder])) == {name: folder / name}


def test_a_run_stops_at_its_budget_and_a_larger_one_continues_it(
    run: Run, endpoint: ScriptedEndpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--budget", "calls=2") == 1
    said = capsys.readouterr().err
    assert "the budget of 2 calls is used up: 2 calls" in said
    assert "larger --budget calls=N" in said
    assert len(read_run(run.out)) == len(endpoint.bodies) == 2
    assert run("--budget", "calls=2") == 1
    assert run("--budget", "calls=3") == 0
    assert len(read_run(run.out)) == len(endpoint.bodies) == 3


@pytest.mark.slow
def test_an_attempt_that_is_made_again_repeats_no_call(
    run: Run, endpoint: ScriptedEndpoint
) -> None:
    assert run() == 0
    asked, results = len(endpoint.bodies), (run.out / "results.jsonl").read_bytes()
    run.records.unlink()
    assert run("--budget", f"calls={asked}") == 0  # what is kept costs nothing
    assert len(endpoint.bodies) == asked
    assert (run.out / "results.jsonl").read_bytes() == results


def test_dollars_need_a_price(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    for options in (["--budget", "dollars=1"], ["--budget", "euros=1"]):
        with pytest.raises(SystemExit, match="2"):
            run(*options)
    said = capsys.readouterr().err
    assert "needs --price" in said
    assert "'euros=1' is not one of calls=N, tokens=N" in said


def test_a_missing_ray_ends_the_command_with_the_way_out(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert run("--pool", "ray") == 1
    assert "pip install 'ray" in capsys.readouterr().err


@pytest.mark.slow
def test_recorded_cells_run_again_where_the_data_have_moved(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--limit", "2") == 0
    (record, _) = read_run(run.out)
    assert record.data == {"tables/t.csv": hashlib.sha256(run.table.read_bytes()).hexdigest()}
    run.split.rename(tmp_path / "moved")

    def replayed(*more: str) -> int:
        command = ["replay", str(run.out), "--profile", "interactive", *more]
        monkeypatch.setattr(sys, "argv", command)
        return replay.main()

    capsys.readouterr()
    assert replayed() == 1
    assert "the data file tables/t.csv (sha256 " in (said := capsys.readouterr().out)
    assert "Name the folder that has it with --data" in said
    assert replayed("--data", str(tmp_path / "moved")) == 0
    assert "2 of 2 runs showed the same" in capsys.readouterr().out
    lines = run.records.read_text().replace("3]", "4]")  # as if the cells had shown 4
    run.records.write_text(lines)
    assert replayed("--data", str(tmp_path / "moved")) == 1
    assert "the cell of turn 1 showed something else" in capsys.readouterr().out
