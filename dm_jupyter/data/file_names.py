"""How code calls the data files."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["names_for"]


def names_for(files: tuple[Path, ...], folder: Path | None) -> dict[str, Path]:
    """Returns how the code names each file, so that the notebook runs again from `folder`.

    Below `folder` a file goes by its relative path, elsewhere by its absolute one; without a
    folder by its bare name.
    """
    if folder is None:
        return {file.name: file.resolve() for file in files}
    names = {}
    for file in files:
        absolute = Path(os.path.abspath(file))  # noqa: PTH100  (keeps a link's own place)
        inside = absolute.is_relative_to(folder.resolve())
        name = absolute.relative_to(folder.resolve()).as_posix() if inside else str(absolute)
        names[name] = absolute.resolve()
    return names
