"""What a cleaning saved and what it changed, in words that a person can check.

The files are those of the working folder. The kernel records rows and values, and it can forge
them: they are shown, never trusted. What was not recorded is reported as unknown.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from dm_jupyter.core.data_facts import fact_words
from kernel_sandbox.ledger.facts import Fact
from kernel_sandbox.types import CellResult, FileChange

__all__ = ["cleaning_words", "saved_files", "saved_pictures"]

_PICTURES = frozenset({".png", ".jpg", ".jpeg", ".svg", ".gif", ".webp", ".pdf", ".html"})
_NO_DATA = _PICTURES | {".py", ".ipynb", ".pkl", ".joblib", ".md", ".log"}
_MOST_FILES, _MOST_CHANGES = 10, 8
_UNCOUNTED = "changes of text, names and types are not counted"


def saved_files(results: Sequence[CellResult]) -> tuple[str, ...]:
    """Return the names of the data files that cells have left in the working folder.

    If the kernel does not report file changes, return the files that the cells claim to have saved
    there.

    Args:
        results: the results of the run's cells, in order.
    """
    return _files_of(results, lambda ending: ending not in _NO_DATA)


def saved_pictures(results: Sequence[CellResult]) -> tuple[str, ...]:
    """Return the names of the pictures that cells have left in the working folder.

    Args:
        results: the results of the run's cells, in order.
    """
    return _files_of(results, lambda ending: ending in _PICTURES)


def _files_of(results: Sequence[CellResult], is_wanted: Callable[[str], bool]) -> tuple[str, ...]:
    changes = _last_changes(results)
    names: Iterable[str] = (
        change.path
        for change in changes.values()
        if change.kind != "removed" and change.state == "written"
    )
    if not changes:
        told = (fact.condition for fact in _facts(results) if fact.kind == "saved")
        names = (_place(name) for name in told if not name.startswith(("/", "..", "~")))
    return tuple(
        dict.fromkeys(name for name in names if is_wanted(PurePosixPath(name).suffix.lower()))
    )


def cleaning_words(results: Sequence[CellResult], given: Collection[str]) -> tuple[str, ...]:
    """Return the lines shown below the answer of a cleaning, one for each file.

    Args:
        results: the results of the run's cells, in order.
        given: names of the files that the question is about, as the code writes them.
    """
    names = saved_files(results)
    facts = _facts(results)
    lines = [*_given_words(results, given)]
    lines += [_saved_words(name, names, facts) for name in names[:_MOST_FILES]]
    if len(names) > _MOST_FILES:
        lines.append(f"Saved {len(names) - _MOST_FILES:,} more files")
    return tuple(f"{line}." for line in (lines if names else [*lines, "No file was saved"]))


def _last_changes(results: Iterable[CellResult]) -> dict[str, FileChange]:
    return {change.path: change for result in results for change in result.files}


def _facts(results: Iterable[CellResult]) -> list[Fact]:
    return [fact for result in results for fact in result.facts]


def _given_words(results: Sequence[CellResult], given: Collection[str]) -> Iterator[str]:
    """Yield what happened to the files of the question, if anything did."""
    for change in _last_changes(results).values():
        if change.kind == "made" or not _is_among(change.path, given):
            continue
        done = "overwritten" if change.kind == "changed" else "removed"
        was = "was" if change.state == "written" else "was not"
        yield f"{_name(change.path)}, which the question is about, {was} {done}"


def _saved_words(name: str, saved: Collection[str], facts: Sequence[Fact]) -> str:
    """Return the line for one file: its rows, and why the others are missing."""
    at = _saved_at(name, facts)
    if at is None:
        return f"Saved {_name(name)}; what was changed in it is not known"
    rows = facts[at].after or 0
    way, began = _way_to(at, facts, saved)
    read = None if began is None else facts[began]
    origin = read.after if read else way[0].before if way else None
    if origin is None:
        return "; ".join([f"Saved {_name(name)}: {rows:,} rows", *_unlinked(rows, facts, at)])
    changes = list(map(_step_words, way))
    between = facts[0 if began is None else began : at]
    changes += dict.fromkeys(
        fact_words(fact) for fact in between if fact.kind in ("lost", "filled")
    )
    if len(changes) > _MOST_CHANGES:
        changes = [*changes[:_MOST_CHANGES], f"{len(changes) - _MOST_CHANGES} more changes"]
    head = f"Saved {_name(name)}: {rows:,} of {origin:,} rows kept"
    return "; ".join([head, *(changes or [_UNCOUNTED])])


def _saved_at(name: str, facts: Sequence[Fact]) -> int | None:
    """Return the index of the fact that last saved the file, or `None`."""
    for at in range(len(facts) - 1, -1, -1):
        if facts[at].kind == "saved" and _is_same(facts[at].condition, name):
            return at
    return None


def _way_to(
    at: int, facts: Sequence[Fact], saved: Collection[str]
) -> tuple[list[Fact], int | None]:
    """Return the selections that led to the saved rows, and the index of the read they began with.

    They are traced back by row count: each one's output has as many rows as the next one's input.
    """
    rows, way = facts[at].after, list[Fact]()
    for place in range(at - 1, -1, -1):
        fact = facts[place]
        if rows is None or fact.after != rows:
            continue
        if fact.kind == "read" and not _is_among(fact.condition, saved):
            return way[::-1], place
        takes_out = fact.kind in ("kept", "dropped") and fact.operation != "groupby"
        if takes_out and fact.before is not None and fact.before > rows:
            way.append(fact)
            rows = fact.before
    return way[::-1], None


def _unlinked(rows: int, facts: Sequence[Fact], at: int) -> Iterator[str]:
    """Yield the words for a file whose way from the read rows to the saved ones is unknown."""
    reads = {fact.condition: fact for fact in facts[:at] if fact.kind == "read"}
    if len(reads) != 1:
        yield "how many there were before is not known"
        return
    (read,) = reads.values()
    before = read.after or 0
    yield f"{_name(read.condition)} has {before:,}, and why {rows:,} are left was not noted"


def _step_words(fact: Fact) -> str:
    count = (fact.before or 0) - (fact.after or 0)
    rows = "1 row" if count == 1 else f"{count:,} rows"
    of = fact.condition.strip("[]")
    if fact.kind == "kept":
        return f"{rows} dropped, kept were those with {of}" if of else f"{rows} not selected"
    match fact.operation:
        case "drop_duplicates":
            again = f"duplicate {'row' if count == 1 else 'rows'}"
            return f"{count:,} {again} dropped" + (f" (the same {of})" if of else "")
        case "dropna":
            return f"{rows} without {of} dropped" if of else f"{rows} with gaps dropped"
    return f"{rows} dropped"


def _place(name: str) -> str:
    return posixpath.normpath(name.replace("\\", "/"))


def _is_same(told: str, name: str) -> bool:
    """Whether a path in code is that file of the folder; it may be the full path."""
    told, name = _place(told), _place(name)
    return told == name or (told.startswith("/") and told.endswith(f"/{name}"))


def _is_among(name: str, names: Collection[str]) -> bool:
    return any(_is_same(name, one) or _is_same(one, name) for one in names)


def _name(path: str) -> str:
    return "".join(mark if mark.isprintable() else " " for mark in path[:200])
