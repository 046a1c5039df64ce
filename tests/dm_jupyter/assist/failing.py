"""Cells that really run, and what they raise as a kernel tells it."""

from __future__ import annotations

import contextlib
import io
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

from kernel_sandbox.types import CellError, CellResult, CellStatus, Stream


class Interpreter:
    """Runs cells in one namespace, in this process."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.count = 0
        self.ran: list[str] = []

    def run(self, source: str) -> CellResult:
        self.count += 1
        self.ran.append(source)
        place = f"Cell In[{self.count}]"
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile(source, place, "exec"), self.names)
        except Exception as error:  # noqa: BLE001 - whatever the cell raises
            frames = traceback.extract_tb(error.__traceback__)
            lines = [f"{one.filename}, line {one.lineno}\n" for one in frames]
            marks = [f"----> {one.lineno} {one.line or ''}" for one in frames]
            trace = [a + b for a, b in zip(lines, marks, strict=True)]
            told = CellError(type(error).__name__, str(error), tuple(trace))
            return CellResult(CellStatus.ERROR, (told,), execution_count=self.count)
        shown = (Stream("stdout", printed.getvalue()),) if printed.getvalue() else ()
        return CellResult(CellStatus.OK, shown, execution_count=self.count)


def error_of(source: str, earlier: Sequence[str] = ()) -> CellError | None:
    """What a cell raises after others; `None` where it runs."""
    interpreter = Interpreter()
    for one in earlier:
        interpreter.run(one)
    return interpreter.run(source).error
