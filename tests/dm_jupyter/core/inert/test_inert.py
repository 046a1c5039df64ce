"""What a run writes loads nothing, whoever reads it."""

from __future__ import annotations

import json
import random
from xml.etree import ElementTree as ET

import html5lib
import nh3
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from dm_jupyter.core.inert import (
    bare_html,
    inert_bundle,
    inert_content,
    inert_html,
    inert_markdown,
    inert_output,
    inert_svg,
)
from dm_jupyter.core.inert.bare import MOST_DEEP
from dm_jupyter.core.inert.bundle import is_heavy
from dm_jupyter.core.inert.css import inert_declarations, inert_sheet
from dm_jupyter.core.inert.markup import _PAINTED as PAINTED
from dm_jupyter.core.inert.markup import _PLAIN as PLAIN
from dm_jupyter.core.inert.markup import _TAGS as TAGS
from tests.examples import examples
from tests.remote import HOST, remote_references, spellings

TABLE = """<style type="text/css">
#T_1_row0_col0,
#T_1_row1_col0 { background-color: #f7fbff; color: #000000; width: calc(10em - 2px) }
@media print { #T_1 { color: red; } }
</style>
<table id="T_1" border="1" class="dataframe"><thead><tr style="text-align: right;"><th></th>
<th colspan="2">sales</th></tr></thead><tbody><tr><th>0</th><td id="T_1_row0_col0">5 &lt; 6 &amp;
7</td></tr></tbody></table>"""
PIXEL = "iVBORw0KGgo="


@pytest.mark.parametrize("markup", spellings("html"))
def test_html_loads_nothing(markup: str) -> None:
    assert remote_references(inert_html(markup)) == []


@pytest.mark.parametrize("markup", spellings("svg"))
def test_svg_loads_nothing_and_is_well_formed(markup: str) -> None:
    drawn = inert_svg(markup)
    assert remote_references(drawn) == []
    assert ET.fromstring(drawn).tag == "{http://www.w3.org/2000/svg}svg"
    assert remote_references(inert_html(markup)) == []


def test_properties_that_once_ran_code_are_left_out_whatever_their_value() -> None:
    css = "behavior: a.htc; Behavior : b; -MOZ-binding: c; color: red"
    assert inert_declarations(css) == "color: red"


@pytest.mark.parametrize("css", spellings("css"))
def test_css_loads_nothing(css: str) -> None:
    kept = inert_declarations(css)
    assert HOST not in kept
    assert "\\" not in kept
    assert HOST not in inert_sheet(f"a{{{css}}} {css} b{{{css}}}")


@pytest.mark.parametrize("text", spellings("markdown"))
def test_markdown_loads_nothing(text: str) -> None:
    kept = inert_markdown(text)
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(kept)
    assert remote_references(rendered) == []
    assert "mermaid" not in kept


def test_the_spellings_are_found_where_nothing_is_taken_out() -> None:
    """The look for references is no empty one: it finds most of what a browser would load."""
    loaded = [markup for markup in spellings("html", "svg") if remote_references(markup)]
    assert len(loaded) > 0.85 * len(spellings("html", "svg"))


def test_a_picture_is_named_where_it_would_have_been() -> None:
    kept = inert_html('<p>before <img src="http://remote.test/a?d=1&e=2" alt="A chart"> after</p>')
    assert kept == (
        '<p>before <span class="dm-remote">[a picture from remote.test, not loaded: '
        "<code>http://remote.test/a?d=1&amp;e=2</code>] A chart</span> after</p>"
    )
    text = inert_markdown("![A chart](http://remote.test/a?d=1)")
    rendered = MarkdownIt().render(text)
    assert "a picture from remote.test, not loaded" in rendered
    assert "http://remote.test/a?d=1" in rendered
    assert "not loaded from remote.test" in inert_html('<p style="background:url(//remote.test)">')


def test_addresses_of_what_is_left_out_without_a_place_are_named_below() -> None:
    kept = inert_html('<p>a</p><embed pluginspage="https://remote.test/get">')
    assert kept == '<p>a</p><p class="dm-remote">[not loaded from remote.test]</p>'


def test_text_counts_as_heavy_however_deep_it_lies() -> None:
    half: object = "x" * 2**14
    for _ in range(45):
        half = [half]
    assert is_heavy({"a": half, "b": [half, "x"]})
    assert not is_heavy({"a": half, "b": half})


def test_tables_and_their_styles_are_kept() -> None:
    kept = inert_html(TABLE)
    assert "#T_1_row0_col0,\n#T_1_row1_col0 { background-color: #f7fbff; color: #000000;" in kept
    assert "@media print { #T_1 { color: red } }" in kept
    assert '<table id="T_1" border="1" class="dataframe">' in kept
    assert '<tr style="text-align: right">' in kept
    assert '<th colspan="2">sales</th>' in kept
    assert "5 &lt; 6 &amp;\n7" in kept


def test_pictures_of_the_document_are_kept() -> None:
    own = f"data:image/png;base64,{PIXEL}"
    assert inert_html(f'<img src="{own}" width="5">') == f'<img src="{own}" width="5">'
    assert f'src="{own}"' in inert_html(f'<video controls><source src="{own}"></video>')
    assert f"url({own})" in inert_html(f'<p style="background: url({own})">')
    assert inert_html('<img src="chart 1.png">') == '<img src="chart 1.png">'
    for text in (f"![a chart]({own})", "![a](attachment:chart.png)", "![a](charts/one.png)"):
        assert inert_markdown(text) == text
    for url in ("../secret.png", "/logout", "login?next=x", "a//b", "x:y", "\\a"):
        assert "<img" not in inert_html(f'<img src="{url}">')


def test_a_drawing_keeps_its_shapes_styles_and_own_references() -> None:
    drawing = (
        '<svg viewBox="0 0 9 9"><style>*{stroke-linejoin:round}</style><defs><clipPath id="c">'
        '<rect width="9" height="9"/></clipPath><linearGradient id="g"><stop offset="0"/>'
        '</linearGradient></defs><path d="M0 0L9 9" clip-path="url(#c)" style="fill: none"/>'
        f'<use xlink:href="#c"/><image href="data:image/png;base64,{PIXEL}"/></svg>'
    )
    kept = inert_svg(drawing)
    names = {element.tag.rpartition("}")[2] for element in ET.fromstring(kept).iter()}
    assert names >= {"clipPath", "linearGradient", "path", "use", "image", "style"}
    assert 'clip-path="url(#c)"' in kept
    assert 'style="fill: none"' in kept
    assert 'xlink:href="#c"' in kept


def test_plain_markdown_is_kept() -> None:
    text = (
        "# Answer\n\nThe mean is **4.2**, `a < b`, 3 < 4, $x^2$ costs $5.<br>H<sub>2</sub>O\n\n"
        "```python\nprint(1 < 2)\n```\n\n| a | b |\n|---|---|\n| 1 | [x](https://a.example) |\n"
    )
    assert inert_markdown(text) == text


def test_what_was_made_inert_stays_as_it_is() -> None:
    for markup in [*spellings("html"), TABLE]:
        once = inert_html(markup)
        assert inert_html(once) == once


PASSING = {*PLAIN.values(), *PAINTED, "style", "href", "xlink:href", "src", "poster", "rel"}
RICH = nh3.Cleaner(
    tags={*TAGS.values(), "style"},
    clean_content_tags={"script"},
    attributes={"*": PASSING},
    link_rel=None,
    url_schemes={"http", "https", "mailto", "data", "attachment"},
)
SPANS = {"colspan", "rowspan"}
BARE = nh3.Cleaner(
    tags={
        *("b", "blockquote", "br", "caption", "code", "dd", "div", "dl", "dt", "em", "h1", "h2"),
        *("h3", "h4", "h5", "h6", "hr", "i", "li", "ol", "p", "pre", "s", "small", "span"),
        *("strong", "sub", "sup", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "u", "ul"),
    },
    attributes={"td": SPANS, "th": SPANS},
)


def tree_of(markup: str) -> list[object]:
    """What a browser makes of it, without declared names, which another sanitizer leaves out."""
    parsed = html5lib.parseFragment(markup, treebuilder="etree", namespaceHTMLElements=False)
    return [
        (
            element.tag,
            sorted((str(k), v) for k, v in element.attrib.items() if "xmlns" not in str(k)),
            element.text or "",
            element.tail or "",
        )
        for element in parsed.iter()
    ]


@pytest.mark.parametrize("markup", [*spellings("html", "svg"), TABLE])
def test_another_sanitizer_finds_nothing_to_take_out(markup: str) -> None:
    """Ammonia, which reads as browsers do, with our lists: it can't stand in for ours, since what
    it makes of a short text may be very long (docs/design/0009-rooms.md)."""
    kept, bare = inert_html(markup), bare_html(markup)
    assert tree_of(RICH.clean(kept)) == tree_of(kept)
    assert tree_of(BARE.clean(bare)) == tree_of(bare)
    assert remote_references(bare) == []


def test_what_comes_out_grows_with_what_goes_in() -> None:
    """By the standard, each paragraph opens again all that the first one left open."""
    many = 4000
    bold = "".join(f"<b id={number}>" for number in range(many))
    markup = f"<p>{bold}</p>{'<p>x</p>' * many}"
    assert len(inert_html(markup)) < len(markup)
    assert len(bare_html(markup)) < len(markup)


def cells_of(markup: str) -> list[tuple[str, str]]:
    parsed = html5lib.parseFragment(markup, treebuilder="etree", namespaceHTMLElements=False)
    return [(x.tag, "".join(x.itertext()).strip()) for x in parsed.iter() if x.tag in {"td", "th"}]


def test_ordinary_tables_keep_their_cells() -> None:
    frame = pd.DataFrame({"a <b>": [1.5, 2], "b": ["x & y", "<script>z</script>"]})
    tables = [
        frame.to_html(),
        frame._repr_html_(),
        frame.set_index(["b", "a <b>"], append=True).unstack().to_html(),
        frame.style.format(escape="html").highlight_max(subset=["a <b>"]).to_html(),
        "<table>" + "".join(f"<tr><th>{n}<td>{n * n}" for n in range(300)) + "</table>",
    ]
    for table in tables:
        assert cells_of(inert_html(table)) == cells_of(table) != []
        assert cells_of(bare_html(table)) == cells_of(table)


@pytest.mark.parametrize(
    ("markup", "bare"),
    [
        ("<ul><li>a<li>b</ul><p>x<p>y", "<ul><li>a</li><li>b</li></ul><p>x</p><p>y</p>"),
        ("<svg><svg><text>no</text></svg>no</svg>yes", "yes"),
        ("<svg/>yes<object><b>no</b></object>", "yes"),
        ("<select><option>no", ""),
        ("<b> </b><hr>", ""),
        ("\x1b[31mred\x1b[0m", "red"),
        ("<a href='https://x'>link</a> <td rowspan=2 id=x>t", 'link <td rowspan="2">t</td>'),
    ],
)
def test_of_bare_markup_tables_and_words_are_left(markup: str, bare: str) -> None:
    assert bare_html(markup) == bare


def test_bare_markup_is_renamed_and_given_attributes_where_asked_for() -> None:
    made = bare_html("<h1>a</h1><table><td>b", renamed={"h1": "h4"}, added={"table": 'border="1"'})
    assert made == '<h4>a</h4><table border="1"><td>b</td></table>'
    assert bare_html("<div>" * 99 + "x").count("<div>") == MOST_DEEP


@examples(300)
@given(st.lists(st.sampled_from([*spellings("html", "svg"), TABLE]), max_size=3), st.randoms())
def test_pieces_of_spellings_load_nothing(chosen: list[str], chance: random.Random) -> None:
    text = "".join(chosen)
    cuts = sorted(chance.randrange(len(text) + 1) for _ in range(6))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    chance.shuffle(pieces)
    mixed = "".join(pieces)
    assert remote_references(inert_html(mixed), is_strict=False) == []
    assert remote_references(inert_svg(f"<svg>{mixed}"), is_strict=False) == []


@examples(300)
@given(st.text(alphabet="<>/!-[]()\"'=&;:#@\\ \nabsrcimgstylesvgurl{}$`~.*", max_size=200))
def test_any_text_becomes_markup_that_loads_nothing(text: str) -> None:
    assert remote_references(inert_html(text)) == []
    drawn = inert_svg(f"<svg>{text}")
    assert drawn == "" or ET.fromstring(drawn) is not None
    rendered = MarkdownIt("commonmark", {"html": True}).render(inert_markdown(text))
    assert remote_references(rendered) == []


def test_media_types_that_are_not_known_are_left_out_and_named() -> None:
    data = {"application/javascript": "fetch('http://remote.test')", "application/x-new": {"a": 1}}
    shown, _ = inert_bundle(data, {})
    assert shown == {"text/plain": "[not shown here: application/javascript, application/x-new]"}
    shown, _ = inert_bundle({**data, "text/plain": "a chart"}, {})
    assert shown == {"text/plain": "a chart"}
    for hostile in ("text/vnd.mermaid", "application/geo+json", "application/pdf", "video/mp4"):
        assert hostile not in inert_bundle({hostile: "x"}, {})[0]


def test_pictures_must_be_what_they_say() -> None:
    shown, sizes = inert_bundle(
        {"image/png": PIXEL, "image/jpeg": 'x" onload="fetch()'},
        {"image/png": {"width": 5}, "image/jpeg": {"width": 1}, "embed_options": {"patch": "//x"}},
    )
    assert shown == {"image/png": PIXEL}
    assert sizes == {"image/png": {"width": 5}}


def test_outputs_of_lines_and_text_are_read() -> None:
    lines = {"output_type": "display_data", "metadata": {}, "data": {"text/html": ["<b>", "x"]}}
    assert inert_output(lines)["data"] == {"text/html": "<b>x</b>"}
    text = {"output_type": "stream", "name": "stdout", "text": "<img src=http://remote.test>"}
    assert inert_output(text) == text


VEGA_LITE = "application/vnd.vegalite.v5+json"
CHART = {
    "$schema": "https://vega.github.io/schema/vega-lite/v5.20.1.json",
    "data": {"name": "d"},
    "datasets": {"d": [{"url": 1, "any column": 2}]},
    "mark": {"type": "bar"},
    "encoding": {"x": {"field": "any column", "type": "quantitative"}},
}
PLOTLY = "application/vnd.plotly.v1+json"
FIGURE = {
    "data": [{"type": "bar", "x": [1], "y": [2]}],
    "layout": {"template": {"data": {"choropleth": [{"type": "choropleth"}]}}},
    "config": {"plotlyServerURL": "https://remote.test"},
}


def test_charts_with_their_data_are_kept() -> None:
    assert inert_bundle({VEGA_LITE: CHART}, {})[0][VEGA_LITE]["datasets"] == CHART["datasets"]
    figure = inert_bundle({PLOTLY: FIGURE}, {})[0][PLOTLY]
    assert figure == {"data": FIGURE["data"], "layout": FIGURE["layout"]}


@pytest.mark.parametrize(
    "change",
    [
        {"data": {"url": "data.csv"}},
        {"data": {"url": {"signal": "x"}}},
        {"usermeta": {"embedOptions": {"patch": "x.json"}}},
        {"mark": {"type": "image"}, "encoding": {"url": {"field": "u"}}},
        {"mark": {"type": "bar", "cursor": "x"}},
        {"mark": {"type": "bar", "tooltip": {"content": "data"}}},
        {"mark": {"type": "bar", "href": "x"}},
        {"params": [{"name": "a", "value": 1}]},
        {"transform": [{"calculate": "1", "as": "b"}]},
        {"title": {"text": {"expr": "1"}}},
        {"config": {"background": "url(x)"}},
        {"description": "//remote.test"},
        {"datasets": {"d": [{"a": "http://remote.test/x.png"}]}},
    ],
)
def test_charts_that_could_load_something_are_left_out(change: dict[str, object]) -> None:
    assert VEGA_LITE not in inert_bundle({VEGA_LITE: {**CHART, **change}}, {})[0]


@pytest.mark.parametrize(
    "change",
    [
        {"data": [{"type": "scattergeo"}]},
        {"data": [{"type": "choroplethmapbox"}]},
        {"data": [{"type": "image", "source": "x"}]},
        {"layout": {"images": [{"source": "x"}]}},
        {"layout": {"title": "<img src=x>"}},
        {"layout": {"font": "//remote.test"}},
        {"data": {"type": "bar"}},
    ],
)
def test_figures_that_could_load_something_are_left_out(change: dict[str, object]) -> None:
    assert PLOTLY not in inert_bundle({PLOTLY: {**FIGURE, **change}}, {})[0]


def widget(**state: object) -> dict[str, object]:
    own = {
        "_model_module": "@jupyter-widgets/controls",
        "_view_module": "@jupyter-widgets/controls",
    }
    return {"comm_id": "c", "data": {"method": "update", "state": {**own, **state}}}


@pytest.mark.parametrize("markup", [*spellings("html")[:60]])
def test_text_of_widgets_loads_nothing(markup: str) -> None:
    made = inert_content(widget(value=markup, description=markup), is_of_widget=True)
    state = made["data"]["state"]
    assert remote_references(state["value"]) == []
    assert remote_references(state["description"]) == []


@pytest.mark.parametrize("css", spellings("css"))
def test_styles_of_widgets_load_nothing(css: str) -> None:
    value = css.partition(":")[2]
    made = inert_content(widget(background=value), is_of_widget=True)
    assert "(" not in made["data"]["state"]["background"].replace("var(", "").replace("calc(", "")


def test_widgets_of_other_packages_are_replaced() -> None:
    program = {"_model_module": "anywidget", "_model_name": "AnyModel", "_esm": "fetch('//x')"}
    for content in (
        {"comm_id": "c", "data": {"state": program}},
        {"data": {"method": "update", "state": {"_esm": "fetch('//x')"}}},
        {"data": {"method": "update", "state": {"_view_module": "leaflet"}}},
        {"data": {"method": "update_states", "states": {"a": {"state": program}}}},
    ):
        text = json.dumps(inert_content(content, is_of_widget=True))
        assert "fetch" not in text
        assert "leaflet" not in text.replace("a widget of leaflet", "")
    made = inert_content(widget(format="url", value="x"), is_of_widget=True)
    assert made["data"]["state"]["format"] == "png"


def test_words_of_widgets_stay_as_they_are() -> None:
    words = {"value": "R&D (2024), a < b", "description": "f(x) = 3", "layout": "IPY_MODEL_1"}
    made = inert_content(widget(**words, width="calc(100% - 2px)"), is_of_widget=True)
    state = made["data"]["state"]
    assert {key: state[key] for key in words} == words
    assert state["width"] == "calc(100% - 2px)"


def test_rich_content_anywhere_in_a_message_is_made_inert() -> None:
    html = {"text/html": '<img src="http://remote.test/x">'}
    for content in (
        {"data": html, "metadata": {"text/html": {"isolated": True}}, "transient": {}},
        {"status": "ok", "payload": [{"source": "page", "data": html}]},
        {"status": "ok", "user_expressions": {"a": {"data": html}}},
        {"data": {"state": {"outputs": [{"output_type": "display_data", "data": html}]}}},
        {"found": True, "data": html},
        {"a": [[[{"b": html}]]]},
    ):
        assert "<img" not in json.dumps(inert_content(content, is_of_widget=False))
    plain = {"status": "ok", "user_expressions": {"a": {"text/plain": "7"}}, "payload": [1, None]}
    assert inert_content(plain, is_of_widget=False) == plain
    deep: object = html
    for _ in range(100):
        deep = {"a": deep}
    assert "img" not in json.dumps(inert_content({"a": deep}, is_of_widget=False))
