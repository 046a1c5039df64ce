"""Rows that a cell throws away for a column that its figure is not computed from.

`dropna(subset=["Age", "Cabin"])` before a mean of the fares leaves the quarter of the passengers
whose cabin is known; before a mean of the ages and a count of the cabins each loses the rows that
only the other lacks. No error, a plausible number, and wrong.

Only what is beyond doubt is a finding: every use of the table without gaps has to be that of named
columns. A table that is used as a whole (a regression, a file, a summary) may need whole rows, and
a question that speaks of gaps may want them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dm_jupyter.assist.cell_names import given_to, is_inplace
from dm_jupyter.core import prompts
from dm_jupyter.core.assistance import Finding
from dm_jupyter.core.tracebacks import parsed

__all__ = ["dropped_rows"]

_SPEAKS_OF_GAPS = re.compile(
    r"complete|missing|\bnull|non-?null|\bnan\b|\bn/?a\b|clean|blank|empty|gaps?\b|dropna|listwise"
    r"|pairwise|\bknown\b|unknown|availab|valid|imput|filled|present|recorded|specified|has a value"
    r"|have (?:a |both |all )?values?",
    re.IGNORECASE,
)
_KEEPS_ROWS = re.compile(
    "copy|sort_values|sort_index|reset_index|drop_duplicates|astype|convert_dtypes|query|head|tail"
    "|nlargest|nsmallest|sample|infer_objects"
)
_BY_COLUMN = re.compile(
    "mean|median|std|var|sum|min|max|quantile|skew|kurt|kurtosis|sem|count|nunique|agg|describe"
)
"""Methods that compute each of several columns by itself."""
_COUNTS = frozenset({"shape", "index", "empty", "size", "columns", "dtypes"})
_PASSES_ON = frozenset({"round", "float", "int", "str", "abs", "sorted", "list", "format"})
_COMPUTED = (ast.BinOp, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.IfExp)
_COLLECTED = (ast.List, ast.Tuple, ast.Set, ast.Dict)
_SAYS = frozenset({"print", "display", "len"})


def dropped_rows(source: str, incomplete: Iterable[str], asked: str) -> Finding | None:
    """Returns which columns' gaps cost rows of a figure that does not need them, or nothing.

    Args:
        source: the cell.
        incomplete: the columns in which values are missing.
        asked: question and constraints.
    """
    gaps, tree = frozenset(incomplete), parsed(source)
    if not gaps or tree is None or _SPEAKS_OF_GAPS.search(asked):
        return None
    uses = _Uses(gaps)
    try:
        uses.run(tree.body)
    except RecursionError:
        return None
    figures = [one for one in uses.figures if one.columns]
    if uses.is_unclear or not figures:
        return None
    dropped = dict.fromkeys(c for one in figures for c in incomplete if c in one.dropped)
    texts = set(_texts_beside_drops(tree))
    unused = [c for c in dropped if not any(c in text for text in texts)]
    if needless := [column for column in unused if not _is_mentioned(column, asked)]:
        return _finding("critique_dropna", needless)
    apart = _apart(figures, [column for column in dropped if column not in unused])
    return _finding("critique_apart", apart) if apart else None


def _finding(prompt: str, columns: Iterable[str]) -> Finding:
    told = ", ".join(map(repr, columns))
    return Finding(
        "dropped_rows", f"dropna on {told}", "likely", prompts.fill(prompt, columns=told)
    )


@dataclass(frozen=True, slots=True)
class _Figure:
    """Columns that are used together, of a table that has lost the rows with some gaps."""

    columns: frozenset[str]
    dropped: frozenset[str]


def _apart(figures: list[_Figure], dropped: list[str]) -> list[str]:
    """The columns whose gaps cost rows of a figure that has nothing to do with them."""
    together: list[frozenset[str]] = []
    for figure in figures:
        joined = [one for one in together if one & figure.columns]
        rest = [one for one in together if not one & figure.columns]
        together = [*rest, figure.columns.union(*joined)]
    computed = frozenset[str]().union(*together)
    found = {
        column
        for figure in figures
        for column in figure.dropped.intersection(dropped, computed)
        if not any(column in one and one & figure.columns for one in together)
    }
    return [column for column in dropped if column in found]


@dataclass(frozen=True, slots=True)
class _Value:
    """What an expression gives that comes of a table without some of its rows."""

    dropped: frozenset[str]
    columns: frozenset[str] = frozenset()
    """Those it was computed from, or its rows were chosen by."""
    is_table: bool = False
    """Whether any column can be asked of it."""
    is_list: bool = False
    """Whether it is several columns side by side."""


@dataclass(slots=True)
class _Uses:
    """Follows the tables without gaps through a cell."""

    gaps: frozenset[str]
    figures: list[_Figure] = field(default_factory=list)
    is_unclear: bool = False
    _held: dict[str, _Value] = field(default_factory=dict)
    _narrow: dict[str, frozenset[str]] = field(default_factory=dict)
    """Names of single columns, and of several, chosen before rows were dropped."""
    _derived: dict[str, frozenset[str]] = field(default_factory=dict)

    def run(self, body: Iterable[ast.stmt]) -> None:
        """Takes the statements in turn."""
        for statement in body:
            self._take(statement)

    def _take(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=[target], value=value):
                self._assign(target, value)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name))) as call) if (
                is_inplace(call)
            ):
                left = self._of(call)
                if left is not None and left.is_table:
                    self._held[name] = left
            case ast.FunctionDef() | ast.ClassDef() | ast.AsyncFunctionDef():
                self._doubt(statement)
            case _:
                for node in ast.iter_child_nodes(statement):
                    if isinstance(node, ast.expr):
                        self._of(node)
                    elif isinstance(node, ast.stmt):
                        self._take(node)
                    else:
                        self._doubt(node)

    def _assign(self, target: ast.expr, given: ast.expr) -> None:
        match target, given:
            case ast.Tuple(elts=targets), ast.Tuple(elts=parts) if len(targets) == len(parts):
                for one, part in zip(targets, parts, strict=True):
                    self._assign(one, part)
                return
            case ast.Subscript(value=table, slice=ast.Constant(value=str(name))), _:
                value, owner = self._of(given), self._of(table)
                if owner is not None and value is not None:
                    self._derived[name] = value.columns
                return
        value = self._of(given)
        for node in ast.walk(target):
            if isinstance(node, ast.Name):
                self._held.pop(node.id, None)
                self._narrow.pop(node.id, None)
                if value is not None:
                    self._held[node.id] = value
                elif (chosen := self._chosen(given)) is not None:
                    self._narrow[node.id] = chosen

    def _chosen(self, node: ast.expr) -> frozenset[str] | None:
        """The columns that are chosen from a table whose rows are all there."""
        match node:
            case ast.Subscript(slice=key) if texts := _texts(key):
                return frozenset(texts)
            case ast.Name(id=name):
                return self._narrow.get(name)
        return None

    def _doubt(self, node: ast.AST) -> None:
        """Takes note that a table may be used in a way that is not followed."""
        names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        self.is_unclear |= bool(names & self._held.keys())

    def _of(self, node: ast.expr) -> _Value | None:
        value = None
        match node:
            case ast.Name(id=name):
                value = self._held.get(name)
            case ast.Call():
                value = self._of_call(node)
            case ast.Subscript(value=ast.Attribute(value=table, attr="loc"), slice=key):
                value = self._located(self._of(table), key)
            case ast.Subscript(value=table, slice=key):
                value = self._item(self._of(table), key)
            case ast.Attribute(value=table, attr=name):
                value = self._attribute(self._of(table), name)
            case ast.Starred(value=inner):
                value = self._of(inner)
            case ast.Constant() | ast.Slice():
                pass
            case _:
                value = self._of_parts(node)
        return value

    def _of_parts(self, node: ast.expr) -> _Value | None:
        """What an expression gives whose parts are computed first."""
        parts = [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]
        if isinstance(node, _COMPUTED):
            return self._joined(map(self._of, parts))
        if isinstance(node, _COLLECTED):
            return self._joined(map(self._of, parts), is_figure=False)
        if isinstance(node, ast.JoinedStr | ast.FormattedValue):
            for part in parts:
                self._of(part)
        else:
            self._doubt(node)
        return None

    def _joined(self, values: Iterable[_Value | None], *, is_figure: bool = True) -> _Value | None:
        """What is computed from several values together; a whole table among them is in doubt."""
        found = [value for value in values if value is not None]
        if not found:
            return None
        self.is_unclear |= any(value.is_table for value in found)
        columns = frozenset[str]().union(*(value.columns for value in found))
        dropped = frozenset[str]().union(*(value.dropped for value in found))
        if is_figure:
            self.figures.append(_Figure(columns, dropped))
        return _Value(dropped, columns)

    def _column(self, table: _Value, names: Iterable[str], *, is_list: bool = False) -> _Value:
        used = frozenset(names)
        used = used.union(*(self._derived.get(name, frozenset()) for name in used), table.columns)
        if not is_list:
            self.figures.append(_Figure(used, table.dropped))
        return _Value(table.dropped, used, is_list=is_list)

    def _item(self, table: _Value | None, key: ast.expr) -> _Value | None:
        if table is None or not table.is_table:
            inner = self._of(key)
            return table if inner is None else self._joined((table, inner))
        if texts := _texts(key):
            return self._column(table, texts, is_list=isinstance(key, ast.List))
        if isinstance(key, ast.Slice):
            return table
        mask = self._of(key)
        if mask is None or mask.is_table:
            self.is_unclear = True
            return None
        return _Value(table.dropped, table.columns | mask.columns, is_table=True)

    def _located(self, table: _Value | None, key: ast.expr) -> _Value | None:
        if not isinstance(key, ast.Tuple) or len(key.elts) != 2:
            return self._item(table, key)
        rows, column = key.elts
        return self._item(self._item(table, rows), column)

    def _attribute(self, table: _Value | None, name: str) -> _Value | None:
        if table is None or not table.is_table:
            return table
        return None if name in _COUNTS else self._column(table, [name])

    def _of_call(self, call: ast.Call) -> _Value | None:
        match call.func:
            case ast.Attribute(value=value, attr="dropna"):
                return self._dropped(call, value)
            case ast.Attribute(value=value, attr=name):
                return self._of_method(call, self._of(value), name)
            case ast.Name(id=name):
                values = list(map(self._of, given_to(call)))
                if name in _SAYS:  # a count of rows, or a table that is shown
                    return None
                return next(iter(values), None) if name in _PASSES_ON else self._joined(values)
        self._doubt(call)
        return None

    def _of_method(self, call: ast.Call, owner: _Value | None, name: str) -> _Value | None:
        given = given_to(call)
        if owner is not None and owner.is_table:
            return self._of_table(owner, name, given)
        values = [owner, *map(self._of, given)]
        has_axis = any(word.arg == "axis" for word in call.keywords)
        if owner is None or not owner.is_list or has_axis or not _BY_COLUMN.fullmatch(name):
            return self._joined(values)
        for column in owner.columns:
            self.figures.append(_Figure(frozenset({column}), owner.dropped))
        return None

    def _of_table(self, table: _Value, method: str, given: list[ast.expr]) -> _Value | None:
        if _KEEPS_ROWS.fullmatch(method):
            return table
        texts = [text for one in given for text in _texts(one)]
        if method == "groupby" and texts:
            return _Value(table.dropped, table.columns.union(texts), is_table=True)
        self.is_unclear = True
        return None

    def _dropped(self, call: ast.Call, value: ast.expr) -> _Value | None:
        """The table that a call of `dropna` leaves; of a single column there is nothing to say."""
        options, before = {word.arg: word.value for word in call.keywords}, self._of(value)
        if before is not None and not before.is_table:
            return before
        if call.args or options.keys() - {"subset", "inplace", "ignore_index"}:
            self._doubt(value)
            return None
        chosen = self._chosen(value)
        if "subset" in options:
            columns = frozenset(_texts(options["subset"]))
        elif chosen is not None:
            is_single = isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant)
            columns = frozenset() if is_single or len(chosen) < 2 else chosen
        else:
            columns = self.gaps if isinstance(value, ast.Name) or before else frozenset()
        columns &= self.gaps
        if not columns:
            return before
        known = before.dropped | columns if before else columns
        return _Value(known, before.columns if before else frozenset(), is_table=True)


def _texts(node: ast.expr) -> tuple[str, ...]:
    """A text, or those of a list of nothing but texts."""
    parts = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
    found = [part.value for part in parts if isinstance(part, ast.Constant)]
    texts = tuple(text for text in found if isinstance(text, str))
    return texts if len(texts) == len(parts) else ()


def _texts_beside_drops(tree: ast.Module) -> Iterator[str]:
    """All texts and attributes of a cell that use a column.

    No use are the options of `dropna` and of a reader, and conversions of a column in place.
    """
    calls = [
        (node, node.func.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ]
    idle: list[ast.AST] = [
        word
        for call, name in calls
        if name == "dropna" or name.startswith("read_")
        for word in call.keywords
    ]
    idle += [node for node in ast.walk(tree) if isinstance(node, ast.Assign) and _converts(node)]
    inside = {id(node) for one in idle for node in ast.walk(one)}
    for node in ast.walk(tree):
        if id(node) in inside:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Attribute):
            yield node.attr


def _converts(statement: ast.Assign) -> bool:
    """Whether a column only becomes another form of itself: `df["a"] = pd.to_numeric(df["a"])`."""
    match statement.targets:
        case [ast.Subscript(value=ast.Name() as table, slice=ast.Constant(value=str(column)))]:
            asked = [n for n in ast.walk(statement.value) if isinstance(n, ast.Subscript)]
            return bool(asked) and all(
                isinstance(one.value, ast.Name)
                and one.value.id == table.id
                and isinstance(one.slice, ast.Constant)
                and one.slice.value == column
                for one in asked
            )
    return False


def _is_mentioned(column: str, asked: str) -> bool:
    words = re.sub(r"[\W_]+", " ", column).strip()
    return re.search(rf"\b{re.escape(words)}", re.sub(r"[\W_]+", " ", asked), re.I) is not None
