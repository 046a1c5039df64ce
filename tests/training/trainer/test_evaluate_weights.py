"""A suite with a model of transformers: no server, no llama.cpp, and a real worker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.training.evaluation.test_evaluate import _split
from tests.training.trainer.tiny import random_rows, save_tiny
from training.report.source import read_report_runs
from training.train import main
from training.trainer.rows import write_rows

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


def test_a_suite_is_run_with_the_weights_of_a_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = save_tiny(tmp_path / "m")
    config = json.loads((base / "config.json").read_text())
    # The prompt has one token a byte.
    (base / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 20_000}))
    write_rows(random_rows([30] * 4), tmp_path / "rows.jsonl")
    (tmp_path / "recipe.toml").write_text(RECIPE.format(base=base))
    training = tmp_path / "training"
    learn = ["sft", str(tmp_path / "recipe.toml"), "--rows", str(tmp_path / "rows.jsonl")]
    assert main([*learn, "--out", str(training)]) == 0
    split, out = _split(tmp_path / "split", 1), tmp_path / "out"
    suite = ["dabench", "--split", str(split), "--out", str(out), "--turn-tokens", "8"]
    options = [*suite, "--max-turns", "2", "--profile", "interactive"]
    assert main(["evaluate", str(training), *options]) == 0
    assert "records: " in capsys.readouterr().out
    (record,) = [json.loads(line) for line in (out / "records.jsonl").read_text().splitlines()]
    assert not record["correct"]
    assert json.loads((out / "run.json").read_text())["model"] == str(training)
    first = record["trajectory"]["steps"][0]["completion"]
    assert 0 < first["completion_tokens"] <= 8
    assert main(["evaluate", str(training), *options, "--model", "local"]) == 1
    assert "leave --model, --adapter and --base-url out" in capsys.readouterr().err
    assert main(["evaluate", str(tmp_path / "none"), *options]) == 1
    assert "there is no model folder at" in capsys.readouterr().err


def test_a_model_answers_questions_at_each_evaluation_of_its_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = save_tiny(tmp_path / "m")
    config = json.loads((base / "config.json").read_text())
    (base / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 20_000}))
    write_rows(random_rows([30] * 4), tmp_path / "rows.jsonl")
    split, out, recipe = _split(tmp_path / "split", 2), tmp_path / "out", tmp_path / "recipe.toml"
    asked = f"dabench --split {split} --turn-tokens 8 --max-turns 2 --profile interactive"
    recipe.write_text(RECIPE.format(base=base) + f'[notebooks]\nevaluate = "{asked}"\n')
    learn = ["sft", str(recipe), "--rows", str(tmp_path / "rows.jsonl"), "--out", str(out)]
    assert main(learn) == 0
    said = capsys.readouterr().out
    assert "update 1 of 1, 0 of 2 questions right" in said
    assert "records: " not in said
    assert "question number 1" in (out / "notebooks.html").read_text()
    runs = [read_report_runs([out / "notebooks" / f"step-00000{step}"])[0] for step in (0, 1)]
    assert [len(run.tries) for run in runs] == [2, 2]
    curves = (out / "curves.html").read_text()
    assert "After update 1, 0 of 2 questions are answered right." in curves
    assert 'href="notebooks.html"' in curves
    assert main(learn) == 0  # nothing is asked again
    assert "update 1" not in capsys.readouterr().out

    recipe.write_text(recipe.read_text().replace(str(split), str(tmp_path / "none")))
    assert main([*learn[:-1], str(tmp_path / "other")]) == 1
    assert "[notebooks] evaluate: " in capsys.readouterr().err
