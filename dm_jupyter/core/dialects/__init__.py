"""The dialects, by name."""

from __future__ import annotations

from dm_jupyter.core.dialect import Dialect
from dm_jupyter.core.dialects.datamind import DataMindDialect
from dm_jupyter.core.dialects.deepanalyze import DeepAnalyzeDialect
from dm_jupyter.core.dialects.markdown import MarkdownDialect
from dm_jupyter.core.dialects.react import JupiterDialect, ReactDialect
from dm_jupyter.core.dialects.tools import ToolsDialect
from dm_jupyter.core.errors import UsageError

__all__ = ["DIALECTS", "dialect_named"]

_ALL: tuple[Dialect, ...] = (
    MarkdownDialect(),
    ToolsDialect(),
    DataMindDialect(),
    DeepAnalyzeDialect(),
    ReactDialect(),
    # As others published them, for comparisons.
    JupiterDialect(),
    ReactDialect("react-published", drops_voids=True),
    DataMindDialect("datamind-published"),
)

DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in _ALL}


def dialect_named(name: str) -> Dialect:
    """Return the dialect of that name.

    Raises:
        UsageError: no dialect has that name; the message lists the dialects.
    """
    if name not in DIALECTS:
        raise UsageError(f"there is no dialect {name!r}; choose one of {', '.join(DIALECTS)}")
    return DIALECTS[name]
