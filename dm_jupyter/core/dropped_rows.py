"""Rows that a cell throws away for a column that nobody asked about.

`dropna(subset=["Age", "Cabin"])` before a mean of the fares leaves the quarter of the passengers
whose cabin is known: no error, a plausible number, and wrong.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from dm_jupyter.core.parsed import parsed

__all__ = ["needless_columns"]

_DROP_ALL = re.compile(
    r"(?:drop|remov|delet|exclud|discard|eliminat)\w*[^.\n]{0,80}(?:missing|null|nan|incomplete)",
    re.IGNORECASE,
)


def needless_columns(source: str, incomplete: Iterable[str], asked: str) -> tuple[str, ...]:
    """Returns the columns whose gaps cost rows, though neither the cell nor the task uses them.

    Args:
        source: the cell.
        incomplete: the columns in which values are missing.
        asked: question and constraints.
    """
    tree = parsed(source)
    if tree is None:
        return ()
    gaps = tuple(incomplete)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_dropna(node)]
    inside = {id(node) for call in calls for word in call.keywords for node in ast.walk(word)}
    dropped = dict.fromkeys(column for call in calls for column in _columns(call, gaps))
    if not dropped or (_DROP_ALL.search(asked) and set(gaps) <= set(dropped)):
        return ()
    used = set(_texts_of(node for node in ast.walk(tree) if id(node) not in inside))
    return tuple(
        column
        for column in dropped
        if column in gaps
        and not any(column in text for text in used)
        and not _is_mentioned(column, asked)
    )


def _is_dropna(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "dropna"


def _columns(call: ast.Call, incomplete: tuple[str, ...]) -> tuple[str, ...]:
    """The columns by whose gaps a call drops rows, as far as it spells them out."""
    options = {word.arg: word.value for word in call.keywords}
    if call.args or options.keys() - {"subset", "inplace", "ignore_index"}:
        return ()
    if "subset" in options:
        return _texts(options["subset"])
    match call.func:
        case ast.Attribute(value=ast.Name()):  # a whole table
            return incomplete
    return ()


def _texts(node: ast.expr) -> tuple[str, ...]:
    parts = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
    return tuple(
        part.value
        for part in parts
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    )


def _texts_of(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Attribute):
            yield node.attr


def _is_mentioned(column: str, asked: str) -> bool:
    words = re.sub(r"[\W_]+", " ", column).strip()
    return re.search(rf"\b{re.escape(words)}", re.sub(r"[\W_]+", " ", asked), re.I) is not None
