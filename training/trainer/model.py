"""The model that learns: opened from a folder or a GGUF file, optionally with an adapter.

A GGUF file contains quantised blocks. transformers can train only dequantised weights, so the first
use of a file writes them beside it, as a folder of safetensors. Later uses read that folder.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
import transformers
from peft import LoraConfig, get_peft_model
from peft.tuners.lora import LoraLayer
from safetensors import SafetensorError

from dm_jupyter.core.errors import DmJupyterError
from dm_jupyter.models.local.cache import bfloat16_folder, file_lock, model_path, require
from dm_jupyter.models.local.catalogue import is_local_name, resolve
from training.durable.atomic import replaced_folder
from training.trainer.dialect_tokens import (
    TokenSettings,
    add_dialect_tokens,
    embed_new_tokens,
)
from training.trainer.gguf_adapter import load_adapter, read_adapter
from training.trainer.rows import TrainerError

__all__ = [
    "AdapterSettings",
    "ModelSettings",
    "OpenedModel",
    "adapter_file",
    "given_adapter",
    "model_files",
    "model_folder",
    "open_model",
    "open_tokenizer",
    "save_tokenizer",
    "with_adapter",
]

_SOURCE: Final = "source.json"
_FILES: Final = frozenset({".bin", ".jinja", ".json", ".model", ".safetensors"})
_DTYPES: Final = {"bfloat16": torch.bfloat16, "float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Weights to train, and their number format."""

    base: str
    """A transformers folder, a .gguf file, or a name from `dm-jupyter model list`. If that model
    has an adapter, the training begins with it."""
    dtype: str = "auto"
    """Numbers to compute in: `bfloat16`, `float32` or `float64`; `auto` is bfloat16 where the
    device multiplies it by itself, and float32 elsewhere. Weights that learn are never in fewer
    bits than float32."""
    recompute: bool = False
    """Whether the backward pass recomputes activations: less memory, more time."""

    def __post_init__(self) -> None:
        if self.dtype not in ("auto", *_DTYPES):
            raise TrainerError(f"the dtype {self.dtype!r} is not one of auto, {', '.join(_DTYPES)}")

    def numbers(self, device: torch.device) -> torch.dtype:
        """Return the number format in which a device computes.

        A processor without instructions for bfloat16 takes six times as long for a product in it.
        """
        if self.dtype != "auto":
            return _DTYPES[self.dtype]
        if device.type == "cuda":
            has_bfloat16 = torch.cuda.is_bf16_supported(including_emulation=False)
        else:
            mkldnn = torch.backends.mkldnn
            has_bfloat16 = mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
        return torch.bfloat16 if has_bfloat16 else torch.float32


@dataclass(frozen=True, slots=True)
class AdapterSettings:
    """Low-rank matrices that learn while the model's own weights stay fixed (LoRA)."""

    rank: int = 8
    alpha: float = 16.0
    """The adapter's output is scaled by alpha / rank."""
    dropout: float = 0.0
    """Share of the adapter's inputs that a training step drops."""

    def __post_init__(self) -> None:
        if self.rank < 1 or self.alpha <= 0 or not 0 <= self.dropout < 1:
            raise TrainerError(
                f"an adapter of rank {self.rank}, alpha {self.alpha}, dropout {self.dropout} "
                "can't be made"
            )


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A model and its tokenizer."""

    model: Any
    """Of transformers, or of peft if there is an adapter."""
    tokenizer: Any
    can_pack: bool
    """Whether one pass may contain several rows: every layer must attend to all tokens."""
    added: tuple[int, ...] = ()
    """The ids of a dialect's tokens."""
    computes_in: torch.dtype | None = None
    """Numbers of the products, if they are others than those of the weights."""

    @property
    def vocabulary(self) -> int:
        """Number of ids that have a text; the embedding may be padded beyond them."""
        rows = int(self.model.get_input_embeddings().weight.shape[0])
        return min(rows, int(max(self.tokenizer.get_vocab().values())) + 1)

    def parameters(self) -> dict[str, torch.nn.Parameter]:
        """Return the parameters that learn, by name."""
        return {name: one for name, one in self.model.named_parameters() if one.requires_grad}

    def computing(self) -> AbstractContextManager[Any]:
        """Return the context in which the products are in `computes_in`."""
        if self.computes_in is None:
            return nullcontext()
        numbers: AbstractContextManager[Any] = torch.autocast(
            self.model.device.type, self.computes_in
        )
        return numbers

    @property
    def closing(self) -> list[int]:
        """The ids that end a turn, ascending: the tokenizer's and the model's own."""
        own = self.model.generation_config.eos_token_id
        known = {*(own if isinstance(own, list) else [own]), self.tokenizer.eos_token_id}
        return sorted(one for one in known if one is not None)

    def generation_config(self, max_tokens: int, **chance: Any) -> transformers.GenerationConfig:
        """Return the settings of a turn that is sampled from the whole distribution.

        `generate` reads missing settings from the model's own `generation_config`, such as a
        repetition penalty. So every setting that changes the distribution is set here.

        Args:
            max_tokens: the longest turn.
            chance: `temperature` and `top_p`; without them the turn is decoded greedily.
        """
        return transformers.GenerationConfig(
            max_new_tokens=max_tokens,
            eos_token_id=self.closing or None,
            pad_token_id=self.tokenizer.eos_token_id,
            repetition_penalty=1.0,
            no_repeat_ngram_size=0,
            num_beams=1,
            **({"do_sample": True, "top_k": 0, **chance} if chance else {"do_sample": False}),
        )


def open_model(
    settings: ModelSettings,
    adapter: AdapterSettings | None,
    device: torch.device,
    seed: int = 0,
    tokens: TokenSettings | None = None,
    *,
    learns: bool = True,
) -> OpenedModel:
    """Return a model, in the mode for training, on its device.

    Weights that learn are in float32 even if the model computes in bfloat16; otherwise small
    updates would be rounded away.

    Args:
        settings: which model.
        adapter: `None` trains all weights.
        device: that the model computes on.
        seed: of the adapter's initial weights.
        tokens: to add; they are learned even with an adapter.
        learns: whether it will be trained. If not, its weights keep the numbers it computes in.

    Raises:
        TrainerError: there is no such model, it or its adapter can't be read, the adapter has
            another shape, or there is one where all weights shall be trained.
    """
    folder, begun = model_folder(settings.base), adapter_file(settings.base)
    dtype = settings.numbers(device)
    if begun is not None and adapter is None:
        raise TrainerError(
            f"{settings.base} has an adapter, and only the training of an adapter can begin with "
            "it. Name the model below it, or add the table [adapter]."
        )
    is_mixed = adapter is None and learns and dtype == torch.bfloat16
    kept: Any = "auto" if adapter is not None and dtype == torch.float32 else dtype
    transformers.utils.logging.disable_progress_bar()
    try:
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=torch.float32 if is_mixed else kept,
            attn_implementation="sdpa",
            local_files_only=True,
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, SafetensorError) as error:
        raise TrainerError(f"the model in {folder} can't be read: {error}") from error
    added = add_dialect_tokens(tokenizer, tokens) if tokens else {}
    if added:
        embed_new_tokens(model, added)
    model.to(device)
    if settings.recompute:
        model.activation_checkpointing_enable({"use_reentrant": False})
    can_pack = _sees_all(model.config)
    if adapter is not None:
        model = with_adapter(model, adapter, seed, tuple(added))
        if dtype == torch.float32:
            _compute_in_float32(model)
    model.train()
    opened = OpenedModel(model, tokenizer, can_pack, tuple(added), dtype if is_mixed else None)
    if begun is not None and adapter is not None:
        load_adapter(begun, opened.parameters(), model.config, adapter.alpha)
    return opened


def _sees_all(config: Any) -> bool:
    """Return whether each layer attends to all earlier tokens, and not to a window of them."""
    kinds = getattr(config, "layer_types", None)
    if kinds is None:
        return getattr(config, "sliding_window", None) is None
    return set(kinds) <= {"full_attention"}


def given_adapter(base: str) -> AdapterSettings | None:
    """Return the shape of the adapter that a model comes with; `None` if it has none.

    Raises:
        TrainerError: there is no such model, or the adapter's file can't be read.
    """
    file = adapter_file(base)
    if file is None:
        return None
    adapter = read_adapter(file)
    ranks = {len(one) for name, one in adapter.tensors.items() if name.endswith(".lora_a")}
    if len(ranks) != 1:
        raise TrainerError(f"{file} has matrices of the ranks {sorted(ranks)}, not of one")
    return AdapterSettings(ranks.pop(), adapter.alpha)


def open_tokenizer(base: str, tokens: TokenSettings | None = None) -> Any:
    """Return a model's tokenizer, without its weights.

    Args:
        base: as in `ModelSettings`.
        tokens: to add.

    Raises:
        TrainerError: there is no such model, or it has no tokenizer.
    """
    file = _model_file(base)
    where: dict[str, Any] = {} if file.is_dir() else {"gguf_file": file.name}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            file if file.is_dir() else file.parent, local_files_only=True, **where
        )
    except (OSError, ValueError) as error:
        raise TrainerError(f"{file} has no tokenizer: {error}") from error
    if tokens:
        add_dialect_tokens(tokenizer, tokens)
    return tokenizer


def save_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Write a tokenizer in transformers' format.

    Raises:
        OSError: the folder can't be written.
    """
    try:
        tokenizer.save_pretrained(folder)
    except OSError:
        raise
    except Exception as error:  # the library has no narrower kind for a full disk
        raise OSError(f"{folder} can't be written: {error}") from error


def with_adapter(
    model: Any, settings: AdapterSettings, seed: int, added: Sequence[int] = ()
) -> Any:
    """Return the model with a new adapter on all linear layers but the head; the rest is frozen.

    In the embedding and the head, only the rows of added tokens learn.
    """
    tables = (model.get_input_embeddings(), model.get_output_embeddings())
    names = {
        id(one.weight): name.rpartition(".")[2]
        for name, one in reversed(list(model.named_modules()))
        if one in tables
    }
    with torch.random.fork_rng(), warnings.catch_warnings():
        # peft 0.21 asks for an attribute that transformers 5 renamed.
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
        torch.manual_seed(seed)
        adapted = get_peft_model(
            model,
            LoraConfig(
                r=settings.rank,
                lora_alpha=settings.alpha,
                lora_dropout=settings.dropout,
                target_modules="all-linear",
                trainable_token_indices={name: list(added) for name in names.values()}
                if added
                else None,
                task_type="CAUSAL_LM",
            ),
        )
    for one in adapted.parameters():
        if one.requires_grad and one.dtype == torch.bfloat16:
            one.data = one.data.float()
    for layer in adapted.modules():
        if isinstance(layer, LoraLayer):
            layer.cast_input_dtype_enabled = False
            for matrix in (*layer.lora_A.values(), *layer.lora_B.values()):
                matrix.__class__ = _LowRank
    return adapted


class _LowRank(torch.nn.Linear):  # type: ignore[misc]
    """A matrix of an adapter: kept in float32, multiplied in the dtype of the model's numbers.

    So the gradient needs no copy of a layer's input in float32, which peft would keep.
    """

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(values, self.weight.to(values.dtype))


def _compute_in_float32(model: Any) -> None:
    """Convert a model with an adapter, but leave the matrices below it in their file's numbers."""
    below = [one.base_layer for one in model.modules() if isinstance(one, LoraLayer)]
    kept = {id(one.weight) for one in below if type(one) is torch.nn.Linear}
    for one in model.parameters():
        if id(one) not in kept:
            one.data = one.data.float()
    for layer in below:
        if id(layer.weight) in kept:
            layer.__class__ = _Frozen


class _Frozen(torch.nn.Linear):  # type: ignore[misc]
    """A matrix that does not learn: kept in the numbers of its file, multiplied in the input's.

    A single row, as of a token that is sampled, is multiplied in the matrix's numbers: to widen the
    matrix would take most of the time.
    """

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        if values.shape[:-1].numel() == 1 and not torch.is_grad_enabled():
            narrow = values.to(self.weight.dtype)
            product = torch.nn.functional.linear(narrow, self.weight).to(values.dtype)
        else:
            product = _Product.apply(values, self.weight)
        return product if self.bias is None else product + self.bias


class _Product(torch.autograd.Function):  # type: ignore[misc]
    """Product with a matrix that is widened when it is used, so that no wide copy is kept."""

    @staticmethod
    def forward(ctx: Any, values: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.weight = weight
        return torch.nn.functional.linear(values, weight.to(values.dtype))

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradient @ ctx.weight.to(gradient.dtype), None


def model_folder(base: str) -> Path:
    """Return a model's transformers folder; for a GGUF file, the folder beside it.

    It contains the weights without an adapter.

    Raises:
        TrainerError: there is no such model, or its weights can't be written beside it.
    """
    file = _model_file(base)
    if file.is_dir():
        return file
    folder = bfloat16_folder(file)
    mark = {"name": file.name, "bytes": file.stat().st_size, "modified": file.stat().st_mtime_ns}
    if _source_of(folder) != mark:
        with file_lock(folder.with_name(f".{folder.name}.lock"), on_wait=lambda: None):
            if _source_of(folder) != mark:  # another process may have written it
                _dequantise(file, folder, mark)
    return folder


def model_files(base: str) -> list[Path]:
    """Return the files that define a model without its adapter: its weights, settings and tokens.

    Raises:
        TrainerError: there is no such model.
    """
    file = _model_file(base)
    if not file.is_dir():
        return [file]
    return sorted(one for one in file.iterdir() if one.suffix in _FILES and one.is_file())


def _model_file(base: str) -> Path:
    path = Path(base).expanduser()
    if path.is_dir():
        return path
    if not is_local_name(base):
        raise TrainerError(f"there is no model folder at {base}")
    try:
        return require(resolve(base))
    except DmJupyterError as error:
        raise TrainerError(str(error)) from error


def adapter_file(base: str) -> Path | None:
    """Return the file of the adapter that a model comes with; `None` if it has none.

    Raises:
        TrainerError: there is no such model.
    """
    if _model_file(base).is_dir():
        return None
    model = resolve(base)
    return None if model.adapter is None else model_path(model.adapter)


def _source_of(folder: Path) -> Any:
    try:
        return json.loads((folder / _SOURCE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _dequantise(file: Path, folder: Path, mark: dict[str, Any]) -> None:
    print(f"writing the weights of {file.name} in bfloat16, once …", file=sys.stderr)
    try:
        model = transformers.AutoModelForCausalLM.from_pretrained(
            file.parent,
            gguf_file=file.name,
            quantization_config=transformers.GgufConfig(dequantize=True),
            dtype=torch.bfloat16,
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
        with replaced_folder(folder) as part:
            model.save_pretrained(part)
            save_tokenizer(tokenizer, part)
            (part / _SOURCE).write_text(json.dumps(mark), encoding="utf-8")
    except (OSError, ValueError, SafetensorError) as error:
        raise TrainerError(f"{file} can't be dequantised into {folder}: {error}") from error
