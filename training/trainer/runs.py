"""A training as a folder: started from a recipe, resumed from itself, exported as an adapter.

`OUT/run.json` records the recipe, the hashes of its files and the versions of the libraries. A
resume with another recipe or other files is refused. If the recipe names questions, the model
answers them at each evaluation: the runs are folders of `OUT/notebooks`, and `OUT/notebooks.html`
shows all of them.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import shlex
import shutil
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
import transformers
from accelerate import Accelerator
from safetensors import SafetensorError
from safetensors.torch import load_file

from dm_jupyter.core.errors import DmJupyterError, LocalModelError
from kernel_sandbox.errors import SandboxError
from training.durable.atomic import write_json
from training.evaluate import run_evaluation
from training.evaluation.arguments import parsed_arguments
from training.records.records import RecordLog
from training.report.__main__ import write_page
from training.suites.registry import find_suite
from training.tokens.policy import TokenPolicy
from training.trainer.checkpoint import CheckpointFolder, TrainingProgress
from training.trainer.engine import TransformersEngine
from training.trainer.gguf_adapter import write_adapter
from training.trainer.journal import TrainingJournal
from training.trainer.loop import Training
from training.trainer.losses import bind_logps, refuse_changed_logits
from training.trainer.model import OpenedModel, adapter_file, model_folder, open_model
from training.trainer.recipe import Recipe
from training.trainer.rows import Row, TrainerError, read_rows
from training.trainer.sharding import shard_model, wants_shards
from training.trainer.trained import (
    CHECKPOINTS,
    MADE_WITH,
    TrainedWeights,
    read_made_with,
    write_weights,
)

__all__ = ["export_adapter", "train"]

_LIBRARIES: Final = ("torch", "transformers", "peft", "accelerate")


def train(recipe: Recipe, out: Path, say: Callable[[str], None]) -> TrainingProgress:
    """Train from a recipe, from the start or from the folder's newest checkpoint.

    Args:
        recipe: names the model and at least the rows.
        out: the folder of the training.
        say: receives lines for the user, from one process.

    Raises:
        TrainerError: the recipe, one of its files or the folder can't be used.
        OSError: the folder can't be written.
    """
    accelerator = Accelerator()
    shards = wants_shards(accelerator)
    tell = say if accelerator.is_main_process else _silent
    if shards and recipe.notebooks is not None:
        raise TrainerError("split weights can't answer questions: leave the table [notebooks] out")
    questions = _evaluation(recipe.notebooks.evaluate) if recipe.notebooks else None
    made_with = _made_with(recipe)
    if (out / MADE_WITH).exists():
        _refuse_another(out, made_with)
    settings = recipe.training
    device = torch.device("cpu") if shards else accelerator.device
    opened = open_model(recipe.model, recipe.adapter, device, settings.seed, recipe.tokens)
    refuse_changed_logits(opened.model)
    limits = (opened.vocabulary, recipe.data.max_tokens)
    rows = read_rows([Path(one) for one in recipe.data.rows], *limits)
    _refuse_other_tokens(rows.rows, opened.added, recipe)
    held: Sequence[Row] = ()
    if recipe.data.held:
        file = read_rows([Path(one) for one in recipe.data.held], *limits)
        _refuse_shared(rows.rows, file.rows)
        held = file.rows
    if accelerator.is_main_process and not (out / MADE_WITH).exists():
        out.mkdir(parents=True, exist_ok=True)
        write_json(made_with, out / MADE_WITH)  # only now: what is refused leaves nothing behind
    accelerator.wait_for_everyone()
    if shards:
        shard_model(opened.model, accelerator, bind_logps(opened.model))
    if (
        not shards
        and recipe.model.dtype == "auto"
        and recipe.model.numbers(device) == torch.float32
    ):
        tell("computing in float32, because the processor has no instructions for bfloat16")
    tell(_summary("rows to learn from", rows.rows, rows.too_long))
    training = Training(opened, rows, settings, accelerator)
    journal = TrainingJournal(out, f"Training {out.name}")
    answer = _answering(questions, opened, out) if questions else None
    progress = training.run(CheckpointFolder(out / CHECKPOINTS), journal, held, tell, answer)
    if progress.best_loss is not None:
        tell(f"smallest held loss: {progress.best_loss:.4f} after update {progress.best_step}")
    if recipe.adapter is None and accelerator.is_main_process:
        shutil.rmtree(out / "model", ignore_errors=True)
        write_weights(TrainedWeights.of(out), out / "model")
    accelerator.wait_for_everyone()
    accelerator.end_training()
    return progress


def export_adapter(out: Path, file: Path, numbers: str = "F16", step: int | None = None) -> int:
    """Write the adapter of a training for llama.cpp; return the step of its checkpoint.

    Args:
        out: the folder of the training.
        file: the GGUF file to write.
        numbers: `F16` or `F32`.
        step: of a checkpoint; `None` takes that of the smallest held loss, else the newest.

    Raises:
        TrainerError: there is no such checkpoint, or it has no adapter.
        OSError: the file can't be written.
    """
    recipe = read_made_with(out)["recipe"]
    if recipe["adapter"] is None:
        raise TrainerError(f"{out} trained all weights, so it has no adapter to export")
    trained = TrainedWeights.of(out, step)
    weights_file = trained.folder / "weights.safetensors"
    try:
        weights = load_file(weights_file)
    except (OSError, SafetensorError) as error:
        raise TrainerError(f"{weights_file} can't be read: {error}") from error
    config = transformers.AutoConfig.from_pretrained(
        model_folder(trained.model.base), local_files_only=True
    )
    write_adapter(weights, config, float(recipe["adapter"]["alpha"]), file, numbers)
    return trained.step


def _evaluation(command: str) -> Namespace:
    """Return the options of an evaluation.

    Raises:
        TrainerError: an option is invalid, or there is no such suite or split.
    """
    try:
        questions = parsed_arguments("", shlex.split(command))
        find_suite(questions.suite)
        if not questions.split.exists():
            raise ValueError(f"there is no {questions.split}")
    except (ValueError, SystemExit) as fault:
        why = str(fault) if isinstance(fault, ValueError) else "see the line above"
        raise TrainerError(f"[notebooks] evaluate = {command!r}: {why}") from fault
    return questions


def _answering(
    questions: Namespace, opened: OpenedModel, out: Path
) -> Callable[[int], Mapping[str, int]]:
    """Return what lets the model answer questions after an update, and counts the right answers.

    Args:
        questions: the options of an evaluation.
        opened: the model in training.
        out: the folder of the training.
    """

    def answer(step: int) -> Mapping[str, int]:
        folder = out / "notebooks" / f"step-{step:06d}"
        arguments = Namespace(**{**vars(questions), "out": folder})
        policy = TokenPolicy(TransformersEngine(opened, out.name))
        try:
            with redirect_stdout(StringIO()):  # tables of the figures, which the page has too
                asyncio.run(run_evaluation(arguments, policy))
        except (DmJupyterError, LocalModelError, SandboxError, ValueError) as fault:
            raise TrainerError(f"[notebooks] evaluate: {fault}") from fault
        records = RecordLog(folder / "records.jsonl").outcomes()
        runs = sorted(folder.parent.glob("step-*"))
        write_page(runs, out / "notebooks.html", f"Training {out.name}")
        return {"asked": len(records), "right": sum(one.correct for one in records)}

    return answer


def _silent(line: str) -> None:
    pass


def _made_with(recipe: Recipe) -> dict[str, Any]:
    if not recipe.data.rows:
        raise TrainerError("no rows: name their file with --rows, or as rows under [data]")
    files = {name: Path(name) for name in (*recipe.data.rows, *recipe.data.held)}
    if (adapter := adapter_file(recipe.model.base)) is not None:
        files["adapter"] = adapter
    plain: dict[str, Any] = json.loads(json.dumps(asdict(recipe)))  # tuples as JSON reads them back
    return {
        "recipe": plain,
        "sha256": {name: _hash(file) for name, file in files.items()},
        "versions": {name: version(name) for name in _LIBRARIES},
    }


def _refuse_another(folder: Path, made_with: dict[str, Any]) -> None:
    """Refuse a folder that was started with another recipe or other files."""
    before = read_made_with(folder)
    for part in ("recipe", "sha256"):
        if before.get(part) != made_with[part]:
            difference = _difference(before.get(part), made_with[part])
            raise TrainerError(
                f"{folder} was started with another {difference}. "
                "Choose a new folder, or use the original recipe and files."
            )


def _difference(one: Any, other: Any, name: str = "") -> str:
    """Return the path of the first value that differs, with both values."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one | other:
            if one.get(key) != other.get(key):
                return _difference(one.get(key), other.get(key), f"{name}.{key}".strip("."))
    return f"{name} ({one!r} before, {other!r} now)"


def _hash(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise TrainerError(f"{file} can't be read: {error}") from error


def _refuse_shared(rows: Sequence[Row], held: Sequence[Row]) -> None:
    known = {row.ids.tobytes() for row in rows}
    shared = [row.id for row in held if row.ids.tobytes() in known]
    if shared:
        raise TrainerError(f"{len(shared)} held rows are also learned from, such as {shared[0]}")


def _refuse_other_tokens(rows: Sequence[Row], added: Sequence[int], recipe: Recipe) -> None:
    if added and not any(np.isin(row.ids, added).any() for row in rows):
        raise TrainerError(
            f"no row of {', '.join(recipe.data.rows)} has a token of the dialect; "
            f"make the rows with --tokens {recipe.tokens.dialect if recipe.tokens else ''}"
        )


def _summary(what: str, rows: Sequence[Row], too_long: Sequence[str]) -> str:
    tokens = sum(len(row.ids) for row in rows)
    learned = sum(len(row.learned) for row in rows)
    line = f"{len(rows)} {what}: {tokens:,} tokens, {learned:,} of them learned"
    return f"{line}; {len(too_long)} rows are too long and left out" if too_long else line
