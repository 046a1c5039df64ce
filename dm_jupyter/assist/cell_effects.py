"""The effects of a cell that other cells can notice: names, objects, files, settings.

They are read from the cell's text, never by running it. In doubt, the result is the one that keeps
more cells. An unknown method whose value is unused may change its object, and code that is not
plain Python may do anything. Not covered: effects visible only at run time, such as two names of
one table that a library has created. A caller that leaves cells out reruns the rest and compares.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dm_jupyter.assist.cell_names import (
    HARMLESS,
    LOOKS,
    given_to,
    is_inplace,
    last_part,
    loaded_names,
    named_files,
    root_name,
    source_names,
    stored_names,
)
from dm_jupyter.core.tracebacks import parsed

__all__ = ["EarlierCell", "Effects", "KnownNames", "effects_of"]

_WRITES = re.compile(
    "to_(?:csv|excel|parquet|feather|pickle|sql|json|html|hdf|stata|latex|markdown)|save\\w*|write"
    "\\w*|dump|execute\\w*|commit|mkdir|makedirs|unlink|remove|rename|rmtree|system|run|Popen|post"
)
"""Methods that reach beyond the cell's own names."""
_CHANGES = re.compile(
    "append|extend|insert|pop|popitem|clear|update|add|discard|setdefault|sort|reverse|send|close"
)
"""Methods that change their object."""
_CHANGES_TOO = re.compile(
    r"(?:partial_)?fit\w*|train|set_\w+|add_\w+|execute\w*|commit|connect|register\w*|shuffle|seed"
)
"""Methods that change their object even if their value is used."""
_SETS = re.compile(
    r"set\w*|seed|use|\w*filter|filterwarnings|simplefilter|chdir|update|append|insert|register\w*"
    r"|rc|rcdefaults|theme|enable|disable|reset\w*|config\w*|context|options|putenv|basicConfig"
)
"""Functions of modules that change state shared by all later cells."""
_UNKNOWABLE = frozenset({"exec", "eval", "globals", "locals", "__import__", "get_ipython"})
_IN_PLACE = re.compile("shuffle|heap\\w+|insort\\w*")
"""Imported functions that change their arguments."""
_MAGIC = re.compile(r"^\s*(?:%|!)")
_READS_FILES = re.compile(
    r"read\w*|load\w*|open\w*|connect|glob\w*|listdir|scandir|iterdir|run_sql"
)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SAVES_BESIDE = frozenset({"run_sql"})
"""Our own functions that also save what they show in a file, which the call names."""


@dataclass(frozen=True, slots=True)
class EarlierCell:
    """A Python cell that ran before in the same kernel."""

    source: str
    is_whole: bool = True
    """Whether it ran to its end; otherwise it is unknown which names it has bound."""


@dataclass(frozen=True, slots=True)
class Effects:
    """What a cell reads from earlier cells, and leaves for later ones."""

    reads: frozenset[str] = frozenset()
    """Names that must have a value before it runs."""
    binds: frozenset[str] = frozenset()
    """Names that it always gives a new value, so the earlier value is gone."""
    may_bind: frozenset[str] = frozenset()
    """Names that it binds on some paths through it."""
    changes: frozenset[str] = frozenset()
    """Names whose objects it changes in place, or may."""
    shared: tuple[frozenset[str], ...] = ()
    """Groups of names that may refer to one object once it has run."""
    names_files: frozenset[str] = frozenset()
    """The last parts of all its string constants: any of them may be a file."""
    writes: frozenset[str] = frozenset()
    """The last parts of the names of files that it writes; `*` if the text does not say."""
    makes_files: bool = False
    """Whether it writes files by a call made for that purpose."""
    reads_files: bool = False
    """Whether it may read a file."""
    sets: bool = False
    """Whether it changes shared state: options, seeds, the folder, the screen's magics."""
    is_opaque: bool = False
    """Whether it may do anything: not plain Python, or code created at run time."""


@dataclass(slots=True)
class KnownNames:
    """Names that earlier cells have defined."""

    functions: dict[str, Effects] = field(default_factory=dict)
    """Effects of a call of each function; for a class, those of all its methods."""
    modules: set[str] = field(default_factory=set)
    """Names of modules, and of objects imported from them."""


def effects_of(source: str, known: KnownNames) -> Effects:
    """Return the effects of a cell.

    Args:
        source: of the cell; lines that begin with `%` or `!` count as settings.
        known: from the cells before it; the definitions of this one are added.
    """
    plain = [line for line in source.splitlines() if not _MAGIC.match(line)]
    has_magic = len(plain) < len(source.splitlines())
    tree = parsed("\n".join(plain))
    if tree is None:
        return Effects(is_opaque=True)
    flow = _Flow(known)
    try:
        bound = flow.run(tree.body, set())
    except RecursionError:
        return Effects(is_opaque=True)
    return flow.effects(bound, has_magic=has_magic)


@dataclass(slots=True)
class _Flow:
    """A walk through the statements of one cell, or of one function."""

    known: KnownNames
    reads: set[str] = field(default_factory=set)
    may_bind: set[str] = field(default_factory=set)
    changes: set[str] = field(default_factory=set)
    shared: list[frozenset[str]] = field(default_factory=list)
    texts: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    makes_files: bool = False
    reads_files: bool = False
    sets: bool = False
    is_opaque: bool = False

    def effects(self, bound: set[str], *, has_magic: bool = False) -> Effects:
        """Return what was found, once all statements were processed."""
        return Effects(
            frozenset(self.reads),
            frozenset(bound),
            frozenset(self.may_bind - bound),
            frozenset(self.changes),
            tuple(self.shared),
            frozenset(self.texts),
            frozenset(self.writes),
            self.makes_files,
            self.reads_files,
            self.sets or has_magic,
            self.is_opaque,
        )

    def run(self, body: Iterable[ast.stmt], bound: set[str]) -> set[str]:
        """Process the statements in turn; return the names that are always bound after them."""
        for statement in body:
            bound = self._take(statement, bound)
        return bound

    def _take(self, statement: ast.stmt, bound: set[str]) -> set[str]:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return self._define(statement, bound)
            case ast.Import() | ast.ImportFrom():
                return self._import(statement, bound)
            case ast.If() | ast.Match():
                return self._branch(statement, bound)
            case ast.For() | ast.AsyncFor() | ast.While():
                return self._loop(statement, bound)
            case ast.Try() | ast.TryStar():
                return self._attempt(statement, bound)
        return self._take_plain(statement, bound)

    def _take_plain(self, statement: ast.stmt, bound: set[str]) -> set[str]:
        """Process a statement that is not a block, or whose block always runs once."""
        names = set[str]()
        match statement:
            case ast.With() | ast.AsyncWith():
                names = self._enter(statement, bound)
            case ast.Assign(targets=targets, value=value):
                self._look(value, bound)
                names = names.union(*(self._target(one, value, bound) for one in targets))
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._look(value, bound)
                names = self._target(target, value, bound)
            case ast.AugAssign(target=target, value=value):
                self._look(value, bound)
                self._look(target, bound)
                self._aug(target, bound)
            case ast.Expr(value=ast.Call() as call):
                self._look(call, bound)
                self._call_for_nothing(call)
            case ast.Global(names=declared) | ast.Nonlocal(names=declared):
                self.may_bind.update(declared)
            case ast.Delete(targets=targets):
                for one in [one for one in targets if not isinstance(one, ast.Name)]:
                    self._touch(one)
            case _:
                for node in ast.iter_child_nodes(statement):
                    self._look(node, bound)
        return bound | names

    def _enter(self, statement: ast.With | ast.AsyncWith, bound: set[str]) -> set[str]:
        names = set[str]()
        for item in statement.items:
            self._look(item.context_expr, bound)
            names |= self._target(item.optional_vars, item.context_expr, bound)
        return self.run(statement.body, bound | names)

    def _branch(self, statement: ast.If | ast.Match, bound: set[str]) -> set[str]:
        if isinstance(statement, ast.If):
            self._look(statement.test, bound)
            ends = [self.run(part, bound) for part in (statement.body, statement.orelse)]
        else:
            self._look(statement.subject, bound)
            taken = [bound | stored_names(case.pattern) for case in statement.cases]
            ends = [
                self.run(case.body, names)
                for case, names in zip(statement.cases, taken, strict=True)
            ]
            ends.append(bound)
        self.may_bind.update(*ends)
        return set.intersection(*ends)

    def _loop(self, statement: ast.For | ast.AsyncFor | ast.While, bound: set[str]) -> set[str]:
        inside = bound
        if isinstance(statement, ast.While):
            self._look(statement.test, bound)
        else:
            self._look(statement.iter, bound)
            inside = bound | self._target(statement.target, statement.iter, bound)
        self.may_bind |= self.run(statement.body, inside)
        self.may_bind |= self.run(statement.orelse, inside)
        return bound

    def _attempt(self, statement: ast.Try | ast.TryStar, bound: set[str]) -> set[str]:
        ends = [self.run([*statement.body, *statement.orelse], bound)]
        for handler in statement.handlers:
            self._look(handler.type, bound)
            caught = {handler.name} if handler.name else set()
            ends.append(self.run(handler.body, bound | caught))
        self.may_bind.update(*ends)
        return self.run(statement.finalbody, set.intersection(*ends))

    def _import(self, statement: ast.Import | ast.ImportFrom, bound: set[str]) -> set[str]:
        names = {one.asname or one.name.split(".")[0] for one in statement.names}
        self.sets |= "*" in names
        self.known.modules |= names
        return bound | names

    def _define(
        self, made: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, bound: set[str]
    ) -> set[str]:
        """Process a function or a class; the effects of its code occur where it is called."""
        for node in made.decorator_list:
            self._look(node, bound)
        inside = _Flow(KnownNames({**self.known.functions}, {*self.known.modules}))
        own = set[str]()
        if isinstance(made, _FUNCTIONS):
            for default in (*made.args.defaults, *made.args.kw_defaults):
                self._look(default, bound)
            own = {one.arg for one in ast.walk(made.args) if isinstance(one, ast.arg)}
        kept = {name for node in ast.walk(made) for name in _declared(node)}
        local = own | (set[str]().union(*map(stored_names, made.body)) - kept)
        ends = inside.run(made.body, set(own))
        outer = inside.effects(ends)
        self.known.functions[made.name] = Effects(
            reads=outer.reads - local,
            may_bind=(outer.binds | outer.may_bind) & kept,
            changes=(outer.changes - local) | ({"*"} if inside.changes & own else set()),
            names_files=outer.names_files,
            writes=frozenset() if made.name in _SAVES_BESIDE else outer.writes,
            makes_files=outer.makes_files and made.name not in _SAVES_BESIDE,
            reads_files=outer.reads_files,
            sets=outer.sets,
            is_opaque=outer.is_opaque,
        )
        return bound | {made.name}

    def _target(self, target: ast.expr | None, value: ast.expr, bound: set[str]) -> set[str]:
        """Process the target of an assignment; return the names that it binds."""
        match target:
            case ast.Name(id=name):
                roots = source_names(value) - {name}
                if roots:
                    self.shared.append(frozenset({name, *roots}))
                return {name}
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                names = set[str]().union(*(self._target(one, value, bound) for one in parts))
                self.shared.append(frozenset(names))
                return names
            case ast.Starred(value=inner):
                return self._target(inner, value, bound)
            case None:
                return set()
        self._look(target, bound)
        self._touch(target)
        root = root_name(target)
        self.shared += [frozenset({root, *source_names(value)})] if root else []
        return set()

    def _touch(self, node: ast.expr) -> None:
        """Record that the object an expression names is changed in place."""
        root = root_name(node)
        if root is not None:
            self.changes.add(root)
            self.sets |= root in self.known.modules

    def _aug(self, target: ast.expr, bound: set[str]) -> None:
        """Process `+=` and the like, which read their target and may change it in place."""
        self._touch(target)
        if isinstance(target, ast.Name):
            self.may_bind.add(target.id)
            self.reads |= {target.id} - bound

    def _look(self, node: ast.AST | None, bound: set[str]) -> None:
        """Record what an expression reads, and the calls in it."""
        if node is None:
            return
        for name in loaded_names(node) - bound:
            self.reads.add(name)
        for one in ast.walk(node):
            match one:
                case ast.NamedExpr(target=ast.Name(id=name)):
                    self.may_bind.add(name)
                case ast.Constant(value=str(text)):
                    self.texts.add(last_part(text))
                case ast.Name(id=name, ctx=ast.Load()):
                    self._name(name, bound)
                case ast.Call():
                    self._call(one)

    def _name(self, name: str, bound: set[str]) -> None:
        """Record the effects of a function wherever its name is used."""
        self.is_opaque |= name in _UNKNOWABLE and name not in bound
        called = self.known.functions.get(name)
        if called is None:
            return
        self.reads |= called.reads - bound
        self.may_bind |= called.may_bind
        self.changes |= called.changes - {"*"}
        self.texts |= called.names_files
        self.writes |= called.writes
        self.makes_files |= called.makes_files
        self.reads_files |= called.reads_files
        self.sets |= called.sets
        self.is_opaque |= called.is_opaque

    def _call(self, call: ast.Call) -> None:
        match call.func:
            case ast.Name(id=name):
                self._call_by_name(call, name)
            case ast.Attribute(value=value, attr=name):
                self._call_of(call, value, name)
        self.writes.update(
            name
            for word in call.keywords
            if (word.arg or "").startswith("save")
            for name in named_files([word.value])
        )

    def _call_by_name(self, call: ast.Call, name: str) -> None:
        self.reads_files |= _READS_FILES.fullmatch(name) is not None
        if name == "open" and _opens_to_write(call):
            self._written(call.args[:1])
        known = self.known.functions.get(name)
        is_known = known is not None or name in HARMLESS or name[:1].isupper()
        changes = known is not None and "*" in known.changes
        if name in self.known.modules:
            is_known, changes = True, _IN_PLACE.fullmatch(name) is not None
        if changes or not (is_known or name == "open"):
            for one in given_to(call):
                self._change(one)

    def _call_of(self, call: ast.Call, value: ast.expr, name: str) -> None:
        root = root_name(value)
        self.reads_files |= _READS_FILES.fullmatch(name) is not None
        is_module = root in self.known.modules
        if _is_write(name) and not (is_module and name == "run"):
            self._written([*call.args, *(word.value for word in call.keywords)])
        if is_module:
            self.sets |= _SETS.fullmatch(name) is not None
            if _IN_PLACE.fullmatch(name):
                for one in given_to(call):
                    self._change(one)
        elif _CHANGES.fullmatch(name) or _CHANGES_TOO.fullmatch(name) or is_inplace(call):
            self._change(value)

    def _call_for_nothing(self, call: ast.Call) -> None:
        """Process a call whose value is unused; an unknown method then counts as a change."""
        match call.func:
            case ast.Attribute(value=value, attr=name) if not LOOKS.fullmatch(name):
                if root_name(value) not in self.known.modules and not _WRITES.fullmatch(name):
                    self._change(value)

    def _change(self, node: ast.expr) -> None:
        for name in source_names(node):
            self.changes.add(name)
            self.sets |= name in self.known.modules

    def _written(self, given: Iterable[ast.expr]) -> None:
        self.makes_files = True
        self.writes.update(named_files(given))


def _is_write(name: str) -> bool:
    return _WRITES.fullmatch(name) is not None and not re.fullmatch("execute\\w*|commit", name)


def _opens_to_write(call: ast.Call) -> bool:
    modes = [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "mode")]
    return any(
        not isinstance(one, ast.Constant) or set("wax+") & set(str(one.value)) for one in modes
    )


def _declared(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Global | ast.Nonlocal):
        yield from node.names
