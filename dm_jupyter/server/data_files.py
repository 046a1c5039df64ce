"""Which data files a question is about, and where they lie."""

from __future__ import annotations

from pathlib import Path

__all__ = ["DataFiles"]

_TEXT = (".csv", ".tsv", ".json", ".jsonl")
_TABLES = (".parquet", ".xlsx", ".xls", ".ods", ".sqlite", ".sqlite3", ".db")
_SUFFIXES = frozenset(_TEXT + _TABLES)


class DataFiles:
    """The files below the folder that the server shows; names are those of the contents API."""

    def __init__(self, root: Path) -> None:
        """Looks at nothing yet.

        Args:
            root: the folder that the server shows.
        """
        self._root = root

    def folder_of(self, notebook_path: str) -> Path:
        """Returns the folder in which a notebook lies."""
        return (self._root / notebook_path.lstrip("/")).parent

    def place(self, name: str) -> Path:
        """Returns where a file lies.

        Raises:
            FileNotFoundError: it is not below the server's folder, or not there.
        """
        place = (self._root / name.lstrip("/")).resolve()
        if not place.is_relative_to(self._root.resolve()) or not place.is_file():
            raise FileNotFoundError(f"{name}: there is no such file here")
        return place

    def named_in(self, question: str, notebook_path: str) -> tuple[str, ...]:
        """Returns the data files beside the notebook whose names stand in the question."""
        folder = self.folder_of(notebook_path)
        beside = sorted(folder.iterdir()) if folder.is_dir() else []
        return tuple(
            path.relative_to(self._root).as_posix()
            for path in beside
            if path.suffix.lower() in _SUFFIXES and path.name in question
        )

    def still_there(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Returns those of the files that are still where they were."""
        return tuple(name for name in names if (self._root / name.lstrip("/")).is_file())
