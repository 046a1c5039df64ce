"""Links among the Markdown pages of the repository lead to files and anchors that exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt

from benchmarks.page import page_anchors

ROOT = Path(__file__).parents[1]
_PATTERNS = ("*.md", "docs/**/*.md", "examples/*.md", "tests/data/**/*.md")
PAGES = sorted(path for pattern in _PATTERNS for path in ROOT.glob(pattern))
_SOURCES = ("benchmarks", "dm_jupyter", "examples", "kernel_sandbox", "tests", "training")
_NAMED = re.compile(r"(?<![\w/.-])docs/[\w./-]+\.md(?:#[\w-]+)?")


def _links(markdown: str) -> list[str]:
    """The targets of a page's links and pictures, without those that lead out of the repository."""
    blocks = MarkdownIt("commonmark").enable("table").parse(markdown)
    parts = [part for block in blocks for part in block.children or ()]
    targets = [str(part.attrs.get("href") or part.attrs.get("src") or "") for part in parts]
    return [unquote(target) for target in targets if target and ":" not in target.split("/")[0]]


@cache
def _anchors(page: Path) -> tuple[set[str], ...]:
    return tuple(page_anchors(page.read_text(encoding="utf-8")))


def _leads_somewhere(page: Path, target: str) -> bool:
    """Whether the target is there, with its anchor as GitHub and as the pages' builder make it."""
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    if not file.is_relative_to(ROOT) or not file.exists():
        return False
    return not anchor or all(anchor in anchors for anchors in _anchors(file))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_links_of_a_page_resolve(page: Path) -> None:
    targets = _links(page.read_text(encoding="utf-8"))
    assert [target for target in targets if not _leads_somewhere(page, target)] == []


def test_pages_that_the_code_names_exist() -> None:
    found = [
        (path, name)
        for folder in _SOURCES
        for path in (ROOT / folder).rglob("*.py")
        if path != Path(__file__)
        for name in _NAMED.findall(path.read_text(encoding="utf-8"))
    ]
    assert len(found) > 3
    broken = [row for row in found if not _leads_somewhere(ROOT / "page", row[1])]
    assert broken == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    text = "[a](b.md#c) ![d](img/e.png) [f](https://g.org/h.md) [i](#j) <mailto:k@l.org>"
    assert _links(text) == ["b.md#c", "img/e.png", "#j"]
    readme = ROOT / "README.md"
    assert _leads_somewhere(readme, "docs/security.md#not-covered")
    assert not _leads_somewhere(readme, "docs/security.md#no-such-anchor")
    assert not _leads_somewhere(readme, "docs/no-such-page.md")
    assert not _leads_somewhere(readme, str(tmp_path))
