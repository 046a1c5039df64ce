"""A suite with a model of transformers: no server, no llama.cpp, and a real worker."""

from __future__ import annotations

import hashlib
import json
from argparse import Namespace
from pathlib import Path

import pytest

from dm_jupyter.models.local.catalogue import find, name_with_adapter
from kernel_sandbox.errors import SandboxError
from tests.dm_jupyter.models.local.gguf_files import write_adapter_file, write_model
from tests.training.evaluation.test_evaluate import _split
from tests.training.trainer.tiny import launch, random_rows, save_tiny
from training.evaluate import run_evaluation
from training.evaluation.manifest import ModelHashes
from training.report.source import read_report_runs
from training.tokens.policy import TokenPolicy
from training.train import main
from training.trainer.journal import read_log
from training.trainer.rows import write_rows
from training.trainer.trained import model_hashes

RECIPE = """
[model]
base = "{base}"
dtype = "float32"
[adapter]
rank = 4
alpha = 8
[training]
learning_rate = 1e-2
epochs = 1
batch_rows = 4
"""


PROCESS = """
import os, sys
from pathlib import Path
from training.train import main

Path(sys.argv[1], "process-" + os.environ["RANK"]).touch()
sys.exit(main(sys.argv[2:]))
"""


def _learning(folder: Path, out: Path, tables: str = "") -> list[str]:
    """Returns the command that trains a tiny model, with further tables of the recipe."""
    base, recipe = save_tiny(folder / "m"), folder / "recipe.toml"
    config = json.loads((base / "config.json").read_text())
    # The prompt has one token a byte.
    (base / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 20_000}))
    write_rows(random_rows([30] * 4), folder / "rows.jsonl")
    recipe.write_text(RECIPE.format(base=base) + tables)
    return ["sft", str(recipe), "--rows", str(folder / "rows.jsonl"), "--out", str(out)]


def test_a_suite_is_run_with_the_weights_of_a_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    training = tmp_path / "training"
    assert main(_learning(tmp_path, training)) == 0
    split, out = _split(tmp_path / "split", 1), tmp_path / "out"
    suite = ["dabench", "--split", str(split), "--out", str(out), "--turn-tokens", "8"]
    options = [*suite, "--max-turns", "2", "--profile", "interactive"]
    assert main(["evaluate", str(training), *options]) == 0
    assert "records: " in capsys.readouterr().out
    (record,) = [json.loads(line) for line in (out / "records.jsonl").read_text().splitlines()]
    assert not record["correct"]
    assert str(tmp_path) not in (out / "run.json").read_text() + json.dumps(record["trajectory"])
    manifest = json.loads((out / "run.json").read_text())
    assert manifest["model"] == record["trajectory"]["policy"] == "training@step-1"
    weights = training / "checkpoints" / "step-000001" / "weights.safetensors"
    assert manifest["adapter"] == hashlib.sha256(weights.read_bytes()).hexdigest()
    first = record["trajectory"]["steps"][0]["completion"]
    assert 0 < first["completion_tokens"] <= 8
    assert main(["evaluate", str(training), *options, "--model", "local"]) == 1
    assert "leave --model, --adapter and --base-url out" in capsys.readouterr().err
    assert main(["evaluate", str(tmp_path / "none"), *options]) == 1
    assert "there is no model folder at" in capsys.readouterr().err
    for file, what in ((weights, "adapter"), (tmp_path / "m" / "model.safetensors", "weights")):
        kept = file.read_bytes()
        _change(file)
        assert main(["evaluate", str(training), *options]) == 1
        assert f"holds a run with another {what}: " in capsys.readouterr().err
        file.write_bytes(kept)
    assert main(["evaluate", str(training), *options]) == 0


def _change(file: Path) -> None:
    """Changes a file's last number by little."""
    content = bytearray(file.read_bytes())
    content[-4] ^= 1
    file.write_bytes(content)


def test_a_folder_of_transformers_is_known_by_its_content(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    base = save_tiny(tmp_path / "m")
    split, out = _split(tmp_path / "split", 1), tmp_path / "out"
    suite = ["dabench", "--split", str(split), "--out", str(out), "--turn-tokens", "8"]
    options = [*suite, "--max-turns", "1", "--profile", "interactive"]
    monkeypatch.chdir(base)
    assert main(["evaluate", ".", *options]) == 0
    manifest = json.loads((out / "run.json").read_text())
    assert (manifest["model"], manifest["adapter"]) == (f"m@{manifest['weights'][:12]}", "")
    assert main(["evaluate", str(base), *options]) == 0
    _change(base / "model.safetensors")
    assert main(["evaluate", str(base), *options]) == 1
    assert "holds a run with another model: 'm@" in capsys.readouterr().err


def test_a_local_model_has_the_hashes_of_its_files(tmp_path: Path) -> None:
    analyst = find()
    assert analyst.adapter is not None
    assert model_hashes(analyst.name) == ModelHashes(analyst.sha256, analyst.adapter.sha256)
    model, file = write_model(tmp_path / "a.gguf"), write_adapter_file(tmp_path / "b.gguf")
    weights, adapter = (hashlib.sha256(one.read_bytes()).hexdigest() for one in (model, file))
    assert model_hashes(str(model)) == ModelHashes(weights)
    assert model_hashes(name_with_adapter(str(model), file)) == ModelHashes(weights, adapter)


def test_an_evaluation_whose_model_is_not_known_by_content_resumes(tmp_path: Path) -> None:
    """Releases before recorded the default model's adapter for the questions of a training."""
    split, out = _split(tmp_path / "split", 1), tmp_path / "out"
    asked = f"dabench --split {split} --turn-tokens 8 --max-turns 1 --profile interactive"
    learn = _learning(tmp_path, out, f'[notebooks]\nevaluate = "{asked}"\n')
    assert main(learn) == 0
    run = out / "notebooks" / "step-000001"
    manifest = json.loads((run / "run.json").read_text())
    older = {name: one for name, one in manifest.items() if name != "weights"} | {"adapter": "2c39"}
    (run / "run.json").write_text(json.dumps(older))
    (run / "records.jsonl").unlink()
    log = (out / "log.jsonl").read_text().splitlines()
    kept = [line for line in log if '"notebooks"' not in line or '"step": 1' not in line]
    (out / "log.jsonl").write_text("\n".join(kept) + "\n")
    assert main(learn) == 0
    assert (run / "records.jsonl").exists()


def test_a_model_answers_questions_at_each_evaluation_of_its_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    split, out = _split(tmp_path / "split", 2), tmp_path / "out"
    asked = f"dabench --split {split} --turn-tokens 8 --max-turns 2 --profile interactive"
    learn = _learning(tmp_path, out, f'[notebooks]\nevaluate = "{asked}"\n')
    assert main(learn) == 0
    said = capsys.readouterr().out
    assert "update 1: 0 of 2 questions right" in said
    assert "records: " not in said
    assert "question number 1" in (out / "notebooks.html").read_text()
    runs = [read_report_runs([out / "notebooks" / f"step-00000{step}"])[0] for step in (0, 1)]
    assert [len(run.tries) for run in runs] == [2, 2]
    curves = (out / "curves.html").read_text()
    assert "After update 1, 0 of 2 questions are answered right." in curves
    assert 'href="notebooks.html"' in curves
    assert main(learn) == 0  # nothing is asked again
    assert "update 1" not in capsys.readouterr().out


def test_questions_that_were_interrupted_are_asked_by_the_resume(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint comes first, so no update is made again."""
    split, out = _split(tmp_path / "split", 2), tmp_path / "out"
    asked = f"dabench --split {split} --turn-tokens 8 --max-turns 1 --profile interactive"
    learn = _learning(tmp_path, out, f'[notebooks]\nevaluate = "{asked}"\n')

    async def stopped(arguments: Namespace, policy: TokenPolicy) -> None:
        if arguments.out.name == "step-000001":
            raise SandboxError("no kernel starts")
        await run_evaluation(arguments, policy)

    monkeypatch.setattr("training.trainer.runs.run_evaluation", stopped)
    assert main(learn) == 1
    assert "no kernel starts" in capsys.readouterr().err
    monkeypatch.undo()
    assert main(learn) == 0
    assert "update 1: 0 of 2 questions right" in capsys.readouterr().out
    kinds = [one["kind"] for one in read_log(out / "log.jsonl")]
    assert kinds == ["notebooks", "update", "notebooks"]


@pytest.mark.slow
def test_of_two_processes_one_answers(tmp_path: Path) -> None:
    split, out = _split(tmp_path / "split", 2), tmp_path / "out"
    asked = f"dabench --split {split} --turn-tokens 8 --max-turns 1 --profile interactive"
    learn = _learning(tmp_path, out, f'[notebooks]\nevaluate = "{asked}"\n')
    program = tmp_path / "process.py"
    program.write_text(PROCESS)
    launch(2, str(program), str(tmp_path), *learn)
    assert (tmp_path / "process-1").exists()
    found = [one for one in read_log(out / "log.jsonl") if one["kind"] == "notebooks"]
    assert found == [{"kind": "notebooks", "step": step, "asked": 2, "right": 0} for step in (0, 1)]


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ("dabench --split none", "there is no none"),
        ("dabenhc --split .", "no suite is called 'dabenhc'"),
        ("dabench --split . --nonsense", "see the line above"),
        ("dabench --split 'none", "No closing quotation"),
    ],
)
def test_questions_that_can_not_be_asked_leave_no_training_behind(
    asked: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(_learning(tmp_path, out, f'[notebooks]\nevaluate = "{asked}"\n')) == 1
    said = capsys.readouterr().err
    assert "error: [notebooks] evaluate = " in said
    assert problem in said
    assert not out.exists()


def test_split_weights_are_asked_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("training.trainer.runs.wants_shards", lambda _: True)
    learn = _learning(tmp_path, tmp_path / "out", '[notebooks]\nevaluate = "dabench"\n')
    assert main(learn) == 1
    assert "leave the table [notebooks] out" in capsys.readouterr().err
