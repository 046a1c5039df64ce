"""An adapter as the GGUF file that llama.cpp loads over the untouched model file.

llama.cpp names tensors by its own scheme. For models of the Llama family, it also stores the rows
of the query and key projections in another order. There, a rotary pair is two neighbours; in
transformers its halves are half a head apart. The `B` matrices of these projections are reordered
alike; Qwen models need no reordering. llama.cpp applies `scale · alpha / rank · B(A x)`, so it
needs only alpha and rank.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import gguf
import numpy as np
import torch
from numpy.typing import NDArray

from training.trainer.rows import TrainerError

__all__ = ["AdapterFile", "load_adapter", "read_adapter", "write_adapter"]

_NAME: Final = re.compile(r"base_model\.model\.(.+)\.lora_([AB])\.\w+\.weight")
_ARCHITECTURES: Final = {
    "llama": (gguf.MODEL_ARCH.LLAMA, True),
    "mistral": (gguf.MODEL_ARCH.LLAMA, True),
    "qwen2": (gguf.MODEL_ARCH.QWEN2, False),
    "qwen3": (gguf.MODEL_ARCH.QWEN3, False),
}
"""llama.cpp's name for a `model_type` of transformers, and whether query and key are reordered."""
_NUMBERS: Final = {"F16": np.float16, "F32": np.float32}


@dataclass(frozen=True, slots=True)
class AdapterFile:
    """Contents of an adapter file."""

    architecture: str
    """llama.cpp's name of the model's family."""
    alpha: float
    tensors: Mapping[str, NDArray[Any]]
    """`blk.0.attn_q.weight.lora_a` of shape (rank, in), and `…lora_b` of shape (out, rank)."""


def write_adapter(
    weights: Mapping[str, torch.Tensor],
    config: Any,
    alpha: float,
    file: Path,
    numbers: str = "F16",
) -> None:
    """Write an adapter.

    Args:
        weights: of the adapter, by peft's names, as a checkpoint has them.
        config: of the model in transformers.
        alpha: of the adapter.
        file: its folder must exist; an old file is replaced.
        numbers: `F32`, or `F16` for half the size.

    Raises:
        TrainerError: llama.cpp has no such adapter, or a weight is too large for F16.
        OSError: the file can't be written.
    """
    architecture, _ = _architecture(config)
    tensors = [
        (name, _in_numbers(name, values, numbers)) for name, values in _tensors(weights, config)
    ]
    part = file.with_name(f".{file.name}.part")
    writer = gguf.GGUFWriter(part, gguf.MODEL_ARCH_NAMES[architecture])
    try:
        writer.add_type(gguf.GGUFType.ADAPTER)
        writer.add_string(gguf.Keys.Adapter.TYPE, "lora")
        writer.add_float32(gguf.Keys.Adapter.LORA_ALPHA, alpha)
        for name, values in tensors:
            writer.add_tensor(name, values)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def read_adapter(file: Path) -> AdapterFile:
    """Return the contents of an adapter file.

    Raises:
        TrainerError: it is not an adapter.
    """
    try:
        reader = gguf.GGUFReader(file)
        fields = {name: reader.fields[name].contents() for name in (
            gguf.Keys.General.ARCHITECTURE, gguf.Keys.General.TYPE, gguf.Keys.Adapter.TYPE,
            gguf.Keys.Adapter.LORA_ALPHA,
        )}  # fmt: skip
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise TrainerError(f"{file} is no adapter of llama.cpp: {error!r}") from error
    if (fields[gguf.Keys.General.TYPE], fields[gguf.Keys.Adapter.TYPE]) != ("adapter", "lora"):
        raise TrainerError(f"{file} is no LoRA adapter")
    return AdapterFile(
        str(fields[gguf.Keys.General.ARCHITECTURE]),
        float(fields[gguf.Keys.Adapter.LORA_ALPHA]),
        {one.name: np.array(one.data) for one in reader.tensors},
    )


def load_adapter(
    file: Path, weights: Mapping[str, torch.Tensor], config: Any, alpha: float
) -> None:
    """Set the matrices of an adapter to those of a file.

    Args:
        file: an adapter of the same model.
        weights: of the adapter, by peft's names.
        config: of the model in transformers.
        alpha: of the adapter.

    Raises:
        TrainerError: the file is not an adapter of this model with this rank and alpha.
    """
    given = read_adapter(file)
    architecture, is_reordered = _architecture(config)
    if given.architecture != gguf.MODEL_ARCH_NAMES[architecture]:
        raise TrainerError(
            f"{file} is an adapter of a {given.architecture} model, and this one is a "
            f"{config.model_type}"
        )
    found = dict(given.tensors)
    for name, module, known in _names(weights, config):
        parameter, values = weights[name], found.pop(known, None)
        if (
            values is None
            or given.alpha != np.float32(alpha)
            or values.shape != tuple(parameter.shape)
        ):
            ranks = sorted(
                {len(one) for at, one in given.tensors.items() if at.endswith(".lora_a")}
            )
            raise TrainerError(
                f"{file} is an adapter of rank {', '.join(map(str, ranks))} and alpha "
                f"{given.alpha:g} for {len(given.tensors)} matrices. To begin with it, [adapter] "
                "must have the same rank and alpha, and the model the same layers."
            )
        if is_reordered and known.endswith(".lora_b"):
            values = _reordered(module, values, config, is_back=True)
        with torch.no_grad():
            parameter.copy_(torch.from_numpy(np.ascontiguousarray(values)))
    if found:
        raise TrainerError(f"{file} has matrices that this model lacks, such as {min(found)}")


def _architecture(config: Any) -> tuple[gguf.MODEL_ARCH, bool]:
    try:
        return _ARCHITECTURES[config.model_type]
    except KeyError as error:
        known = ", ".join(_ARCHITECTURES)
        raise TrainerError(
            f"adapters of {config.model_type!r} models can't be exported; known: {known}"
        ) from error


def _tensors(
    weights: Mapping[str, torch.Tensor], config: Any
) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield llama.cpp's name and the values of each matrix of the adapter."""
    _, is_reordered = _architecture(config)
    for name, module, known in _names(weights, config):
        values = weights[name].detach().float().cpu().numpy()
        if is_reordered and known.endswith(".lora_b"):
            values = _reordered(module, values, config)
        yield known, values


def _names(weights: Mapping[str, torch.Tensor], config: Any) -> Iterator[tuple[str, str, str]]:
    """Yield each matrix: its name in peft, the name of its module, and its name in llama.cpp."""
    architecture, _ = _architecture(config)
    names = gguf.get_tensor_name_map(architecture, config.num_hidden_layers)
    for name in weights:
        if "trainable_tokens_delta" in name:
            raise TrainerError(
                "this adapter also learned embeddings of added tokens, which a llama.cpp adapter "
                "file can't contain. Export the full weights with --form weights."
            )
        match = _NAME.fullmatch(name)
        if match is None:
            raise TrainerError(f"{name} was trained and is no part of a LoRA adapter")
        module, matrix = match.groups()
        known = names.get_name(f"{module}.weight", try_suffixes=(".weight",))
        if known is None:
            raise TrainerError(f"llama.cpp has no tensor for {module}")
        yield name, module, f"{known}.lora_{matrix.lower()}"


def _reordered(
    module: str, values: NDArray[Any], config: Any, *, is_back: bool = False
) -> NDArray[Any]:
    """Return the rows of a query or key projection in llama.cpp's order, or back in peft's."""
    if module.endswith("q_proj"):
        heads = config.num_attention_heads
    elif module.endswith("k_proj"):
        heads = config.num_key_value_heads
    else:
        return values
    rows, rank = values.shape
    pairs = (rows // heads // 2, 2) if is_back else (2, rows // heads // 2)
    halves = values.reshape(heads, *pairs, rank)
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(rows, rank))


def _in_numbers(name: str, values: NDArray[np.float32], numbers: str) -> NDArray[Any]:
    if numbers not in _NUMBERS:
        raise TrainerError(f"{numbers!r} is not F16 or F32")
    if numbers == "F16" and np.abs(values).max(initial=0.0) > np.finfo(np.float16).max:
        raise TrainerError(f"{name} has a weight that is too large for F16; export as F32")
    return values.astype(_NUMBERS[numbers])
