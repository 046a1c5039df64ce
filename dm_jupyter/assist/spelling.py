"""The nearest names to one that is not there."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

__all__ = ["folded", "nearest"]


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """Returns the names that look like the given one or contain it, the most similar first.

    Args:
        name: as it was written; blanks, signs and capitals do not count.
        names: those that there are.
    """
    known_by = {folded(known): known for known in names}
    asked = folded(name)
    matches = difflib.get_close_matches(asked, known_by, n=3, cutoff=0.6)
    containing = [known for fold, known in known_by.items() if asked and asked in fold]
    return list(dict.fromkeys([*(known_by[match] for match in matches), *containing]))


def folded(name: str) -> str:
    """Returns a name without blanks, signs and capitals."""
    return re.sub(r"[\W_]+", "", name).lower()
