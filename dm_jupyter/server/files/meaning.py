"""The files and tables that a question names, and words of it that name nothing here.

`@` before a word names a file or a table. Without it, a file is meant if its whole name appears in
the question. An `@` in code in backquotes names nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dm_jupyter.server.files.file_search import SEARCHED_SUFFIXES, FileSearch, whole_name
from dm_jupyter.server.protocol import DataCandidate

if TYPE_CHECKING:
    from dm_jupyter.server.files.data_files import DataFiles

__all__ = ["Meaning", "Unclear", "has_code", "meaning_of", "mentions_in", "tables_in"]

_BLOCK = re.compile(r"(?s)(`{3,}).*?(?:\1|\Z)")
_CODE = re.compile(rf"{_BLOCK.pattern}|`[^`\n]*`")
_MENTION = re.compile(r"(?:^|(?<=[\s(\[]))@([^\s@]+)")
_ENDINGS = "|".join(
    sorted((re.escape(suffix[1:]) for suffix in SEARCHED_SUFFIXES), key=len, reverse=True)
)
_FILE_NAME = re.compile(
    rf"""(?ix) (?<![\w./@-]) ([^\s"'`,;:()<>\[\]@]+ \. (?:{_ENDINGS})) (?![\w-]|\.\w)"""
)
_AFTER = ".,;:!?)]}\"'"
"""Characters that may follow a name in a sentence."""
_MOST_CANDIDATES = 5
_MOST_NAMES = 20


@dataclass(frozen=True, slots=True)
class Unclear:
    """A word of a question that names nothing, or more than one file."""

    word: str
    candidates: tuple[DataCandidate, ...]
    """What may be meant, the best first."""
    is_unknown: bool
    """Whether nothing has this name."""

    @property
    def sentence(self) -> str:
        """The sentence that the person is shown."""
        if self.is_unknown:
            hint = (
                "Did you mean one of these?" if self.candidates else "Type @ to see what is here."
            )
            return f"“@{self.word}” names no file and no table here. {hint}"
        return f"There are several files “{self.word}”. Which one do you mean?"


@dataclass(frozen=True, slots=True)
class Meaning:
    """The files and tables that a question names."""

    files: tuple[str, ...] = ()
    """As the contents API names them."""
    variables: tuple[str, ...] = ()
    unclear: tuple[Unclear, ...] = ()


def without_code(question: str) -> str:
    """Return a question without the parts in backquotes."""
    return _CODE.sub(" ", question)


def tables_in(question: str, tables: Iterable[str]) -> tuple[str, ...]:
    """Return the tables whose whole names appear in a question; if none does, the only table."""
    names, text = tuple(tables), without_code(question)
    found = [name for name in names if re.search(rf"(?<!\w){re.escape(name)}(?!\w|\.\w)", text)]
    return tuple(found) or (names if len(names) == 1 else ())


def has_code(question: str) -> bool:
    """Return whether a question contains a block of code."""
    return "```" in question


def mentions_in(question: str) -> tuple[str, ...]:
    """Return the words after an `@`, each once."""
    words = (word.rstrip(_AFTER) for word in _MENTION.findall(without_code(question)))
    return tuple(dict.fromkeys(word for word in words if word))[:_MOST_NAMES]


def meaning_of(
    question: str,
    files: DataFiles,
    folder: str,
    *,
    given: Iterable[str] = (),
    variables: Iterable[str] = (),
) -> Meaning:
    """Return what a question names, besides what was given with it; blocks.

    If files were given, only words after an `@` add to them.

    Args:
        question: the question as the person wrote it.
        files: the server's files.
        folder: the folder where names are looked up first, below the server's root.
        given: the files that came with the question.
        variables: the tables of the kernel, by name.
    """
    known, tables = tuple(given), frozenset(variables)
    found: dict[str, None] = {}
    named: dict[str, None] = {}
    unclear: list[Unclear] = []
    for word in mentions_in(question):
        if word in tables:
            named[word] = None
        elif not any(_is_called(path, word) for path in known):
            _look_up(word, files, folder, found, unclear, tables=tables)
    if not known and not found:
        beside = files.named_in(question, folder)
        found |= dict.fromkeys(beside)
        for name in _further_names(question, beside):
            _look_up(name, files, folder, found, unclear, tables=None)
    return Meaning(tuple(found), tuple(named), tuple(unclear))


def _look_up(
    word: str,
    files: DataFiles,
    folder: str,
    found: dict[str, None],
    unclear: list[Unclear],
    *,
    tables: frozenset[str] | None,
) -> None:
    """Add the file that a word names, or why it names none.

    Args:
        word: a whole name, or a path.
        files: the server's files.
        folder: the folder where it is looked up first.
        found: collects the file.
        unclear: collects words that name none, or more than one.
        tables: tables that may be meant instead; `None` if the word need not name anything.
    """
    search = files.search
    paths = files.beside(word, folder) or search.named(word, folder)
    if len(paths) == 1:
        found[paths[0]] = None
    elif paths:
        unclear.append(Unclear(word, _candidates(paths), is_unknown=False))
    elif tables is not None:
        alike = [DataCandidate("variable", name) for name in sorted(tables) if word in name]
        near = _alike(search, word, folder)
        unclear.append(Unclear(word, (*near, *alike)[:_MOST_CANDIDATES], is_unknown=True))


def _alike(search: FileSearch, word: str, folder: str) -> tuple[DataCandidate, ...]:
    return _candidates(search.matching(word, folder, _MOST_CANDIDATES).paths)


def _candidates(paths: Iterable[str]) -> tuple[DataCandidate, ...]:
    return tuple(DataCandidate("file", path) for path in paths)


def _is_called(path: str, word: str) -> bool:
    return f"/{path}".endswith(f"/{word.lstrip('/')}")


def _further_names(question: str, beside: Iterable[str]) -> list[str]:
    """Return the names of data files in a question, besides those of files that were found in it.

    A block of code may name files that it writes, so names in blocks are ignored.
    """
    text = _BLOCK.sub(" ", question)
    for path in sorted(beside, key=len, reverse=True):
        text = whole_name(path.rsplit("/", 1)[-1]).sub(" ", text)
    names = dict.fromkeys(name.removeprefix("./") for name in _FILE_NAME.findall(text))
    return list(names)[:_MOST_NAMES]
