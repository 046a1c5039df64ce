"""The architecture page, compared with the import contracts and with the imports of the source.

The page names each code layer from top to bottom. Here the order on the page is compared with that
of the contracts, and the contracts with the imports, read from the source without running it.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/explanation/architecture.md").read_text(encoding="utf-8")
PACKAGES = ("training", "dm_jupyter", "kernel_sandbox")
LINTER: Mapping[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "tool"
]["importlinter"]
CONTAINERS = ("dm_jupyter", "dm_jupyter.server", "kernel_sandbox", "training")

Layers = tuple[tuple[str, ...], ...]
"""Names from top to bottom; those of one layer import none of each other."""


def _layers(contract: Mapping[str, Any]) -> Layers:
    return tuple(tuple(re.split(r"\s*\|\s*", layer)) for layer in contract["layers"])


def _contract(container: str | None) -> Layers:
    """The layers of a package, or of the packages themselves."""
    wanted = None if container is None else [container]
    (found,) = (
        contract
        for contract in LINTER["contracts"]
        if contract["type"] == "layers" and contract.get("containers") == wanted
    )
    return _layers(found)


# What the page says.


def _drawing(page: str) -> list[set[str]]:
    """The texts of each line of the first drawing, as its strokes and wide gaps part them."""
    lines = page.split("```", maxsplit=2)[1].split("\n")
    return [set(re.split(r"\s{2,}", re.sub(r"[│┌┬┐└┘├►▼─]", "  ", f" {line} "))) for line in lines]


def _line_of(drawing: Sequence[set[str]], name: str) -> int:
    (line,) = (number for number, names in enumerate(drawing) if name in names)
    return line


def _table(page: str, heading: str) -> tuple[str, ...]:
    """The names in the first column of the table below a heading, without `/` and `.py`."""
    section = page.split(f"\n### `{heading}`\n")[1].split("\n#", maxsplit=1)[0]
    return tuple(re.findall(r"^\| `([\w]+)(?:/|\.py)` \|", section, re.MULTILINE))


# What the source imports.


def _modules(root: Path, package: str) -> dict[str, Path]:
    """Each module of a package, by its dotted name."""
    found = {}
    for path in sorted((root / package).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def _imported(name: str, path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """Yields the modules that a module imports, wherever in it the import stands."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.rsplit(".", node.level - 1)[0] if node.level else ""
            base = ".".join(filter(None, (above, node.module)))
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield full if full in known else base


def _import_graph(root: Path, packages: Sequence[str]) -> dict[str, set[str]]:
    """The modules of some packages, and which of these each imports."""
    known: dict[str, Path] = {}
    for package in packages:
        known |= _modules(root, package)
    return {name: set(_imported(name, path, known)) & set(known) for name, path in known.items()}


def _climbs(graph: Mapping[str, set[str]], container: str | None, layers: Layers) -> list[str]:
    """The imports that go up or aside, also over modules that belong to no layer."""
    floor = {name: number for number, names in enumerate(layers) for name in names}
    prefix = "" if container is None else f"{container}."

    def layer_of(module: str) -> str:
        inside = module.removeprefix(prefix) if module.startswith(prefix) else ""
        return inside.split(".")[0]

    found = []
    for module in graph:
        if (own := layer_of(module)) not in floor:
            continue
        waiting, seen = [module], {module}
        while waiting:
            for target in graph[waiting.pop()] - seen:
                seen.add(target)
                other = layer_of(target)
                if other not in floor:
                    waiting.append(target)
                elif other != own and floor[other] <= floor[own]:
                    found.append(f"{module} -> {target}")
    return found


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    return _import_graph(ROOT, PACKAGES)


def test_the_drawing_has_the_packages_and_the_layers_in_the_order_of_the_contracts() -> None:
    drawing = _drawing(PAGE)
    training, product, sandbox = _contract(None)
    inner = _contract("dm_jupyter")
    layers = (training, product, *inner, sandbox)
    lines = [{_line_of(drawing, name) for name in names} for names in layers]
    assert [len(line) for line in lines] == [1] * len(lines)  # layers that are equal share a line
    numbers = [line.pop() for line in lines]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_table_has_every_layer_in_the_order_of_its_contract(container: str) -> None:
    table = _table(PAGE, container.replace(".", "/"))
    layers = _contract(container)
    assert sorted(table) == sorted(name for names in layers for name in names)
    floors = [next(i for i, names in enumerate(layers) if row in names) for row in table]
    assert floors == sorted(floors)


def test_every_folder_of_a_package_is_a_layer_on_the_page() -> None:
    for container in CONTAINERS:
        folder = ROOT / container.replace(".", "/")
        folders = {path.parent.name for path in folder.glob("*/__init__.py")} - {"prompts"}
        assert folders <= set(_table(PAGE, container.replace(".", "/"))), container


@pytest.mark.parametrize("container", [None, *CONTAINERS])
def test_no_import_of_the_source_goes_up(container: str | None, graph: dict[str, set[str]]) -> None:
    assert _climbs(graph, container, _contract(container)) == []


def test_each_layer_is_imported_or_imports(graph: dict[str, set[str]]) -> None:
    """So an empty graph can't pass for one without a climb."""
    for container in CONTAINERS:
        for name in (name for names in _contract(container) for name in names):
            within = [module for module in graph if f"{module}.".startswith(f"{container}.{name}.")]
            used = any(graph[module] for module in within)
            assert used or any(set(within) & imported for imported in graph.values()), name


def test_the_forbidden_imports_are_told_with_the_layers_they_are_for() -> None:
    section = PAGE.split("Further contracts forbid some imports:")[1].split("###")[0]
    for contract in LINTER["contracts"]:
        if contract["type"] == "forbidden":
            names = [source.rpartition(".")[2] for source in contract["source_modules"]]
            lines = [line for line in section.split("\n") if line.startswith("- ")]
            told = [sorted(re.findall(r"`(\w+)`", line.split(" import")[0])) for line in lines]
            assert sorted(names) in told, contract["name"]


def test_every_path_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`([\w/]+/|[\w/]+\.(?:py|ts|toml|tsx))`", PAGE))
    above = (*("", *PACKAGES), "dm_jupyter/server", "dm_jupyter/assist", "labextension/src")
    assert len(named) > 60
    missing = {name for name in named if not any((ROOT / top / name).exists() for top in above)}
    assert missing == set()


def test_every_class_that_implements_a_protocol_exists() -> None:
    section = PAGE.split("\n## Protocols that you can implement\n")[1].split("\n#", maxsplit=1)[0]
    named = set(re.findall(r"`([A-Z]\w+)`", section))
    files = [path for top in PACKAGES for path in (ROOT / top).rglob("*.py")]
    source = "\n".join(path.read_text(encoding="utf-8") for path in files)
    defined = set(re.findall(r"^(?:class )?([A-Z]\w+)\b(?=[(:]| = )", source, re.MULTILINE))
    assert len(named) > 20
    assert named - defined == set()


# That these comparisons notice what they are for, on a small package.

LAYERS: Layers = (("face", "other"), ("middle",), ("base",))


@pytest.mark.parametrize(
    ("module", "imports", "found"),
    [
        ("face/a.py", "from app.base import a\n", []),
        ("base/a.py", "from app.middle.a import x\n", ["app.base.a -> app.middle.a"]),
        ("middle/b.py", "def f():\n    import app.face.a\n", ["app.middle.b -> app.face.a"]),
        ("face/b.py", "from ..other import a\n", ["app.face.b -> app.other.a"]),
        ("base/b.py", "from app import loose\n", ["app.base.b -> app.middle.a"]),
    ],
)
def test_an_import_that_goes_up_is_found(
    module: str, imports: str, found: list[str], tmp_path: Path
) -> None:
    for name in ("face", "other", "middle", "base"):
        (tmp_path / "app" / name).mkdir(parents=True)
        (tmp_path / "app" / name / "__init__.py").touch()
        (tmp_path / "app" / name / "a.py").touch()
    (tmp_path / "app" / "__init__.py").touch()
    (tmp_path / "app" / "loose.py").write_text("from app.middle import a\n")
    (tmp_path / "app" / module).write_text(imports)
    assert _climbs(_import_graph(tmp_path, ["app"]), "app", LAYERS) == found


def test_layers_that_the_drawing_or_a_table_has_in_another_order_are_told_apart() -> None:
    drawing = _drawing(
        "```\n │  cli    magic   the faces │\n ├─►│ core   the values, cli too │\n```"
    )
    assert _line_of(drawing, "cli") == _line_of(drawing, "magic") == 1
    assert _line_of(drawing, "core") == 2
    page = "\n### `app`\n\n| layer |\n|---|\n| `base/` | x |\n| `face.py` | y |\n\n### Next\n"
    assert _table(page, "app") == ("base", "face")
