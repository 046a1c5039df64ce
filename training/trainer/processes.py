"""Several processes: one that works for all, and weights split over them (FSDP2).

Split weights are for a model that is larger than one GPU:

    accelerate launch --config_file training/recipes/accelerate-fsdp2.yaml -m training.train sft …

Each process keeps a part of every weight, of its gradient and of the optimizer's state. A layer's
full weights exist only while it computes. Each process must therefore make the same number of
forward and backward passes, which `Training` ensures.

Gradients are summed over processes, not averaged: the factors of a row already divide by the
complete batch. Checkpoints contain full weights, so a training may resume with another number of
processes, or unsplit.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

import torch
import torch.distributed as dist
from accelerate import Accelerator, FullyShardedDataParallelPlugin
from accelerate.utils import str_to_bool
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    CPUOffloadPolicy,
    MixedPrecisionPolicy,
    OffloadPolicy,
    fully_shard,
    register_fsdp_forward_method,
)
from torch.distributed.tensor import DTensor, distribute_tensor

from training.trainer.rows import TrainerError

__all__ = [
    "is_sharded",
    "one_works",
    "place_state",
    "place_whole",
    "refuse_other_numbers",
    "shard_model",
    "wants_shards",
    "whole_state",
]

_LONGEST_WAIT: Final = timedelta(days=2)


@contextmanager
def one_works(accelerator: Accelerator) -> Iterator[bool]:
    """Let one process work while the others wait for its end, longer than PyTorch's own minutes.

    Every process must enter the context. Its value is whether this process is the one.
    """
    several = accelerator.num_processes > 1
    waiting = dist.new_group(timeout=_LONGEST_WAIT, backend="gloo") if several else None
    yield bool(accelerator.is_main_process)
    if waiting is not None:
        dist.barrier(waiting)
        dist.destroy_process_group(waiting)


def wants_shards(accelerator: Accelerator) -> bool:
    """Return whether the processes were launched with an FSDP configuration."""
    asked = os.environ.get("ACCELERATE_USE_FSDP", "false")
    return accelerator.num_processes > 1 and bool(str_to_bool(asked))


def refuse_other_numbers(accelerator: Accelerator, dtype: str) -> None:
    """Refuse numbers in which split weights would not compute.

    Args:
        accelerator: with the settings that `accelerate launch` was given.
        dtype: of the recipe.

    Raises:
        TrainerError: the launch says other numbers than the recipe, or float16.
    """
    mixed = accelerator.mixed_precision
    if mixed not in ("no", "bf16"):
        raise TrainerError(f"mixed_precision {mixed} is not supported: launch with bf16 or no")
    if dtype != "auto" and (dtype == "bfloat16") != (mixed == "bf16"):
        raise TrainerError(
            f"dtype = {dtype!r}, but split weights compute as they are launched, with "
            f"mixed_precision {mixed}. Change one of them, or leave dtype out."
        )


def shard_model(model: Any, accelerator: Accelerator, method: str) -> None:
    """Split a model's weights over the processes, in place; called once, by every process.

    Args:
        model: complete, in the memory of each process; if it is on the CPU, it is moved layer by
            layer.
        accelerator: with the settings that `accelerate launch` was given.
        method: of the model, which makes forward passes like `forward`.

    Raises:
        TrainerError: the configuration is FSDP1, only one process has the weights, or the model
            names no layers.
    """
    plugin = getattr(accelerator.state, "fsdp_plugin", None) or FullyShardedDataParallelPlugin()
    if plugin.fsdp_version != 2:
        raise TrainerError("set fsdp_version to 2 in the file for accelerate launch")
    if plugin.cpu_ram_efficient_loading:  # transformers then reads them in the first process only
        raise TrainerError(
            "set fsdp_cpu_ram_efficient_loading to false in the file for accelerate launch"
        )
    if len({one.dtype for one in model.parameters()}) > 1:  # a unit must have one number format
        model.float()
    causal = model.get_base_model() if hasattr(model, "get_base_model") else model
    kinds = set(causal._no_split_modules or ())
    layers = [one for one in causal.modules() if type(one).__name__ in kinds]
    if not layers:
        raise TrainerError(f"{type(causal).__name__} doesn't say which of its layers to split")
    settings: dict[str, Any] = {
        "mesh": init_device_mesh(accelerator.device.type, (accelerator.num_processes,)),
        "mp_policy": MixedPrecisionPolicy(torch.bfloat16, torch.float32)
        if accelerator.mixed_precision == "bf16"
        else MixedPrecisionPolicy(),
        "offload_policy": plugin.cpu_offload
        if isinstance(plugin.cpu_offload, CPUOffloadPolicy)
        else OffloadPolicy(),
    }
    for layer in layers:
        fully_shard(layer, **settings)
    fully_shard(causal, **settings)
    register_fsdp_forward_method(causal, method)
    for unit in (*layers, causal):
        unit.set_gradient_divide_factor(1.0)
        unit.set_force_sum_reduction_for_comms(True)  # gloo can neither average nor multiply


def is_sharded(weights: Iterable[torch.Tensor]) -> bool:
    """Return whether any of the weights is split."""
    return any(isinstance(one, DTensor) for one in weights)


def whole_state(state: Any, *, is_kept: bool = True) -> Any:
    """Return nested dicts and lists with each split tensor gathered on the CPU.

    Every process must call it for the same state, because they exchange their parts.

    Args:
        state: such as an optimizer's.
        is_kept: whether this process needs the tensors; otherwise each becomes `None`.
    """
    if isinstance(state, Mapping):
        return {name: whole_state(one, is_kept=is_kept) for name, one in state.items()}
    if isinstance(state, list):
        return [whole_state(one, is_kept=is_kept) for one in state]
    if not isinstance(state, DTensor):
        return state
    whole = state.detach().full_tensor()
    return whole.cpu() if is_kept else None


def place_whole(whole: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Return a full tensor, split over processes if another one is.

    Args:
        whole: the same in every process.
        like: the tensor whose placement is copied.
    """
    if not isinstance(like, DTensor):
        return whole
    on_device = whole.to(like.device_mesh.device_type)
    return distribute_tensor(on_device, like.device_mesh, like.placements, src_data_rank=None)


def place_state(state: Mapping[str, Any], optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Return a stored optimizer state, split as its weights are.

    Args:
        state: with full tensors, as `whole_state` returned it.
        optimizer: over the same weights in the same order.
    """
    weights = [one for group in optimizer.param_groups for one in group["params"]]
    placed = {
        number: {
            name: place_whole(one, weights[number])
            if isinstance(one, torch.Tensor) and one.shape == weights[number].shape
            else one
            for name, one in of_weight.items()
        }
        for number, of_weight in state["state"].items()
    }
    return {**state, "state": placed}
