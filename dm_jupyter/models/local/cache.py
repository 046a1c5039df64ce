"""The paths of model files on this machine, and the lock that separates two pulls."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from dm_jupyter.models.local.catalogue import LocalModel, ModelFile
from dm_jupyter.models.local.errors import ModelMissingError
from kernel_sandbox.packages.commands import own_command

__all__ = [
    "bfloat16_folder",
    "file_lock",
    "is_present",
    "missing_files",
    "model_path",
    "models_dir",
    "require",
]

_LOCK_POLL_S = 0.2


def models_dir(cache_dir: Path | None = None) -> Path:
    """Return the folder of model files: `cache_dir` itself, or the one in the user's cache."""
    if cache_dir is not None:
        return cache_dir
    return platformdirs.user_cache_path("dm-jupyter") / "models"


def model_path(file: ModelFile, cache_dir: Path | None = None) -> Path:
    """Return the path of a file, pulled or not; for a model, the path of its weights."""
    return file.path or models_dir(cache_dir) / file.file_name


def bfloat16_folder(weights: Path) -> Path:
    """Return the folder beside a file of weights into which a training writes them in bfloat16."""
    return weights.with_name(f"{weights.stem}-bfloat16")


def missing_files(model: LocalModel, cache_dir: Path | None = None) -> tuple[ModelFile, ...]:
    """Return the files of the model that are absent or incomplete.

    The hash is checked once, before the file gets its name; here the size is enough.
    """
    return tuple(file for file in model.files if not _is_whole(file, cache_dir))


def is_present(model: LocalModel, cache_dir: Path | None = None) -> bool:
    """Return whether all files of the model are present."""
    return not missing_files(model, cache_dir)


def _is_whole(file: ModelFile, cache_dir: Path | None) -> bool:
    path = model_path(file, cache_dir)
    return path.is_file() and path.stat().st_size == file.size_bytes


def require(model: LocalModel, cache_dir: Path | None = None) -> Path:
    """Return the path of the model's weights, after checking that all its files are present.

    Raises:
        ModelMissingError: A file is absent; the message names the command that fetches it.
    """
    missing = missing_files(model, cache_dir)
    if not missing:
        return model_path(model, cache_dir)
    folder = () if cache_dir is None else ("--cache-dir", str(cache_dir))
    what, path = f"The local model {model.name}", model_path(missing[0], cache_dir)
    if missing[0] is model.adapter:
        what = f"The adapter of {model.name}"
    size = missing[0].size_bytes
    shown = f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"
    raise ModelMissingError(
        f"{what} ({shown}) is not on this machine; looked for {path}.",
        own_command("model", "pull", model.pulled_as or model.name, *folder),
    )


@contextmanager
def file_lock(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold an exclusive lock on `path`, across processes; the kernel frees it if we are killed.

    `on_wait` is called repeatedly while another process holds the lock; an exception of it ends the
    wait.
    """
    with path.open("w") as handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                on_wait()
                time.sleep(_LOCK_POLL_S)
        # The lock file is never removed, or two holders could lock two files.
        yield
