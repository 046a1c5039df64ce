"""A screen that refuses code before it runs if no data analysis needs it (DataMind §4).

Covered: calls written plainly, through an alias, or through `getattr` or `__import__` with a
literal name. So are literals passed to `exec` or `eval`, shell escapes, and magics that start
programs.
Not covered: anything built at run time (names joined from pieces, code read from a file), what
libraries do, automagic. A screen is advice to a model, not containment: the layers contain.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace

__all__ = ["PYTHON_MAGICS", "Refusal", "parse_cell", "screen"]

_FILES = "read and write files with open() or pandas"
_PROGRAMS = "do it in Python: os.listdir, glob and pathlib look at files, pandas reads them"
_PACKAGES = "just import the package; if that fails, do without it"
_NATIVE = "use numpy or another compiled library that is installed"
_LIFE = "let the cell end by itself, or raise an exception"
_ASK = "no one answers: put the value into the code"
_PROCESSES = "use one process; vectorised pandas and numpy are fast enough"
_EVALUATE = "use ast.literal_eval, json.loads, df.eval or df.query"
_EDIT = "write the code into the cell"

_CALLS = {
    "input": _ASK,
    "getpass.getpass": _ASK,
    "getpass.unix_getpass": _ASK,
    "breakpoint": _ASK,
    "exit": _LIFE,
    "quit": _LIFE,
    "sys.exit": _LIFE,
    "os._exit": _LIFE,
    "os.abort": _LIFE,
    "os.kill": _LIFE,
    "os.killpg": _LIFE,
    "signal.raise_signal": _LIFE,
    "os.system": _PROGRAMS,
    "os.popen": _PROGRAMS,
    "os.startfile": _PROGRAMS,
    "os.fork": _PROCESSES,
    "os.forkpty": _PROCESSES,
    "shutil.rmtree": "remove single files that your own code made, with os.remove",
    "os.removedirs": "remove single files that your own code made, with os.remove",
    "pip.main": _PACKAGES,
    "pip._internal.main": _PACKAGES,
    "get_ipython().system": _PROGRAMS,
    "get_ipython().system_raw": _PROGRAMS,
    "get_ipython().system_piped": _PROGRAMS,
    "get_ipython().getoutput": _PROGRAMS,
}
_PREFIXES = {
    "subprocess.": _PROGRAMS,
    "asyncio.create_subprocess_": _PROGRAMS,
    "os.exec": _PROGRAMS,
    "os.spawn": _PROGRAMS,
    "os.posix_spawn": _PROGRAMS,
    "pty.": _PROGRAMS,
    "ctypes.": _NATIVE,
    "cffi.": _NATIVE,
}
_RUN_MAGIC = {"get_ipython().run_line_magic", "get_ipython().run_cell_magic", "get_ipython().magic"}
_MAGICS = {
    **dict.fromkeys(("system", "sx", "sc", "!", "alias", "rehashx", "script"), _PROGRAMS),
    **dict.fromkeys(("bash", "sh", "cmd", "perl", "ruby", "pypy"), _PROGRAMS),
    **dict.fromkeys(("python", "python2", "python3"), _EDIT),
    **dict.fromkeys(("pip", "conda", "mamba", "micromamba", "uv"), _PACKAGES),
    **dict.fromkeys(("edit", "ed", "recall", "rep"), _EDIT),
}
PYTHON_MAGICS = frozenset({"time", "timeit", "capture", "prun"})
"""The magics whose text is Python."""

_EVALUATORS = {"eval": "eval", "exec": "exec", "builtins.eval": "eval", "builtins.exec": "exec"}
_MAX_DEPTH = 4


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a snippet is not run."""

    call: str
    """The call, as a person would write it."""
    line: int
    """The line of the snippet, from 1."""
    remedy: str
    """What to do instead."""

    @property
    def message(self) -> str:
        """One sentence for the author of the snippet."""
        return f"{self.call} on line {self.line} is not allowed here; {self.remedy}."


def screen(source: str) -> Refusal | None:
    """Return why the snippet is refused, or `None`; never raise.

    Code that is not Python passes: the kernel reports its error.

    Args:
        source: the cell, with or without IPython magics.
    """
    return _screen(source, 0)


def _screen(source: str, depth: int) -> Refusal | None:
    tree = parse_cell(source)
    if tree is None or depth > _MAX_DEPTH:
        return None
    names = _Names(tree)
    found = (_judge(node, names, depth) for node in ast.walk(tree) if isinstance(node, ast.Call))
    refusals = [refusal for refusal in found if refusal is not None]
    return min(refusals, key=lambda refusal: refusal.line, default=None)


def parse_cell(source: str) -> ast.Module | None:
    """Return the cell's syntax tree with magics as calls, or `None` for no Python; never raise.

    Args:
        source: the cell, with or without IPython magics.
    """
    with warnings.catch_warnings():  # about an invalid escape in a string
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass
        try:
            return ast.parse(_without_magics(source))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _without_magics(source: str) -> str:
    """Return the snippet as IPython rewrites it: magics and shell escapes become calls.

    Raises:
        SyntaxError: it can't be rewritten.
    """
    # Costs a third of a second, and plain Python never needs it.
    from IPython.core.inputtransformer2 import TransformerManager  # noqa: PLC0415

    manager = TransformerManager()  # type: ignore[no-untyped-call]
    rewritten: str = manager.transform_cell(source)
    return rewritten


class _Names:
    """The meanings of the names in a snippet."""

    def __init__(self, tree: ast.Module) -> None:
        self._imported: dict[str, str] = {}
        self._bound: set[str] = set()
        for node in ast.walk(tree):
            self._learn(node)

    def _learn(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                self._imported[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                self._imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self._bound.add(node.name)
        elif isinstance(node, ast.arg):
            self._bound.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            self._bound.add(node.id)

    def resolve(self, node: ast.expr) -> str | None:
        """Return the dotted name of what is called, with aliases resolved, or `None`."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        root = self._root(node)
        return None if root is None else ".".join((root, *reversed(parts)))

    def _root(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Name):
            unknown = None if node.id in self._bound else node.id
            return self._imported.get(node.id, unknown)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            return self._made(node, self._plain(node.func))
        return None

    def _made(self, call: ast.Call, called: str | None) -> str | None:
        """Return the name of the module or function that a call yields, or `None`."""
        texts = list(_texts(call))
        if called == "get_ipython":
            return "get_ipython()"
        if called in ("__import__", "importlib.import_module") and texts:
            return texts[0]
        if called == "getattr" and texts and isinstance(call.args[0], ast.Name):
            return f"{self._root(call.args[0])}.{texts[-1]}"
        return None

    def _plain(self, node: ast.Name | ast.Attribute) -> str | None:
        if isinstance(node, ast.Name):
            return self._imported.get(node.id, node.id)
        if isinstance(node.value, ast.Name):
            return f"{self._imported.get(node.value.id, node.value.id)}.{node.attr}"
        return None


def _texts(call: ast.Call) -> Iterator[str]:
    for argument in call.args:
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            yield argument.value


def _judge(call: ast.Call, names: _Names, depth: int) -> Refusal | None:
    name = names.resolve(call.func)
    if name is None:
        return None
    name = name.removeprefix("builtins.") if name.removeprefix("builtins.") in _CALLS else name
    if name in _EVALUATORS:
        return _judge_text(call, _EVALUATORS[name], depth)
    if name in _RUN_MAGIC:
        return _judge_magic(call, depth)
    remedy = _CALLS.get(name) or next(
        (text for prefix, text in _PREFIXES.items() if name.startswith(prefix)), None
    )
    if remedy is None:
        return None
    shown = "a shell command (!)" if name.startswith("get_ipython()") else f"{name}()"
    return Refusal(shown, call.lineno, remedy)


def _judge_text(call: ast.Call, name: str, depth: int) -> Refusal | None:
    first = call.args[0] if call.args else None
    if not (isinstance(first, ast.Constant) and isinstance(first.value, str)):
        return Refusal(f"{name}() of text made at run time", call.lineno, _EVALUATE)
    inner = _screen(first.value, depth + 1)
    return inner and replace(inner, line=call.lineno)


def _judge_magic(call: ast.Call, depth: int) -> Refusal | None:
    texts = list(_texts(call))
    name = texts[0].split()[0].lstrip("%") if texts and texts[0].split() else ""
    sign = "%%" if len(texts) > 2 else "%"
    if name in _MAGICS:
        return Refusal(f"{sign}{name}", call.lineno, _MAGICS[name])
    if name not in PYTHON_MAGICS or len(texts) < 2:
        return None
    inner = _screen(texts[-1], depth + 1)
    # The text of a cell magic starts on the line after it.
    offset = call.lineno if sign == "%%" else call.lineno - 1
    return inner and replace(inner, line=inner.line + offset)
