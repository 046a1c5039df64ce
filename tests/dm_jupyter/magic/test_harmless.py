"""What a restricted kernel shows must do nothing in the page that shows it."""

from __future__ import annotations

from html.parser import HTMLParser

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dm_jupyter.core.plain_text import harmless_text
from dm_jupyter.magic.harmless import fenced, harmless_bundle, harmless_markdown

TAGS = ("script", "img", "a", "iframe", "svg", "math", "style", "table", "b", "td", "noscript")
PIECES = st.sampled_from(
    [*(f"<{tag}" for tag in TAGS), *(f"</{tag}>" for tag in TAGS), " onload=x ", ' src="//h" ',
     ">", "/>", "<!--", "-->", "<![CDATA[", "]]>", "&lt;script&gt;", "'", '"', "words", "\x00", "<"]
)  # fmt: skip


class Seen(HTMLParser):
    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += [data] if data.strip() else []


def _shown_html(markup: str) -> str:
    return str(harmless_bundle({"text/html": markup, "text/plain": "t"}, {})[0].get("text/html"))


def test_the_table_of_a_frame_stays_whole() -> None:
    frame = pd.DataFrame({"a <b>": [1], "b": ["<script>alert(1)</script> & y"]})
    raw = frame._repr_html_()
    seen = Seen(_shown_html(raw))
    assert "<style" in raw
    assert seen.words == ["a <b>", "b", "0", "1", "<script>alert(1)</script> & y"]
    assert [tag for tag, _ in seen.tags if tag in ("th", "td")] == ["th"] * 4 + ["td"] * 2


@given(st.lists(PIECES, max_size=30).map("".join))
def test_no_markup_gets_through_but_the_known(markup: str) -> None:
    for tag, attributes in Seen(_shown_html(f"words {markup} words")).tags:
        assert tag in ("table", "b", "td")
        assert set(attributes) <= {"border", "class", "colspan", "rowspan"}


@pytest.mark.parametrize(
    "markup",
    [
        "<script>alert(1)</script>",
        "<script>alert(1)",
        "<style>words</style>",
        "<svg><b>x</b></svg>",
    ],
)
def test_html_without_a_word_of_text_falls_back_to_plain_text(markup: str) -> None:
    shown, _ = harmless_bundle({"text/html": markup, "text/plain": "<Chart>"}, {})
    assert shown == {"text/plain": "<Chart>"}


def test_pictures_come_through_with_their_size_and_nothing_else() -> None:
    data = {"image/png": "iVBORw0=\n", "image/jpeg": '"><script>', "image/svg+xml": "<svg/>"}
    metadata = {"image/png": {"width": 5, "height": "6", "onload": "x"}, "other": {}}
    shown, sizes = harmless_bundle({**data, "application/javascript": "alert(1)"}, metadata)
    assert set(shown) == {"image/png", "text/plain"}
    assert sizes == {"image/png": {"width": 5}}


def test_what_can_not_be_shown_is_named() -> None:
    shown, _ = harmless_bundle({"application/javascript": "alert(1)"}, {})
    assert shown == {"text/plain": "[shown as application/javascript]"}


@pytest.mark.parametrize(
    ("text", "inert"),
    [
        ("<script>x</script>", "<\u200bscript>x<\u200b/script>"),
        ("![p](http://h/?d=1)", "![p]\u200b(http://h/?d=1)"),
        ("[p][q]\n\n[q]: javascript:x", "[p]\u200b[q]\n\n[q]\u200b: javascript:x"),
        ("<!-- --> <javascript:x>", "<\u200b!-- --> <\u200bjavascript:x>"),
        ("**3 < 4** and `a[0]`", "**3 < 4** and `a[0]`"),
        ("$5 or `$x`", "<span>\\$</span>5 or `$x`"),
        ("$5", "$5"),
    ],
)
def test_markdown_keeps_its_form_and_loses_tags_links_and_formulas(text: str, inert: str) -> None:
    assert harmless_markdown(text) == inert
    assert harmless_bundle({"text/markdown": text}, {})[0]["text/markdown"] == inert


def test_code_can_not_end_its_own_block() -> None:
    block = fenced("x = '''\n```\n<b>'''", "python").splitlines()
    assert (block[0], block[-1]) == ("````python", "````")


def test_control_characters_are_dropped_and_line_ends_made_one() -> None:
    assert harmless_text("\x1b[31mred\x1b[0m\x07\r\nnext\r10 %\ttab") == "red\nnext\n10 %\ttab"
