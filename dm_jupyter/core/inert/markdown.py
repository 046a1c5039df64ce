"""Sanitizer for Markdown, so that a notebook that shows it loads nothing.

*Covered*: pictures in every notation (inline address, reference, address with brackets), HTML
except a few tags without attributes, diagrams, which draw HTML of their own, and attributes that a
formula could carry into a link.
*Not covered*: links, which lead elsewhere once somebody clicks them.
"""

from __future__ import annotations

import re

from dm_jupyter.core.inert.markup import CLASS, host_of, is_inert, visible_address

__all__ = ["inert_markdown"]

_BREAK = "\u200b"
"""A zero-width space, which is enough to make a picture or a tag plain text."""
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_LINE_END = re.compile(r"\r\n?|[\u2028\u2029]")
_SPECIAL = re.compile(
    r"""(?x)
    !\[ (?P<alt>[^\]\[\n]{0,400}) \] \( \s* <?(?P<url>[^\s()<>]+)>? (?:\s+"[^"\n]{0,400}")? \s* \)
    | (?P<bang>!(?=\[))
    | </?(?:b|blockquote|br|code|dd|del|details|div|dl|dt|em|h[1-6]|hr|i|kbd|li|mark|ol|p|pre|s
        |samp|small|span|strong|sub|summary|sup|table|tbody|td|tfoot|th|thead|tr|u|ul)\s*/?>
    | (?P<tag><(?=[A-Za-z/!?]))
    """
)
_FENCE = re.compile(r"^(?P<fence>[ \t>*+.\d)-]*(?:`{3,}|~{3,}))(?P<about>[^\n]*)$", re.MULTILINE)
_LANGUAGE = re.compile(r"\s*[\w+#.-]*\s*")
_FORMULA = re.compile(r"\$|\\\\[(\[]|\\begin\b")
_STYLE = re.compile(r"(?i)\bstyle(?=\s*=)")
_WORD = re.compile(r"[^\w .,-]+")
_UNSPOKEN = re.compile(r"[^A-Za-z0-9]")


def inert_markdown(text: str) -> str:
    """Return Markdown that loads nothing, with words in place of its remote pictures."""
    text = _LINE_END.sub("\n", _CONTROL.sub("", text))
    text = _FENCE.sub(_fence, text)
    text = _SPECIAL.sub(_special, text)
    if _FORMULA.search(text):
        # A formula is put back after the rest was rendered, with its quotes. In the address or the
        # title of a link it could close that attribute and add a style.
        text = _STYLE.sub(f"style{_BREAK}", text)
    return text


def _fence(found: re.Match[str]) -> str:
    """Return the start of a code block as `text`, unless its info is plainly a language."""
    about = found["about"]
    if "`" in about and "`" in found["fence"]:  # code within a line
        return found[0]
    if _LANGUAGE.fullmatch(about) and "mermaid" not in about.lower():
        return found[0]
    return f"{found['fence']}text"


def _special(found: re.Match[str]) -> str:
    if found["url"] is not None:
        return _picture(found["alt"], found["url"])
    if found["bang"]:
        return f"!{_BREAK}"
    return f"<{_BREAK}" if found["tag"] else found[0]


def _picture(alt: str, url: str) -> str:
    alt = _WORD.sub(" ", alt).strip()
    if is_inert(url) and "$" not in url and "\\" not in url and '"' not in url:
        return f"![{alt}]({url})"
    words = _as_entities(f"a picture from {host_of(url)}, not loaded")
    address = _as_entities(visible_address(url))
    return f'<span class="{CLASS}">[{words}: <code>{address}</code>]</span> {alt}'.rstrip()


def _as_entities(text: str) -> str:
    """Return the text escaped so that neither Markdown nor HTML can interpret any character."""
    return _UNSPOKEN.sub(lambda found: " " if found[0] == " " else f"&#{ord(found[0])};", text)
