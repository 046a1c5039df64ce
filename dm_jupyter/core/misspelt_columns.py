"""Columns that a cell spells with other blanks, signs or capitals than the file does.

`df["league_goals"]` for `league goals`: a small model writes the name that such a column usually
has, is told the right one and writes the wrong one again.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from dm_jupyter.core.parsed import parsed
from dm_jupyter.core.spelling import folded
from dm_jupyter.core.value_labels import is_labelled_by_values, names_labelled_by_values

__all__ = ["with_columns"]

_METHODS = re.compile(
    "drop|drop_duplicates|dropna|groupby|melt|merge|nlargest|nsmallest|pivot|pivot_table"
    "|set_index|sort_values"
)
"""Those whose texts are names of columns, but for keywords such as `how`."""
_KEYWORDS = re.compile("by|on|left_on|right_on|subset|columns|index|values|id_vars|value_vars")
_RENAME = re.compile("add_prefix|add_suffix|rename|set_axis")
_NAMING = re.compile("insert|rename_axis|reset_index|to_frame")
"""Methods whose texts are names that they give."""
_NAMING_KEYWORDS = re.compile("indicator|margins_name|name|names|value_name|var_name")
_LABELLING_KEYWORDS = re.compile("columns|index")
"""Of calls that make a table or a series, such as `pd.DataFrame`."""


def with_columns(source: str, columns: Sequence[str], earlier: Iterable[str]) -> str:
    """Returns the cell with the names of columns as the files spell them.

    A name is only replaced where it is one column's but for blanks, signs and capitals, and where
    no cell makes a key of that name or gives columns other names.

    Args:
        source: the cell; one that does not parse is returned as it is.
        columns: of the data files.
        earlier: the cells that ran before it in the same kernel.
    """
    tree = parsed(source)
    if tree is None:
        return source
    trees = [*filter(None, map(parsed, earlier)), tree]
    if any(_renames(node) for one in trees for node in ast.walk(one)):
        return source
    made = {text.value for one in trees for node in ast.walk(one) for text in _made(node)}
    right = {}
    for text in _keys(tree, names_labelled_by_values(trees)):
        name = str(text.value)
        meant = {column for column in columns if folded(column) == folded(name) != ""}
        if name not in made and name not in columns and len(meant) == 1:
            right[text.lineno, text.col_offset] = (text, meant.pop())
    return _replaced(source, [right[place] for place in sorted(right, reverse=True)])


def _replaced(source: str, found: Iterable[tuple[ast.Constant, str]]) -> str:
    """The source with other texts, given from its end to its beginning."""
    lines = source.encode().splitlines(keepends=True)
    for text, name in found:
        if text.end_lineno != text.lineno:
            continue
        line, row = lines[text.lineno - 1], text.lineno - 1
        lines[row] = line[: text.col_offset] + repr(name).encode() + line[text.end_col_offset :]
    return b"".join(lines).decode()


def _renames(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name)):
            return _RENAME.fullmatch(name) is not None
        case ast.Attribute(attr="columns", ctx=ast.Store()):
            return True
    return False


def _made(node: ast.AST) -> Iterator[ast.Constant]:
    """The texts by which a node gives something a name."""
    match node:
        case ast.Subscript(slice=key, ctx=ast.Store()):
            yield from _texts(key)
        case ast.Call():
            yield from _made_by_call(node)
        case ast.Dict(keys=names):
            for name in filter(None, names):
                yield from _texts(name)


def _made_by_call(call: ast.Call) -> Iterator[ast.Constant]:
    called = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if _NAMING.fullmatch(called):
        for value in call.args:
            yield from _texts(value)
    for word in call.keywords:
        name = word.arg or ""
        yield ast.Constant(name)
        is_label = _LABELLING_KEYWORDS.fullmatch(name) and not _METHODS.fullmatch(called)
        if is_label or _NAMING_KEYWORDS.fullmatch(name):
            yield from _texts(word.value)


def _keys(tree: ast.Module, by_value: frozenset[str]) -> Iterator[ast.Constant]:
    """The texts by which the code asks for columns; in an f-string their places are not known.

    Args:
        tree: of the cell.
        by_value: the variables whose labels are values of a column.
    """
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.JoinedStr):
            continue
        waiting += ast.iter_child_nodes(node)
        match node:
            case ast.Subscript(value=asked, slice=key, ctx=ast.Load()):
                if not is_labelled_by_values(asked, by_value):
                    yield from _texts(key)
            case ast.Call(func=ast.Attribute(attr=name), args=given, keywords=words):
                if _METHODS.fullmatch(name):
                    named = [word.value for word in words if _KEYWORDS.fullmatch(word.arg or "")]
                    for value in [*given, *named]:
                        yield from _texts(value)


def _texts(node: ast.expr) -> Iterator[ast.Constant]:
    """A text, or the texts of a list or tuple and of those in it."""
    match node:
        case ast.Constant(value=str()):
            yield node
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            for part in parts:
                yield from _texts(part)
