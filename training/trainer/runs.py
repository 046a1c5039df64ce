"""A training as a folder: started from a recipe, resumed from itself, exported as an adapter.

`OUT/run.json` records the recipe, the hashes of its files and the versions of the libraries. A
resume with another recipe or other files is refused. If the recipe names questions, the model
answers them at each evaluation: the runs are folders of `OUT/notebooks`, and `OUT/notebooks.html`
shows all of them.
"""

from __future__ import annotations

import asyncio
import json
import shlex
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
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

from dm_jupyter.core.errors import DmJupyterError
from kernel_sandbox.errors import SandboxError
from training.durable.atomic import write_json
from training.durable.folder import folder_lock
from training.evaluate import run_evaluation
from training.evaluation.arguments import parsed_arguments
from training.records.records import RecordLog
from training.report.page import write_page
from training.suites.registry import find_suite
from training.tokens.policy import TokenPolicy
from training.trainer.checkpoint import CheckpointFolder, TrainingProgress
from training.trainer.engine import TransformersEngine
from training.trainer.gguf_adapter import write_adapter
from training.trainer.journal import TrainingJournal, read_log
from training.trainer.loop import Training
from training.trainer.losses import bind_logps, refuse_changed_logits
from training.trainer.model import (
    OpenedModel,
    adapter_file,
    model_files,
    model_folder,
    open_model,
)
from training.trainer.processes import (
    one_works,
    refuse_other_numbers,
    shard_model,
    wants_shards,
)
from training.trainer.recipe import Recipe
from training.trainer.rows import Row, RowFile, TrainerError, read_rows
from training.trainer.trained import (
    CHECKPOINTS,
    MADE_WITH,
    TrainedWeights,
    hash_of,
    read_made_with,
    write_weights,
)

__all__ = ["export_adapter", "train"]

_LIBRARIES: Final = ("torch", "transformers", "peft", "accelerate")
_NOTEBOOKS: Final = "notebooks"
_WHOLE_MODEL: Final = "model"
"""Folder of the trained model in that of a training without an adapter."""


def train(recipe: Recipe, out: Path, say: Callable[[str], None]) -> TrainingProgress:
    """Train from a recipe, from the start or from the folder's newest checkpoint.

    Args:
        recipe: names the model and at least the rows.
        out: the folder of the training.
        say: receives lines for the user, from one process.

    Raises:
        TrainerError: the recipe, one of its files or the folder can't be used.
        UsageError: another training is at work in the folder.
        OSError: the folder can't be written.
    """
    accelerator = Accelerator()
    shards = wants_shards(accelerator)
    tell = say if accelerator.is_main_process else _silent
    if shards:
        refuse_other_numbers(accelerator, recipe.model.dtype)
        if recipe.notebooks is not None:
            raise TrainerError(
                "split weights can't answer questions: leave the table [notebooks] out"
            )
    questions = _evaluation(recipe.notebooks.evaluate) if recipe.notebooks else None
    made_with = _made_with(recipe) if accelerator.is_main_process else {}
    if made_with:
        _refuse_another(out, made_with)
    device = torch.device("cpu") if shards else accelerator.device
    opened = open_model(recipe.model, recipe.adapter, device, recipe.training.seed, recipe.tokens)
    refuse_changed_logits(opened.model)
    rows, held = _read_data(recipe, opened)
    with _claimed(out, made_with):  # only now: what is refused leaves nothing behind
        accelerator.wait_for_everyone()
        if shards:
            shard_model(opened.model, accelerator, bind_logps(opened.model))
        elif recipe.model.dtype == "auto" and recipe.model.numbers(device) == torch.float32:
            tell("computing in float32, because the processor has no instructions for bfloat16")
        tell(_summary("rows to learn from", rows))
        if held.rows:
            tell(_summary("held rows", held))
        training = Training(opened, rows, recipe.training, accelerator)
        journal = TrainingJournal(out, f"Training {out.name}")
        answer = _answering(questions, opened, out) if questions else None
        store = CheckpointFolder(out / CHECKPOINTS)
        progress = training.run(store, journal, held.rows, tell, answer)
        if progress.best_loss is not None:
            tell(f"smallest held loss: {progress.best_loss:.4f} after update {progress.best_step}")
        if recipe.adapter is None:
            with one_works(accelerator) as is_it:
                if is_it:
                    write_weights(TrainedWeights.of(out), out / _WHOLE_MODEL, replaces=True)
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
        folder = out / _NOTEBOOKS / f"step-{step:06d}"
        arguments = Namespace(**{**vars(questions), "out": folder})
        policy = TokenPolicy(TransformersEngine(opened, out.name))
        try:
            with redirect_stdout(StringIO()):  # tables of the figures, which the page has too
                asyncio.run(run_evaluation(arguments, policy))
        except (DmJupyterError, SandboxError, ValueError) as fault:
            raise TrainerError(f"[notebooks] evaluate: {fault}") from fault
        records = RecordLog(folder / "records.jsonl").outcomes()
        runs = sorted(folder.parent.glob("step-*"))
        write_page(runs, out / "notebooks.html", f"Training {out.name}")
        return {"asked": len(records), "right": sum(one.correct for one in records)}

    return answer


def _silent(line: str) -> None:
    pass


def _read_data(recipe: Recipe, opened: OpenedModel) -> tuple[RowFile, RowFile]:
    """Return the rows to learn from, and the held ones."""
    data = recipe.data
    limits = (opened.vocabulary, data.max_tokens)
    rows = read_rows([Path(one) for one in data.rows], *limits)
    held = read_rows([Path(one) for one in data.held], *limits) if data.held else RowFile(())
    _refuse_shared(rows.rows, held.rows)
    for file, names in ((rows, data.rows), (held, data.held)):
        if names and opened.added and not _have_token(file.rows, opened.added):
            raise TrainerError(
                f"no row of {', '.join(names)} has a token of the dialect; "
                f"make the rows with --tokens {recipe.tokens.dialect if recipe.tokens else ''}"
            )
    return rows, held


def _have_token(rows: Sequence[Row], ids: Sequence[int]) -> bool:
    return any(np.isin(row.ids, ids).any() for row in rows)


@contextmanager
def _claimed(out: Path, made_with: Mapping[str, Any]) -> Iterator[None]:
    """Lock the folder of a training that was made with these files; nothing without them."""
    if not made_with:
        yield
        return
    with folder_lock(out, "training"):
        _refuse_another(out, made_with)
        if not (out / MADE_WITH).exists() or not _has_learned(out):
            write_json(made_with, out / MADE_WITH)
        yield


def _made_with(recipe: Recipe) -> dict[str, Any]:
    if not recipe.data.rows:
        raise TrainerError("no rows: name their file with --rows, or as rows under [data]")
    files = {name: Path(name) for name in (*recipe.data.rows, *recipe.data.held)}
    files |= {f"model/{file.name}": file for file in model_files(recipe.model.base)}
    if (adapter := adapter_file(recipe.model.base)) is not None:
        files["adapter"] = adapter
    plain: dict[str, Any] = json.loads(json.dumps(asdict(recipe)))  # tuples as JSON reads them back
    return {
        "recipe": plain,
        "sha256": {name: hash_of(file) for name, file in files.items()},
        "versions": {name: version(name) for name in _LIBRARIES},
    }


def _refuse_another(folder: Path, made_with: Mapping[str, Any]) -> None:
    """Refuse a folder of another use, or one that has learned from another recipe or files."""
    before = read_made_with(folder) if (folder / MADE_WITH).exists() else None
    if before is None or not _has_learned(folder):
        if made_with["recipe"]["adapter"] is None and (folder / _WHOLE_MODEL).exists():
            raise TrainerError(
                f"{folder / _WHOLE_MODEL} exists already, and the trained model would be written "
                "there. Choose a new folder."
            )
        return
    hashes = before.get("sha256", {})  # those of an older release lack the model's
    now = {name: one for name, one in made_with["sha256"].items() if name in hashes}
    for part, mine in (("recipe", made_with["recipe"]), ("sha256", now)):
        if before.get(part) != mine:
            difference = _difference(before.get(part), mine)
            raise TrainerError(
                f"{folder} was started with another {difference}. "
                "Choose a new folder, or use the original recipe and files."
            )


def _has_learned(folder: Path) -> bool:
    """Return whether a training has begun to learn, also if its checkpoints were removed since."""
    updates = (one["kind"] == "update" for one in read_log(folder / "log.jsonl"))
    steps = CheckpointFolder(folder / CHECKPOINTS).steps()
    return bool(steps) or (folder / _NOTEBOOKS).exists() or any(updates)


def _difference(one: Any, other: Any, name: str = "") -> str:
    """Return the path of the first value that differs, with both values."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one | other:
            if one.get(key) != other.get(key):
                return _difference(one.get(key), other.get(key), f"{name}.{key}".strip("."))
    return f"{name} ({one!r} before, {other!r} now)"


def _refuse_shared(rows: Sequence[Row], held: Sequence[Row]) -> None:
    known = {row.ids.tobytes() for row in rows}
    shared = [row.id for row in held if row.ids.tobytes() in known]
    if shared:
        raise TrainerError(f"{len(shared)} held rows are also learned from, such as {shared[0]}")


def _summary(what: str, file: RowFile) -> str:
    tokens = sum(len(row.ids) for row in file.rows)
    learned = sum(len(row.learned) for row in file.rows)
    line = f"{len(file)} {what}: {tokens:,} tokens, {learned:,} of them learned"
    return f"{line}; {len(file.too_long)} too long and left out" if file.too_long else line
