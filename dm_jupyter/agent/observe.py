"""What the model is shown of a cell: its output and its error, cut to a size it can read."""

from __future__ import annotations

import re
from base64 import b64decode

from dm_jupyter.agent.figures.figure_words import figure_words, is_figure
from dm_jupyter.core.limits_met import is_own_error, limit_met
from dm_jupyter.core.tracebacks import failing_line, without_colours
from kernel_sandbox.types import CellError, CellResult, CellStatus, Display, Stream

__all__ = ["describe", "figures_in", "pictures_in", "shorten"]

_WARNING = re.compile(r"(?:\S.*?:\d+: )?(?P<kind>\w*Warning): ?(?P<text>.*)")
_NOISE_KIND = re.compile(
    r"(?:Future|Deprecation|PendingDeprecation|VisibleDeprecation|\w*Deprecated|Pandas\w*|Performance|Dtype"
    r"|Import|Resource)Warning"
)
"""Warnings about a library's versions, its speed and its own types."""
_NOISE_TEXT = re.compile(
    r"\bfindfont:|Glyph \d+.*missing from|font family|Matplotlib is building the font cache"
)
_MOST_PICTURES, _PICTURE_CHARS = 2, 1_500_000
_PICTURES = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff"}
"""Media types that every endpoint accepts, with the first bytes of such a file."""


def shorten(text: str, limit_chars: int) -> str:
    """Return `text`, or its head and tail around a line that says how much was cut."""
    if len(text) <= limit_chars:
        return text
    head = limit_chars * 2 // 3
    tail = limit_chars - head
    cut = len(text) - head - tail
    return f"{text[:head]}\n[… {cut:,} characters cut …]\n{text[-tail:]}"


def describe(result: CellResult, limit_chars: int = 4000, *, is_quiet: bool = True) -> str:
    """Return what a cell printed, showed and raised, in order, as plain text.

    Args:
        result: the cell's result.
        limit_chars: the length to which the output is cut; an error is added in full.
        is_quiet: whether known noise of libraries is left out; warnings about the data never are.
    """
    said = (_shown(output, is_quiet=is_quiet) for output in result.outputs)
    shown = "\n".join(filter(None, said))
    parts = [shorten(shown, limit_chars)] if shown else []
    if result.cut_bytes:
        parts.append(f"[… {result.cut_bytes:,} more bytes of output were not kept …]")
    if result.error is not None and is_own_error(result):
        parts.append(_error_text(result.error))
    if result.message:
        parts.append(_limit_text(result) or result.message)
    if result.state_lost:
        parts.append("The kernel is empty now: every variable is gone, load the data again.")
    if not parts and result.status is not CellStatus.OK:
        parts.append(f"The cell ended with status {result.status}.")
    return "\n".join(parts)


def figures_in(result: CellResult) -> list[str]:
    """Return what the figures of a cell show, in words."""
    shown = [output for output in result.outputs if isinstance(output, Display)]
    return [words for output in shown if (words := figure_words(output.data))]


def pictures_in(result: CellResult) -> tuple[str, ...]:
    """Return the last figures of a cell as `data:` URLs, without invalid or large pictures.

    Args:
        result: the cell's result, into which its kernel may have put anything.
    """
    shown = [output for output in result.outputs if isinstance(output, Display)]
    found = [
        f"data:{kind};base64,{data}"
        for output in shown
        for kind, begin in _PICTURES.items()
        if (data := _picture(output.data.get(kind), begin))
    ]
    return tuple(found[-_MOST_PICTURES:])


def _picture(data: object, begin: bytes) -> str:
    """Return the picture in base64 without white space; "" if it is not a picture."""
    if not isinstance(data, str) or len(data) > _PICTURE_CHARS:
        return ""
    text = "".join(data.split())
    try:
        return text if b64decode(text, validate=True).startswith(begin) else ""
    except ValueError:
        return ""


def _shown(output: Stream | Display | CellError, *, is_quiet: bool) -> str:
    if isinstance(output, Stream):
        text = without_colours(output.text).rstrip("\n")
        return text if output.name == "stdout" or not is_quiet else _without_noise(text)
    if isinstance(output, Display):
        words = figure_words(output.data)
        if words or is_figure(output.data):
            return f"[a figure was shown. {words}]" if words else "[a figure was shown]"
        return str(output.data.get("text/plain", f"[shown as {', '.join(output.data)}]"))
    return ""


def _without_noise(text: str) -> str:
    """Return standard error without what libraries say of themselves, which misleads small models.

    Every other warning stays, such as `Mean of empty slice`, but without its path in the library.
    """
    kept: list[str] = []
    is_warned = False
    for line in text.splitlines():
        if is_warned and line.startswith("  "):  # the library's own line
            continue
        warned = _WARNING.match(line)
        is_warned = warned is not None
        said = f"{warned['kind']}: {warned['text']}" if warned else line
        is_noise = _NOISE_TEXT.search(line) or (warned and _NOISE_KIND.fullmatch(warned["kind"]))
        if not is_noise and not (warned and said in kept):
            kept.append(said)
    return "\n".join(kept).strip()


def _limit_text(result: CellResult) -> str:
    """Return the limit's name and the line of the cell that it interrupted; "" if none."""
    name = limit_met(result)
    if not name:
        return ""
    is_interrupted = result.error is not None and not is_own_error(result)
    line = failing_line(result.error) if result.error and is_interrupted else ""
    where = f"line: {line}\n" if line else ""
    return f"{where}{name}: {result.message}"


def _error_text(error: CellError) -> str:
    """Return the exception, and the line of the cell that raised it."""
    trace = without_colours("\n".join(error.traceback))
    line = failing_line(error)
    where = f"line: {line}\n" if line else ""
    if error.name in ("SyntaxError", "IndentationError"):
        return trace.strip() or f"{error.name}: {error.message}"
    return f"{where}{error.name}: {shorten(without_colours(error.message), 600)}"
