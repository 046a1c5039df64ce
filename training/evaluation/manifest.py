"""The settings of a run, kept beside its records: `run.json`.

It also contains the hashes of the run's data files, so that a resumed run can't mix two versions.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from training.durable.atomic import write_json
from training.durable.data_files import DataHashes, changed_files, hash_file
from training.durable.folder import ManifestError, kept_manifest
from training.suites.suite import Sample

__all__ = [
    "Manifest",
    "ModelHashes",
    "data_of",
    "git_revision",
    "hash_data",
    "known_hashes",
    "versions",
]

_MAY_CHANGE = frozenset(
    {"git", "versions", "limit", "levels", "trials", "data", "settings.context_tokens"}
)
"""Fields that may differ: a run may resume with more questions or attempts, or elsewhere.

No option sets the length of the context. It is what the endpoint is known to have at the start.
"""


@dataclass(frozen=True, slots=True)
class ModelHashes:
    """What identifies a model whose name may stay the same; see the fields of the manifest."""

    weights: str = ""
    adapter: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything that determines the results, as far as it can be known beforehand."""

    suite: str
    split: str
    """Name of the folder."""
    seed: int
    limit: int | None
    trials: int
    model: str
    dialect: str
    prompts: dict[str, str]
    """Name of each prompt, mapped to the first 12 hex digits of its sha256."""
    strategy: dict[str, Any]
    settings: dict[str, Any]
    """Settings of how a run is sampled and when it ends."""
    profile: str
    """Sandbox profile; the trajectories record what each worker was confined by."""
    git: str
    versions: dict[str, str]
    questions: str = ""
    """First 12 hex digits of the sha256 of the split's questions and labels."""
    judge: str = ""
    """Model that marks answers; empty if none does."""
    collects: bool = False
    """Whether a search was shown which answers are correct, which makes its score meaningless."""
    installs: bool = False
    """Whether listed packages that cells lack are installed."""
    weights: str = ""
    """sha256 of the model's weights without an adapter; empty if unknown, as for an endpoint."""
    adapter: str = ""
    """sha256 of the adapter over a model; empty for a model without one."""
    knowledge: str = ""
    """sha256 of the workflows that came with the questions; empty without them."""
    levels: list[str] = field(default_factory=list)
    """Levels of the questions to draw from; empty means all."""
    data: DataHashes = field(default_factory=dict)
    """Hashes of the data files, including those of earlier draws."""

    def claim(self, folder: Path) -> bool:
        """Write the manifest into the folder of a new run, or check that it matches the one there.

        Returns:
            Whether the data files could be compared; a run of an older release has no hashes.

        Raises:
            ManifestError: the folder contains another run, its data files have changed since, or
                its manifest can't be read.
            OSError: the manifest can't be written.
        """
        path = folder / "run.json"
        mine = asdict(self)
        has_hashes = True
        unknown = () if self.weights else ("weights", "adapter")
        theirs = kept_manifest(path, mine, _MAY_CHANGE.union(unknown))
        if theirs is not None:
            has_hashes = "data" in theirs
            known = known_hashes(folder)
            _refuse_changed(path, known, self.data)
            mine["data"] = {**known, **self.data}
        write_json(mine, path)
        return has_hashes


def _refuse_changed(path: Path, before: DataHashes, now: DataHashes) -> None:
    changed = changed_files(before, now)
    if not changed:
        return
    name = changed[0]
    more = f" and {len(changed) - 1} more data files" if len(changed) > 1 else ""
    raise ManifestError(
        f"{path.parent} holds a run on another content of {name}{more} (sha256 "
        f"{str(before[name].get('sha256'))[:12]} there, {now[name]['sha256'][:12]} now). Restore "
        "the file to go on, or choose another --out."
    )


def git_revision(folder: Path) -> str:
    """Return a checkout's commit, with `+` appended if files were changed; empty outside one."""
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        commit, changes = (
            subprocess.run(
                ["git", "-C", str(folder), *arguments],  # noqa: S607
                capture_output=True, text=True, check=True, env=environment, timeout=30,
            ).stdout.strip()
            for arguments in (("rev-parse", "HEAD"), ("status", "--porcelain", "-uno"))
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return f"{commit}+" if changes else commit


def versions() -> dict[str, str]:
    """Return the versions of the interpreter and of the libraries that cells compute with."""
    found = {"python": platform.python_version()}
    for name in ("dm-jupyter", "pandas", "numpy", "scipy", "scikit-learn"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def known_hashes(folder: Path) -> DataHashes:
    """Return the hashes in a folder's `run.json`; none if it can't be read."""
    try:
        found = json.loads((folder / "run.json").read_text("utf-8"))["data"]
        return {name: dict(one) for name, one in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def hash_data(items: Iterable[Sample], split: Path, known: DataHashes) -> DataHashes:
    """Return the hash of each data file of these samples.

    A file is not read again if its device, inode, size, and modification and change times are those
    of its last hash. A file that can't be read is omitted; its questions end in a fault of their
    own.

    Args:
        items: the sampled ones of the split.
        split: the folder of the split.
        known: hashes of an earlier call.
    """
    root = split.resolve()
    found: dict[str, Mapping[str, Any]] = {}
    for item in items:
        for file in item.task.files:
            name = _name(file, root, item.task.id)
            if name not in found and (hashed := hash_file(file, known.get(name, {}))):
                found[name] = hashed
    return dict(sorted(found.items()))


def data_of(item: Sample, split: Path, hashes: DataHashes) -> dict[str, str]:
    """Return the sha256 of each data file of a sample by its name, in the order of the task.

    Args:
        item: one of the draw.
        split: the folder of the split.
        hashes: the result of `hash_data`.
    """
    root = split.resolve()
    names = [_name(file, root, item.task.id) for file in item.task.files]
    return {name: str(hashes[name]["sha256"]) for name in names if name in hashes}


def _name(file: Path, root: Path, item: str) -> str:
    path = file.resolve()
    return (
        path.relative_to(root).as_posix() if path.is_relative_to(root) else f"{item}: {path.name}"
    )
