"""Installation of packages that a cell imports and the environment lacks (DataMind §4).

Covered: only packages on an allow-list are installed, into an overlay that kernels only read. Only
wheels are used (`--only-binary :all:`), because a source distribution would run its own code
outside of the sandbox.
Not covered: the dependencies of a listed package, which need not be listed; imports inside
functions or by `importlib`, which are left to fail.
"""

from __future__ import annotations

import ast
import asyncio
import difflib
import sys
import tomllib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kernel_sandbox.cells.screen import PYTHON_MAGICS, parse_cell, screen
from kernel_sandbox.errors import PackageError
from kernel_sandbox.packages.overlay import Overlay, Package
from kernel_sandbox.packages.pip_process import check_requirement
from kernel_sandbox.types import CellResult, CellRunner, CellStatus

__all__ = [
    "AllowList",
    "Missing",
    "PackageInstaller",
    "Prepared",
    "WithPackages",
    "missing_imports",
]

_CATCHES_IMPORT = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
_RUN_MAGIC = frozenset({"run_line_magic", "run_cell_magic"})
_MAX_DEPTH = 4


class AllowList(Mapping[str, str]):
    """An allow-list that maps the name of a module to the requirement passed to pip."""

    def __init__(self, requirements: Mapping[str, str]) -> None:
        """Check and store the list.

        Args:
            requirements: the package of each module's name, with or without versions.

        Raises:
            PackageError: a name is not a module's, or a requirement is more than a package.
        """
        for name, requirement in requirements.items():
            if not (name.isidentifier() and isinstance(requirement, str)):
                raise PackageError(f"the package list has an invalid entry: {name!r}")
            check_requirement(requirement)
        self._requirements = dict(requirements)

    @classmethod
    def load(cls, path: Path | None = None) -> AllowList:
        """Load a list: a TOML file with one table, `imports`.

        Args:
            path: the file; `None` for the list that comes with this package.

        Raises:
            PackageError: the file can't be read, or contains anything else.
        """
        path = path or Path(__file__).parents[1] / "packages.toml"
        try:
            raw = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise PackageError(f"the list of packages {path} can't be read: {error}") from error
        unknown = sorted(set(raw) - {"imports"})
        if unknown or not isinstance(raw.get("imports"), dict):
            what = (
                f"has unknown keys: {', '.join(unknown)}" if unknown else "has no table `imports`"
            )
            raise PackageError(f"the list of packages {path} {what}")
        return cls(raw["imports"])

    def __getitem__(self, name: str) -> str:
        return self._requirements[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._requirements)

    def __len__(self) -> int:
        return len(self._requirements)

    def refusal(self, name: str) -> str:
        """Return why a module that is not on the list is not installed, and what to do."""
        by_case = {known.lower(): known for known in self._requirements}
        close = [by_case[match] for match in difflib.get_close_matches(name.lower(), by_case)]
        remedy = (
            "use one of " + ", ".join(f"`{one}`" for one in close)
            if close
            else ("do it with the packages that are there")
        )
        return f"`{name}` is not among the packages that may be installed; {remedy}"


@dataclass(frozen=True, slots=True)
class Missing:
    """Modules that a cell imports and its kernel lacks."""

    allowed: Mapping[str, str] = field(default_factory=dict)
    """The package of each module that may be installed, in the order of the cell."""
    refused: tuple[tuple[str, str], ...] = ()
    """The name of each other module, and why."""

    @property
    def message(self) -> str:
        """Why modules can't be installed; empty if none is refused."""
        return Prepared(refused=self.refused).message

    def without(self, names: Iterable[str], why: str) -> Missing:
        """Return a copy with some modules refused.

        Args:
            names: the names of those modules, installable or not.
            why: what to say after the name of each.
        """
        out = [name for name in self.allowed if name in set(names)]
        allowed = {name: text for name, text in self.allowed.items() if name not in out}
        return Missing(allowed, (*self.refused, *((name, f"`{name}` {why}") for name in out)))


@dataclass(frozen=True, slots=True)
class Prepared:
    """The packages installed and refused before a cell ran."""

    installed: tuple[Package, ...] = ()
    """The installed packages, dependencies included."""
    refused: tuple[tuple[str, str], ...] = ()
    """The name of each module that is still missing, and why."""

    @property
    def message(self) -> str:
        """A message for the author of the cell; empty if nothing was missing."""
        names = ", ".join(f"{package.name} {package.version}" for package in self.installed)
        reasons = [reason for _, reason in self.refused]
        return " ".join(f"{text}." for text in ([f"Installed {names}"] if names else []) + reasons)


async def _nobody(_: Sequence[str]) -> bool:
    return False


class PackageInstaller:
    """An installer of the allowed packages that a cell lacks, for many kernels at once."""

    def __init__(
        self,
        overlay: Overlay,
        allow: AllowList,
        decide: Callable[[Sequence[str]], Awaitable[bool]] = _nobody,
        on_progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Install nothing yet.

        Args:
            overlay: where packages are installed.
            allow: which packages may be installed.
            decide: whether `prepare` installs these packages now; asks a person, or agrees.
            on_progress: called now and then with a line for a person.
        """
        self._overlay = overlay
        self._allow = allow
        self._decide = decide
        self._on_progress = on_progress
        self._known: set[str] = set()
        self._declined: set[str] = set()

    @property
    def site(self) -> Path:
        """The folder that a kernel must see to import what is installed."""
        return self._overlay.site

    async def prepare(self, source: str, workspace: Path | None = None) -> Prepared:
        """Install what the cell lacks; what can't be installed is a refusal, not an exception.

        Args:
            source: the cell. One that the screen refuses gets nothing: it will not run.
            workspace: the folder whose own files the cell may import.

        Raises:
            PackageError: the environment's interpreter can't be queried.
            asyncio.CancelledError: the caller was cancelled; nothing was left half done.
        """
        missing = Missing() if screen(source) else await self.missing(source, workspace)
        allowed = missing.allowed
        asked = [package for name, package in allowed.items() if name not in self._declined]
        if asked and not await self._decide(asked):
            self._declined.update(allowed)
        why = "was not installed, as it was declined: do without it"
        return await self.install(missing.without(self._declined, why))

    async def missing(self, source: str, workspace: Path | None = None) -> Missing:
        """Return what the cell imports and neither the environment nor the overlay has.

        Args:
            source: the cell.
            workspace: the folder whose own files the cell may import.

        Raises:
            PackageError: the environment's interpreter can't be queried.
        """
        known = self._known
        names = missing_imports(source, lambda name: name in known or _is_in(workspace, name))
        if names:
            known |= await self._overlay.importable(names)
        lacking = [name for name in names if name not in known]
        allow = self._allow
        return Missing(
            {name: allow[name] for name in lacking if name in allow},
            tuple((name, allow.refusal(name)) for name in lacking if name not in allow),
        )

    async def install(
        self, missing: Missing, on_progress: Callable[[str], None] | None = None
    ) -> Prepared:
        """Install what is missing and allowed, whatever `decide` would say.

        Args:
            missing: what `missing` returned.
            on_progress: called now and then with a line, instead of the installer's own.

        Raises:
            asyncio.CancelledError: the caller was cancelled; nothing was left half done.
        """
        installed: list[Package] = []
        refused = list(missing.refused)
        for name, package in missing.allowed.items():
            try:
                installed += await self._overlay.install(
                    [package], on_progress or self._on_progress
                )
                self._known.add(name)
            except PackageError as error:
                refused.append((name, str(error)))
        return Prepared(tuple(installed), tuple(refused))


def _is_in(workspace: Path | None, name: str) -> bool:
    return workspace is not None and any((workspace / x).exists() for x in (name, f"{name}.py"))


class WithPackages:
    """A `CellRunner` that installs, before each cell, what the cell lacks."""

    def __init__(
        self, runner: CellRunner, installer: PackageInstaller, workspace: Path | None = None
    ) -> None:
        """Wrap a runner.

        Args:
            runner: runs the cells; its kernel sees the installer's overlay.
            installer: the installer to use.
            workspace: the folder whose own files the cells may import.
        """
        self._runner = runner
        self._installer = installer
        self._workspace = workspace
        self._preparing: asyncio.Task[Prepared] | None = None

    async def run(self, source: str) -> CellResult:
        """Prepare for one cell and run it; the result's message starts with what was done.

        Args:
            source: the code.

        Raises:
            PackageError: the environment's interpreter can't be queried.
            SandboxError: whatever the wrapped runner raises.
            asyncio.CancelledError: the caller was cancelled.
        """
        self._preparing = asyncio.create_task(self._installer.prepare(source, self._workspace))
        try:
            prepared = await self._preparing
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            message = "the installation of packages was interrupted; the cell did not run"
            return CellResult(CellStatus.INTERRUPTED, message=message)
        finally:
            self._preparing = None
        result = await self._runner.run(source)
        return replace(result, message=f"{prepared.message} {result.message}".strip())

    async def interrupt(self) -> None:
        """Interrupt the running cell, or the installation before it."""
        if self._preparing is not None:
            self._preparing.cancel()
        else:
            await self._runner.interrupt()

    async def restart(self) -> None:
        """End the kernel and start an empty one; installed packages stay."""
        await self._runner.restart()

    async def close(self) -> None:
        """End the kernel; installed packages stay."""
        await self._runner.close()


def missing_imports(source: str, known: Callable[[str], bool]) -> tuple[str, ...]:
    """Return the top-level modules that a cell needs and its kernel lacks, in order; never raise.

    A cell needs what it imports as it runs: not inside a function, and not where it catches the
    failure of the import itself. Code that is not Python needs nothing.

    Args:
        source: the cell, with or without IPython magics.
        known: whether the kernel can already import the module.
    """
    names = dict.fromkeys(_wanted(source, 0))
    return tuple(name for name in names if name not in sys.stdlib_module_names and not known(name))


def _wanted(source: str, depth: int) -> Iterator[str]:
    tree = parse_cell(source) if depth < _MAX_DEPTH else None
    for statement in _executed(tree.body if tree else []):
        if isinstance(statement, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            yield statement.module.partition(".")[0]
        elif isinstance(statement, ast.Expr):
            yield from _wanted(_code_of_magic(statement.value), depth + 1)


def _executed(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield all statements that may run with the module, however deep, in order."""
    waiting = list(reversed(body))
    while waiting:
        statement = waiting.pop()
        yield statement
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        blocks = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
        branches = [*getattr(statement, "handlers", []), *getattr(statement, "cases", [])]
        if any(_catches_import(branch) for branch in branches):
            blocks, branches = blocks[1:], []
        for block in reversed([blocks[0], *(branch.body for branch in branches), *blocks[1:]]):
            waiting.extend(reversed(block))


def _catches_import(branch: ast.AST) -> bool:
    if not isinstance(branch, ast.ExceptHandler):
        return False
    if branch.type is None:
        return True
    names = (node.id for node in ast.walk(branch.type) if isinstance(node, ast.Name))
    return not _CATCHES_IMPORT.isdisjoint(names)


def _code_of_magic(value: ast.expr) -> str:
    """Return the Python that a magic such as `%%time` runs; empty for anything else."""
    match value:
        case ast.Call(
            func=ast.Attribute(attr=attr),
            args=[ast.Constant(value=name), *_, ast.Constant(value=code)],
        ) if attr in _RUN_MAGIC and name in PYTHON_MAGICS and isinstance(code, str):
            return code
    return ""
