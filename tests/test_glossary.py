"""The glossary: each term once, and the names in the code that it gives exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/reference/glossary.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE)
TERMS = [(term, meaning, code) for term, meaning, code in ROWS if term not in ("term", "---")]
PACKAGES = ("dm_jupyter", "kernel_sandbox", "training")


def test_each_term_is_defined_once_in_at_most_two_sentences() -> None:
    names = [term for term, _, _ in TERMS]
    assert len(names) > 60
    assert sorted(names) == sorted(set(names))
    sentences = {term: len(re.findall(r"\.( |$)", meaning)) for term, meaning, _ in TERMS}
    assert {term: count for term, count in sentences.items() if not 1 <= count <= 2} == {}


def test_each_name_in_the_last_column_is_in_the_code() -> None:
    files = [path for top in PACKAGES for path in (ROOT / top).rglob("*.py")]
    source = "\n".join(path.read_text(encoding="utf-8") for path in files)
    words = set(re.findall(r"\w+|--[\w-]+", source))
    missing = []
    for name in (name for _, _, code in TERMS for name in re.findall(r"`([^`]+)`", code)):
        is_path = any((ROOT / top / name).exists() for top in ("", *PACKAGES))
        if not is_path and not set(re.findall(r"--[\w-]+|\w+", name)) <= words:
            missing.append(name)
    assert missing == []
