"""Leaving out one rule of the help at a time, with a scripted model and real workers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from benchmarks.assistance import command, main
from dm_jupyter.core.trajectory import Completion
from dm_jupyter.models.protocols import SampleRequest
from kernel_sandbox.runners.pool import PoolSettings, SandboxPool
from training.durable.folder import ManifestError


@pytest_asyncio.fixture
async def pool() -> AsyncIterator[SandboxPool]:
    async with SandboxPool(PoolSettings(cells_at_once=1, modules=("pandas",))) as made:
        yield made


@pytest.fixture
def split(tmp_path: Path) -> Path:
    folder = tmp_path / "split"
    folder.mkdir()
    (folder / "t.csv").write_text("League Goals\n1\n2\n3\n")
    rows = [
        {
            "id": f"q{number}",
            "question": f"How many goals, for the {number}. time?",
            "format": "@n[n]",
            "file": "t.csv",
            "concepts": [],
            "label_pairs": [["n", "6"]],
            "flags": [],
        }
        for number in range(2)
    ]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


class Forgetful:
    """Never loads the data itself."""

    name = "forgetful"
    asked = 0

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        self.asked += 1
        opening = request.prefill or "```python\n"
        cell = "n = df['League Goals'].sum()\nprint(f'@n[{n}]')\n```"
        return Completion(f"{opening}{cell}", request.prefill, 100, 10, 0.01)


@pytest.mark.slow
async def test_what_a_rule_is_worth_is_what_is_lost_without_it(
    tmp_path: Path, split: Path, pool: SandboxPool, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["dabench", "--split", str(split), "--out", str(tmp_path / "out"), "--max-turns", "2"]
    words += ["--compact", str(tmp_path / "kept"), "--rules", "opening", "links"]
    policy = Forgetful()
    records = await command(words).measure(policy, pool)
    right = {name: sum(one.strict_correct for one in run) for name, run in records.items()}
    assert right == {"default": 2, "opening": 0, "links": 2, "none": 0}
    asked = policy.asked
    assert await command(words).measure(policy, pool)
    assert policy.asked == asked  # nothing is run twice

    capsys.readouterr()
    assert main([*words, "--no-run"]) == 0
    table = capsys.readouterr().out
    lost = {line.split("  ")[0].strip(): line for line in table.splitlines()}
    assert "+100.0" in lost["without opening"]
    assert "+0.0" in lost["without links"]
    elsewhere = [*words, "--out", str(tmp_path / "elsewhere"), "--no-run"]
    assert main(elsewhere) == 0  # from the outcomes alone
    assert capsys.readouterr().out == table

    run_json = tmp_path / "out" / "assistance-dabench-opening-7" / "run.json"
    settings = json.loads(run_json.read_text())["settings"]
    assert settings["assistance"]["opening"] is False
    assert settings["assistance"]["links"] is True
    with pytest.raises(ManifestError, match="settings"):
        await command([*words, "--max-turns", "3"]).measure(policy, pool)


def test_without_a_run_there_is_no_table(
    tmp_path: Path, split: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "none")
    assert main(["dabench", "--split", str(split), "--out", out, "--no-run"]) == 1
    assert "nothing to compare" in capsys.readouterr().err
