"""Sentence lengths and figures of the Markdown pages.

`python -m benchmarks.prose [FILES…] [--markdown] [--worst N] [--figures]` reads Markdown pages, by
default all of the checkout. Per page it prints: sentences, words per sentence, words of the
longest, sentences of more than 35 and of more than 25 words, figures, and nested parentheses.

Prose is paragraphs, list items and quotations. Code blocks, headings, HTML, and table cells without
a full stop are left out. A cell with a full stop counts, except for its figures. A figure is a
number with a unit, such as `5 s`, `12 %` or `3x`. Figures in code and in link text do not count. A
code span is one word. A semicolon or a colon does not end a sentence.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

LONG_WORDS, VERY_LONG_WORDS = 25, 35
HEADINGS = ("page", "sentences", "mean", "longest", "> 35", "> 25", "figures", "nested")
_PAGES = ("*.md", "docs/**/*.md", "examples/*.md")
_CODE = "\ue000"  # represents a code span: no page contains this character
_LINK = "\ue001"  # marks each word of a link's text

_END = re.compile(r"""(?<=[.!?…])[\"'”’)\]*_]*\s+""")
_ABBREVIATION = re.compile(r"(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|approx|Eq|Fig|No|v|p|pp)\.$")
_ADMONITION = re.compile(r"^!!! \w+(?: \"[^\"]*\")?\s*")
_UNITS = (
    "s|ms|µs|ns|min|h|d|seconds?|milliseconds?|minutes?|hours?|days?|"
    "bytes?|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB|"
    "%|‰|percent|percentage points?|points?|x|×|times|tokens?|characters?|Hz|MHz|GHz"
)
_FIGURE = re.compile(rf"(?<![\w.,])(?:\d[\d,.]*|\.\d+)[ \u00a0]?(?:{_UNITS})(?!\w)")


@dataclass(frozen=True)
class Sentence:
    """A sentence of a page."""

    page: str
    line: int
    """Line of the page on which the sentence's block begins, from 1."""
    text: str
    """The sentence as a reader sees it, code spans with their backquotes."""
    words: int
    figures: tuple[str, ...]
    nesting: int
    """Depth of its nested parentheses."""


@dataclass(frozen=True)
class Prose:
    """Sentences of one page, or of several together."""

    page: str
    sentences: tuple[Sentence, ...]

    def row(self) -> tuple[str, ...]:
        """Return the cells of the page's row, in the order of `HEADINGS`."""
        counts = [sentence.words for sentence in self.sentences]
        mean = sum(counts) / len(counts) if counts else 0.0
        return (
            self.page,
            str(len(counts)),
            f"{mean:.1f}",
            str(max(counts, default=0)),
            str(sum(count > VERY_LONG_WORDS for count in counts)),
            str(sum(count > LONG_WORDS for count in counts)),
            str(sum(len(sentence.figures) for sentence in self.sentences)),
            str(sum(sentence.nesting > 1 for sentence in self.sentences)),
        )


def read_prose(page: str, markdown: str) -> Prose:
    """Return the sentences of a page.

    Args:
        page: The page's name, stored in each sentence.
        markdown: The page's text.
    """
    found: list[Sentence] = []
    for line, is_cell, inline in _blocks(MarkdownIt("commonmark").enable("table").parse(markdown)):
        spans = [child.content for child in inline.children or () if child.type == "code_inline"]
        text = _ADMONITION.sub("", _text(inline.children or ()))
        if not is_cell or re.search(r"\.(?:\s|$)", text):
            found += [_sentence(page, line, one, spans, is_cell) for one in split_sentences(text)]
    return Prose(page, tuple(found))


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, without those that contain no word.

    A full stop, a question or exclamation mark or an ellipsis ends a sentence if white space
    follows. The full stop of an abbreviation such as `e.g.` does not.
    """
    sentences, start = [], 0
    for end in _END.finditer(text):
        if not _ABBREVIATION.search(text[: end.start()]):
            sentences.append(text[start : end.end()].strip())
            start = end.end()
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if _count_words(sentence)]


def _blocks(tokens: Sequence[Token]) -> Iterator[tuple[int, bool, Token]]:
    """Yield each block of prose: its line, whether it is a table cell, and its content."""
    line, opened = 1, ""
    for token in tokens:
        if token.map:
            line = token.map[0] + 1
        if token.type.endswith("_open"):
            opened = token.type
        elif token.type == "inline" and opened not in ("heading_open", "th_open"):
            yield line, opened == "td_open", token


def _text(children: Sequence[Token]) -> str:
    """Return the text of a block, with a mark for each code span and each word of a link."""
    parts, is_link = [], False
    for child in children:
        if child.type in ("link_open", "link_close"):
            is_link = child.type == "link_open"
        elif child.type in ("softbreak", "hardbreak"):
            parts.append(" ")
        elif child.type == "code_inline":
            parts.append(_CODE)
        elif child.type == "text":
            parts.append(re.sub(r"(?=\b\w)", _LINK, child.content) if is_link else child.content)
    return "".join(parts)


def _sentence(page: str, line: int, marked: str, spans: list[str], is_cell: bool) -> Sentence:
    """Return the sentence of a marked text; remove its code spans from the front of `spans`."""
    figures = () if is_cell else tuple(match[0] for match in _FIGURE.finditer(marked))
    text = re.sub(_CODE, lambda _: f"`{spans.pop(0)}`", marked).replace(_LINK, "")
    return Sentence(page, line, text, _count_words(marked), figures, _nesting(marked))


def _count_words(marked: str) -> int:
    return sum(bool(re.search(rf"[\w{_CODE}]", word)) for word in marked.split())


def _nesting(text: str) -> int:
    depth = deepest = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    return deepest


def _printed(rows: Sequence[Sequence[str]], as_markdown: bool) -> str:
    """Return rows as a Markdown table, or as columns."""
    if as_markdown:
        ruled = [rows[0], ["---", *["---:"] * (len(rows[0]) - 1)], *rows[1:]]
        return "\n".join(f"| {' | '.join(row)} |" for row in ruled)
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, and the optional lists."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.prose")
    parser.add_argument("files", nargs="*", type=Path, help="Markdown pages (default: all)")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    parser.add_argument("--worst", type=int, default=0, metavar="N", help="the N longest sentences")
    parser.add_argument("--figures", action="store_true", help="each figure with its sentence")
    chosen = parser.parse_args(arguments)
    root = Path(__file__).parents[1]
    files = chosen.files or [
        path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
        for pattern in _PAGES
        for path in sorted(root.glob(pattern))
    ]
    pages = [read_prose(str(path), path.read_text(encoding="utf-8")) for path in files]
    everything = tuple(sentence for page in pages for sentence in page.sentences)
    rows = [HEADINGS, *(page.row() for page in pages)]
    if len(pages) > 1:
        rows.append(Prose("all", everything).row())
    print(_printed(rows, chosen.markdown))
    for one in sorted(everything, key=lambda one: -one.words)[: chosen.worst]:
        print(f"\n{one.page}:{one.line}: {one.words} words\n    {one.text}")
    for one in everything if chosen.figures else ():
        if one.figures:
            print(f"\n{one.page}:{one.line}: {'; '.join(one.figures)}\n    {one.text}")


if __name__ == "__main__":
    main()
