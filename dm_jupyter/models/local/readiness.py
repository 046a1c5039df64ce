"""What keeps a local model from answering: asked by everybody who offers or starts one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dm_jupyter.models.local.cache import require
from dm_jupyter.models.local.catalogue import LocalModel, resolve
from dm_jupyter.models.local.engine import require_engine
from dm_jupyter.models.local.errors import NotReadyError

__all__ = ["obstacles"]


def obstacles(model: LocalModel | str, cache_dir: Path | None = None) -> Iterator[NotReadyError]:
    """Yield what is missing, in the order in which a person can act on it.

    Each has a `text` that says what is missing, and the one `command` that helps.

    Args:
        model: A model, its catalogue name, or the path of a GGUF file.
        cache_dir: Folder of model files; None means the user's cache.
    """
    try:
        model = resolve(model) if isinstance(model, str) else model
    except NotReadyError as error:
        yield error
        return
    # The engine first: it is small, and the file is of no use without it.
    try:
        require_engine()
    except NotReadyError as error:
        yield error
    try:
        require(model, cache_dir)
    except NotReadyError as error:
        yield error
