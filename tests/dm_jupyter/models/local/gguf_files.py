"""GGUF files made by hand, among them a random model that the engine runs."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tensors = Mapping[str, NDArray[np.float32]]
WIDTH, INNER, LAYERS, HEADS = 32, 64, 2, 4
VOCABULARY = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
ALPHA = 8.0
_ALIGNED = 32


def write_gguf(path: Path, fields: Mapping[str, Any], tensors: Tensors) -> Path:
    """Write a file of version 3, its tensors in F32."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(fields))
    for key, value in fields.items():
        head += _text(key) + _value(value)
    body = b""
    for name, values in tensors.items():
        shape = values.shape[::-1]
        head += _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, len(body))
        body += _padded(values.astype("<f4").tobytes())
    path.write_bytes(_padded(head) + body)
    return path


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def _value(value: Any) -> bytes:
    if isinstance(value, list):
        kind, items = _items(value)
        return struct.pack("<IIQ", 9, kind, len(value)) + b"".join(items)
    (kind, (item,)) = _items([value])
    return struct.pack("<I", kind) + item


def _items(values: list[Any]) -> tuple[int, list[bytes]]:
    """The number of their kind, and each as bytes."""
    if isinstance(values[0], str):
        return 8, [_text(value) for value in values]
    whole = (4, "<I") if len(values) == 1 else (5, "<i")  # as the engine expects them
    kinds = {bool: (7, "<?"), int: whole, float: (6, "<f")}
    kind, layout = kinds[type(values[0])]
    return kind, [struct.pack(layout, value) for value in values]


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % _ALIGNED)


def model_tensors(seed: int = 0) -> dict[str, NDArray[np.float32]]:
    """The weights of a random model of the Llama family."""
    random = np.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> NDArray[np.float32]:
        return random.normal(0, 0.3, (rows, columns)).astype(np.float32)

    ones = np.ones(WIDTH, np.float32)
    tensors = {"token_embd.weight": matrix(len(VOCABULARY), WIDTH), "output_norm.weight": ones}
    tensors["output.weight"] = matrix(len(VOCABULARY), WIDTH)
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        tensors |= {f"{block}.{name}_norm.weight": ones for name in ("attn", "ffn")}
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            tensors[f"{block}.{name}.weight"] = matrix(WIDTH, WIDTH)
        tensors[f"{block}.ffn_gate.weight"] = matrix(INNER, WIDTH)
        tensors[f"{block}.ffn_up.weight"] = matrix(INNER, WIDTH)
        tensors[f"{block}.ffn_down.weight"] = matrix(WIDTH, INNER)
    return tensors


def write_model(path: Path, tensors: Tensors | None = None) -> Path:
    """Write a model with a tokenizer of bytes, which the engine loads in a moment."""
    fields = {
        "general.architecture": "llama",
        "general.type": "model",
        "llama.context_length": 8192,
        "llama.embedding_length": WIDTH,
        "llama.block_count": LAYERS,
        "llama.feed_forward_length": INNER,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-6,
        "llama.rope.dimension_count": WIDTH // HEADS,
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": VOCABULARY,
        "tokenizer.ggml.scores": [0.0] * len(VOCABULARY),
        "tokenizer.ggml.token_type": [2, 3, 3, *[6] * 256],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.chat_template": "{% for message in messages %}{{ message.content }}{% endfor %}",
    }
    return write_gguf(path, fields, model_tensors() if tensors is None else tensors)


def adapter_tensors(seed: int = 1, rank: int = 4, std: float = 0.3) -> dict[str, Any]:
    """The matrices of an adapter of that model; with `std` 0, one that changes nothing."""
    random = np.random.default_rng(seed)
    matrices = {}
    for name, weights in model_tensors().items():
        if name.startswith("blk.") and weights.ndim == 2:
            rows, columns = weights.shape
            a, b = random.normal(0, 0.3, (rank, columns)), random.normal(0, std, (rows, rank))
            matrices |= {f"{name}.lora_a": a, f"{name}.lora_b": b}
    return {name: values.astype(np.float32) for name, values in matrices.items()}


def write_adapter_file(
    path: Path, tensors: Tensors | None = None, fields: Mapping[str, Any] | None = None
) -> Path:
    """Write an adapter of that model; `fields` replace those of its head."""
    head = {
        "general.architecture": "llama",
        "general.type": "adapter",
        "adapter.type": "lora",
        "adapter.lora.alpha": ALPHA,
        **(fields or {}),
    }
    return write_gguf(path, head, adapter_tensors() if tensors is None else tensors)


def merged(tensors: Tensors, adapter: Tensors) -> dict[str, NDArray[np.float32]]:
    """The weights with an adapter's change in them: W + alpha / rank · B A."""
    found = dict(tensors)
    for name, weights in tensors.items():
        if (a := adapter.get(f"{name}.lora_a")) is not None:
            found[name] = weights + ALPHA / len(a) * adapter[f"{name}.lora_b"] @ a
    return found
