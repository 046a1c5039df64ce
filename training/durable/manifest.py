"""What work was made with, kept beside its records, so that no other work continues it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

__all__ = ["ManifestError", "kept_manifest"]


class ManifestError(ValueError):
    """A folder holds the records of another run; the message says what differs."""


def kept_manifest(
    path: Path, mine: Mapping[str, Any], may_change: Collection[str]
) -> dict[str, Any] | None:
    """Returns the manifest that a file holds, which is of the same work; `None` without a file.

    A field that the file lacks is of an older release and counts as the same.

    Args:
        path: a JSON object.
        mine: what it must be.
        may_change: fields that may differ.

    Raises:
        ManifestError: a field differs, or the file can't be read.
    """
    if not path.exists():
        return None
    try:
        theirs = dict(json.loads(path.read_text("utf-8")))
    except (ValueError, TypeError, OSError) as error:
        raise ManifestError(f"{path} can't be read ({error}); choose another --out") from error
    for name, value in mine.items():
        if name not in may_change and theirs.get(name, value) != value:
            raise ManifestError(
                f"{path.parent} holds a run with another {name}: {theirs[name]!r} there, "
                f"{value!r} now. Choose another --out, or give the same options to go on."
            )
    return theirs
