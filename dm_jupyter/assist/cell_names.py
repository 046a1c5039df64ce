"""The names in expressions and statements, to follow values from cell to cell."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable
from pathlib import PurePath

__all__ = [
    "HARMLESS",
    "LOOKS",
    "given_to",
    "is_inplace",
    "last_part",
    "loaded_names",
    "named_files",
    "root_name",
    "source_names",
    "stored_names",
]

_NOT_AGAIN = frozenset({"open", "input", "exec", "eval", "next", "setattr", "delattr", "iter"})
HARMLESS = frozenset(dir(builtins)) - _NOT_AGAIN | {"display"}
"""Functions that do not change their arguments."""
LOOKS = re.compile(
    "head|tail|sample|info|describe|memory_usage|value_counts|unique|nunique|is\\w+|not(?:na|null)"
    "|sum|prod|mean|median|mode|std|var|sem|skew|kurt\\w*|min|max|count|size|quantile|corr\\w*|cov"
    "|any|all|idx(?:min|max)|arg\\w+|first|last|nth|n(?:largest|smallest)|groupby|rolling|expanding"
    "|resample|ewm|agg|aggregate|apply|map|applymap|transform|pipe|pivot\\w*|melt|stack|unstack"
    "|explode|transpose|merge\\w*|join|sort_\\w+|reset_index|set_index|reindex|rename\\w*|drop\\w*"
    "|fillna|ffill|bfill|interpolate|replace|astype|convert_dtypes|infer_objects|to_(?:string|frame"
    "|list|dict|numpy|period|timestamp|records|flat_index)|tolist|copy|items|keys|values|iter\\w+"
    "|round|abs|clip|rank|diff|shift|cum\\w+|pct_change|query|filter|where|mask|between|duplicated"
    "|select_dtypes|get\\w*|xs|eval|assign|div|mul|sub|add_(?:prefix|suffix)|eq|ne|lt|le|gt|ge|cut"
    "|show|format|strip|lower|upper|split"
    "|rsplit|startswith|endswith|contains|extract\\w*|match|find\\w*|str\\w*|encode|decode"
    "|total_seconds|isoformat|day_name|month_name|normalize|floor|ceil|score|predict\\w*|summary"
    "|most_common|exists|glob|rglob|stat|read\\w*|fetch\\w*|dot|equals|compare"
)
"""Methods that return something and leave their object unchanged."""
_SHARES = re.compile("get\\w*|pop|values|items|view|pipe|sub\\w*|add_\\w+|twin[xy]|first|last")
"""Methods whose value may be part of their object, or refer back to it."""


def given_to(call: ast.Call) -> list[ast.expr]:
    """Return the arguments of a call, including keyword arguments."""
    return [*call.args, *(word.value for word in call.keywords)]


def root_name(node: ast.expr) -> str | None:
    """Return the name that a chain of attributes, items and calls begins with."""
    while True:
        match node:
            case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.Starred(value=inner):
                node = inner
            case ast.Call(func=ast.Attribute(value=inner)):
                node = inner
            case ast.Name(id=name):
                return name
            case _:
                return None


def source_names(node: ast.expr) -> set[str]:
    """Return the names whose objects an expression may return, or refer to."""
    match node:
        case ast.Name(id=name):
            return {name}
        case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.Starred(value=inner):
            return source_names(inner)
        case ast.Call(func=ast.Attribute(value=inner, attr=name)):
            is_new = LOOKS.fullmatch(name) and not _SHARES.fullmatch(name)
            return set() if is_new else source_names(inner)
        case ast.Call(func=ast.Name(id=name)):
            is_new = name in HARMLESS and name not in ("list", "dict")
            parts = [] if is_new else given_to(node)
        case ast.BinOp() | ast.Compare() | ast.UnaryOp() | ast.JoinedStr() | ast.Constant():
            parts = []
        case _:
            parts = [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]
    return set[str]().union(*map(source_names, parts))


def stored_names(node: ast.AST) -> set[str]:
    """Return the names that code binds, except those of its comprehensions."""
    names: set[str] = set()
    match node:
        case ast.Import(names=found) | ast.ImportFrom(names=found):
            return {one.asname or one.name.split(".")[0] for one in found}
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return {name}
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            names.add(name)
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            names.add(name)
        case ast.comprehension():
            return names
    return names.union(*map(stored_names, ast.iter_child_nodes(node)))


def loaded_names(node: ast.AST) -> set[str]:
    """Return the names that code reads, except what its comprehensions and lambdas bind."""
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            return {name}
        case ast.Lambda(args=given, body=body):
            own = {one.arg for one in ast.walk(given) if isinstance(one, ast.arg)}
            return loaded_names(given) | (loaded_names(body) - own)
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            own = set[str]().union(*(stored_names(one.target) for one in node.generators))
            first = node.generators[0]
            within = [one for one in ast.iter_child_nodes(node) if one is not first]
            outside = loaded_names(first.iter)  # evaluated before the comprehension binds a name
            return outside | (_names_read_in([*within, *first.ifs]) - own)
    return _names_read_in(ast.iter_child_nodes(node))


def _names_read_in(nodes: Iterable[ast.AST]) -> set[str]:
    return set[str]().union(*map(loaded_names, nodes))


def is_inplace(call: ast.Call) -> bool:
    """Whether a call passes `inplace`."""
    return any(word.arg == "inplace" for word in call.keywords)


def last_part(text: str) -> str:
    """Return the last part of a text, read as a path."""
    return PurePath(text[:400]).name


def named_files(nodes: Iterable[ast.expr]) -> set[str]:
    """Return the last parts of texts that look like file names, with `*` if a name is computed.

    Args:
        nodes: the arguments of a call that writes files.
    """
    inside = [one for node in nodes for one in ast.walk(node)]
    texts = {
        last_part(one.value)
        for one in inside
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and "." in one.value
    }
    is_made = any(
        isinstance(one, ast.JoinedStr)
        or (isinstance(one, ast.BinOp) and not isinstance(one.op, ast.Div))
        for one in inside
    )
    return texts | ({"*"} if is_made or not texts else set())
