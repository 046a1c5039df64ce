"""Outputs of a cell as the page shows them: pictures, tables, text and errors.

`dm_jupyter.core.inert` reduces HTML to tables and text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from dm_jupyter.core.inert import bare_html
from kernel_sandbox.types import CellError, CellResult, Display, Output, Stream
from training.report.pictures import Picture, Pictures
from training.report.words import markdown, plain

__all__ = ["MAX_HTML_CHARS", "Shown", "clean_html", "shown_outputs"]

MAX_HTML_CHARS = 100_000
"""Longer HTML is not shown; its plain text is."""
_LOWERED = {"h1": "h4", "h2": "h5", "h3": "h6"}
"""Replacements for the top headings, which are the page's own."""
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml")


@dataclass(frozen=True, slots=True)
class Shown:
    """One output."""

    kind: str
    """`text`, `stderr`, `error`, `rich`, `picture` or `note`."""
    text: str = ""
    rich: Markup | None = None
    picture: Picture | None = None


def shown_outputs(result: CellResult, pictures: Pictures) -> list[Shown]:
    """Return the outputs of a cell in order, followed by notes on how it ended.

    Args:
        result: the result of the cell.
        pictures: collects the pictures among the outputs.
    """
    shown = [_shown(output, pictures) for output in result.outputs]
    if result.cut_bytes:
        shown.append(Shown("note", f"{result.cut_bytes:,} more bytes of output were not kept."))
    if result.message:
        shown.append(Shown("note", plain(result.message)))
    if result.state_lost:
        shown.append(Shown("note", "The kernel lost its variables here."))
    return [one for one in shown if one.text or one.rich or one.picture]


def _shown(output: Output, pictures: Pictures) -> Shown:
    if isinstance(output, Stream):
        return Shown("text" if output.name == "stdout" else "stderr", plain(output.text))
    if isinstance(output, CellError):
        return Shown("error", _traceback(output))
    return _display(output, pictures)


def _display(output: Display, pictures: Pictures) -> Shown:
    """Return the richest safe form: a picture, a table, markdown, else plain text."""
    words = plain(_content(output.data, "text/plain"))
    for kind in _PICTURES:
        if content := _content(output.data, kind):
            if picture := pictures.add(kind, content):
                return Shown("picture", words, picture=picture)
            return Shown("note", f"A picture ({kind}) of {len(content):,} characters, not shown.")
    if (html := _content(output.data, "text/html")) and (cleaned := clean_html(html)):
        return Shown("rich", rich=cleaned)
    if text := _content(output.data, "text/markdown"):
        return Shown("rich", rich=markdown(text))
    return Shown("text", words or f"[shown as {', '.join(output.data)}]")


def clean_html(html: str) -> Markup | None:
    """Return the tables and text of some HTML; `None` if it is too long or has none."""
    if len(html) > MAX_HTML_CHARS:
        return None
    return Markup(bare_html(html, renamed=_LOWERED)) or None  # noqa: S704  (it is escaped)


def _content(data: Mapping[str, Any], kind: str) -> str:
    """Return the content of a media type, which nbformat also allows as a list of lines."""
    content = data.get(kind, "")
    if isinstance(content, list):
        return "".join(str(line) for line in content)
    return content if isinstance(content, str) else ""


def _traceback(error: CellError) -> str:
    last = f"{error.name}: {error.message}"
    lines = plain("\n".join(error.traceback))
    return lines if error.name in lines else plain(f"{lines}\n{last}")
