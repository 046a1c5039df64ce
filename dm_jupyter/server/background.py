"""What the model is told besides the files: earlier answers, tables that the kernel holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dm_jupyter.agent.notebook_context import ContextPart
from dm_jupyter.server.summaries import Summary

__all__ = ["told_before"]

_RUNS = 3
_ANSWER_CHARS = 400


def told_before(
    earlier: Iterable[Summary], tables: Iterable[Mapping[str, Any]]
) -> tuple[ContextPart, ...]:
    """Returns what to put after the profiles of the files.

    Args:
        earlier: the notebook's runs, newest first.
        tables: DataFrames in the kernel that the question names.
    """
    answered = [run for run in earlier if run.answer][:_RUNS]
    parts = []
    if answered:
        lines = [f"Q: {run.question}\nA: {str(run.answer)[:_ANSWER_CHARS]}" for run in answered]
        text = "Asked before in this notebook:\n" + "\n".join(reversed(lines))
        parts.append(ContextPart("earlier", text))
    return (*parts, *(ContextPart("data", _table(table)) for table in tables))


def _table(table: Mapping[str, Any]) -> str:
    shape = " x ".join(str(size) for size in table["shape"])
    lines = [f"The kernel holds the {table['kind']} `{table['name']}` ({shape}); do not load it:"]
    for column in table["columns"]:
        samples = ", ".join(column["samples"])
        lines.append(f"- {column['name']} ({column['dtype']}): {samples}")
    return "\n".join(lines)
