"""Adapters: small matrices in a separate file, which the engine adds to a model's weights.

*Covered*: the checks before a server starts refuse a file that is not an adapter, or whose bytes
are not the pinned ones. They also refuse an adapter for another model family or size. *Not
covered*: an adapter for a model with the same shapes and other weights. It loads, and answers
badly.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from dm_jupyter.models.local.errors import AdapterError
from dm_jupyter.models.local.gguf_header import GgufError, GgufHeader, read_header
from kernel_sandbox.packages.commands import own_command

__all__ = ["Adapter", "check_adapter", "own_adapter"]

_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_KIND: Final = "general.type"
_ADAPTER_KIND: Final = "adapter.type"
_ARCHITECTURE: Final = "general.architecture"
_EMBEDDING: Final = "token_embd.weight"
"""The one tensor whose adapter the engine expects transposed."""


@dataclass(frozen=True, slots=True)
class Adapter:
    """One adapter's file: how to identify it, and where to get it."""

    name: str
    """Name for messages, also part of the name of a model that a person combined."""
    licence: str
    """SPDX identifier of the adapter's licence."""
    file_name: str
    """Name of the file in the cache."""
    size_bytes: int
    """Exact size of the file."""
    sha256: str
    """Hash of the entire file, lower-case hexadecimal."""
    hub_url: str | None = None
    """Address of the file; None if there is none."""
    path: Path | None = None
    """Location of a file that is not fetched: in this package, or where a person put it."""

    def __post_init__(self) -> None:
        """Refuse an adapter that could not be checked.

        Raises:
            ValueError: The hash is not a SHA-256, the size is not positive, or there is neither
                an address nor a path.
        """
        if not _SHA256.fullmatch(self.sha256):
            raise ValueError(f"{self.name}: {self.sha256!r} is not a SHA-256 in lower-case hex")
        if self.size_bytes <= 0:
            raise ValueError(f"{self.name}: an adapter of {self.size_bytes} bytes makes no sense")
        if self.hub_url is None and self.path is None:
            raise ValueError(f"{self.name}: an adapter needs an address or a path")

    @property
    def parts(self) -> None:
        """The packages that contain the same bytes: always None."""
        return


def own_adapter(path: Path) -> Adapter:
    """Return the adapter in a file that a person named, trusted as it is.

    Raises:
        AdapterError: There is no such file, or it contains no LoRA adapter.
    """
    path = path.expanduser()
    if not path.is_file():
        raise AdapterError(f"There is no adapter file at {path}.", own_command("model", "list"))
    path = path.resolve()
    _header(path)
    return Adapter(
        name=path.stem,
        licence="unknown",
        file_name=path.name,
        size_bytes=path.stat().st_size,
        sha256=_sha256(path),
        path=path,
    )


def check_adapter(adapter: Adapter, path: Path, base_name: str, base_file: Path) -> None:
    """Check that a file is the adapter, and that it can be added to a model.

    Args:
        adapter: The expected adapter.
        path: The adapter's file.
        base_name: The model's name, for messages.
        base_file: The model's file.

    Raises:
        AdapterError: It is another file, not a LoRA adapter, or made for another model.
    """
    if (found := _sha256(path)) != adapter.sha256:
        raise AdapterError(
            f"{path} is not the adapter {adapter.name}: expected SHA-256 {adapter.sha256}, got "
            f"{found}. Remove the file, then fetch it or install dm-jupyter again.",
            own_command("model", "list"),
        )
    header = _header(path)
    try:
        base = read_header(base_file)
    except (GgufError, OSError):
        return  # the engine reports what is wrong with a model's file
    if reason := next(_misfits(header, base), None):
        raise AdapterError(
            f"The adapter {path} was made for another model than {base_name}: {reason}. Name the "
            "model that it was trained on.",
            own_command("model", "list"),
        )


def _header(path: Path) -> GgufHeader:
    """Return the header of an adapter's file.

    Raises:
        AdapterError: It contains no LoRA adapter.
    """
    try:
        header = read_header(path)
    except (GgufError, OSError) as error:
        why = str(error)
    else:
        kind = (header.fields.get(_KIND), header.fields.get(_ADAPTER_KIND))
        if kind == ("adapter", "lora"):
            return header
        why = f"it is an adapter of another kind ({kind[1]})"
        if kind[0] != "adapter":
            why = "it is a model. Name a model with --model"
    raise AdapterError(f"{path} is not a LoRA adapter: {why}.", own_command("model", "list"))


def _misfits(adapter: GgufHeader, base: GgufHeader) -> Iterator[str]:
    """Yield why an adapter can't be added to a model, by the checks of the engine."""
    family, needed = base.fields.get(_ARCHITECTURE), adapter.fields.get(_ARCHITECTURE)
    if family != needed:
        yield f"it is for models of the family {needed}, and this one is {family}"
    for name in adapter.shapes:
        stem, _, part = name.rpartition(".lora_")
        if part not in {"a", "b"}:
            yield f"it has a tensor {name}, which belongs to no LoRA adapter"
        elif part == "a":
            yield from _misfit(stem, adapter, base)
        elif f"{stem}.lora_a" not in adapter.shapes:
            yield f"it has {name} without {stem}.lora_a"


def _misfit(stem: str, adapter: GgufHeader, base: GgufHeader) -> Iterator[str]:
    """Yield what is wrong with the two matrices of one of the model's tensors."""
    a, b = _matrix(adapter, f"{stem}.lora_a"), _matrix(adapter, f"{stem}.lora_b")
    if b is None or a is None:
        yield f"it has {stem}.lora_a without {stem}.lora_b"
    elif (of_model := _matrix(base, stem)) is None:
        yield f"that has no tensor {stem}"
    else:
        shape = (a[1], b[1]) if stem == _EMBEDDING else (a[0], b[1])
        expected = of_model[::-1] if stem == _EMBEDDING else of_model
        if shape != expected:
            yield f"{stem} is {_shown(expected)} there and {_shown(shape)} in the adapter"
        if stem != _EMBEDDING and a[1] != b[0]:
            yield f"the two matrices of {stem} have the ranks {a[1]} and {b[0]}"


def _matrix(header: GgufHeader, name: str) -> tuple[int, int] | None:
    shape = header.shapes.get(name)
    if shape is None:
        return None
    columns, rows, *_ = (*shape, 1, 1)
    return columns, rows


def _shown(shape: tuple[int, int]) -> str:
    return f"{shape[0]} x {shape[1]}"


def _sha256(path: Path) -> str:
    found = path.stat()
    return _hashed(path, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=16)
def _hashed(path: Path, _size_bytes: int, _modified_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
