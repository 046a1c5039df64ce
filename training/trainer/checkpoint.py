"""Checkpoints: everything a training needs to resume as if it had never stopped.

Each is a folder such as `step-000120`, written atomically: under another name first, then flushed
to disk and renamed. The order of the rows and the random numbers of an update follow from the seed
and the step, so the step alone restores them.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from training.durable.atomic import replaced_folder
from training.trainer.processes import place_state, place_whole
from training.trainer.rows import TrainerError

__all__ = ["Checkpoint", "CheckpointFolder", "TrainingProgress", "read_weights"]

_NAME: Final = re.compile(r"step-(\d{6,})")
_KEPT: Final = 2


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """Progress of a training."""

    step: int = 0
    """Updates made."""
    best_loss: float | None = None
    """The smallest held loss so far; `None` before the first evaluation."""
    best_step: int = 0
    """Updates made when `best_loss` was measured."""
    worse: int = 0
    """Consecutive evaluations, up to the last, that did not improve on `best_loss`."""


class Checkpoint(Protocol):
    """Store that a training saves itself to and resumes from."""

    def save(
        self,
        progress: TrainingProgress,
        weights: Mapping[str, torch.Tensor],
        optimizer_state: Mapping[str, Any],
    ) -> None:
        """Store the training.

        One process calls it between two updates, with unsplit tensors. When it returns, the
        checkpoint survives a crash of the machine.
        """
        ...

    def restore(
        self, weights: Mapping[str, torch.Tensor], optimizer: Any
    ) -> TrainingProgress | None:
        """Restore the newest checkpoint; return `None` if there is none.

        Every process calls it once, before the first update. It changes `weights` in place.
        """
        ...


class CheckpointFolder:
    """Checkpoints in one folder: the two newest ones, and that of the best held loss."""

    def __init__(self, folder: Path) -> None:
        """Create the store.

        Args:
            folder: for checkpoints and nothing else; the first save creates it.
        """
        self.folder = folder

    def steps(self) -> list[int]:
        """Return the steps that have a complete checkpoint, ascending."""
        if not self.folder.is_dir():
            return []
        found = (_NAME.fullmatch(path.name) for path in self.folder.iterdir())
        return sorted(int(match[1]) for match in found if match)

    def path(self, step: int) -> Path:
        """Return the folder of a step's checkpoint, which need not exist."""
        return self.folder / f"step-{step:06d}"

    def save(
        self,
        progress: TrainingProgress,
        weights: Mapping[str, torch.Tensor],
        optimizer_state: Mapping[str, Any],
    ) -> None:
        """Store the training, then remove checkpoints that are neither new nor best.

        Raises:
            OSError: the disk is full or can't be written.
        """
        final = self.path(progress.step)
        try:
            with replaced_folder(final) as part:
                save_file(
                    {name: one.detach().contiguous().cpu() for name, one in weights.items()},
                    part / "weights.safetensors",
                )
                torch.save({"optimizer": dict(optimizer_state)}, part / "optimizer.pt")
                (part / "progress.json").write_text(json.dumps(asdict(progress)), encoding="utf-8")
        except (SafetensorError, RuntimeError) as error:  # the libraries' errors of a full disk
            raise OSError(f"the checkpoint {final} can't be written: {error}") from error
        self._prune(progress)

    def restore(
        self, weights: Mapping[str, torch.Tensor], optimizer: Any
    ) -> TrainingProgress | None:
        """Restore the newest checkpoint.

        Raises:
            TrainerError: it is damaged, or from another model or adapter.
        """
        steps = self.steps()
        if not steps:
            return None
        folder = self.path(steps[-1])
        read_weights(folder, weights)
        try:
            # On the CPU first: the checkpoint may come from a machine with other devices.
            stored = torch.load(folder / "optimizer.pt", map_location="cpu", weights_only=True)
            optimizer.load_state_dict(place_state(stored["optimizer"], optimizer))
            return TrainingProgress(
                **json.loads((folder / "progress.json").read_text(encoding="utf-8"))
            )
        except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
            raise TrainerError(
                f"the checkpoint {folder} is damaged: {error}; remove it to go on from the one "
                "before"
            ) from error

    def _prune(self, progress: TrainingProgress) -> None:
        steps = self.steps()
        stay = set(steps[-_KEPT:])
        if progress.best_loss is not None:
            stay.add(progress.best_step)
        for step in steps:
            if step not in stay:
                shutil.rmtree(self.path(step), ignore_errors=True)


def read_weights(folder: Path, weights: Mapping[str, torch.Tensor]) -> None:
    """Copy a checkpoint's weights into those of a model, in place.

    Args:
        folder: of one checkpoint.
        weights: by name; the checkpoint must have the same names and shapes.

    Raises:
        TrainerError: it is damaged, or from another model or adapter.
    """
    try:
        stored = load_file(folder / "weights.safetensors")
    except (OSError, SafetensorError) as error:
        raise TrainerError(f"the checkpoint {folder} is damaged: {error}") from error
    shapes = {name: tuple(one.shape) for name, one in weights.items()}
    if {name: tuple(one.shape) for name, one in stored.items()} != shapes:
        raise TrainerError(f"the checkpoint {folder} is of another model or adapter")
    with torch.no_grad():
        for name, one in weights.items():
            one.copy_(place_whole(stored[name], one))
