"""Measure the layout of the code: `python -m benchmarks.structure [--at REVISION] [--list]`.

For the three packages without their tests, it counts files, their lines, and circular imports of
folders and files. It also counts classes with more than 15 methods, and public names that two
modules define. Only the working tree is also run. That counts the files between a question and the
kernel, and the objects between a cell of a snapshot and its process.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import io
import statistics
import subprocess
import sys
import tarfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any
from unittest.mock import patch

from benchmarks.sandbox.table import Table
from kernel_sandbox.runners.pool import PoolSettings, SandboxPool
from kernel_sandbox.runners.pool_settings import StateRetention

__all__ = ["Layout", "layout_of", "main"]

PACKAGES = ("kernel_sandbox", "dm_jupyter", "training")
_ROOT = Path(__file__).resolve().parents[1]
_WALL_METHODS, _WALL_LINES, _SMALL_LINES = 15, 500, 80
_OWN_IN_EACH = frozenset({"main", "PROMPTS"})
"""Names that each command, or each module of assistance, defines for itself."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Counts of a tree; lists name what stands out."""

    lines: Mapping[str, int]
    """Of each module that contains code, by its dotted name."""
    folder_circles: Sequence[str]
    file_circles: Sequence[str]
    large_classes: Sequence[str]
    double_names: Sequence[str]
    small_files: Sequence[str]
    """Below 80 lines and with a single importer."""

    @property
    def long_files(self) -> list[str]:
        """Modules above the limit of 500 lines."""
        return [name for name, count in self.lines.items() if count > _WALL_LINES]


@dataclass(slots=True)
class _Modules:
    """Modules of a tree, by their dotted names."""

    trees: dict[str, ast.Module] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    packages: set[str] = field(default_factory=set)
    """Modules that are a folder."""

    def imports(self, name: str) -> set[str]:
        """Return the modules that a module imports when it is loaded."""
        found = set()
        for node in _loaded(self.trees[name].body):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = (f"{node.module}.{alias.name}" for alias in node.names)
                found |= {name if name in self.trees else node.module for name in names}
            elif isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
        return {one for one in found if one in self.trees and one != name}


def layout_of(sources: Mapping[str, str]) -> Layout:
    """Return the layout of a tree.

    Args:
        sources: the texts of its Python files, by their paths.

    Raises:
        SyntaxError: a file is not Python.
    """
    modules = _parsed(sources)
    imports = {name: modules.imports(name) for name in modules.trees}
    importers = defaultdict(set)
    for name, found in imports.items():
        for one in found:
            importers[one].add(name)
    code = [name for name in modules.trees if name not in modules.packages]
    small = [
        name
        for name in code
        if modules.lines[name] < _SMALL_LINES
        and len(importers[name]) == 1
        and not name.endswith("__main__")
    ]
    return Layout(
        {name: modules.lines[name] for name in code},
        sorted(_folder_circles(imports, modules.packages)),
        [" > ".join(sorted(circle)) for circle in _circles(imports)],
        sorted(_large_classes(modules)),
        sorted(_double_names(modules)),
        sorted(small),
    )


def _parsed(sources: Mapping[str, str]) -> _Modules:
    found = _Modules()
    for path, text in sources.items():
        name = path.removesuffix(".py").replace("/", ".")
        if name.endswith(".__init__"):
            name = name.removesuffix(".__init__")
            found.packages.add(name)
        found.trees[name] = ast.parse(text)
        found.lines[name] = text.count("\n")
    return found


def _loaded(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run when a module is loaded, except those for type checkers."""
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _loaded(node.orelse)
            continue
        yield node
        for inner in ("body", "orelse", "finalbody"):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield from _loaded(getattr(node, inner, ()))


def _folder_circles(imports: Mapping[str, set[str]], packages: set[str]) -> set[str]:
    """Return pairs of sibling folders that import each other."""
    edges = set()
    for name, found in imports.items():
        own = name.split(".")
        for other in (one.split(".") for one in found):
            depth = next(
                (at for at, (a, b) in enumerate(zip(own, other, strict=False)) if a != b), 0
            )
            left, right = (".".join(parts[: depth + 1]) for parts in (own, other))
            if depth and left in packages and right in packages and left != right:
                edges.add((left, right))
    return {f"{a} and {b}" for a, b in edges if a < b and (b, a) in edges}


def _circles(imports: Mapping[str, set[str]]) -> list[set[str]]:
    """Return the sets of modules that reach each other (Tarjan's strongly connected components)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(name: str) -> None:
        order[name] = low[name] = len(order)
        stack.append(name)
        for other in sorted(imports[name]):
            if other not in order:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], order[other])
        if low[name] == order[name]:
            at = stack.index(name)
            found.append(set(stack[at:]))
            del stack[at:]

    for name in sorted(imports):
        if name not in order:
            visit(name)
    return [one for one in found if len(one) > 1]


def _large_classes(modules: _Modules) -> Iterator[str]:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    for name, tree in modules.trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                own = [one.name for one in node.body if isinstance(one, functions)]
                count = sum(not one.startswith("__") for one in own)
                if count > _WALL_METHODS:
                    yield f"{name}.{node.name} ({count} methods)"


def _double_names(modules: _Modules) -> Iterator[str]:
    owners = defaultdict(list)
    for name, tree in modules.trees.items():
        defined = {one for node in tree.body for one in _bound(node)}
        for public in _exported(tree):
            if public in defined and public not in _OWN_IN_EACH:
                owners[public].append(name)
    return (f"{public}: {', '.join(found)}" for public, found in owners.items() if len(found) > 1)


def _bound(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.Assign(targets=targets):
            yield from (one.id for one in targets if isinstance(one, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name


def _exported(tree: ast.Module) -> list[str]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=names)):
                return [str(one.value) for one in names if isinstance(one, ast.Constant)]
    return []


def _files_of_a_question() -> list[str]:
    """Return the files between `dm-jupyter ask` and the requests to the model and the kernel."""
    from dm_jupyter.cli.app import app  # noqa: PLC0415
    from dm_jupyter.models.endpoint_client import EndpointClient  # noqa: PLC0415
    from kernel_sandbox.cells.zmq_channels import ZmqChannels  # noqa: PLC0415
    from tests.endpoint import ScriptedEndpoint  # noqa: PLC0415

    passed: dict[str, None] = {}

    def watched(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            passed.update(dict.fromkeys(_files_on_the_way(sys._getframe(1))))
            return method(*arguments, **named)

        return call

    data = str(_ROOT / "examples/penguins.csv")
    with (
        TemporaryDirectory() as folder,
        ScriptedEndpoint(["```python\nprint(40)\n```", "The sum is 40."]) as endpoint,
        patch.object(EndpointClient, "_stream", watched(EndpointClient._stream)),
        patch.object(ZmqChannels, "_request", watched(ZmqChannels._request)),
        redirect_stdout(io.StringIO()),
        redirect_stderr(io.StringIO()),
    ):
        given = ["ask", data, "What is the sum?", "--out", f"{folder}/a.ipynb"]
        app([*given, "--base-url", endpoint.base_url, "--model", "m"], standalone_mode=False)
    return list(passed)


async def _objects_of_a_snapshot() -> list[str]:
    """Return the objects whose methods get a cell's text before the process's client does."""
    source = "'a text that nothing else holds'"
    passed: dict[str, None] = {}

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event != "call" or source not in frame.f_locals.values():
            return
        me = frame.f_locals.get("self")
        if me is not None and type(me).__module__.startswith("kernel_sandbox."):
            passed.setdefault(type(me).__name__)

    async with (
        SandboxPool(PoolSettings(strategy=StateRetention.SNAPSHOT)) as pool,
        pool.runner() as runner,
    ):
        sys.setprofile(watch)
        threading.setprofile(watch)
        try:
            await runner.run(source)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    names = list(passed)
    return names[: names.index("WorkerClient")]


def _files_on_the_way(frame: FrameType | None) -> list[str]:
    """Return the files of the packages that a call came through, the outermost first."""
    found: list[str] = []
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(_ROOT) and path.relative_to(_ROOT).parts[0] in PACKAGES:
            found.append(path.relative_to(_ROOT).as_posix())
        frame = frame.f_back
    return found[::-1]


def _sources(revision: str | None) -> dict[str, str]:
    """Return the Python files of the packages, in the working tree or at a revision.

    Raises:
        subprocess.CalledProcessError: git knows no such revision.
    """
    if revision is None:
        found = (path for name in PACKAGES for path in sorted((_ROOT / name).rglob("*.py")))
        return {path.relative_to(_ROOT).as_posix(): path.read_text("utf-8") for path in found}
    known = subprocess.run(
        ["git", "ls-tree", "--name-only", revision, *PACKAGES],
        cwd=_ROOT, check=True, capture_output=True, text=True,
    ).stdout.split()  # fmt: skip
    packed = subprocess.run(
        ["git", "archive", revision, *known], cwd=_ROOT, check=True, capture_output=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        members = [one for one in archive if one.isfile() and one.name.endswith(".py")]
        texts = ((one.name, archive.extractfile(one)) for one in members)
        return {name: file.read().decode() for name, file in texts if file is not None}


def _table(layout: Layout) -> Table:
    rows = [
        ("files with code", str(len(layout.lines)), ""),
        ("their lines, median", f"{statistics.median(layout.lines.values()):.0f}", ""),
        ("files beyond 500 lines", str(len(layout.long_files)), "0"),
        ("files below 80 lines with one importer", str(len(layout.small_files)), "0 but seams"),
        ("folders that import each other", str(len(layout.folder_circles)), "0"),
        ("files that import each other", str(len(layout.file_circles)), "0"),
        ("classes with more than 15 methods", str(len(layout.large_classes)), "0 with two jobs"),
        ("public names that two modules define", str(len(layout.double_names)), "0"),
    ]
    return Table("layout", ("what", "count", "aim"), rows)


def _way(passed: Sequence[str]) -> str:
    return f"{len(passed)}\n  {' > '.join(passed)}"


def main(words: Sequence[str] | None = None) -> int:
    """Print the table; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.structure",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--at", metavar="REVISION", help="count another revision's files")
    parser.add_argument("--list", action="store_true", help="name what stands out")
    parser.add_argument("--markdown", action="store_true", help="a table to paste into a page")
    given = parser.parse_args(words)
    layout = layout_of(_sources(given.at))
    table = _table(layout)
    print(table.to_markdown() if given.markdown else table.to_text())
    if given.list:
        for name in (
            "folder_circles", "file_circles", "large_classes", "double_names", "small_files",
        ):  # fmt: skip
            print(f"\n{name.replace('_', ' ')}")
            print("\n".join(f"  {one}" for one in getattr(layout, name)))
    if given.at is None:
        print(f"files that a question passes (aim: at most 8): {_way(_files_of_a_question())}")
        objects = asyncio.run(_objects_of_a_snapshot())
        print(f"objects that a snapshot's cell passes (aim: at most 4): {_way(objects)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
