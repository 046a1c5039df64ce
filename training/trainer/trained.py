"""Result of a training: its recipe, one of its checkpoints, and the model they produce.

`OUT/run.json` records the recipe of the folder `OUT`; `OUT/checkpoints` contains the weights.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError

from dm_jupyter.config import ModelChoice
from dm_jupyter.models.opening import adapter_hash, weights_hash
from training.durable.atomic import replaced_folder
from training.evaluation.manifest import ModelHashes
from training.trainer.checkpoint import CheckpointFolder, read_weights
from training.trainer.dialect_tokens import TokenSettings
from training.trainer.model import (
    AdapterSettings,
    ModelSettings,
    OpenedModel,
    model_files,
    model_folder,
    open_model,
    save_tokenizer,
)
from training.trainer.rows import TrainerError

__all__ = [
    "CHECKPOINTS",
    "MADE_WITH",
    "TrainedWeights",
    "hash_of",
    "is_training",
    "model_hashes",
    "read_made_with",
    "write_weights",
]

MADE_WITH: Final = "run.json"
CHECKPOINTS: Final = "checkpoints"


@dataclass(frozen=True, slots=True)
class TrainedWeights:
    """One checkpoint of a training, with the part of the recipe that defines its weights."""

    folder: Path
    """Of the checkpoint."""
    step: int
    model: ModelSettings
    adapter: AdapterSettings | None
    tokens: TokenSettings | None

    @classmethod
    def of(cls, out: Path, step: int | None = None) -> TrainedWeights:
        """Return a checkpoint of a training.

        Args:
            out: the folder of the training.
            step: `None` takes the checkpoint of the smallest held loss, else the newest.

        Raises:
            TrainerError: the folder is not a training, or there is no such checkpoint.
        """
        recipe = read_made_with(out)["recipe"]
        store = CheckpointFolder(out / CHECKPOINTS)
        steps = store.steps()
        if step is None and steps:
            progress = _read(store.path(steps[-1]) / "progress.json", out)
            step = steps[-1] if progress["best_loss"] is None else progress["best_step"]
        if step is None or step not in steps:
            raise TrainerError(f"{out} has no checkpoint of step {step}; it has: {steps or 'none'}")
        adapter, tokens = recipe["adapter"], recipe.get("tokens")
        return cls(
            store.path(step),
            step,
            ModelSettings(**recipe["model"]),
            AdapterSettings(**adapter) if adapter else None,
            TokenSettings(**tokens) if tokens else None,
        )

    def opened(self, device: torch.device, *, learns: bool = True) -> OpenedModel:
        """Return the trained model, with its adapter if it has one.

        Args:
            device: that it computes on.
            learns: as in `open_model`.

        Raises:
            TrainerError: the model it was trained from is gone, or the checkpoint is damaged.
        """
        # Without the adapter that the training began with: the checkpoint has all matrices.
        below = replace(self.model, base=str(model_folder(self.model.base)))
        made = open_model(below, self.adapter, device, tokens=self.tokens, learns=learns)
        read_weights(self.folder, made.parameters())
        made.model.eval()
        return made

    def hashes(self) -> ModelHashes:
        """Return the hashes of the trained model: the checkpoint's are its weights or its adapter.

        Raises:
            TrainerError: a file can't be read.
            LocalModelError: the model it was trained from is gone.
        """
        learned = hash_of(self.folder / "weights.safetensors")
        if self.adapter is None:
            return ModelHashes(learned)
        return ModelHashes(model_hashes(self.model.base).weights, learned)


def model_hashes(base: str) -> ModelHashes:
    """Return the hashes of a model that was not trained here.

    Args:
        base: as in `ModelSettings`. For a folder, the hash is one over all its files.

    Raises:
        TrainerError: a file can't be read.
        LocalModelError: there is no such model.
    """
    folder = Path(base).expanduser()
    if not folder.is_dir():
        choice = ModelChoice(base)
        return ModelHashes(weights_hash(choice), adapter_hash(choice))
    lines = "".join(f"{hash_of(file)}  {file.name}\n" for file in model_files(base))
    return ModelHashes(hashlib.sha256(lines.encode()).hexdigest())


def hash_of(file: Path) -> str:
    """Return the sha256 of a file, in hex digits.

    Raises:
        TrainerError: it can't be read.
    """
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise TrainerError(f"{file} can't be read: {error}") from error


def is_training(folder: Path) -> bool:
    """Return whether a folder is that of a training."""
    return (folder / MADE_WITH).is_file() and (folder / CHECKPOINTS).is_dir()


def read_made_with(out: Path) -> Mapping[str, Any]:
    """Return the recipe, file hashes and library versions of a training.

    Raises:
        TrainerError: the folder is not a training.
    """
    made_with = _read(out / MADE_WITH, out)
    if not isinstance(made_with, dict) or "recipe" not in made_with:
        raise TrainerError(f"{out} is no folder of a training: {MADE_WITH} has no recipe")
    return made_with


def write_weights(
    trained: TrainedWeights, folder: Path, *, is_merged: bool = True, replaces: bool = False
) -> None:
    """Write a trained model as a transformers folder, with its tokenizer.

    Args:
        trained: the checkpoint.
        folder: must not exist yet, unless it is replaced.
        is_merged: whether an adapter becomes part of the weights. Otherwise only the adapter is
            written, in peft's format, with the rows of added tokens.
        replaces: whether a folder that exists is replaced, once the new one is complete.

    Raises:
        TrainerError: the folder exists, the training has no adapter to write alone, or it can't be
            read.
        OSError: the folder can't be written.
    """
    if trained.adapter is None and not is_merged:
        raise TrainerError("the training changed all weights, so it has no adapter to export")
    if folder.exists() and not replaces:
        raise TrainerError(f"{folder} exists already; name a new folder")
    opened = trained.opened(torch.device("cpu"))
    model = opened.model
    if trained.adapter is not None and is_merged:
        model = model.merge_and_unload()
    try:
        with replaced_folder(folder) as part:
            model.save_pretrained(part, **({} if is_merged else {"save_embedding_layers": False}))
            save_tokenizer(opened.tokenizer, part)
    except SafetensorError as error:
        raise OSError(f"{folder} can't be written: {error}") from error


def _read(file: Path, out: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TrainerError(f"{out} is no folder of a training: {error}") from error
