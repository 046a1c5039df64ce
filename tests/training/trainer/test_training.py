"""Whole trainings of a tiny model: resumed, killed, split over processes, stopped early."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import weakref
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from accelerate import Accelerator

from tests.training.trainer.tiny import (
    adapted,
    launch,
    random_rows,
    save_tiny,
    tiny_model,
    tiny_tokenizer,
)
from tests.waiting import wait_until
from training.durable.folder import folder_lock
from training.train import main
from training.trainer.batch import Pack
from training.trainer.checkpoint import CheckpointFolder, TrainingProgress
from training.trainer.journal import TrainingJournal, read_log
from training.trainer.loop import Training
from training.trainer.model import ModelSettings, open_model, save_tokenizer
from training.trainer.processes import refuse_other_numbers, shard_model, wants_shards
from training.trainer.recipe import TrainingSettings
from training.trainer.rows import Row, TrainerError, write_rows

CHECKOUT = Path(__file__).parents[3]
SPLIT = str(CHECKOUT / "training" / "recipes" / "accelerate-fsdp2.yaml")
RECIPE = """
[model]
base = "{base}"
dtype = "float32"

[adapter]
rank = 4
alpha = 8
dropout = 0.1

[training]
learning_rate = 1e-2
epochs = 3
batch_rows = 4
pack_tokens = 200
evaluate_every = 3
patience = 100
samples = 1
sample_tokens = 8
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with a model, rows, held rows and a recipe."""
    save_tiny(tmp_path / "model")
    write_rows(random_rows([40] * 22, seed=3, shared=20), tmp_path / "rows.jsonl")
    write_rows(random_rows([40] * 4, seed=4, shared=20), tmp_path / "held.jsonl")
    (tmp_path / "recipe.toml").write_text(RECIPE.format(base=tmp_path / "model"))
    return tmp_path


def arguments(files: Path, out: str) -> list[str]:
    return [
        "sft", str(files / "recipe.toml"), "--out", str(files / out),
        "--rows", str(files / "rows.jsonl"), "--held", str(files / "held.jsonl"),
    ]  # fmt: skip


def losses(out: Path) -> list[tuple[str, int, float]]:
    return [
        (one["kind"], one["step"], one.get("loss", one.get("held_loss")))
        for one in read_log(out / "log.jsonl")
        if one["kind"] != "sample"
    ]


def weights(out: Path, step: int) -> bytes:
    return (out / "checkpoints" / f"step-{step:06d}" / "weights.safetensors").read_bytes()


def trained(
    folder: Path, settings: TrainingSettings, rows: list[Row], held: list[Row]
) -> tuple[TrainingProgress, Path]:
    opened = adapted(tiny_model(dtype=torch.float32))
    training = Training(opened, rows, settings, Accelerator(cpu=True))
    folder.mkdir(exist_ok=True)
    progress = training.run(
        CheckpointFolder(folder / "checkpoints"), TrainingJournal(folder, "t"), held
    )
    return progress, folder


def test_a_training_killed_in_the_middle_goes_on_to_the_same_losses(files: Path) -> None:
    assert main(arguments(files, "whole")) == 0
    whole = losses(files / "whole")
    learned = {step: loss for kind, step, loss in whole if kind == "update"}
    assert list(learned) == list(range(1, 19))
    epochs = [sum(learned[step] for step in range(at, at + 6)) for at in (1, 13)]
    assert epochs[1] < epochs[0]

    log = files / "killed" / "log.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-m", "training.train", *arguments(files, "killed")],
        cwd=CHECKOUT,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_until(
        lambda: '"update", "step": 8' in (log.read_text() if log.exists() else ""), "update 8"
    )
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    steps = CheckpointFolder(files / "killed" / "checkpoints").steps()
    assert steps
    assert steps[-1] < 18  # it was killed before its end

    assert main(arguments(files, "killed")) == 0
    assert losses(files / "killed") == whole
    assert weights(files / "killed", 18) == weights(files / "whole", 18)


def test_a_resume_with_other_rows_or_another_recipe_is_refused(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = (files / "rows.jsonl").read_text()
    (files / "rows.jsonl").write_text(rows + rows.splitlines()[0])
    assert main(arguments(files, "out")) == 1
    assert "rows.jsonl:1 too" in capsys.readouterr().err
    (files / "rows.jsonl").write_text(rows)
    recipe = (files / "recipe.toml").read_text()
    (files / "recipe.toml").write_text(recipe.replace("epochs = 3", "epochs = 1"))
    assert main(arguments(files, "out")) == 0
    (files / "recipe.toml").write_text(recipe.replace("epochs = 3", "epochs = 2"))
    assert main(arguments(files, "out")) == 1
    assert "started with another training.epochs (1 before, 2 now)" in capsys.readouterr().err
    (files / "recipe.toml").write_text(recipe.replace("epochs = 3", "epochs = 1"))
    write_rows(random_rows([40] * 22, seed=9), files / "rows.jsonl")
    assert main(arguments(files, "out")) == 1
    assert "started with another" in capsys.readouterr().err


def test_a_recipe_can_be_mended_until_something_is_learned(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = (files / "recipe.toml").read_text().replace("epochs = 3", "epochs = 1")
    (files / "recipe.toml").write_text(f'{recipe}shape = "linear"\n')
    assert main(arguments(files, "out")) == 1
    assert "the schedule 'linear' is not" in capsys.readouterr().err
    assert not (files / "out").exists()
    (files / "recipe.toml").write_text(recipe)
    with monkeypatch.context() as patched:
        patched.setattr(Training, "held_loss", Mock(side_effect=TrainerError("out of memory")))
        assert main(arguments(files, "out")) == 1
    (files / "recipe.toml").write_text(recipe.replace("pack_tokens = 200", "pack_tokens = 100"))
    assert main(arguments(files, "out")) == 0
    kept = json.loads((files / "out" / "run.json").read_text())["recipe"]
    assert kept["training"]["pack_tokens"] == 100
    shutil.rmtree(files / "out" / "checkpoints")
    (files / "recipe.toml").write_text(recipe)
    assert main(arguments(files, "out")) == 1
    assert "started with another training.pack_tokens" in capsys.readouterr().err


def test_a_changed_model_is_refused(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = files / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("epochs = 3", "epochs = 1"))
    assert main(arguments(files, "out")) == 0
    kept = json.loads((files / "out" / "run.json").read_text())
    tiny_model(dtype=torch.float32, seed=1).save_pretrained(files / "model")
    assert main(arguments(files, "out")) == 1
    assert "was started with another model/model.safetensors ('" in capsys.readouterr().err
    older = {name: one for name, one in kept["sha256"].items() if not name.startswith("model/")}
    (files / "out" / "run.json").write_text(json.dumps(kept | {"sha256": older}))
    assert main(arguments(files, "out")) == 0  # an older release kept no hash of the model


def test_a_second_training_waits_for_no_folder_that_one_is_at_work_in(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "out").mkdir()
    with folder_lock(files / "out", "training"):
        assert main(arguments(files, "out")) == 1
    assert "Another training is at work in" in capsys.readouterr().err
    assert {one.name for one in (files / "out").iterdir()} == {"run.lock"}


def test_the_folder_of_the_base_is_never_that_of_the_trained_model(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = files / "recipe.toml"
    without = recipe.read_text().replace("[adapter]\nrank = 4\nalpha = 8\ndropout = 0.1\n", "")
    recipe.write_text(without.replace("epochs = 3", "epochs = 1"))
    before = (files / "model" / "model.safetensors").read_bytes()
    assert main(arguments(files, "")) == 1
    assert "model exists already, and the trained model would be" in capsys.readouterr().err
    assert (files / "model" / "model.safetensors").read_bytes() == before
    assert not (files / "run.json").exists()
    assert main(arguments(files, "out")) == 0
    assert main(arguments(files, "out")) == 0  # the model is replaced by the same one
    assert (files / "out" / "model" / "model.safetensors").read_bytes() != before
    assert not list((files / "out").glob(".*"))


@pytest.mark.parametrize("adapter", [True, False])
def test_a_full_disk_is_told_and_leaves_what_was_there(
    files: Path, adapter: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """The limit on a file's size stands for the disk: the libraries' errors are the same."""
    recipe = files / "recipe.toml"
    text = recipe.read_text().replace("epochs = 3", "epochs = 1")
    if not adapter:
        text = text.replace("[adapter]\nrank = 4\nalpha = 8\ndropout = 0.1\n", "")
    recipe.write_text(text)
    assert main(arguments(files, "whole")) == 0
    written = [*(files / "whole").rglob("*.safetensors"), *(files / "whole").rglob("optimizer.pt")]
    for size in sorted({one.stat().st_size for one in written}):
        out = f"out-{size}"
        old = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size - 1000, old[1]))
        try:
            assert main(arguments(files, out)) == 1
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, old)
        told = capsys.readouterr().err.splitlines()[-1]
        assert told.startswith("error: ")
        assert out in told
        assert not list((files / out).rglob(".*.part"))
        assert main(arguments(files, out)) == 0
        assert losses(files / out) == losses(files / "whole")


def test_a_tokenizer_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, old[1]))
    try:
        with pytest.raises(OSError, match="tokens can't be written"):
            save_tokenizer(tiny_tokenizer(), tmp_path / "tokens")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("seed = -1", "seed = -1 is not at least 0"),
        ("weight_decay = -0.1", "weight_decay = -0.1 is not at least 0"),
        ("weight_decay = nan", "weight_decay = nan is not at least 0"),
    ],
)
def test_a_setting_that_no_training_can_have_is_refused(
    setting: str, problem: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = files / "recipe.toml"
    recipe.write_text(recipe.read_text() + setting)
    assert main(arguments(files, "out")) == 1
    assert problem in capsys.readouterr().err


def test_held_rows_that_are_too_long_are_told(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_rows(random_rows([40, 400], seed=4), files / "held.jsonl")
    recipe = files / "recipe.toml"
    text = recipe.read_text().replace("epochs = 3", "epochs = 1")
    recipe.write_text(f"{text}[data]\nmax_tokens = 100\n")
    assert main(arguments(files, "out")) == 0
    assert "1 held rows: 40 tokens" in (told := capsys.readouterr().out)
    assert "1 too long and left out" in told


def test_a_folder_of_an_evaluation_is_no_training(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "run.json").write_text('{"suite": "dabench"}')
    assert main(["export", str(files), "--out", str(files / "a.gguf")]) == 1
    assert "is no folder of a training: run.json has no recipe" in capsys.readouterr().err


def test_held_rows_that_are_also_learned_from_are_refused(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_rows(random_rows([40] * 2, seed=3, shared=20), files / "held.jsonl")
    assert main(arguments(files, "out")) == 1
    assert "2 held rows are also learned from, such as r0" in capsys.readouterr().err


def test_training_stops_when_the_held_loss_no_longer_falls(tmp_path: Path) -> None:
    """Held rows that have nothing to do with the others: learning them by heart makes it worse."""
    settings = TrainingSettings(
        learning_rate=0.05, epochs=50, batch_rows=4, evaluate_every=1, patience=3, samples=0
    )
    progress, folder = trained(
        tmp_path / "out", settings, random_rows([30] * 4), random_rows([30] * 4, seed=8)
    )
    held = [loss for kind, _, loss in losses(folder) if kind == "evaluation"]
    assert progress.step == progress.best_step + 3 < 50
    assert progress.best_loss == min(held) == held[progress.best_step]
    store = CheckpointFolder(folder / "checkpoints")
    assert progress.best_step in store.steps()
    assert len(store.steps()) == 3  # the best, and the two newest
    again, _ = trained(folder, settings, random_rows([30] * 4), random_rows([30] * 4, seed=8))
    assert again == progress  # what has ended stays ended


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    settings = TrainingSettings(learning_rate=0.01, epochs=1, samples=0)
    _, folder = trained(tmp_path / "out", settings, random_rows([30] * 4), [])
    newest = CheckpointFolder(folder / "checkpoints").path(1)
    (newest / "weights.safetensors").write_bytes(b"cut")
    with pytest.raises(TrainerError, match="step-000001 is damaged"):
        trained(folder, settings, random_rows([30] * 4), [])


def test_a_checkpoint_that_was_not_finished_is_no_checkpoint(tmp_path: Path) -> None:
    store = CheckpointFolder(tmp_path)
    (tmp_path / ".step-000005.part").mkdir()
    assert store.steps() == []
    assert store.restore({}, None) is None


def test_what_was_logged_behind_the_checkpoint_is_forgotten(tmp_path: Path) -> None:
    journal = TrainingJournal(tmp_path, "t")
    journal.begin(-1)
    for step in (1, 2, 3):
        sample = {"step": step, "id": "q", "text": "a\u2028b\x85c", "expected": ""}
        journal.add("sample", sample)  # signs at which a line of text ends, but none of JSON
        journal.add("evaluation", {"step": step, "held_loss": float(step)})
    journal.close()
    with (tmp_path / "log.jsonl").open("a") as opened:
        opened.write('{"kind": "upd')  # a crash cut it
    again = TrainingJournal(tmp_path, "t")
    again.begin(2)
    again.add("evaluation", {"step": 3, "held_loss": 7.0})
    again.close()
    found = [one.get("held_loss") for one in read_log(tmp_path / "log.jsonl")]
    assert found == [None, 1.0, None, 2.0, 7.0]


def test_a_training_that_ended_before_its_first_checkpoint_is_logged_once(tmp_path: Path) -> None:
    settings = TrainingSettings(learning_rate=0.01, epochs=1, samples=0)
    TrainingJournal(tmp_path, "t").begin(-1)
    (tmp_path / "log.jsonl").write_text('{"kind": "evaluation", "step": 0, "held_loss": 9.0}\n')
    _, folder = trained(tmp_path, settings, random_rows([30] * 4), random_rows([30], seed=8))
    assert [one["step"] for one in read_log(folder / "log.jsonl")] == [0, 1, 1]


def test_a_small_rate_changes_weights_that_compute_in_bfloat16(tmp_path: Path) -> None:
    """A step of 1e-5 is lost in a bfloat16 weight above 0.005."""
    save_tiny(tmp_path / "m", dtype=torch.bfloat16)
    opened = open_model(ModelSettings(str(tmp_path / "m"), "bfloat16"), None, torch.device("cpu"))
    settings, rows = TrainingSettings(learning_rate=1e-5), random_rows([30] * 4)
    training = Training(opened, rows, settings, Accelerator(cpu=True))
    before = {name: one.detach().clone() for name, one in opened.parameters().items()}
    seen: list[torch.dtype] = []
    opened.model.lm_head.register_forward_hook(lambda *given: seen.append(given[2].dtype))
    training.update(rows, 1e-5)
    assert set(seen) == {torch.bfloat16}
    weight = before["lm_head.weight"]
    changed = (opened.parameters()["lm_head.weight"] - weight).abs()
    assert (changed > 0).float().mean() > 0.9


def test_the_page_shows_what_the_model_wrote_as_text(tmp_path: Path) -> None:
    journal = TrainingJournal(tmp_path, "<b>")
    journal.begin(0)
    written = "<script>alert(1)</script>"
    journal.add("sample", {"step": 1, "id": "q", "text": written, "expected": "x"})
    journal.add("evaluation", {"step": 1, "held_loss": 2.0})
    journal.close()
    page = (tmp_path / "curves.html").read_text()
    assert "&lt;script&gt;alert(1)" in page
    assert "<script" not in page
    assert "<polyline" in page
    assert list((tmp_path / "tensorboard").iterdir())


def test_a_held_loss_is_that_of_the_rows_and_has_no_dropout(tmp_path: Path) -> None:
    opened = adapted(tiny_model(dtype=torch.float32))
    settings = TrainingSettings(learning_rate=0.01)
    rows = random_rows([30] * 5)
    training = Training(opened, rows, settings, Accelerator(cpu=True))
    assert training.held_loss(rows) == training.held_loss(rows)
    assert training.held_loss(rows) == pytest.approx(
        sum(training.held_loss([row]) for row in rows) / 5, rel=1e-6
    )


def test_one_mask_of_a_pack_is_in_memory_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of 32,768 tokens beside another one needs a mask of a gigabyte."""
    masks: list[weakref.ref[torch.Tensor]] = []
    made = Pack.attention_mask

    def counted(pack: Pack) -> torch.Tensor | None:
        assert not any(one() is not None for one in masks)
        mask = made(pack)
        assert mask is not None
        masks.append(weakref.ref(mask))
        return mask

    monkeypatch.setattr(Pack, "attention_mask", counted)
    settings = TrainingSettings(learning_rate=0.01, pack_tokens=90)
    rows = random_rows([30] * 12)
    opened = adapted(tiny_model(dtype=torch.float32))
    training = Training(opened, rows, settings, Accelerator(cpu=True))
    training.held_loss(rows)
    training.update(rows, 0.01)
    assert len(masks) == 8


def test_an_infinite_gradient_stops_the_training_before_it_changes_a_weight(tmp_path: Path) -> None:
    opened = adapted(tiny_model(dtype=torch.float32))
    training = Training(
        opened, random_rows([30]), TrainingSettings(learning_rate=0.01), Accelerator(cpu=True)
    )
    before = {name: one.detach().clone() for name, one in opened.parameters().items()}
    opened.model.get_output_embeddings().weight.data.fill_(float("inf"))
    with pytest.raises(TrainerError, match="norm is nan"):
        training.update(random_rows([30]), 0.01)
    assert all(torch.equal(one, before[name]) for name, one in opened.parameters().items())


PROCESS = """
import json, os, sys
from pathlib import Path
import torch
from accelerate import Accelerator
from tests.training.trainer.tiny import adapted, random_rows, tiny_model, tiny_tokenizer
from training.trainer.checkpoint import CheckpointFolder, TrainingProgress
from training.trainer.losses import bind_logps
from training.trainer.loop import Training
from training.trainer.model import OpenedModel
from training.trainer.recipe import TrainingSettings
from training.trainer.processes import shard_model, wants_shards, whole_state

def learned(kind, out, accelerator):
    os.environ["ACCELERATE_USE_FSDP"] = str(kind.endswith("sharded"))
    full = OpenedModel(tiny_model(), tiny_tokenizer(), can_pack=True)
    opened = adapted(tiny_model()) if kind.startswith("adapter") else full
    if wants_shards(accelerator):
        shard_model(opened.model, accelerator, bind_logps(opened.model))
    rows = random_rows((5, 40, 3, 70, 22, 9, 31), shared=24)
    settings = TrainingSettings(learning_rate=0.01, pack_tokens=90, batch_rows=7, clip=0.5)
    training = Training(opened, rows, settings, accelerator)
    weights, store = training._weights, CheckpointFolder(out / kind)
    made = [training.update(rows, 0.01) for _ in range(2)]
    held, sample = training.held_loss(rows), training._sample(rows[0])
    state, whole = whole_state(training.optimizer.state_dict()), whole_state(weights)
    if accelerator.is_main_process:
        store.save(TrainingProgress(2), whole, state)
    accelerator.wait_for_everyone()
    made.append(training.update(rows, 0.01))
    again = Training(opened, rows, settings, accelerator)
    assert store.restore(weights, again.optimizer) == TrainingProgress(2)
    made.append(again.update(rows, 0.01))
    whole = whole_state(weights)
    if accelerator.is_main_process:
        torch.save({name: one.detach() for name, one in whole.items()}, out / f"{kind}.pt")
    parts = [one.to_local() if hasattr(one, "to_local") else one for one in weights.values()]
    return {"losses": [one.loss for one in made], "norms": [one.norm for one in made],
            "held": held, "sample": sample["text"], "parts": sum(one.numel() for one in parts)}


accelerator = Accelerator(cpu=True)
out = Path(sys.argv[1])
found = {kind: learned(kind, out, accelerator) for kind in sys.argv[2:]}
if accelerator.is_main_process:
    (out / "found.json").write_text(json.dumps([accelerator.num_processes, found]))
accelerator.wait_for_everyone()
accelerator.end_training()
"""


def run_processes(count: int, folder: Path, *kinds: str) -> dict[str, dict[str, Any]]:
    """Runs the program above, and returns what it found and the weights that it saved."""
    program, out = folder / "process.py", folder / f"{count}"
    out.mkdir()
    program.write_text(PROCESS)
    launch(count, str(program), str(out), *kinds, config=SPLIT)
    processes, found = json.loads((out / "found.json").read_text())
    assert processes == count
    for kind in kinds:
        found[kind]["weights"] = torch.load(out / f"{kind}.pt", weights_only=True)
    return dict(found)


@pytest.mark.slow
def test_two_processes_learn_what_one_learns(tmp_path: Path) -> None:
    """Detail 21: gradients are added up over processes, and divided by the whole batch once.

    With whole models and with weights split by FSDP2, through gradient clipping, a checkpoint and
    a resume from it.
    """
    alone = run_processes(1, tmp_path, "adapter", "full")
    both = run_processes(2, tmp_path, "adapter", "full", "full-sharded", "adapter-sharded")
    for kind, found in both.items():
        expected = alone[kind.removesuffix("-sharded")]
        assert found["losses"] == pytest.approx(expected["losses"], abs=1e-12)
        assert found["losses"][3] == pytest.approx(found["losses"][2], abs=1e-12)  # resumed
        assert found["norms"] == pytest.approx(expected["norms"], abs=1e-11)
        assert min(found["norms"]) > 0.5  # so they were clipped
        assert found["held"] == pytest.approx(expected["held"], abs=1e-12)
        assert found["sample"] == expected["sample"]
        share = 0.5 if kind.endswith("sharded") else 1.0
        assert found["parts"] / expected["parts"] == pytest.approx(share, abs=0.02)
        for name, one in expected["weights"].items():
            torch.testing.assert_close(found["weights"][name], one, rtol=0, atol=1e-10)


@pytest.mark.slow
def test_the_command_trains_split_weights_and_goes_on_unsplit(files: Path) -> None:
    """All weights, two processes: the losses and the model of one; a resume needs no second one."""
    recipe = files / "recipe.toml"
    text = recipe.read_text().replace("[adapter]\nrank = 4\nalpha = 8\ndropout = 0.1\n", "")
    recipe.write_text(text.replace("epochs = 3", "epochs = 1"))
    assert main(arguments(files, "alone")) == 0
    launch(2, "-m", "training.train", *arguments(files, "both"), config=SPLIT)
    alone, both = losses(files / "alone"), losses(files / "both")
    assert [one[:2] for one in both] == [one[:2] for one in alone]
    assert [one[2] for one in both] == pytest.approx([one[2] for one in alone], rel=1e-4)
    last = max(CheckpointFolder(files / "both" / "checkpoints").steps())
    shutil.rmtree(files / "both" / "checkpoints" / f"step-{last:06d}")
    assert main(arguments(files, "both")) == 0  # from a checkpoint that two processes made
    again = losses(files / "both")
    assert [one[2] for one in again] == pytest.approx([one[2] for one in both], rel=1e-4)
    names = {one.name for one in (files / "both" / "model").iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= names


@pytest.mark.parametrize(
    ("dtype", "launched", "problem"),
    [
        ("bfloat16", "no", "dtype = 'bfloat16', but split weights compute as they are launched"),
        ("float32", "bf16", "dtype = 'float32', but split weights compute as they are launched"),
        ("auto", "fp16", "mixed_precision fp16 is not supported"),
        ("auto", "bf16", ""),
        ("auto", "no", ""),
        ("bfloat16", "bf16", ""),
        ("float64", "no", ""),
    ],
)
def test_split_weights_compute_in_the_numbers_of_the_launch(
    dtype: str, launched: str, problem: str
) -> None:
    accelerator = SimpleNamespace(mixed_precision=launched)
    with pytest.raises(TrainerError, match=problem) if problem else nullcontext():
        refuse_other_numbers(accelerator, dtype)


@pytest.mark.filterwarnings("ignore")  # accelerate's, of the first version
@pytest.mark.parametrize(
    ("setting", "problem"),
    [("fsdp_version", "set fsdp_version to 2"), ("loading", "cpu_ram_efficient_loading to false")],
)
def test_a_launch_that_would_split_wrong_weights_is_refused(
    setting: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    monkeypatch.setenv("FSDP_VERSION", "1" if setting == "fsdp_version" else "2")
    monkeypatch.setenv("FSDP_CPU_RAM_EFFICIENT_LOADING", str(setting == "loading"))
    accelerator = Accelerator(cpu=True)
    assert not wants_shards(accelerator)  # a single process has all weights
    with pytest.raises(TrainerError, match=problem):
        shard_model(tiny_model(), accelerator, "learned_logps")
