import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from benchmarks.agents.__main__ import SHAPES, command, main
from benchmarks.agents.table import table_of
from dm_jupyter.core.errors import EndpointUnreachableError, UsageError
from dm_jupyter.core.trajectory import Completion
from dm_jupyter.models.protocols import SampleRequest
from kernel_sandbox.runners.pool import PoolSettings, SandboxPool
from tests.fakes import ScriptedPolicy
from tests.waiting import until
from training.durable.folder import ManifestError
from training.records.records import EvalRecord

CODE = "import pandas as pd\nprint(len(pd.read_csv('t.csv')))"
ACTION = f"Thought: t\nAction: python_code_sandbox\nAction Input:\n```python\n{CODE}\n```"
# One question: ours in one turn, each of the others with a cell that must find the file first.
QUESTION = [
    'print(f"@n[{len(df)}]")',
    *(ACTION, "Thought: t\nFinal Answer: @n[3]"),
    *(f"Thought: t\nAction: ```python\n{CODE}\n```", "Thought: t\nFormatted answer: @n[3]"),
    *(f"<think>t</think>\n<code>\n{CODE}\n</code>", "<think>t</think>\n<answer>@n[4]</answer>"),
]


@pytest_asyncio.fixture
async def pool():
    async with SandboxPool(PoolSettings(cells_at_once=1, modules=("pandas",))) as made:
        yield made


@pytest.fixture
def split(tmp_path: Path) -> Path:
    folder = tmp_path / "split"
    folder.mkdir()
    (folder / "t.csv").write_text("a\n1\n2\n3\n")
    rows = [
        {
            "id": f"q{number}",
            "question": f"How many rows, for the {number}. time?",
            "format": "@n[n]",
            "file": "t.csv",
            "concepts": [],
            "label_pairs": [["n", "3"]],
            "flags": [],
        }
        for number in range(2)
    ]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


class ByShape(ScriptedPolicy):
    """Answers each shape in its own words, in whatever order they ask."""

    def __init__(self, known: Sequence[SampleRequest]) -> None:
        super().__init__([])
        self._said = {self._place(one): text for one, text in zip(known, QUESTION, strict=True)}
        self.drawing = self.most = 0

    @staticmethod
    def _place(request: SampleRequest) -> tuple[str, int]:
        return request.messages[0].content, len(request.messages)

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        self.drawing += 1
        self.most = max(self.most, self.drawing)
        await until(lambda: self.most > 4, "more than four ask at the same time")
        self.drawing -= 1
        return await ScriptedPolicy([self._said[self._place(request)]]).sample(request, on_text)


class Breaking(ScriptedPolicy):
    """Can't be reached any more after so many turns."""

    turns = 0

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        if len(self.requests) == self.turns:
            raise EndpointUnreachableError("nobody there")
        return await super().sample(request, on_text)


@pytest.mark.slow
async def test_a_stopped_run_goes_on_with_the_same_questions_and_from_outcomes_alone(
    tmp_path: Path, split: Path, pool: SandboxPool, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = ["--compact", str(tmp_path / "kept")]
    words = ["--split", str(split), *kept, "--out", str(tmp_path / "out")]
    breaking = Breaking(QUESTION * 2)
    breaking.turns = len(QUESTION) + 3  # in the second question, ours and the next shape are done
    with pytest.raises(EndpointUnreachableError):
        await command(words).measure(breaking, pool)

    for folder in ("out", "elsewhere"):
        words = ["--split", str(split), *kept, "--out", str(tmp_path / folder)]
        policy = ScriptedPolicy(QUESTION[3:])
        records = await command(words).measure(policy, pool)
        assert tuple(records) == SHAPES
        assert [[one.id for one in run] for run in records.values()] == [["q0", "q1"]] * 4
        assert [[one.strict_correct for one in run] for run in records.values()] == [
            *[[True, True]] * 3,
            [False, False],
        ]
        assert len(policy.requests) == (len(QUESTION) - 3 if folder == "out" else 0)
    assert '"label": null' in (tmp_path / "kept" / "agents-jupiter-7.jsonl").read_text()

    capsys.readouterr()
    assert main([*words, "--no-run"]) == 0
    table = capsys.readouterr().out
    assert "2 questions; ours: markdown" in table
    assert "2 wrong value" in table
    assert "it has none" in table
    assert main(["--split", str(split), *kept, "--out", str(tmp_path / "new"), "--no-run"]) == 0
    assert capsys.readouterr().out == table


@pytest.mark.slow
async def test_a_smaller_draw_is_refused_in_the_folder_and_read_from_the_compact_file(
    tmp_path: Path, split: Path, pool: SandboxPool, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = ["--split", str(split), "--compact", str(tmp_path / "kept"), "--out"]
    await command([*kept, str(tmp_path / "a")]).measure(ScriptedPolicy(QUESTION * 2), pool)
    fewer = ["--limit", "1"]
    with pytest.raises(UsageError, match="holds 1 tries that this draw leaves out"):
        await command([*kept, str(tmp_path / "a"), *fewer]).measure(ScriptedPolicy(QUESTION), pool)
    capsys.readouterr()
    assert main([*kept, str(tmp_path / "b"), *fewer, "--no-run"]) == 0
    assert "1 questions; ours: markdown" in capsys.readouterr().out


@pytest.mark.slow
async def test_tries_at_once_are_those_of_one_after_another(
    tmp_path: Path, split: Path, pool: SandboxPool
) -> None:
    def asking(out: str, *more: str):
        return command(["--split", str(split), "--out", str(tmp_path / out), *more])

    one = ScriptedPolicy(QUESTION * 2)
    expected = await asking("one").measure(one, pool)
    many = ByShape(one.requests[: len(QUESTION)])
    found = await asking("many", "--at-once", "8").measure(many, pool)
    assert {name: [(r.id, r.answer) for r in run] for name, run in found.items()} == {
        name: [(r.id, r.answer) for r in run] for name, run in expected.items()
    }
    assert 4 < many.most <= 8


async def test_only_ours_is_shown_the_contents_of_the_files(
    tmp_path: Path, split: Path, pool: SandboxPool
) -> None:
    policy = ScriptedPolicy(QUESTION)
    words = ["--split", str(split), "--out", str(tmp_path / "out"), "--limit", "1"]
    await command(words).measure(policy, pool)
    asked = ["".join(m.content for m in request.messages[:2]) for request in policy.requests]
    assert all("t.csv" in one for one in asked)
    assert ["3 rows" in one for one in asked] == [True, *[False] * 6]
    assert [bool(request.prefill) for request in policy.requests] == [True, *[False] * 6]


@pytest.mark.slow
async def test_outcomes_of_another_model_are_not_gone_on_from(
    tmp_path: Path, split: Path, pool: SandboxPool
) -> None:
    def asking(out: str):
        words = ["--split", str(split), "--out", str(tmp_path / out), "--limit", "1"]
        return command([*words, "--compact", str(tmp_path / "kept")])

    await asking("a").measure(ScriptedPolicy(QUESTION), pool)
    for out in ("a", "b"):
        with pytest.raises(ManifestError, match="another model"):
            await asking(out).measure(ScriptedPolicy(QUESTION, name="other"), pool)


def test_records_that_are_not_there_are_a_fault(
    tmp_path: Path, split: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, told in ((split, "nothing to compare"), (tmp_path / "none", "nothing to compare")):
        assert main(["--split", str(folder), "--out", str(tmp_path), "--no-run"]) == 1
        assert told in capsys.readouterr().err


RECORD = EvalRecord(
    id="", trial=0, groups={}, correct=True, strict_correct=True, parts={}, strict_parts={},
    grades={}, failure="", answer="@n[3]", turns=2, cells=1, self_corrected=None, tokens=100,
    prompt_tokens=900, sampled_cells=1, seconds=5.0,
)  # fmt: skip


def _run(verdicts: str) -> list[EvalRecord]:
    """A record a letter: `r` right, `w` wrong, `-` none."""
    return [
        replace(
            RECORD,
            id=f"q{place}",
            strict_correct=letter == "r",
            failure="" if letter == "r" else "void",
        )
        for place, letter in enumerate(verdicts)
        if letter != "-"
    ]


def test_the_table_by_hand() -> None:
    # Of q0 to q6, which both have, ours has 6 right and the other 2. Ours alone: q2 to q6; the
    # other alone: q0. McNemar, exact: 2 * (1 + 6) / 2**6 = 0.21875.
    table = table_of({"ours": _run("wrrrrrrr"), "other": _run("rrwwwww-")}, "ours")
    ours, other = (dict(zip(table.columns, row, strict=True)) for row in table.rows)
    assert "7 questions" in table.title
    assert (ours["right"], ours["%"], ours["ours : it"]) == ("6", "85.7", "")
    assert (other["right"], other["ours : it"], other["points"]) == ("2", "3.00", "+57.1")
    assert (other["only ours"], other["only it"], other["p"]) == ("5", "1", "0.22")
    assert (other["tokens"], other["read"], other["turns"]) == ("100", "900", "2.0")
    assert other["failures"] == "5 void"


def test_runs_without_a_common_question_are_not_compared() -> None:
    with pytest.raises(ValueError, match="nothing to compare"):
        table_of({"ours": _run("r-"), "other": _run("-r")}, "ours")
