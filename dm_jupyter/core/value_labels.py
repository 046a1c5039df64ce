"""Results whose labels are values of a column, not columns: what `value_counts()["male"]` asks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

__all__ = ["is_labelled_by_values", "names_labelled_by_values"]

_BY_VALUE = re.compile("value_counts|size|crosstab|unstack")
_BY_VALUE_OF_COLUMNS = re.compile("pivot|pivot_table")
"""Their results have values as labels where `columns` is given."""
_BY_COLUMN = re.compile("reset_index|to_frame")
"""Their results are tables with columns, whatever they are called on."""


def names_labelled_by_values(trees: Iterable[ast.Module]) -> frozenset[str]:
    """Returns the variables that hold such a result in one of the cells, given in their order."""
    names: frozenset[str] = frozenset()
    for tree in trees:
        for node in ast.walk(tree):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    if is_labelled_by_values(value, names):
                        names |= {name}
    return names


def is_labelled_by_values(node: ast.expr, names: frozenset[str]) -> bool:
    """Whether the labels of what an expression gives are values of a column.

    Args:
        node: what is asked for a label.
        names: the variables that are known to hold such a result.
    """
    match node:
        case ast.Name(id=name):
            return name in names
        case ast.Call(func=ast.Attribute(value=value, attr=name), keywords=words):
            makes = _BY_VALUE.fullmatch(name) or _is_one_column_of_groups(value)
            if not makes and _BY_VALUE_OF_COLUMNS.fullmatch(name):
                return any(word.arg == "columns" for word in words)
            keeps = not _BY_COLUMN.fullmatch(name)
            return keeps and (bool(makes) or is_labelled_by_values(value, names))
        case ast.Attribute(value=value) | ast.Subscript(value=value):
            return is_labelled_by_values(value, names)
    return False


def _is_one_column_of_groups(node: ast.expr) -> bool:
    """Whether it is `df.groupby(key)["column"]`, of which a mean has the keys' values as labels."""
    match node:
        case ast.Subscript(
            value=ast.Call(func=ast.Attribute(attr="groupby")), slice=ast.Constant()
        ):
            return True
    return False
