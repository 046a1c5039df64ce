"""The learning rate, the optimizer and the recipe."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from training.trainer.recipe import read_recipe
from training.trainer.rows import TrainerError
from training.trainer.schedule import Schedule, adamw, clip_gradients

RECIPES = Path(__file__).parents[3] / "training" / "recipes"


def test_a_cosine_begins_behind_the_warm_up_and_ends_near_0() -> None:
    schedule = Schedule(1e-4, steps=110, warmup_steps=10)
    rates = [schedule.rate(step) for step in range(110)]
    assert rates[:3] == pytest.approx([1e-5, 2e-5, 3e-5])
    assert rates[9] == rates[10] == 1e-4
    assert rates[35] == pytest.approx(8.535534e-5)  # a quarter of the cosine: (1 + √½) / 2
    assert rates[60] == pytest.approx(5e-5)
    assert rates[109] == pytest.approx(2.467e-8, rel=1e-3)
    assert schedule.rate(110) == pytest.approx(0, abs=1e-18)


def test_a_constant_rate_behind_20_steps_of_warm_up() -> None:
    """Detail 23: AdamW at 1e-6, 20 steps of warm-up, clipping at 1, weight decay 0.1."""
    schedule = Schedule(1e-6, steps=350, warmup_steps=20, shape="constant")
    rates = [schedule.rate(step) for step in (0, 9, 19, 20, 349)]
    assert rates == pytest.approx([5e-8, 5e-7, 1e-6, 1e-6, 1e-6], rel=1e-12)
    weight = torch.nn.Parameter(torch.tensor([1.0]))
    optimizer = adamw([weight], weight_decay=0.1)
    optimizer.param_groups[0]["lr"] = 1e-2
    weight.grad = torch.tensor([5.0])
    optimizer.step()
    # Decay: 1 - 0.01 · 0.1 = 0.999. The first step of Adam is lr · g / |g| = 0.01.
    assert float(weight.detach()) == pytest.approx(0.989, abs=1e-6)


def test_gradients_are_scaled_to_a_norm_of_1_together() -> None:
    weights = [torch.nn.Parameter(torch.zeros(1)) for _ in range(2)]
    weights[0].grad, weights[1].grad = torch.tensor([3.0]), torch.tensor([4.0])
    assert clip_gradients(weights, 1.0) == pytest.approx(5.0)
    assert [float(one.grad) for one in weights if one.grad is not None] == pytest.approx([0.6, 0.8])
    assert clip_gradients(weights, 10.0) == pytest.approx(1.0)
    assert [float(one.grad) for one in weights if one.grad is not None] == pytest.approx([0.6, 0.8])


@pytest.mark.parametrize("file", sorted(RECIPES.glob("*.toml")), ids=lambda file: file.stem)
def test_the_recipes_are_read_and_take_files_from_the_command(file: Path) -> None:
    recipe = read_recipe(file).with_files(rows=["r.jsonl", "s.jsonl"], held=["h.jsonl"])
    assert (recipe.adapter is None) == file.stem.startswith("deepanalyze")
    assert (recipe.data.rows, recipe.data.held) == (("r.jsonl", "s.jsonl"), ("h.jsonl",))
    assert recipe.training.pack_tokens >= 256


def test_the_stages_of_deepanalyze_are_as_published_and_follow_each_other() -> None:
    first, second = (
        read_recipe(RECIPES / f"deepanalyze-{name}.toml") for name in ("1-single", "2-agent")
    )
    for stage, rate, longest in ((first, 5e-5, 8192), (second, 5e-6, 32768)):
        assert (stage.training.learning_rate, stage.training.epochs) == (rate, 3)
        assert (stage.training.batch_rows, stage.data.max_tokens) == (256, longest)
        assert stage.adapter is None
        assert stage.tokens is not None
    assert second.model.base == "trainings/single/model"
    assert "--out trainings/single\n" in (RECIPES / "deepanalyze-1-single.toml").read_text()
    assert len(first.data.rows) == 3


def test_the_file_for_accelerate_asks_for_the_second_fsdp(monkeypatch: pytest.MonkeyPatch) -> None:
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser
    from accelerate.utils.launch import prepare_multi_gpu_env

    file = str(RECIPES / "accelerate-fsdp2.yaml")
    arguments = launch_command_parser().parse_args(["--config_file", file, "-m", "x"])
    environment = prepare_multi_gpu_env(_validate_launch_command(arguments)[0])
    assert environment["ACCELERATE_USE_FSDP"] == "true"
    assert environment["FSDP_VERSION"] == "2"
    assert environment["FSDP_CPU_RAM_EFFICIENT_LOADING"] == "false"
    assert environment["ACCELERATE_MIXED_PRECISION"] == "bf16"


MODEL, TRAINING = '[model]\nbase = "x"\n', "[training]\nlearning_rate = 1e-4\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (MODEL, r"the table \[training\] is missing"),
        (f"{MODEL}[training]\nepochs = 1", "lacks learning_rate"),
        (f"{MODEL}{TRAINING}rate = 1", r"\[training\] has no key 'rate'"),
        (f"{MODEL}{TRAINING}epochs = true", "epochs = True is not of the type int"),
        (f"{MODEL}{TRAINING}epochs = 0", "epochs = 0 is not at least 1"),
        (f"{MODEL}{TRAINING}[rl]\nx = 1", r"unknown table \[rl\]"),
        (f"{MODEL}dtype = 'int8'\n{TRAINING}", "'int8' is not one of"),
        (f"{MODEL}{TRAINING}[adapter]\nrank = 0", "rank 0"),
        ("[", "can't be read"),
    ],
)
def test_a_wrong_recipe_is_refused_with_its_name(text: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "recipe.toml"
    file.write_text(text)
    with pytest.raises(TrainerError, match=rf"recipe\.toml.*{problem}"):
        read_recipe(file)


def test_a_whole_number_may_stand_for_a_fraction(tmp_path: Path) -> None:
    file = tmp_path / "recipe.toml"
    file.write_text(f"{MODEL}{TRAINING}clip = 2\n[data]\nmax_tokens = 7")
    recipe = read_recipe(file)
    assert (recipe.training.clip, recipe.data.max_tokens) == (2.0, 7)


@pytest.mark.parametrize(("peak", "warmup"), [(0.0, 1), (1e-4, 11), (float("nan"), 0)])
def test_a_schedule_that_makes_no_sense_is_refused(peak: float, warmup: int) -> None:
    with pytest.raises(TrainerError):
        Schedule(peak, steps=10, warmup_steps=warmup)
