"""Runs of every dialect, exported to every other, and run again by real workers."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import pytest_asyncio

from dm_jupyter.agent.candidates import Candidate, say_the_same
from dm_jupyter.agent.loop import RunSettings, run
from dm_jupyter.agent.rollout import RolloutContext
from dm_jupyter.core.assistance import Assistance
from dm_jupyter.core.dialects import DIALECTS, dialect_named
from dm_jupyter.core.errors import UnrenderableTurnError
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import (
    Answer,
    Completion,
    DataContext,
    RunCell,
    Step,
    StopReason,
    Trajectory,
    Turn,
    Void,
)
from dm_jupyter.models.protocols import SampleRequest
from kernel_sandbox.confine.strictness import Strictness
from kernel_sandbox.runners.pool import PoolSettings, SandboxPool
from kernel_sandbox.types import CellStatus
from tests.fakes import printed
from tests.training.outcomes import tried
from training.evaluation.run import item_folder
from training.export.__main__ import main
from training.export.exporting import Export, export
from training.export.rerun import (
    Replayed,
    ReplayTimeoutError,
    _difference,
    _lost_files,
    open_replays,
    replay,
)
from training.records.records import RecordLog
from training.suites.sql import SqlQuestions

FORMS = ("markdown", "tools", "datamind", "deepanalyze", "react", "jupiter")
LOAD = 'import csv\nrows = list(csv.DictReader(open("t.csv")))\n'
CLOSED = (
    Turn("Read it first.", RunCell(LOAD + "print(rows[0]['b'])")),
    Turn("There is no such column.", RunCell(LOAD + "print(len(rows))")),
    Turn("Now the mean.", RunCell("m = sum(float(r['a']) for r in rows) / len(rows)\nprint(m)")),
    Turn("", RunCell('print(f"@mean[{m}]")')),
)
QUERIES = (
    Turn("Look at the table.", RunCell("SELECT name, n FROM items WHERE n > 1", "sql")),
    Turn("Add them.", RunCell("print('total', result_1['n'].sum())")),
)


@dataclass
class Saying:
    """A model that takes these turns."""

    dialect: str
    turns: Sequence[Turn]
    name: str = "scripted"
    taken: int = 0

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        turn = self.turns[self.taken]
        self.taken += 1
        text = dialect_named(self.dialect).render(turn)
        if request.prefill and isinstance(turn.action, RunCell):
            text = f"{request.prefill}\n{turn.action.source}"
        await asyncio.sleep(0)
        on_text(text)
        return Completion(text, request.prefill)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def pool() -> AsyncIterator[SandboxPool]:
    async with SandboxPool(PoolSettings(profile=Strictness.INTERACTIVE)) as pool:
        yield pool


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    (folder / "t.csv").write_text("a\n1\n2\n6\n")
    with sqlite3.connect(folder / "shop.db") as shop:
        shop.execute("CREATE TABLE items (name TEXT, n INTEGER)")
        shop.executemany("INSERT INTO items VALUES (?, ?)", [("x", 1), ("y", 4), ("z", 5)])
    shop.close()
    return folder


def task_of(name: str, data: Path) -> tuple[Task, DataContext]:
    if name == "closed":
        format_of = "@mean[value] where value is a number"
        return Task("c", "Mean of a?", (data / "t.csv",), answer_format=format_of), DataContext(
            "t.csv"
        )
    return Task("q", "How many n in all?", (data / "shop.db",)), DataContext(databases=("shop.db",))


async def made(name: str, dialect: str, data: Path, pool: SandboxPool, folder: Path) -> Trajectory:
    """A run of the loop itself in a dialect."""
    task, brief = task_of(name, data)
    turns = list(CLOSED if name == "closed" else QUERIES)
    if dialect != "markdown" or name != "closed":
        thought = "" if dialect == "markdown" else "The outputs settle it."
        turns.append(Turn(thought, Answer("@mean[3.0]" if name == "closed" else "9 in all.")))
    context = RolloutContext(
        task, pool, folder, {file.name: file for file in task.files}, brief, dialect=dialect
    )
    async with context.open_rollout() as rollout:
        policy = Saying(dialect, turns)
        done = await run(context.start, policy, rollout, RunSettings(), lambda _: None)
        return await rollout.finish(done, folder)


async def again(exported: Export, original: Trajectory, data: Path, *means: object) -> Replayed:
    pool, folder = means
    files = {file.name: data / file.name for file in exported.trajectory.task.files}
    assert isinstance(pool, SandboxPool)
    assert isinstance(folder, Path)
    return await replay(exported, Candidate(original), pool, files, folder, say_the_same)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", ["closed", "query"])
@pytest.mark.parametrize("source", FORMS)
async def test_a_run_gives_the_same_answer_in_every_other_dialect(
    source: str, name: str, data: Path, pool: SandboxPool, tmp_path: Path
) -> None:
    original = await made(name, source, data, pool, tmp_path / "first")
    assert original.stop is StopReason.ANSWERED, original.stop_detail
    stored = Trajectory.from_json(json.loads(json.dumps(original.to_json())))
    ran = [one for one in original.steps if one.result is not None]
    for target in FORMS:
        form, exported = dialect_named(target), await export(stored, target)
        said = [one for one in exported.messages if one.role == "assistant"]
        if target != "tools":  # calls are apart from their words there
            assert tuple(one.content for one in said) == exported.texts
            turns = [form.parse(one.content) for one in said]
        else:
            turns = [form.parse(text) for text in exported.texts]
        cells = [(one.turn.thought.strip(), one.turn.action) for one in ran]
        assert [(one.thought, one.action) for one in turns[: len(ran)]] == cells
        is_printed = target == "markdown" and name == "closed"
        answers = [one.action for one in turns[len(ran) :]]
        assert answers == ([] if is_printed else [Answer(original.answer or "")])
        assert all(map(form.is_well_formed, exported.texts))
        assert exported.messages[0].content.startswith(form.messages(stored)[0].content[:40])
        replayed = await again(exported, original, data, pool, tmp_path / target)
        assert (replayed.answers_same, replayed.difference) == (True, ""), target
        assert say_the_same(Candidate(replayed.trajectory), Candidate(original))


@pytest.mark.asyncio(loop_scope="module")
async def test_a_replay_says_what_was_otherwise(
    data: Path, pool: SandboxPool, tmp_path: Path
) -> None:
    original = await made("closed", "datamind", data, pool, tmp_path / "first")
    exported = await export(original, "markdown")
    other = tmp_path / "other"
    other.mkdir()
    (other / "t.csv").write_text("a\n1\n2\n3\n")
    replayed = await again(exported, original, other, pool, tmp_path / "again")
    assert not replayed.answers_same
    assert replayed.difference == "the cell of turn 3 showed something else"
    (other / "t.csv").write_text("b\n1\n")
    replayed = await again(exported, original, other, pool, tmp_path / "failed")
    assert replayed.difference == "the cell of turn 1 ended as ok, not error"


def stored_run(*steps: Step, answer: str | None = "@mean[3]") -> Trajectory:
    task = Task("t", "Mean?", answer_format="@mean[value]")
    stop = StopReason.ANSWERED if answer else StopReason.TURN_LIMIT
    run = Trajectory(task, "datamind", DataContext("a profile"), steps, stop, answer=answer)
    return replace(run, assistance=Assistance())


def ran(source: str, output: str, **changes: object) -> Step:
    told = Step(Completion(source), Turn("t", RunCell(source)), printed(output), "told")
    return replace(told, **changes)  # type: ignore[arg-type]


ANSWERED = Step(Completion("a"), Turn("so", Answer("@mean[3]")))


async def test_void_turns_and_answers_that_were_sent_back_are_left_out() -> None:
    void = Step(Completion("hm"), Turn("hm", Void("nothing")), None, "told")
    sent_back = Step(Completion("b"), Turn("", Answer("@mean[9]")), None, "told")
    exported = await export(stored_run(void, ran("x", "3"), sent_back, ANSWERED), "jupiter")
    form = dialect_named("jupiter")
    assert list(map(form.parse, exported.texts)) == [
        Turn("t", RunCell("x")), Turn("so", Answer("@mean[3]")),
    ]  # fmt: skip
    roles = [one.role for one in exported.messages]
    assert roles == ["system", "user", "assistant", "user", "assistant"]
    assert exported.messages[3].content == "Observation:\n3"


async def test_a_cell_that_would_end_the_run_too_early_is_left_out() -> None:
    steps = ran("first", "@mean[9]"), ran("second", "@mean[3]")
    exported = await export(stored_run(*steps, ANSWERED), "markdown")
    assert exported.left_out == 1
    assert [dialect_named("markdown").parse(one).action for one in exported.texts] == [
        RunCell("second")
    ]
    with pytest.raises(UnrenderableTurnError, match="answered another"):
        await export(stored_run(ran("x", "@mean[9]"), ANSWERED), "markdown")


async def test_a_cell_that_a_later_one_needs_is_not_left_out() -> None:
    needed = ran("import pandas as pd\nprint('@mean[9]')", "@mean[9]")
    with pytest.raises(UnrenderableTurnError, match="a later cell needs it"):
        await export(stored_run(needed, ran("pd.isna(1)", "@mean[3]"), ANSWERED), "markdown")
    again = ran("import pandas as pd\nprint(pd.NA)", "x")
    own = await export(stored_run(needed, again, ran("pd", "@mean[3]"), ANSWERED), "markdown")
    assert own.left_out == 1


LOADED = ran("import pandas as pd\ndf = pd.read_csv('t.csv')\nz = [1]\ng = df", "")


@pytest.mark.parametrize(
    ("effect", "reads"),
    [
        ("df['ratio'] = df.a / df.b", "df['ratio'].mean()"),
        ("df.loc[0, 'a'] = 3", "df.a.mean()"),
        ("df.columns = ['a']", "df.a.mean()"),
        ("df.dropna(inplace=True)", "df.a.mean()"),
        ("z.append(3)", "len(z)"),
        ("z += [3]", "len(z)"),
        ("g['ratio'] = 1", "df.ratio.mean()"),
        ("df.to_csv('c.csv')", "pd.read_csv('c.csv').a.mean()"),
        ("open('c.txt', 'w').write('3')", "open('c.txt').read()"),
        ("pd.set_option('display.precision', 1)", "df.a"),
        ("y = 5", "[y for y in z], y"),
        ("y = 5", "[y for y in range(y)]"),
        ("y = 5", "(lambda y: y)(1) + y"),
        ("exec('y = 5')", "1"),
    ],
)
async def test_whatever_a_later_cell_needs_is_not_left_out(effect: str, reads: str) -> None:
    early = ran(f"{effect}\nprint('@mean[9]')", "@mean[9]")
    late = ran(f"print({reads})", "@mean[3]")
    with pytest.raises(UnrenderableTurnError, match="a later cell needs it"):
        await export(stored_run(LOADED, early, late, ANSWERED), "markdown")


@pytest.mark.parametrize(
    "effect", ["y = 5", "df.a.mean()", "x = df.dropna()", "df.to_csv('d.csv')"]
)
async def test_a_cell_that_no_later_one_needs_is_left_out(effect: str) -> None:
    early = ran(f"{effect}\nprint('@mean[9]')", "@mean[9]")
    late = ran("print(df.a.mean(), [y for y in z], (lambda x: x)(1))", "@mean[3]")
    exported = await export(stored_run(LOADED, early, late, ANSWERED), "markdown")
    assert exported.left_out == 1


async def test_a_person_s_cell_counts_and_its_empty_lines_do_not() -> None:
    edited = ran("x = 2", "3", turn=Turn("t", RunCell("\nx = 3\n\n")), is_edited=True)
    exported = await export(stored_run(edited, ANSWERED), "deepanalyze")
    assert dialect_named("deepanalyze").parse(exported.texts[0]).action == RunCell("x = 3")


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_only_help_that_tells_is_in_an_export(dialect: str) -> None:
    run = stored_run(ran("x", "3"), ran("y", "@mean[3]"), ANSWERED)
    exported = await export(run, dialect)
    given, usual = exported.trajectory.assists.on(), Assistance.for_dialect(dialect).on()
    assert given == usual & {"profile", "links", "advice", "ledger", "quiet_output"}
    assert ("a profile" in exported.messages[1].content) is ("profile" in usual)


async def test_a_run_without_an_answer_ends_with_its_last_cell() -> None:
    exported = await export(stored_run(ran("x", "3"), answer=None), "react")
    assert [one.role for one in exported.messages] == ["system", "user", "assistant"]


def test_the_command_exports_and_replays(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    split, folder = tmp_path / "split", tmp_path / "run"
    (split / "tables").mkdir(parents=True)
    (split / "tables" / "t.csv").write_text("a\n1\n2\n6\n")
    item = {
        "id": "t", "question": "Mean?", "constraints": "", "format": "@mean[value]",
        "file": "tables/t.csv", "level": "easy", "concepts": [], "label_pairs": [["mean", "3"]],
        "flags": [],
    }  # fmt: skip
    (split / "questions.jsonl").write_text(json.dumps(item) + "\n")
    folder.mkdir()
    (folder / "run.json").write_text('{"suite": "dabench"}')
    done = stored_run(ran(LOAD + "print(len(rows))", "3\n"), ANSWERED)
    barred = replace(done, task=replace(done.task, metadata={"evaluation_only": True}))
    changed = stored_run(ran(LOAD + "print(len(rows))", "4\n"), ANSWERED)
    log = RecordLog(folder / "records.jsonl")
    counted = ran(LOAD + "print(len(rows))", "3\n")
    words = Step(Completion("a"), Turn("so", Answer("About 3.")))
    formless = stored_run(counted, words, answer="About 3.")
    for trial, one in enumerate((done, barred, changed, formless)):
        log.append(tried("t", True, trial, trajectory=one.to_json()))
    log.append(tried("t", True, 4))
    command = [
        "export", str(folder), "--dialect", "react", "--replay", "--split", str(split),
        "--profile", "interactive",
    ]  # fmt: skip
    monkeypatch.setattr(sys, "argv", command)
    assert main() == 0
    told = capsys.readouterr().out
    assert "3 of 5 runs" in told
    assert "1 left out" in told
    assert "t #5 has no export: the record is compact" in told
    assert "3 of 4 gave the same answer from the same outputs" in told
    assert "1  the cell of turn 1 showed something else" in told
    lines = [json.loads(one) for one in (folder / "export-react.jsonl").read_text().splitlines()]
    assert [one["trial"] for one in lines] == [0, 2, 3]
    assert lines[0]["messages"][-1]["content"] == "Thought: so\nFinal Answer: @mean[3]"


@pytest.mark.asyncio(loop_scope="module")
async def test_a_replay_names_the_result_table_that_a_run_lost(
    data: Path, pool: SandboxPool, tmp_path: Path
) -> None:
    split, folder = tmp_path / "split", tmp_path / "run"
    split.mkdir()
    shutil.copy(data / "shop.db", split)
    item = {"id": "q", "question": "How many n in all?", "db": "shop.db", "rows": [[9]],
            "order_matters": False}  # fmt: skip
    (split / "questions.jsonl").write_text(json.dumps(item) + "\n")
    saved = item_folder(folder, "q", 0)
    original = await made("query", "datamind", data, pool, saved)
    record = tried("q", True, trajectory=original.to_json())
    exported = await export(original, "react")
    async with open_replays(SqlQuestions(), split, pool) as replays:
        assert await replays.difference(record, exported, folder) == ""
        (saved / "result_1.csv").unlink()
        found = await replays.difference(record, exported, folder)
    for name in ("b\x1b[2J", "c", "d"):
        (saved / name).touch()
    assert _lost_files(tmp_path / "none", saved) == ["b\\x1b[2J", "c", "d"]
    assert found == "the recorded run lost its result_1.csv, so answers can't be compared"


def test_a_cell_that_runs_out_of_time_in_its_replay_is_no_difference() -> None:
    def showed(*statuses: CellStatus) -> Trajectory:
        turn = Turn("", RunCell("x"))
        steps = tuple(Step(Completion("x"), turn, printed("", one)) for one in statuses)
        return Trajectory(Task("t", "?"), "react", steps=steps)

    ok, slow = CellStatus.OK, CellStatus.TIMEOUT
    with pytest.raises(ReplayTimeoutError, match="the cell of turn 2 ran out of time"):
        _difference(showed(ok, ok), showed(ok, slow))
    assert _difference(showed(slow), showed(slow)) == ""
    assert "ended as ok" in _difference(showed(slow), showed(ok))
    assert "turn 1 ended as ok" in _difference(showed(slow, ok), showed(ok, slow))


def test_a_replay_needs_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = RecordLog(tmp_path / "records.jsonl")
    log.append(tried("t", True, trajectory=stored_run(ran("x", "3"), ANSWERED).to_json()))
    command = ["export", str(tmp_path), "--dialect", "react", "--replay"]
    monkeypatch.setattr(sys, "argv", command)
    assert main() == 1
    assert "--split" in capsys.readouterr().err
