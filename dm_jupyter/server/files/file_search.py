"""A search for data files below the server's folder, by parts of their names, for `@` in questions.

Covered: links, which are never followed and are listed only in the starting folder; hidden names,
unless the server shows them; trees of any size, which are searched in part. Not covered: a file
behind so many others that the search ends before it. Naming its folder finds it.
"""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from dm_jupyter.data import profile

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["SEARCHED_SUFFIXES", "FileSearch", "FoundFiles", "is_data_file", "whole_name"]

_PACKED = (".gz", ".bz2", ".xz", ".zst")
SEARCHED_SUFFIXES = (
    profile.DATA_SUFFIXES
    | {f"{suffix}{packed}" for suffix in profile.DATA_SUFFIXES for packed in _PACKED}
    | {".zip", ".tar.gz"}
)
"""Suffixes of data files, in lower case.

Text, web pages and XML can be read, too, but most of them contain no data: a question must name
them.
"""
_ENDINGS = tuple(sorted(SEARCHED_SUFFIXES))
_MOST_ENTRIES = 20_000
_MOST_S = 0.5
_MOST_FOUND = 12
_NO_DATA = frozenset({"node_modules", "__pycache__", "site-packages"})
"""Folders of programs; a virtual environment is recognized by its `pyvenv.cfg`."""


def is_data_file(name: str) -> bool:
    """Whether the analyst reads files of this kind."""
    return PurePosixPath(name).name[1:].lower().endswith(_ENDINGS)


def whole_name(name: str) -> re.Pattern[str]:
    """Return a pattern for a file's name in a text, outside of any longer name or path."""
    return re.compile(rf"(?<![\w./\\@-]){re.escape(name)}(?![\w-]|\.\w)")


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """The result of a search."""

    paths: tuple[str, ...]
    """As the contents API names them, the best first."""
    is_whole: bool
    """Whether the entire tree was searched."""


class FileSearch:
    """A search of the tree below one folder; it blocks, so call it in a thread."""

    def __init__(
        self,
        root: Path,
        *,
        allows_hidden: bool = False,
        most_entries: int = _MOST_ENTRIES,
        most_s: float = _MOST_S,
    ) -> None:
        """Store the settings; nothing is searched yet.

        Args:
            root: the folder that the server shows.
            allows_hidden: whether names that begin with a dot are found, too.
            most_entries: most names that one search looks at.
            most_s: time limit of one search, seconds.
        """
        self._root = root
        self._allows_hidden = allows_hidden
        self._most_entries = most_entries
        self._most_s = most_s

    def matching(self, match: str, near: str = "", most: int = _MOST_FOUND) -> FoundFiles:
        """Return data files whose path has the letters of `match` in their order.

        Names that begin with `match` come first, then those that contain it, then paths that do.
        Among equals, nearer files come first.

        Args:
            match: the typed text; empty for all.
            near: the folder where the search begins, below the root.
            most: most files to return.
        """
        wanted = match.lower()
        paths, is_whole = self._listed(near)
        rated = ((_rating(path, wanted), away, path) for path, away in paths)
        best = sorted((rating, away, path) for rating, away, path in rated if rating is not None)
        return FoundFiles(tuple(path for _, _, path in best[:most]), is_whole)

    def named(self, name: str, near: str = "", most: int = _MOST_FOUND) -> tuple[str, ...]:
        """Return the data files with this whole name, or end of a path; the nearest first.

        Args:
            name: `sales.csv`, or `data/sales.csv`.
            near: as in `matching`.
            most: most files to return.
        """
        ending = f"/{name.lstrip('/')}"
        paths, _ = self._listed(near)
        found = sorted((away, path) for path, away in paths if f"/{path}".endswith(ending))
        return tuple(path for _, path in found[:most])

    def _listed(self, near: str) -> tuple[list[tuple[str, int]], bool]:
        """Return the data files with their distances from `near`, and whether these are all."""
        files: list[tuple[str, int]] = []
        left = self._most_entries
        deadline = time.monotonic() + self._most_s
        start = near.strip("/")
        for folder in self._folders(start):
            for entry in folder:
                left -= 1
                if left < 0 or time.monotonic() > deadline:
                    return files, False
                path = os.path.relpath(entry.path, self._root)
                away = _distance(start, path)
                # A link in the starting folder is listed, and read only if the person agrees.
                if is_data_file(entry.name) and _is_listed(entry, away):
                    files.append((path, away))
        return files, True

    def _folders(self, near: str) -> Iterator[list[os.DirEntry[str]]]:
        """Yield the entries of folders: those below `near` first, level by level."""
        seen: set[str] = set()
        for start in dict.fromkeys((near, "")):
            if start and not self._is_shown(start):
                continue
            waiting = deque([str(self._root / start)])
            while waiting:
                place = waiting.popleft()
                if place in seen:
                    continue
                seen.add(place)
                entries = self._entries(place)
                yield entries
                waiting += [entry.path for entry in entries if _is_folder(entry)]

    def _entries(self, place: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(place) as found:
                # One folder with a million names must not delay the search.
                entries = list(islice(found, self._most_entries))
        except OSError:
            return []
        if any(entry.name == "pyvenv.cfg" for entry in entries):
            return []
        shown = (entry for entry in entries if self._allows_hidden or entry.name[0] != ".")
        return sorted(shown, key=lambda entry: entry.name)

    def _is_shown(self, near: str) -> bool:
        """Whether a folder may be searched: below the root, without links and hidden names."""
        parts = PurePosixPath(near).parts
        if ".." in parts or (
            not self._allows_hidden and any(part.startswith(".") for part in parts)
        ):
            return False
        place = self._root
        for part in parts:
            place = place / part
            if place.is_symlink():
                return False
        return True


def _is_listed(entry: os.DirEntry[str], away: int) -> bool:
    try:
        return entry.is_file(follow_symlinks=False) or (not away and entry.is_symlink())
    except OSError:
        return False


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.name not in _NO_DATA and entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _rating(path: str, wanted: str) -> int | None:
    """Return how well a path matches, 0 the best; `None` if it does not."""
    whole = path.lower()
    name = whole.rsplit("/", 1)[-1]
    if name.startswith(wanted):
        return 0
    if wanted in name:
        return 1
    if wanted in whole:
        return 2
    if _has_in_order(name, wanted):
        return 3
    return 4 if _has_in_order(whole, wanted) else None


def _has_in_order(text: str, letters: str) -> bool:
    rest = iter(text)
    return all(letter in rest for letter in letters)


def _distance(start: str, path: str) -> int:
    """Return the number of folders up and down from a folder to a file."""
    one = start.split("/") if start else []
    other = path.split("/")[:-1]
    shared = 0
    for mine, yours in zip(one, other, strict=False):
        if mine != yours:
            break
        shared += 1
    return len(one) + len(other) - 2 * shared
