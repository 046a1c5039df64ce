"""A collection from draws to dataset, through the real command, with real kernels."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from dm_jupyter.config import ModelChoice
from dm_jupyter.core.errors import UsageError
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Trajectory
from dm_jupyter.models.capabilities import Capabilities, CapabilityMemory
from tests.training.collect.scripted import FUNNEL, ScriptedRuns, write_split
from tests.training.outcomes import tried, write_run
from training.collect.__main__ import _command, _tries_before, _variants, main
from training.collect.card import read_source
from training.collect.dataset import DatasetFile, write_collection
from training.evaluation.run import SEEDS_A_TRIAL, fingerprint_of
from training.export.rerun import Replays, ReplayTimeoutError
from training.records.records import EvalRecord
from training.suites.registry import find_suite

CHECKOUT = Path(__file__).resolve().parents[3]
HAS_TRAINER = importlib.util.find_spec("torch") is not None


@pytest.fixture
def model() -> Iterator[ScriptedRuns]:
    with ScriptedRuns() as model:
        yield model


@pytest.fixture
def split(tmp_path: Path) -> Path:
    return write_split(tmp_path / "train")


def words(split: Path, out: Path, *more: str) -> list[str]:
    return ["collect", "generated", "--split", str(split), "--out", str(out), "--dialect",
            "datamind", "--profile", "interactive", *more]  # fmt: skip


def drawing(model: ScriptedRuns, tries: int) -> tuple[str, ...]:
    return ("--run-dialect", "datamind", "--max-turns", "3", "--policy", "scripted",
            "--base-url", model.base_url, "--tries", str(tries))  # fmt: skip


def collect(monkeypatch: pytest.MonkeyPatch, command: Sequence[str]) -> int:
    monkeypatch.setattr(sys, "argv", list(command))
    return main()


def rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def keys(file: Path) -> list[tuple[str, int]]:
    return [(row["id"], row["trial"]) for row in rows(file)]


def funnel_of(told: str) -> dict[str, int]:
    lines = [line.split(maxsplit=1) for line in told.splitlines()]
    found = {name: int(line[0]) for line in lines if len(line) > 1 and line[0].isdigit()
             for name in FUNNEL if line[1].startswith(f"{name:<13} ")}  # fmt: skip
    assert list(found) == list(FUNNEL)
    return found


def test_a_collection_keeps_what_is_right_and_repeats_nothing(
    split: Path,
    tmp_path: Path,
    model: ScriptedRuns,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out, workflows = tmp_path / "out", tmp_path / "workflows.toml"
    workflows.write_text('[[workflow]]\ncategories = ["b"]\ntext = "Count the lines."\n')
    command = words(split, out, *drawing(model, tries=3), "--assist", "repetition",
                    "--knowledge", str(workflows), "--dialect", "markdown")  # fmt: skip

    # Killed while the model was asked: no dataset, and nothing that was answered is asked again.
    model.kills_at = 9
    program = [sys.executable, "-m", "training.collect", *command[1:]]
    model.kills = subprocess.Popen(program, cwd=CHECKOUT, stderr=subprocess.DEVNULL)
    assert model.kills.wait() != 0
    model.kills = None
    assert len(model.bodies) == 9
    assert not (out / "dataset").exists()
    assert collect(monkeypatch, command) == 0
    asked = Counter(model.asked())
    assert asked.pop(model.asked()[8]) == 2  # the one that was in flight
    assert set(asked.values()) == {1}
    told = [one for one in model.asked() if "Count the lines." in one]
    assert {_number(one) for one in told} == {2, 3}

    assert funnel_of(capsys.readouterr().out) == FUNNEL
    dataset = out / "dataset"
    assert sorted(file.name for file in dataset.iterdir()) == [
        "card.md", "conversations-datamind.jsonl", "conversations-markdown.jsonl",
        "held-datamind.jsonl", "held-markdown.jsonl",
    ]  # fmt: skip
    learned = [("q0", 0), ("q0", 2), ("q2", 2), ("q3", 0), ("q3", 1)]
    for dialect in ("datamind", "markdown"):
        assert keys(dataset / f"conversations-{dialect}.jsonl") == learned
        assert keys(dataset / f"held-{dialect}.jsonl") == [("q5", 1)]
    _check_marks(dataset)
    _check_card(dataset, model)
    assert not any("Count the lines." in file.read_text() for file in dataset.iterdir())
    assert hashlib.sha256(workflows.read_bytes()).hexdigest()[:12] in (
        (dataset / "card.md").read_text()
    )

    # Another selection, with the last replay broken off: one replay is made again, and no call.
    log = out / "replays.jsonl"
    replays = log.read_bytes()
    log.write_bytes(replays[:-9])
    earlier = tmp_path / "earlier"
    shutil.copytree(out / "runs", earlier)
    calls = len(model.bodies)
    assert collect(monkeypatch, words(split, out, "--no-draw", "--also", str(earlier),
                   "--per-question", "1", "--held-share", "0")) == 0  # fmt: skip
    assert len(model.bodies) == calls
    again = log.read_bytes().splitlines()
    assert set(replays.splitlines()) <= set(again)
    assert len(set(again)) == len(again) == 22  # 11 runs, here and in the copy
    assert sorted(file.name for file in dataset.iterdir()) == [
        "card.md", "conversations-datamind.jsonl",
    ]  # fmt: skip
    found = keys(dataset / "conversations-datamind.jsonl")
    # Without markdown, the run that it can't write counts as well, and is the shorter one.
    assert found == [("q0", 0), ("q2", 2), ("q3", 0), ("q5", 0)]
    assert funnel_of(capsys.readouterr().out)["drawn"] == 36
    assert "4 to 6" in (dataset / "card.md").read_text()
    _check_pooled(split, earlier, monkeypatch)

    _check_added(split, out, model, monkeypatch, capsys)


def _check_added(
    split: Path,
    out: Path,
    model: ScriptedRuns,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The failed cell of one try before the right run of another, and each row in one dialect."""
    dataset, calls, spent = out / "dataset", len(model.bodies), _spent(out)
    adding = words(split, out, "--no-draw", "--corrections", "--in-words", "--dialect", "markdown",
                   "--one-dialect", "--policy", "scripted", "--base-url")  # fmt: skip
    _check_budget([*adding, model.base_url], out, model, monkeypatch, capsys)
    assert collect(monkeypatch, [*adding, model.base_url]) == 0
    assert len(model.bodies) == calls + 8
    _check_variants(dataset)
    assert collect(monkeypatch, [*adding, model.base_url]) == 0
    assert len(model.bodies) == calls + 10  # only the refused reply is asked for again
    assert _spent(out) == spent + 10
    _check_unreachable(dataset, [*adding, "http://127.0.0.1:9/v1"], monkeypatch, capsys)


def _check_budget(
    command: Sequence[str],
    out: Path,
    model: ScriptedRuns,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Answers in words spend the budget of the draws, and none is asked for once it is spent."""
    calls, spent = len(model.bodies), _spent(out)
    card = (out / "dataset" / "card.md").read_text()
    capsys.readouterr()
    assert collect(monkeypatch, [*command, "--budget", f"calls={spent}"]) == 1
    said = capsys.readouterr().err
    assert f"collect: the budget of {spent} calls is used up" in said
    assert "give the same command with a larger --budget" in said
    assert len(model.bodies) == calls
    assert (out / "dataset" / "card.md").read_text() == card


def _spent(out: Path) -> int:
    return sum(row["calls"] for row in rows(out / "runs" / "spent.jsonl"))


def _check_unreachable(
    dataset: Path,
    command: Sequence[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    card = (dataset / "card.md").read_text()
    capsys.readouterr()
    assert collect(monkeypatch, command) == 1
    assert "127.0.0.1:9" in capsys.readouterr().err
    assert (dataset / "card.md").read_text() == card


def _number(asked: str) -> int:
    return int(re.findall(r"question number (\d)", asked)[-1])


def _check_variants(dataset: Path) -> None:
    by_dialect = {name: rows(dataset / f"conversations-{name}.jsonl")
                  for name in ("datamind", "markdown")}  # fmt: skip
    learned = {name: [(row["id"], row["trial"]) for row in found if "variant" not in row]
               for name, found in by_dialect.items()}  # fmt: skip
    assert sorted(map(len, learned.values())) == [2, 3]
    assert not set(learned["datamind"]) & set(learned["markdown"])
    corrected = [row for found in by_dialect.values() for row in found
                 if row.get("variant") == "corrected"]  # fmt: skip
    assert [(row["id"], row["trial"]) for row in corrected] == [("q0", 0)] * 2
    row = corrected[0]
    said = [one for one in row["messages"] if one["role"] == "assistant"]
    assert "1 / 0" in said[0]["content"]
    assert "1 / 0" not in said[1]["content"]
    assert [one.get("learn", True) for one in said] == [False, *[True] * (len(said) - 1)]
    assert any("ZeroDivisionError" in one["content"] for one in row["messages"])
    file = dataset / f"conversations-{row['dialect']}.jsonl"
    if HAS_TRAINER:
        from tests.training.trainer.tiny import tiny_tokenizer
        from training.trainer.conversations import read_conversations

        names = [one.id for one in read_conversations(file, tiny_tokenizer())]
        assert f"q0 #1, corrected in {row['dialect']}" in names
    assert "Corrections added: 1." in (dataset / "card.md").read_text()
    _check_answers_in_words(dataset)


def _check_answers_in_words(dataset: Path) -> None:
    for name, before in (("datamind", "<think></think>\n<answer>\n"), ("markdown", "")):
        found = {row["id"]: row["messages"] for row in rows(dataset / f"conversations-{name}.jsonl")
                 if row.get("variant") == "in words"}  # fmt: skip
        assert {one: said[-1]["content"].partition("rows")[0] for one, said in found.items()} == {
            "q0": f"{before}There are 3 ", "q2": f"{before}There are 4 "
        }  # fmt: skip
        text = json.dumps(list(found.values()))
        assert "print(f'n: {n}')" in text
        assert "n: 3" in text
        assert "@n" not in text
    card = (dataset / "card.md").read_text()
    assert "Answers in words added: 3." in card


async def test_an_adapter_writes_no_sentences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def opened(choice: ModelChoice, *_: object) -> None:
        asked.append(choice.model)
        raise UsageError("no model is needed here")

    monkeypatch.setattr("training.collect.__main__.open_policy", opened)
    options = {"corrections": False, "in_words": True, "base_url": None, "api_key_file": None,
               "adapter": None, "slots": None, "out": tmp_path, "dialects": [],
               "price": None}  # fmt: skip
    for model in ("qwen2.5-coder-1.5b-analyst", "qwen2.5-coder-0.5b"):
        with pytest.raises(UsageError):
            await _variants([], [], Namespace(model=model, **options))
    assert asked == ["qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b"]


def _check_pooled(split: Path, earlier: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A collection may also draw nothing, and select among the runs of others alone."""
    out = earlier.parent / "pooled"
    assert collect(monkeypatch, words(split, out, "--no-draw", "--also", str(earlier))) == 0
    assert keys(out / "dataset" / "conversations-datamind.jsonl")
    assert not (out / "runs").exists()


def _check_marks(dataset: Path) -> None:
    """What the trainer learns of the rows: the model's words alone."""
    (held,) = rows(dataset / "held-datamind.jsonl")
    said = [one for one in held["messages"] if one["role"] == "assistant"]
    assert [one.get("learn", True) for one in said] == [True, True, True]
    assert {one["ended_by"] for one in said} == {"stop"}
    if not HAS_TRAINER:
        return
    from tests.training.trainer.tiny import tiny_tokenizer
    from training.trainer.conversations import read_conversations

    tokenizer = tiny_tokenizer()
    (row,) = read_conversations(dataset / "held-datamind.jsonl", tokenizer)
    assert row.id == "q5 #2 in datamind"
    learned = "".join(one["content"] for one in said)
    assert tokenizer.decode(row.ids[row.learned]) == learned
    found = read_conversations(dataset / "conversations-markdown.jsonl", tokenizer)
    names = ("q0 #1", "q0 #3", "q2 #3", "q3 #1", "q3 #2")
    assert [row.id for row in found] == [f"{name} in markdown" for name in names]
    for row in found:
        learned = tokenizer.decode(row.ids[row.learned])
        assert learned.startswith("go on\n```python\n")
        assert learned.endswith("print(f'@n[{n}]')\n```<|im_end|>")


def _check_card(dataset: Path, model: ScriptedRuns) -> None:
    card = (dataset / "card.md").read_text()
    for stage, count in FUNNEL.items():
        assert f"| {stage} | {count} |" in card
    # drawn, ended, correct, licensed, grounded, no void turn, writable, replayed, shortest, …
    assert "| a | 6 | 6 | 5 | 5 | 4 | 3 | 3 | 3 | 2 | 2 | 2 |" in card
    assert "| b | 6 | 5 | 5 | 5 | 5 | 5 | 5 | 4 | 4 | 3 | 3 |" in card
    assert "| c | 6 | 6 | 6 | 3 | 3 | 3 | 1 | 1 | 1 | 1 | 1 |" in card
    assert "| Apache-2.0 | 6 |" in card
    assert "python -m training.collect generated --split train --out out" in card
    assert "scripted" in card
    for file in dataset.glob("*.jsonl"):
        assert hashlib.sha256(file.read_bytes()).hexdigest() in card


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("--dialect", "latin"), "invalid choice: 'latin'"),
        (("--held-share", "0.9"), "0.9 is not between 0 and 0.5"),
        (("--tries", "0"), "0 is not 1 or more"),
        (("--budget", "dollars=1"), "needs --price"),
        (("--unsolved",), "--unsolved needs --also"),
        (("--strategy", "search"), "unrecognized arguments: --strategy"),
    ],
)
def test_a_wrong_option_ends_the_command_before_it_begins(
    change: tuple[str, ...],
    said: str,
    split: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit, match="2"):
        collect(monkeypatch, words(split, tmp_path / "out", *change))
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("first", [0, 1])
def test_questions_with_a_right_run_are_not_drawn_again(
    first: int,
    split: Path,
    tmp_path: Path,
    model: ScriptedRuns,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    earlier, unanswered = tmp_path / "earlier", Trajectory(Task("q", "?"), "datamind").to_json()
    right = ("q0", "q2", "q3", "q5")
    tries = [tried(name, name in right, trajectory=unanswered) for name in ("q1", *right)]
    write_run(earlier, tries)
    settings = {"seed": first * SEEDS_A_TRIAL}  # above 0 if it pooled the tries of another run
    (earlier / "run.json").write_text(json.dumps({"settings": settings}))
    command = words(split, tmp_path / "out", *drawing(model, tries=1),
                    "--also", str(earlier), "--unsolved")  # fmt: skip
    assert collect(monkeypatch, command) == 1
    assert {_number(one) for one in model.asked()} == {1, 4}
    # Each earlier run was one try, so these have the seeds of the next.
    seeds = {body["seed"] // SEEDS_A_TRIAL for body in model.bodies if "seed" in body}
    assert seeds == {first + 1}
    assert "no run met all conditions" in capsys.readouterr().err
    solved = write_run(tmp_path / "solved", [tried(f"q{number}", True) for number in range(6)])
    assert collect(monkeypatch, [*command, "--also", str(solved)]) == 1
    assert "every question has a correct run already" in capsys.readouterr().err


def test_a_split_that_nobody_may_learn_from_is_refused_before_any_call(
    split: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    questions = split / "questions.jsonl"
    questions.write_text(questions.read_text().replace('"split": "train"', '"split": "held"'))
    assert collect(monkeypatch, words(split, tmp_path / "out")) == 1
    assert "marks all of them as evaluation only" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_folder_without_runs_is_named(
    split: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    assert collect(monkeypatch, words(split, out, "--no-draw")) == 1
    assert "holds no runs yet: leave --no-draw out" in capsys.readouterr().err
    assert collect(monkeypatch, words(split, out, "--also", str(split))) == 1
    assert f"--also {split}: neither it nor its runs folder has a records.jsonl" in (
        capsys.readouterr().err
    )


def test_runs_that_can_not_be_used_are_named(
    split: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    command = words(split, out, "--no-draw")
    write_run(out / "runs", [tried("q0", True)])
    assert collect(monkeypatch, command) == 1
    assert f"the records of {out / 'runs'} are compact and hold no runs" in capsys.readouterr().err
    shutil.rmtree(out)
    write_run(out / "runs", [tried("elsewhere", True)])
    assert collect(monkeypatch, command) == 1
    assert "has runs at elsewhere, which the split lacks" in capsys.readouterr().err


def manifest_of(split: Path) -> dict[str, str]:
    items = list(find_suite("generated").load(split))
    return {"suite": "generated", "split": split.name, "questions": fingerprint_of(items)}


def write_unanswered(folder: Path, manifest: dict[str, str]) -> Path:
    unanswered = Trajectory(Task("q0", "How many?"), "datamind").to_json()
    write_run(folder, [tried("q0", False, trajectory=unanswered)])
    (folder / "run.json").write_text(json.dumps(manifest))
    return folder


def test_a_collection_that_is_begun_goes_on_with_its_seeds(tmp_path: Path) -> None:
    """Earlier releases began after the number of pooled tries, whatever those began with."""
    settings = {"seed": 4 * SEEDS_A_TRIAL}
    pooled = write_run(tmp_path / "pooled", [tried("q0", True), tried("q0", True, trial=1)])
    (pooled / "run.json").write_text(json.dumps({"settings": settings}))
    sources, runs = [read_source(pooled, 0, 2)], tmp_path / "runs"
    assert _tries_before(sources, runs) == 6
    write_run(runs, [tried("q0", True)])
    for begun, expected in ((2, 2), (6, 6), (3, 6)):
        (runs / "run.json").write_text(json.dumps({"settings": {"seed": begun * SEEDS_A_TRIAL}}))
        assert _tries_before(sources, runs) == expected
    assert _tries_before([], tmp_path / "nowhere") == 0


@pytest.mark.parametrize("name", ["suite", "split", "questions"])
def test_runs_at_other_questions_are_refused_before_any_call(
    name: str,
    split: Path,
    tmp_path: Path,
    model: ScriptedRuns,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    mine = manifest_of(split)
    known = {one: mine[one] for one in mine if name != "split" or one != "questions"}
    other = write_unanswered(tmp_path / "other", known | {name: "2e"})
    command = words(split, tmp_path / "out", *drawing(model, tries=1), "--also", str(other))
    for more in ((), ("--no-draw",)):
        assert collect(monkeypatch, [*command, *more]) == 1
        said = capsys.readouterr().err
        what = {"questions": "content of the questions or labels"}.get(name, name)
        assert f"{other} holds runs on another {what} ('2e' there, {mine[name]!r} now)" in said
        assert "Leave it out of --also, or give the suite and the --split of these runs." in said
    assert not model.bodies


def test_runs_at_questions_that_have_changed_since_are_refused(
    split: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    before = manifest_of(split)
    write_unanswered(out / "runs", before)
    questions = split / "questions.jsonl"
    questions.write_text(questions.read_text().replace('[["n", "3"]]', '[["n", "4"]]'))
    assert collect(monkeypatch, words(split, out, "--no-draw")) == 1
    said = capsys.readouterr().err
    assert f"{out / 'runs'} holds runs on another content of the questions or labels" in said
    assert f"({before['questions']!r} there, {manifest_of(split)['questions']!r} now)" in said
    assert "Give the suite and the --split of these runs, as it was, or choose another" in said


def test_runs_whose_questions_are_not_known_are_pooled(
    split: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out, unnamed = tmp_path / "out", tmp_path / "unnamed"
    write_unanswered(out / "runs", manifest_of(split) | {"split": "a folder of another name"})
    older = write_unanswered(tmp_path / "older", {"suite": "generated"})
    (write_unanswered(unnamed, {}) / "run.json").unlink()
    command = words(split, out, "--no-draw", "--also", str(older), "--also", str(unnamed))
    assert collect(monkeypatch, command) == 1
    captured = capsys.readouterr()
    assert f"{unnamed} contains runs but no run.json" in captured.err
    assert captured.err.count("no run.json") == 1
    assert funnel_of(captured.out) == {stage: 3 * (stage == "drawn") for stage in FUNNEL}
    assert "no run met all conditions, so no dataset was written" in captured.err
    assert not (out / "dataset").exists()


def test_the_card_counts_replays_that_ran_out_of_time(
    split: Path, tmp_path: Path, model: ScriptedRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_slow = True

    async def difference(_: Replays, record: EvalRecord, *__: object) -> str:
        if is_slow and record.id == "q0":
            raise ReplayTimeoutError("the cell of turn 1 ran out of time")
        return ""

    monkeypatch.setattr(Replays, "difference", difference)
    out = tmp_path / "out"
    command = words(split, out, *drawing(model, tries=1), "--held-share", "0")
    assert collect(monkeypatch, command) == 1
    card, conversations = out / "dataset" / "card.md", out / "dataset/conversations-datamind.jsonl"
    assert "Timed out: 1." in card.read_text()
    assert "q0" not in dict(keys(conversations))
    is_slow = False
    assert collect(monkeypatch, command) == 0
    assert "Timed out" not in card.read_text()
    assert "q0" in dict(keys(conversations))


def test_a_collection_resumes_when_the_endpoint_has_told_the_length_of_its_context(
    split: Path,
    tmp_path: Path,
    model: ScriptedRuns,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    memory = CapabilityMemory(tmp_path / "endpoints.json")
    monkeypatch.setattr("dm_jupyter.models.opening.CapabilityMemory", lambda: memory)
    out = tmp_path / "out"
    command = words(split, out, *drawing(model, tries=1), "--limit", "1", "--held-share", "0")
    collect(monkeypatch, command)
    calls = len(model.bodies)
    for context_tokens in (4096, None):  # as `doctor` learns it, and forgotten again
        known = Capabilities(continues_prefill=True, tools=False, context_tokens=context_tokens)
        memory.keep(model.base_url, "scripted", known)
        capsys.readouterr()
        collect(monkeypatch, command)
        assert "another settings" not in capsys.readouterr().err
        kept = json.loads((out / "runs" / "run.json").read_text())["settings"]
        assert kept["context_tokens"] == (context_tokens or 0)
    assert len(model.bodies) == calls


def test_a_dataset_that_can_not_be_written_leaves_the_earlier_one(tmp_path: Path) -> None:
    folder = tmp_path / "dataset"
    good = DatasetFile("a.jsonl", 1, 1, 1, 1, 1, b"{}")
    write_collection([good], "first", folder)
    bad = DatasetFile("missing/b.jsonl", 1, 1, 1, 1, 1, b"{}")
    with pytest.raises(FileNotFoundError):
        write_collection([good, bad], "second", folder)
    assert (folder / "card.md").read_text() == "first"
    write_collection([], "third", folder)
    assert [file.name for file in folder.iterdir()] == ["card.md"]
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize("option", ["--base-url", "--judge-base-url"])
def test_the_card_has_no_secret_of_an_address_and_no_folder(
    option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = "https://user:pass@host/v1?key=/se/cret"
    given = ["collect", "own", "--split", "/home/me/solved", option, address]
    monkeypatch.setattr(sys, "argv", given)
    addresses = {"base_url": "", "judge_base_url": ""} | {option[2:].replace("-", "_"): address}
    command = _command(Namespace(**addresses))
    assert command == (f"python -m training.collect own --split solved {option} https://host/v1")
