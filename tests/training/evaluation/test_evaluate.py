"""An evaluation from its command to its files, with a scripted model and real workers."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from dm_jupyter.agent.loop import RunSettings
from dm_jupyter.core.assistance import Assistance
from dm_jupyter.core.errors import EndpointUnreachableError, StreamBrokenError, UsageError
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import (
    Answer,
    Completion,
    Step,
    StopReason,
    Trajectory,
    Turn,
    Void,
)
from dm_jupyter.models.protocols import SampleRequest
from kernel_sandbox.confine.strictness import Strictness
from kernel_sandbox.runners.pool import PoolSettings, SandboxPool
from tests.endpoint import ScriptedEndpoint, unused_url
from tests.fakes import ScriptedPolicy
from tests.training.evaluation.eval_program import Deterministic
from tests.training.evaluation.eval_program import main as evaluate_deterministically
from tests.training.judging import open_judge
from tests.waiting import PATIENCE_S, until
from training.evaluate import main
from training.evaluation.arguments import parsed_arguments
from training.evaluation.knowledge import read_knowledge
from training.evaluation.models import BoundedPolicy
from training.evaluation.run import EvalOptions, SuiteError, evaluate, item_folder, resume_state_of
from training.marking.asking import NoReplyError
from training.marking.judge import Judge
from training.records.failures import Failure, failure_of
from training.records.records import EvalRecord, RecordLog
from training.suites.dabench import DABench
from training.suites.suite import ItemScore, Outcome, Sample

CHECKOUT = Path(__file__).resolve().parents[3]
RIGHT = 'print(f"@n[{len(df)}]")\n```'


def _split(folder: Path, count: int = 3) -> Path:
    (folder / "tables").mkdir(parents=True)
    (folder / "tables" / "t.csv").write_text("a\n1\n2\n3\n")
    rows = [
        {
            "id": f"q{number}",
            "question": f"How many rows has the table? This is question number {number}",
            "constraints": "",
            "format": "@n[n]",
            "file": "tables/t.csv",
            "level": "easy",
            "concepts": [],
            "label_pairs": [["n", "3"]],
            "flags": [],
        }
        for number in range(count)
    ]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[SandboxPool]:
    async with SandboxPool(
        PoolSettings(profile=Strictness.INTERACTIVE, modules=("pandas",))
    ) as pool:
        yield pool


@pytest.fixture
def options(tmp_path: Path) -> EvalOptions:
    split = _split(tmp_path / "split")
    return EvalOptions(DABench(), split, tmp_path / "out", run=RunSettings(max_turns=2))


@pytest.mark.asyncio(loop_scope="module")
async def test_an_evaluation_goes_on_where_it_stopped(
    options: EvalOptions, pool: SandboxPool
) -> None:
    policy = ScriptedPolicy([RIGHT])
    first = await evaluate(replace(options, limit=1), policy, pool)
    assert [record.correct for record in first] == [True]
    asked = len(policy.requests)
    seen: list[EvalRecord] = []
    records = await evaluate(options, policy, pool, seen.append)
    assert [record.id for record in records] == ["q0", "q1", "q2"]
    assert len(policy.requests) == asked + 2
    assert len(seen) == 2
    assert all(record.strict_correct and record.turns == 1 for record in records)
    assert records[0].trajectory["containment"]["layers"]
    notebook = json.loads((options.out / "items" / "q0" / "0" / "notebook.ipynb").read_text())
    assert "How many rows" in "".join(notebook["cells"][0]["source"])


@pytest.mark.asyncio(loop_scope="module")
async def test_a_task_is_restated_once_before_the_run(
    options: EvalOptions, pool: SandboxPool, tmp_path: Path
) -> None:
    policy = ScriptedPolicy(["Count the rows of t.csv.", RIGHT])
    (tmp_path / "knowledge.toml").write_text("[[workflow]]\ntext = 'Use len.'\n")
    options = replace(options, knowledge=read_knowledge(tmp_path / "knowledge.toml"))
    (record,) = await evaluate(replace(options, limit=1, simplifies=True), policy, pool)
    assert record.correct
    restating, first = policy.requests
    assert "How many rows has the table?" in restating.messages[-1].content
    assert "Question: Count the rows of t.csv." in first.messages[1].content
    assert "Use len." in first.messages[1].content
    task = record.trajectory["task"]
    assert task["question"] == "Count the rows of t.csv."
    assert task["metadata"]["question_as_asked"].startswith("How many rows")
    assert record.turns == 1
    assert (record.prompt_tokens, record.tokens) == (200, 5 + len(RIGHT.split()))


def test_a_run_with_restated_tasks_does_not_go_on_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    split = _split(tmp_path / "split", count=1)
    out = tmp_path / "out"
    with ScriptedEndpoint(["Count the rows of t.csv.", RIGHT]) as endpoint:
        command = ["dabench", "--split", str(split), "--out", str(out), "--profile", "interactive",
                   "--policy", "scripted", "--base-url", endpoint.base_url]  # fmt: skip
        assert _command([*command, "--simplify"], monkeypatch) == 0
        assert "simplify_task" in json.loads((out / "run.json").read_text())["prompts"]
        assert _command(command, monkeypatch) == 1
    assert "another prompts" in capsys.readouterr().err


@pytest.mark.asyncio(loop_scope="module")
async def test_a_second_evaluation_is_kept_out_of_the_folder(
    options: EvalOptions, pool: SandboxPool
) -> None:
    policy = ScriptedPolicy([RIGHT])
    told: list[str] = []

    async def begin_another(*arguments: object) -> object:
        with pytest.raises(UsageError, match=r"Another evaluation is at work in .*folder") as fault:
            await evaluate(options, policy, pool)
        told.append(str(fault.value))
        return await sample(*arguments)  # type: ignore[arg-type]

    sample, policy.sample = policy.sample, begin_another  # type: ignore[method-assign,assignment]
    records = await evaluate(replace(options, limit=1), policy, pool)
    assert len(told) == 1
    assert records[0].correct
    policy.sample = sample  # type: ignore[method-assign]
    assert len(await evaluate(options, policy, pool)) == 3


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("breaks", "self_corrected"), [(2, True), (3, False)])
async def test_a_try_is_begun_again_where_an_answer_broke_off(
    options: EvalOptions, pool: SandboxPool, breaks: int, *, self_corrected: bool
) -> None:
    policy = ScriptedPolicy([RIGHT])
    seeds: list[int] = []

    async def break_off_first(request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        seeds.append(request.seed)
        if len(seeds) <= breaks:
            raise StreamBrokenError("the answer broke off")
        return await sample(request, on_text)

    sample, policy.sample = policy.sample, break_off_first  # type: ignore[method-assign]
    if not self_corrected:
        with pytest.raises(StreamBrokenError, match="broke off"):
            await evaluate(replace(options, limit=1), policy, pool)
        return
    (record,) = await evaluate(replace(options, limit=1), policy, pool)
    assert record.correct
    assert record.turns == 1
    assert len(set(seeds)) == 1


@pytest.mark.asyncio(loop_scope="module")
async def test_every_try_has_a_seed_of_its_own(options: EvalOptions, pool: SandboxPool) -> None:
    policy = ScriptedPolicy([RIGHT])
    records = await evaluate(replace(options, limit=1, trials=3), policy, pool)
    assert [record.key for record in records] == [("q0", 0), ("q0", 1), ("q0", 2)] or [
        record.trial for record in records
    ] == [0, 1, 2]
    assert len({request.seed for request in policy.requests}) == 3


@pytest.mark.asyncio(loop_scope="module")
async def test_a_table_that_cannot_be_read_is_a_failure_of_its_question_alone(
    options: EvalOptions, pool: SandboxPool
) -> None:
    (options.split / "tables" / "t.csv").write_bytes(b"")
    records = await evaluate(options, ScriptedPolicy([RIGHT]), pool)
    assert [record.failure for record in records] == ["fault"] * 3
    assert "t.csv" in records[0].trajectory["stop_detail"]


@pytest.mark.asyncio(loop_scope="module")
async def test_who_asked_about_a_file_asks_the_next_question_about_it(
    options: EvalOptions, pool: SandboxPool
) -> None:
    questions = (options.split / "questions.jsonl").read_text().splitlines()
    raw = [json.loads(line) for line in questions]
    names = ("t.csv", "u.csv", "t.csv", "u.csv", "t.csv")
    (options.split / "tables" / "u.csv").write_text("a\n1\n2\n3\n")
    rows = [{**raw[0], "id": f"q{n}", "file": f"tables/{name}"} for n, name in enumerate(names)]
    (options.split / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    order: list[str] = []
    await evaluate(options, ScriptedPolicy([RIGHT]), pool, lambda record: order.append(record.id))
    assert order == ["q0", "q2", "q4", "q1", "q3"]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_dead_endpoint_ends_the_run_and_keeps_what_is_done(
    options: EvalOptions, pool: SandboxPool
) -> None:
    policy = ScriptedPolicy([RIGHT])
    sample = policy.sample

    async def dies(*arguments: object) -> object:
        if len(policy.requests) == 2:
            raise EndpointUnreachableError("nothing answers")
        return await sample(*arguments)  # type: ignore[arg-type]

    policy.sample = dies  # type: ignore[method-assign,assignment]
    with pytest.raises(EndpointUnreachableError):
        await evaluate(options, policy, pool)
    resume_state = resume_state_of(options)
    assert (len(resume_state.done), len(resume_state.to_do)) == (2, 1)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_cancelled_run_keeps_what_is_done(options: EvalOptions, pool: SandboxPool) -> None:
    policy = ScriptedPolicy([RIGHT])
    reached = asyncio.Event()
    task = asyncio.create_task(evaluate(options, policy, pool, lambda _: reached.set()))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    resume_state = resume_state_of(options)
    assert len(resume_state.done) >= 1
    assert len(resume_state.done) + len(resume_state.to_do) == 3
    assert len(await evaluate(options, policy, pool)) == 3


@pytest.mark.asyncio(loop_scope="module")
async def test_sampling_is_bounded_apart_from_the_runs(
    options: EvalOptions, pool: SandboxPool
) -> None:
    asked = running = most = 0
    policy = ScriptedPolicy([RIGHT])
    bounded = BoundedPolicy(policy, 2)
    sample, ask = policy.sample, bounded.sample

    async def asks(*arguments: object) -> object:
        nonlocal asked
        asked += 1
        return await ask(*arguments)  # type: ignore[arg-type]

    async def counts(*arguments: object) -> object:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await until(lambda: asked >= 3, "all three runs have asked")
        running -= 1
        return await sample(*arguments)  # type: ignore[arg-type]

    bounded.sample = asks  # type: ignore[method-assign,assignment]
    policy.sample = counts  # type: ignore[method-assign,assignment]
    await evaluate(replace(options, at_once=3), bounded, pool)
    assert most == 2


async def test_a_batch_takes_a_place_for_each_turn_and_never_waits_for_itself() -> None:
    from dm_jupyter.models.protocols import SampleRequest

    class Batches:
        """Draws batches; notes their sizes, their seeds and how many turns are under way."""

        name = "batches"

        def __init__(self) -> None:
            self.running = self.most = 0
            self.seeds: list[tuple[int, int]] = []

        async def sample(self, *_: object) -> Completion:
            raise NotImplementedError

        async def sample_many(self, request: SampleRequest, count: int) -> list[Completion]:
            self.seeds.append((request.seed, count))
            self.running += count
            self.most = max(self.most, self.running)
            await asyncio.sleep(0.01)  # others may begin
            self.running -= count
            return [Completion("a", "", 1, 1, 0.0)] * count

    model = Batches()
    policy = BoundedPolicy(model, 2)
    request = SampleRequest(())
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        tasks = [group.create_task(policy.sample_many(request, 3)) for _ in range(4)]
    assert [len(task.result()) for task in tasks] == [3, 3, 3, 3]
    assert model.most == 2
    assert sorted(model.seeds) == [(0, 2)] * 4 + [(2 * 7_919, 1)] * 4


def test_records_survive_a_line_that_broke_off(tmp_path: Path) -> None:
    from tests.training.outcomes import tried

    log = RecordLog(tmp_path / "records.jsonl")
    log.append(tried("a", True))
    with (tmp_path / "records.jsonl").open("a") as file:
        file.write('{"id": "b", "lev')
    assert [record.id for record in log.read()] == ["a"]
    log.append(tried("b", False))
    assert [record.id for record in log.read()] == ["a", "b"]
    (tmp_path / "records.jsonl").write_text('{"id": 1}\n')
    with pytest.raises(ValueError, match="line 1"):
        log.read()


def test_outcomes_are_the_records_without_what_is_big(tmp_path: Path) -> None:
    from tests.training.outcomes import tried

    log = RecordLog(tmp_path / "records.jsonl")
    odd = tried("b", False, parts={"x": True, "label": False}, answer='he said , "label": 3')
    records = [tried("a", True, trajectory={"steps": [1]}), odd, tried("c", True, label=[["n", 3]])]
    for record in records:
        log.append(record)
    assert log.outcomes() == [record.compacted() for record in records]
    assert log.read() == records


def _command(arguments: Iterable[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["evaluate", *arguments])
    return main()


def test_the_command_writes_its_files_and_prints_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    split, out = _split(tmp_path / "split"), tmp_path / "out"
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    common = ["dabench", "--split", str(split), "--out", str(out), "--profile", "interactive",
              "--install-packages"]  # fmt: skip
    with ScriptedEndpoint([RIGHT]) as endpoint:
        common += ["--policy", "scripted", "--base-url", endpoint.base_url]
        assert _command([*common, "--limit", "2"], monkeypatch) == 0
        assert "100" in capsys.readouterr().out
        assert _command(common, monkeypatch) == 0
        assert len(endpoint.bodies) == 3
        assert _command([*common, "--max-turns", "3"], monkeypatch) == 1
        assert "another settings" in capsys.readouterr().err
        assert _command([*common, "--limit", "2"], monkeypatch) == 1
        assert "holds 1 tries that this draw leaves out" in capsys.readouterr().err
        assert json.loads((out / "run.json").read_text())["limit"] is None
        questions = (split / "questions.jsonl").read_text()
        kept = (out / "run.json").read_text()
        (split / "questions.jsonl").write_text(questions.replace("How many", "How few"))
        assert _command(common, monkeypatch) == 1
        assert "another questions" in capsys.readouterr().err
        (split / "questions.jsonl").write_text(questions.replace('"3"', '"4"'))
        assert _command(common, monkeypatch) == 1
        assert "another questions" in capsys.readouterr().err
        assert (out / "run.json").read_text() == kept
        (split / "questions.jsonl").write_text(questions)
        (out / "run.json").unlink()
        assert _command(common, monkeypatch) == 0
        assert "contains 3 tries but no run.json" in capsys.readouterr().err
    manifest = json.loads((out / "run.json").read_text())
    assert (manifest["model"], manifest["judge"], manifest["collects"]) == ("scripted", "", False)
    assert manifest["installs"]
    assert (tmp_path / "data" / "dm_jupyter" / "packages").is_dir()
    assert len((out / "results.jsonl").read_text().splitlines()) == 3
    assert json.loads((out / "summary.json").read_text())["all"]
    compact = RecordLog(out / "compact.jsonl").read()
    assert [record.trajectory for record in compact] == [{}, {}, {}]


@pytest.mark.parametrize("strategy", ["vote", "search"])
def test_the_command_runs_every_strategy(
    strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    split, out = _split(tmp_path / "split"), tmp_path / "out"
    more = ["--iterations", "2"] if strategy == "search" else ["--tries", "3"]
    with ScriptedEndpoint([RIGHT]) as endpoint:
        arguments = ["dabench", "--split", str(split), "--out", str(out), "--limit", "1",
                     "--profile", "interactive", "--policy", "scripted",
                     "--base-url", endpoint.base_url, "--strategy", strategy,
                     *more]  # fmt: skip
        assert _command(arguments, monkeypatch) == 0
    (record,) = RecordLog(out / "records.jsonl").read()
    assert record.correct
    assert record.search["kind"] == strategy
    assert record.sampled_cells == 3


@pytest.mark.parametrize(
    ("strategy", "usual"),
    [("react", [0.2]), ("vote", [0.2, 0.7]), pytest.param("search", [0.7], marks=pytest.mark.slow)],
)
def test_sampling_is_as_the_command_says(
    strategy: str, usual: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    split = _split(tmp_path / "split")
    said = ["--temperature", "0.5", "--turn-tokens", "77", "--max-tokens", "99",
            "--max-seconds", "60"]  # fmt: skip
    drawn = {}
    for name, more in (("usual", []), ("said", said)):
        with ScriptedEndpoint([RIGHT]) as endpoint:
            arguments = ["dabench", "--split", str(split), "--out", str(tmp_path / name),
                         "--limit", "1", "--profile", "interactive", "--policy", "scripted",
                         "--base-url", endpoint.base_url, "--strategy", strategy]  # fmt: skip
            if strategy == "search":
                arguments += ["--iterations", "1"]
            assert _command([*arguments, *more], monkeypatch) == 0
            drawn[name] = {(body["temperature"], body["max_tokens"]) for body in endpoint.bodies}
    assert drawn["usual"] == {(temperature, 1_000) for temperature in usual}
    assert drawn["said"] == {(0.5, 77)}
    settings = json.loads((tmp_path / "said" / "run.json").read_text())["settings"]
    assert (settings["max_tokens"], settings["max_seconds"]) == (99, 60)


@pytest.mark.parametrize(
    ("options", "needs"),
    [
        (["--collect"], "--collect needs --strategy search"),
        (["--sampled-cells", "9", "--strategy", "vote"], "--sampled-cells needs --strategy search"),
        (["--tries", "5"], "--tries needs --strategy vote or search"),
        (
            ["--strategy", "search", "--collect", "--enough-votes", "2"],
            "--collect grows the whole tree: leave --enough-votes out",
        ),
        (["--packages-lock", "x", "--no-install-packages"], "needs --install-packages"),
        (["--packages-lock", "x", "--profile", "interactive"], "needs --install-packages"),
        (["--slots", "4", "--base-url", "http://x/v1"], "--slots applies to a local model"),
        (["--at-once", "0"], "argument --at-once: 0 is not 1 or more"),
        (["--choose", "mode"], "--choose needs --strategy vote or search"),
        (["--choose", "value", "--strategy", "vote"], "needs --strategy search and --value-model"),
        (["--choose", "value", "--strategy", "search"], "--strategy search and --value-model"),
        (
            ["--value-model", "http://x/v", "--strategy", "vote"],
            "--value-model needs --strategy search",
        ),
        (
            ["--value-model", "file:///x", "--strategy", "search"],
            "argument --value-model: 'file:///x' is no http:// or https:// address",
        ),
        (["--score-seconds", "0"], "argument --score-seconds: 0 is not above 0 and at most 86,400"),
        (["--temperature", "3"], "argument --temperature: 3 is not between 0 and 2"),
    ],
)
def test_an_option_that_nothing_would_read_is_refused(
    options: list[str], needs: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    with pytest.raises(SystemExit):
        _command(["dabench", "--split", str(tmp_path), *options], monkeypatch)
    assert needs in capsys.readouterr().err


@pytest.mark.parametrize("price", [("-1", "2"), ("1", "nan"), ("inf", "1")])
def test_a_price_is_refused_before_anything_is_tried(
    price: tuple[str, str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    split, out = _split(tmp_path / "split"), tmp_path / "out"
    with ScriptedEndpoint([RIGHT]) as endpoint:
        arguments = ["dabench", "--split", str(split), "--out", str(out), "--policy", "scripted",
                     "--base-url", endpoint.base_url, "--price", *price]  # fmt: skip
        with pytest.raises(SystemExit):
            _command(arguments, monkeypatch)
        assert endpoint.bodies == []
    assert "argument --price: a price must be 0 dollars or more" in capsys.readouterr().err
    assert not out.exists()


def test_faults_of_the_command_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    common = ["--profile", "interactive", "--policy", "x", "--base-url", "http://127.0.0.1:9/v1"]
    out = ["--out", str(tmp_path / "out")]
    assert _command(["nosuch", "--split", str(tmp_path), *out, *common], monkeypatch) == 1
    assert "nosuch" in capsys.readouterr().err
    assert _command(["dabench", "--split", str(tmp_path), *out, *common], monkeypatch) == 1
    assert "questions.jsonl" in capsys.readouterr().err
    (tmp_path / "questions.jsonl").write_text("\n")
    assert _command(["dabench", "--split", str(tmp_path), *out, *common], monkeypatch) == 1
    assert "holds no questions" in capsys.readouterr().err
    split = _split(tmp_path / "split")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{")
    out = ["--out", str(tmp_path / "broken")]
    assert _command(["dabench", "--split", str(split), *out, *common], monkeypatch) == 1
    assert "run.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "installs"),
    [
        ([], True),
        (["--no-install-packages"], False),
        (["--profile", "interactive"], False),
        (["--profile", "interactive", "--install-packages"], True),
    ],
)
def test_packages_are_installed_in_rollouts_unless_it_is_said_otherwise(
    options: list[str], installs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["evaluate", "dabench", "--split", "x", *options])
    assert parsed_arguments("").install_packages is installs


@pytest.mark.parametrize(
    ("option", "dialect", "on"),
    [
        ([], "markdown", Assistance().on()),
        pytest.param(["--assist", "default"], "jupiter", frozenset(), marks=pytest.mark.slow),
        (["--assist", "none"], "markdown", frozenset()),
        (["--assist", "advice,profile"], "jupiter", {"advice", "profile"}),
    ],
)
def test_the_help_of_a_run_is_in_its_manifest(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    option: list[str],
    dialect: str,
    on: frozenset[str],
) -> None:
    split, out = _split(tmp_path / "split", 1), tmp_path / "out"
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    command = ["dabench", "--split", str(split), "--out", str(out), "--profile", "interactive"]
    with ScriptedEndpoint(["Thought: t\nFormatted answer: @n[3]"]) as endpoint:
        command += ["--policy", "scripted", "--base-url", endpoint.base_url, "--max-turns", "1"]
        assert _command([*command, "--dialect", dialect, *option], monkeypatch) == 0
    kept = json.loads((out / "run.json").read_text())["settings"]["assistance"]
    assert {name for name, is_on in kept.items() if is_on} == on
    (record,) = RecordLog(out / "records.jsonl").read()
    assert record.trajectory["assistance"] == kept
    asked = str(endpoint.bodies[0]["messages"])
    assert ("3 rows" in asked) is (dialect == "markdown" and bool(on))


def test_a_rule_that_does_not_exist_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        _command(["dabench", "--split", "x", "--assist", "advice,magic"], monkeypatch)
    assert "there is no rule 'magic'; the rules are profile, " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answer", "failure"), [("@n[4]", Failure.WRONG), ("@n[4", Failure.FORMAT)]
)
def test_an_answer_that_broke_off_is_not_in_form(answer: str, failure: Failure) -> None:
    task = Task("t", "?", answer_format="@n[n]")
    ended = Trajectory(task, "markdown", stop=StopReason.ANSWERED, answer=answer)
    assert failure_of(ended) == failure


def test_names_that_look_alike_have_folders_of_their_own(tmp_path: Path) -> None:
    folders = {item_folder(tmp_path, name, 0) for name in ("a/b", "a_b", "a b")}
    assert len(folders) == 3
    assert item_folder(tmp_path, "a_b", 1) == tmp_path / "items" / "a_b" / "1"


class _Brittle(DABench):
    """A suite with a mistake of its own."""

    def score(self, item: Sample, outcome: Outcome) -> ItemScore:
        raise KeyError("column")


@pytest.mark.asyncio(loop_scope="module")
async def test_a_suite_that_cannot_score_is_named_and_nothing_is_lost(
    options: EvalOptions, pool: SandboxPool
) -> None:
    with pytest.raises(SuiteError, match="dabench could not score the answer to q0: KeyError"):
        await evaluate(replace(options, suite=_Brittle()), ScriptedPolicy([RIGHT]), pool)
    assert len(await evaluate(options, ScriptedPolicy([RIGHT]), pool)) == 3


class _Marked(DABench):
    async def judge(self, item: Sample, outcome: Outcome, judge: Judge) -> ItemScore:
        raise NoReplyError("the judge said nothing of use")


@pytest.mark.asyncio(loop_scope="module")
async def test_an_answer_without_a_verdict_is_unscored_and_it_is_said_why(
    options: EvalOptions, pool: SandboxPool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_judge(unused_url(), tmp_path / "cache") as judge:
        marked = replace(options, suite=_Marked(), judge=judge, limit=1)
        (record,) = await evaluate(marked, ScriptedPolicy([RIGHT]), pool)
    assert (record.failure, record.correct, record.answer) == (Failure.UNSCORED, False, "@n[3]")
    assert caplog.messages == [f"{record.id} is unscored: the judge said nothing of use"]


@pytest.mark.slow
async def test_killed_at_random_moments_a_run_ends_with_the_bytes_of_an_unbroken_one(
    tmp_path: Path,
) -> None:
    questions = 30
    split = _split(tmp_path / "split", questions)
    await evaluate_deterministically(split, tmp_path / "whole", questions)
    command = [sys.executable, "-m", "tests.training.evaluation.eval_program",
               str(split), str(tmp_path / "broken"), str(questions)]  # fmt: skip
    chance = random.Random(5)
    log = tmp_path / "broken" / "records.jsonl"
    for _ in range(10):
        before = log.stat().st_size if log.exists() else 0
        process = await asyncio.create_subprocess_exec(*command, cwd=CHECKOUT)
        await _grown(log, before, process)
        await asyncio.sleep(chance.uniform(0.0, 0.4))  # the moment is what is random here
        if process.returncode is None:
            process.kill()
        await process.wait()
    process = await asyncio.create_subprocess_exec(*command, cwd=CHECKOUT)
    assert await process.wait() == 0
    whole, broken = (tmp_path / name / "results.jsonl" for name in ("whole", "broken"))
    assert whole.read_bytes() == broken.read_bytes()
    keys = [record.key for record in RecordLog(log).read()]
    assert len(keys) == len(set(keys)) == questions


async def _grown(log: Path, before: int, process: asyncio.subprocess.Process) -> None:
    """Waits until one more record is there, or the run has ended."""

    def has_grown() -> bool:
        return process.returncode is not None or (log.exists() and log.stat().st_size > before)

    await until(has_grown, "one more record")


async def test_the_scripted_run_is_what_it_says(tmp_path: Path) -> None:
    split = _split(tmp_path / "split", 6)
    await evaluate_deterministically(split, tmp_path / "out", 6)
    lines = (tmp_path / "out" / "results.jsonl").read_text().splitlines()
    results = {row["id"]: row for row in map(json.loads, lines)}
    assert results["q3"]["answer"] == "@n[9]"
    assert results["q4"]["answer"] == "@n[4]"
    assert {row["cells"] for row in results.values()} == {3}
    assert Deterministic.name == "deterministic"


def test_a_right_answer_in_another_form_is_no_wrong_value() -> None:
    ended = Trajectory(Task("t", "?"), "markdown", stop=StopReason.ANSWERED, answer="34.65")
    assert failure_of(ended, is_right_by_ours=True) == Failure.FORMAT


@pytest.mark.parametrize(
    ("actions", "failure"),
    [
        ((), Failure.TURNS),
        ((Answer("sent back"),), Failure.TURNS),
        ((Void("nothing"), Answer("sent back")), Failure.TURNS),
        ((Answer("sent back"), Void("nothing")), Failure.VOID),
    ],
)
def test_only_a_last_turn_without_code_and_answer_is_void(
    actions: tuple[Answer | Void, ...], failure: Failure
) -> None:
    steps = tuple(Step(Completion("a", "", 1, 1, 0.0), Turn("", action)) for action in actions)
    ended = Trajectory(Task("t", "?"), "markdown", steps=steps, stop=StopReason.BUDGET)
    assert failure_of(ended) == failure
