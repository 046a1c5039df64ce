"""Where model files lie on this machine, and the lock that keeps two pulls apart."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from dm_jupyter.models.local.catalogue import LocalModel
from dm_jupyter.models.local.errors import ModelMissingError
from kernel_sandbox.packages.commands import own_command

__all__ = ["file_lock", "is_present", "model_path", "models_dir", "require"]

_LOCK_POLL_S = 0.2


def models_dir(cache_dir: Path | None = None) -> Path:
    """Return the folder of model files: `cache_dir` itself, or the one in the user's cache."""
    if cache_dir is not None:
        return cache_dir
    return platformdirs.user_cache_path("dm-jupyter") / "models"


def model_path(model: LocalModel, cache_dir: Path | None = None) -> Path:
    """Return where the model's file is, or would be once pulled."""
    return model.path or models_dir(cache_dir) / model.file_name


def is_present(model: LocalModel, cache_dir: Path | None = None) -> bool:
    """Say whether the whole file is there.

    The hash is checked once, before the file gets its name; here its size is enough.
    """
    path = model_path(model, cache_dir)
    return path.is_file() and path.stat().st_size == model.size_bytes


def require(model: LocalModel, cache_dir: Path | None = None) -> Path:
    """Return the path of the model's file.

    Raises:
        ModelMissingError: The file is absent; the message names the command that fetches it.
    """
    if is_present(model, cache_dir):
        return model_path(model, cache_dir)
    folder = () if cache_dir is None else ("--cache-dir", str(cache_dir))
    raise ModelMissingError(
        f"The local model {model.name} ({model.size_bytes / 1e9:.1f} GB) is not on this machine; "
        f"looked for {model_path(model, cache_dir)}.",
        own_command("model", "pull", model.name, *folder),
    )


@contextmanager
def file_lock(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold an exclusive lock on `path`, across processes; freed by the kernel if we are killed.

    `on_wait` is called again and again while another process holds the lock; what it raises ends
    the wait.
    """
    with path.open("w") as handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                on_wait()
                time.sleep(_LOCK_POLL_S)
        # The lock file is never removed: a removed one would let two holders lock two files.
        yield
