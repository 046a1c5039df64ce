"""One pandas call, kept as a value: what the profile runs is what the notebook is told to run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

__all__ = ["ReadCall", "quoted"]

_JOIN_LEVELS = """\
df.columns = [
    " | ".join(str(part) for part in parts if not str(part).startswith("Unnamed:")) or f"column_{i}"
    for i, parts in enumerate(df.columns, start=1)
]"""


@dataclass(frozen=True)
class ReadCall:
    """A `pandas.read_*` call without its path."""

    function: str
    """Such as `read_csv`."""
    arguments: tuple[tuple[str, Any], ...] = ()
    """Only those that differ from pandas' defaults."""
    joins_header_levels: bool = False
    """Whether a header of several rows is joined to one name a column afterwards."""

    def source(self, name: str) -> str:
        """Returns the code that makes `df` from the file called `name`."""
        words = [quoted(name)]
        words += [f"{key}={_literal(value)}" for key, value in self.arguments]
        line = f"df = pd.{self.function}({', '.join(words)})"
        return f"{line}\n{_JOIN_LEVELS}" if self.joins_header_levels else line

    def run(self, path: Path | pd.ExcelFile, **extra: Any) -> pd.DataFrame:
        """Returns the frame; `extra` arguments (such as `nrows`) stay out of the code.

        Raises:
            Exception: whatever pandas raises; callers wrap it in `reading`.
        """
        frame: pd.DataFrame = getattr(pd, self.function)(path, **{**dict(self.arguments), **extra})
        return self.finish(frame)

    def chunks(self, path: Path, **extra: Any) -> Iterator[pd.DataFrame]:
        """Yields the frame in pieces; `extra` has to hold `chunksize`.

        Yields:
            Frames of that many rows.
        """
        with getattr(pd, self.function)(path, **{**dict(self.arguments), **extra}) as reader:
            yield from reader

    def finish(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Returns the frame with the header's levels joined, where the call says so."""
        if self.joins_header_levels:
            frame.columns = [
                " | ".join(str(part) for part in parts if not str(part).startswith("Unnamed:"))
                or f"column_{i}"
                for i, parts in enumerate(frame.columns, start=1)
            ]
        return frame

    def with_arguments(self, **changes: Any) -> ReadCall:
        """Returns the same call with some arguments set, or dropped where the value is None."""
        merged = {**dict(self.arguments), **changes}
        kept = tuple((key, value) for key, value in merged.items() if value is not None)
        return ReadCall(self.function, kept, self.joins_header_levels)


def quoted(text: str) -> str:
    """Returns a Python literal for the text, in double quotes where that is possible."""
    try:
        text.encode()
    except UnicodeEncodeError:
        # A file name that is no valid UTF-8 holds lone surrogates; only repr escapes them right.
        return repr(text)
    return json.dumps(text, ensure_ascii=False)


def _literal(value: object) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return "[" + ", ".join(_literal(item) for item in value) + "]"
    return repr(value)
