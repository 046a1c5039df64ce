"""Learning-rate schedule, optimizer, and gradient clipping."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch.distributed.tensor import DTensor

from training.trainer.rows import TrainerError

__all__ = ["Schedule", "adamw", "clip_gradients"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Linear warm-up from 0, then a cosine down to 0, or a constant rate."""

    peak: float
    """The learning rate at the end of the warm-up."""
    steps: int
    """Updates of the entire training."""
    warmup_steps: int = 0
    """Updates until the peak; the rate of the first is already above 0."""
    shape: str = "cosine"
    """After the warm-up: `cosine` or `constant`."""

    def __post_init__(self) -> None:
        if not (self.peak > 0 and math.isfinite(self.peak)):
            raise TrainerError(f"the learning rate {self.peak} is not above 0")
        if not 0 <= self.warmup_steps <= self.steps:
            raise TrainerError(f"a warm-up of {self.warmup_steps} steps in {self.steps} steps")
        if self.shape not in {"cosine", "constant"}:
            raise TrainerError(f"the schedule {self.shape!r} is not 'cosine' or 'constant'")

    def rate(self, step: int) -> float:
        """Return the learning rate of an update; 0 is the first."""
        if step < self.warmup_steps:
            return self.peak * (step + 1) / self.warmup_steps
        if self.shape == "constant":
            return self.peak
        done = (step - self.warmup_steps) / max(1, self.steps - self.warmup_steps)
        return self.peak * (1 + math.cos(math.pi * min(1.0, done))) / 2


def adamw(parameters: Iterable[torch.nn.Parameter], weight_decay: float) -> torch.optim.AdamW:
    """Return AdamW over the parameters that learn; the loop sets the rate of each update."""
    return torch.optim.AdamW(
        [one for one in parameters if one.requires_grad], lr=0.0, weight_decay=weight_decay
    )


def clip_gradients(parameters: Iterable[torch.nn.Parameter], largest: float) -> float:
    """Scale the gradients so that their total norm is at most `largest`; return the norm before.

    Raises:
        TrainerError: the norm is not finite, so an update would destroy the weights.
    """
    with_gradient = list(parameters)
    found = torch.nn.utils.get_total_norm(
        [one.grad for one in with_gradient if one.grad is not None]
    )
    if isinstance(found, DTensor):  # so far the norm of this process's parts alone
        found = found.full_tensor()
    torch.nn.utils.clip_grads_with_norm_(with_gradient, largest, found)
    norm = float(found)
    if not math.isfinite(norm):
        raise TrainerError(
            f"the gradient's norm is {norm}; lower the learning rate, or train in float32"
        )
    return norm
