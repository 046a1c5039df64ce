"""Mutation test of the test suite: `python -m benchmarks.mutants [--count N] [--seed S]`.

Each fault is inserted alone into a copy of the tree: a reversed comparison, a constant plus one, a
negated condition, an omitted call. A run with coverage first finds the tests of each line. The
tests of the changed line then run against the fault. A fault that passes them is listed. Some of
these have no visible effect, which only a reader can recognise.

Left out of the draw, because no plain example shows them:

- bounds of time and memory: values assigned to a name that ends in `_S`, `_MS`, `_BYTES` or `_MIB`,
  or passed as `timeout`;
- calls of a log's `debug`;
- the command line's entry, `if __name__ == "__main__"`;
- docstrings, annotations, decorators, `__all__` and code only for type checkers.

Each verdict is written to the file of `--out` immediately. An interrupted run resumes from it.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

from coverage import CoverageData

from benchmarks.sandbox.table import Table, verdict

__all__ = ["Mutant", "main", "mutants_of"]

FOLDERS = ("dm_jupyter/core", "dm_jupyter/agent", "dm_jupyter/assist", "training/scoring")
_TESTS = (
    *(f"tests/dm_jupyter/{room}" for room in ("core", "assist", "agent", "search")),
    *(f"tests/training/{room}" for room in ("scoring", "suites")),
)
"""Tests of the code in those folders, without a server or a command line."""
_ROOT = Path(__file__).resolve().parents[1]
_COPIED = ("kernel_sandbox", "dm_jupyter", "training", "benchmarks", "tests", "examples", "docs")
_AIM_PERCENT = 85
_MOST_TESTS = 400
"""Most tests that run against one fault: those of the same file and folder come first."""
_LONGEST_S = 300
"""Time limit of the tests; a fault that exceeds it counts as noticed and is listed separately."""
_LONGEST_ALL_S = 3_600
_PASSED, _NOTICED, _ENDLESS = "PASSED", "noticed", "endless"
_COMPARED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_COMPUTED: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_BOUND = re.compile(r"_(S|MS|BYTES|MIB)$", re.IGNORECASE)
"""Names of bounds of time and memory."""
_LOG = re.compile(r"_?log(ger)?$", re.IGNORECASE)
_CALLED = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault in a file."""

    path: str
    line: int
    what: str
    """The change, as code."""
    source: str
    """The complete file without the fault."""
    place: tuple[int, int]
    """Index of the changed node in the file, and of the fault among those of the node."""

    @property
    def text(self) -> str:
        """The complete file with the fault."""
        tree = ast.parse(self.source)
        node = _places(tree)[self.place[0]]
        changed = _Put(node, _faults(node)[self.place[1]]).visit(tree)
        return ast.unparse(ast.fix_missing_locations(changed))


def mutants_of(path: str, text: str) -> list[Mutant]:
    """Return each small fault that can be inserted into a file.

    Code listed as left out in the module's docstring stays unchanged. So does the `strict` of a
    `zip`, which guards against faults of ours.

    Args:
        path: of the file.
        text: its contents.

    Raises:
        SyntaxError: it is not Python.
    """
    found = []
    for place, node in enumerate(_places(ast.parse(text))):
        for number, fault in enumerate(_faults(node)):
            before, after = ast.unparse(node), ast.unparse(ast.fix_missing_locations(fault))
            if after != before:
                what = f"{before[:60]}  ->  {after[:60]}".replace("\n", " ")
                line = getattr(node, "lineno", 0)
                found.append(Mutant(path, line, what, text, (place, number)))
    return found


def _places(tree: ast.Module) -> list[ast.AST]:
    untouched = _untouched(tree)
    return [node for node in ast.walk(tree) if id(node) not in untouched]


class _Put(ast.NodeTransformer):
    """Transformer that replaces one node with another."""

    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        """Return the new node for the old one."""
        return self._new if node is self._old else super().visit(node)


def _untouched(tree: ast.Module) -> set[int]:
    """Return the ids of the nodes without effect on the code's behaviour."""
    silent = (part for node in ast.walk(tree) for part in _silent(node) if part is not None)
    return {id(one) for part in silent for one in ast.walk(part)}


def _silent(node: ast.AST) -> Iterator[ast.AST | None]:
    """Yield the parts of a node without effect on its behaviour."""
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            yield node
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="debug"))):
            yield node if _LOG.match(name) else None
        case (
            ast.Assign(targets=[ast.Name(id="__all__")])
            | ast.If(test=ast.Name(id="TYPE_CHECKING"))
            | ast.If(test=ast.Compare(left=ast.Name(id="__name__")))
        ):
            yield node
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            yield value if _is_bound(name, value) else None
        case ast.AnnAssign(target=target, annotation=annotation, value=value):
            yield annotation
            yield value if isinstance(target, ast.Name) and _is_bound(target.id, value) else None
        case ast.arg(annotation=annotation):
            yield annotation
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield node.returns
            yield from node.decorator_list
        case ast.ClassDef():  # decorators decide whether its values are frozen or have slots
            yield from node.decorator_list
        case ast.Call(keywords=named):
            yield from (one.value for one in named if one.arg in {"strict", "timeout"})


def _is_bound(name: str, value: ast.AST | None) -> bool:
    """Return whether a name's value is a bare bound, only numbers, such as `64 * 2**20`."""
    parts = ast.walk(value) if value is not None else ()
    plain = (ast.Constant, ast.BinOp, ast.operator)
    return _BOUND.search(name) is not None and all(isinstance(one, plain) for one in parts)


def _faults(node: ast.AST) -> list[ast.AST]:
    """Return the nodes that could replace a node by mistake."""
    if isinstance(node, ast.Expr | ast.AugAssign | ast.Raise):
        acts = not isinstance(node, ast.Expr) or isinstance(node.value, ast.Call | ast.Await)
        return [ast.Pass()] if acts else []
    if isinstance(node, ast.Constant):
        return _other_constants(node.value)
    return [*_other_conditions(node), *_other_results(node)]


def _other_constants(value: object) -> list[ast.AST]:
    if isinstance(value, bool):
        return [ast.Constant(not value)]
    return [ast.Constant(value + 1)] if isinstance(value, int | float) else []


def _other_conditions(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=others) if type(op) in _COMPARED:
            yield ast.Compare(left, [_COMPARED[type(op)]()], others)
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.If(test=test, body=body, orelse=orelse):
            yield ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield ast.IfExp(test, orelse, body)


def _other_results(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.BinOp(op=ast.BitOr(), right=ast.Constant(value=None)):  # a type
            return
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _COMPUTED:
            yield ast.BinOp(left, _COMPUTED[type(op)](), right)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=named) if name in _CALLED:
            yield ast.Call(ast.Name(_CALLED[name], ast.Load()), args, named)
        case ast.Continue():
            yield ast.Break()


class _Copies:
    """Pool of copies of the tree, each for one fault at a time."""

    def __init__(self, folder: Path, count: int) -> None:
        self._free: SimpleQueue[Path] = SimpleQueue()
        for number in range(count):
            place = folder / str(number) / "tree"
            place.mkdir(parents=True)
            for name in _COPIED:
                ignored = shutil.ignore_patterns("__pycache__", "labextension")
                shutil.copytree(_ROOT / name, place / name, ignore=ignored)
            shutil.copy(_ROOT / "pyproject.toml", place)
            if (_ROOT / "../shared").exists():
                (place.parent / "shared").symlink_to((_ROOT / "../shared").resolve())
            self._free.put(place)

    def covered(self) -> Mapping[tuple[str, int], Sequence[str]]:
        """Return the tests that run each line of the folders; line 0 has those of the whole file.

        Raises:
            RuntimeError: a test fails without any fault, so every fault would look noticed.
        """
        place = self._free.get()
        measured = [f"--cov={folder}" for folder in FOLDERS]
        words = [*_TESTS, *measured, "--cov-context=test", "--cov-report="]
        code, said = _pytest(place, words, _LONGEST_ALL_S)
        if code != 0:
            raise RuntimeError(f"the tests fail without a fault:\n{said[-2_000:]}")
        data = CoverageData(str(place / ".coverage"))
        data.read()
        found = {
            (Path(path).relative_to(place).as_posix(), line): [
                one.partition("|")[0] for one in contexts if one
            ]
            for path in data.measured_files()
            for line, contexts in data.contexts_by_lineno(path).items()
        }
        self._free.put(place)
        for (path, _), tests in list(found.items()):
            found.setdefault((path, 0), []).extend(tests)
        return found

    def verdict_on(self, mutant: Mutant, tests: Sequence[str]) -> str:
        """Run the tests against the fault and return the verdict."""
        place = self._free.get()
        file = place / mutant.path
        before = file.read_text("utf-8")
        try:
            file.write_text(mutant.text, "utf-8")
            code = _pytest(place, ["-x", *tests], _LONGEST_S)[0]
            return {0: _PASSED, None: _ENDLESS}.get(code, _NOTICED)
        finally:
            file.write_text(before, "utf-8")
            self._free.put(place)


def _pytest(place: Path, words: Sequence[str], longest_s: int) -> tuple[int | None, str]:
    """Run tests in a copy; return the exit code, `None` after a timeout, and the output."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command,
            cwd=place,
            env=variables,
            capture_output=True,
            text=True,
            timeout=longest_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, f"not done after {longest_s} s"
    return done.returncode, done.stdout


def _drawn(count: int, seed: int) -> list[Mutant]:
    """Return `count` random faults of each folder."""
    found = []
    draw = random.Random(seed)
    for folder in FOLDERS:
        files = sorted((_ROOT / folder).rglob("*.py"))
        texts = {one.relative_to(_ROOT).as_posix(): one.read_text("utf-8") for one in files}
        mutants = [one for path, text in texts.items() for one in mutants_of(path, text)]
        found += draw.sample(mutants, min(count, len(mutants)))
    return found


def _nearest(tests: Sequence[str], path: str) -> list[str]:
    """Return the tests to run against a fault: those named after its file, then its folder's."""
    file = Path(path)

    def distance(test: str) -> tuple[bool, bool]:
        return file.stem not in test, f"tests/{file.parent.as_posix()}/" not in test

    return sorted(dict.fromkeys(tests), key=distance)[:_MOST_TESTS]


def main(words: Sequence[str] | None = None) -> int:
    """Print the table and the faults that passed the tests; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mutants",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--count", type=int, default=60, help="faults of each folder")
    parser.add_argument("--seed", type=int, default=7, help="of the draw")
    parser.add_argument("--at-once", type=int, default=2, help="copies of the tree")
    parser.add_argument(
        "--out", type=Path, help="a file that gets what was found, and is gone on from"
    )
    given = parser.parse_args(words)
    mutants = _drawn(given.count, given.seed)
    known = _known(given.out)
    with TemporaryDirectory() as folder:
        copies = _Copies(Path(folder), given.at_once)
        left = [one for one in mutants if _key(one) not in known]
        covered = copies.covered() if left else {}

        def try_one(mutant: Mutant) -> None:
            # Code that runs at import, such as a constant, belongs to no single test.
            at = covered.get((mutant.path, mutant.line)) or covered.get((mutant.path, 0), ())
            tests = _nearest(at, mutant.path)
            said = copies.verdict_on(mutant, tests) if tests else _PASSED
            known[_key(mutant)] = said
            if given.out is not None:
                with given.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([_key(mutant), said]) + "\n")
            print(f"{said:8} {_key(mutant)}", file=sys.stderr)

        with ThreadPoolExecutor(given.at_once) as threads:
            list(threads.map(try_one, left))
    print(_table(mutants, known).to_text())
    for said in (_PASSED, _ENDLESS):
        print(f"\n{said}:")
        print("\n".join(f"  {_key(one)}" for one in mutants if known[_key(one)] == said))
    return 0


def _key(mutant: Mutant) -> str:
    return f"{mutant.path}:{mutant.line}  {mutant.what}"


def _known(out: Path | None) -> dict[str, str]:
    if out is None or not out.exists():
        return {}
    return dict(json.loads(line) for line in out.read_text("utf-8").splitlines())


def _table(mutants: Sequence[Mutant], known: Mapping[str, str]) -> Table:
    rows = []
    for folder in FOLDERS:
        own = [known[_key(one)] == _PASSED for one in mutants if one.path.startswith(f"{folder}/")]
        rows.append((folder, str(len(own)), str(own.count(False)), _percent(own)))
    everything = [known[_key(one)] == _PASSED for one in mutants]
    rows.append(("all", str(len(everything)), str(everything.count(False)), _percent(everything)))
    share = round(100 * everything.count(False) / max(1, len(everything)))
    aim = verdict("faults noticed", share, _AIM_PERCENT, "%", at_least=True)
    return Table("faults", ("folder", "faults", "noticed", "%"), rows, [aim])


def _percent(passed: Sequence[bool]) -> str:
    return f"{100 * passed.count(False) / max(1, len(passed)):.0f}"


if __name__ == "__main__":
    sys.exit(main())
