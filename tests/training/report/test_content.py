import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from dm_jupyter.core.inert.bare import MOST_DEEP
from kernel_sandbox.types import CellResult, CellStatus, Display
from tests.training.report.report_runs import PNG, TREE, VOTE, a_node, a_record, ran
from training.report.entries import verdict_kind, verdict_of
from training.report.figures import figures_of
from training.report.notebooks import highlight
from training.report.outputs import MAX_HTML_CHARS, clean_html, shown_outputs
from training.report.pictures import MAX_BYTES, Pictures
from training.report.plots import LogScale, accuracy_plot, failure_plot, pass_plot, token_plot
from training.report.search import SearchError, Tree, VoteCount, search_from_json
from training.report.search_page import rows_of, tree_page, vote_page
from training.report.tables import overall
from training.report.words import MAX_TEXT_CHARS as MAX_WORDS
from training.report.words import markdown, plain


@pytest.mark.parametrize(
    ("html", "clean"),
    [
        ("<b>bold</b>", "<b>bold</b>"),
        ("<B CLASS=x onclick='y'>bold", "<b>bold</b>"),
        ("a<script>x()</script>b", "ab"),
        ("a<style>p {}</style><!-- c -->b", "ab"),
        ("a<script>never ends", "a"),
        ("<h1>head</h1>", "<h4>head</h4>"),
        ("<td colspan='2' rowspan=3 style=x>t</td>", '<td colspan="2" rowspan="3">t</td>'),
        ("<td colspan='2000'>t</td>", "<td>t</td>"),
        ("a</div></template></div>b", "ab"),
        ("<b><i>x</b>y</i>", "<b><i>x</i></b>y"),
        ("<a href='javascript:x()'>link</a><br>", "link<br>"),
        ("&lt;script&gt;x &amp;amp; <3", "&lt;script&gt;x &amp;amp; &lt;3"),
        ("<p title='>'>t</p>", "<p>t</p>"),
        ("<img src=x onerror=y>", None),
        ("<scr<script>ipt>x", "ipt&gt;x"),
    ],
)
def test_only_listed_tags_are_left_and_all_are_closed(html: str, clean: str | None) -> None:
    assert clean_html(html) == clean


@given(st.text(alphabet="<>/ab\"'= tdscript!-&;\x00\n", max_size=80))
def test_clean_html_has_no_tag_but_the_listed(html: str) -> None:
    cleaned = clean_html(html) or ""
    for piece in cleaned.split("<")[1:]:
        name, _, rest = piece.partition(">")
        assert rest is not None
        assert name.lstrip("/") in {"b", "td", "i", "p", "s", "tr", "dd", "dt"}


@pytest.mark.parametrize("piece", ["<b>", "<div>x", "<table><td>x", "<p></b>x", "<i><b></i>x"])
def test_tags_are_never_open_deeper_than_the_limit(piece: str) -> None:
    cleaned = clean_html((piece + "x") * 1000)
    deepest = open_now = 0
    for tag in re.findall(r"</?", cleaned or ""):
        open_now += 1 if tag == "<" else -1
        deepest = max(deepest, open_now)
    assert open_now == 0
    assert 0 < deepest <= MOST_DEEP


def test_html_that_is_too_long_is_not_shown() -> None:
    assert clean_html("x" * MAX_HTML_CHARS) is not None
    assert clean_html("x" * (MAX_HTML_CHARS + 1)) is None


def test_terminal_codes_are_taken_out() -> None:
    assert (
        plain("\x1b[31;1mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07 a\x00b") == "red link ab"
    )
    assert plain("10 %\r50 %\r100 %\nnext\r\nlast\r") == "100 %\nnext\nlast"
    assert len(plain("x" * 10 * MAX_WORDS)) < 1.1 * MAX_WORDS


@given(st.text())
def test_plain_text_never_holds_what_steers_a_terminal(text: str) -> None:
    assert not set(plain(text)) & {"\x1b", "\x00", "\x07", "\r", "\x9b"}


def test_markdown_keeps_html_as_text_and_follows_no_link() -> None:
    rendered = markdown("# top\n\n<b>x</b> [a](http://x) ![p](http://x/p.png) <http://y>\n\n    c")
    assert "<h3>top</h3>" in rendered
    assert "&lt;b&gt;" in rendered
    assert all(tag not in rendered for tag in ("<a", "<img", "<b>"))
    assert "<table>" in markdown("| a |\n|---|\n| 1 |")


@given(st.text())
def test_highlighting_changes_no_letter_of_the_code(source: str) -> None:
    assert highlight(source, "python").striptags() == escape(plain(source)).striptags()
    assert highlight(source, "python").replace("<i class=", "").count("<") == highlight(
        source, "python"
    ).count("</i>")


def test_sql_and_unknown_languages() -> None:
    assert '<i class="k">SELECT</i>' in highlight("SELECT 1", "sql")
    assert highlight("SELECT <1>", "klingon") == "SELECT &lt;1&gt;"


def test_the_richest_safe_form_of_an_output_is_shown() -> None:
    pictures = Pictures()
    outputs = [
        Display({"text/plain": "t", "image/png": PNG, "text/html": "<b>h</b>"}),
        Display({"text/plain": "t", "text/html": ["<b>", "h</b>"]}),
        Display({"text/plain": "t", "text/html": "<img src=x>"}),
        Display({"text/plain": "t", "text/markdown": "*m*"}),
        Display({"application/vnd.plotly": {}}),
        Display({"image/png": "no base64!", "text/plain": "t"}),
    ]
    shown = shown_outputs(ran(*outputs), pictures)
    assert [one.kind for one in shown] == ["picture", "rich", "text", "rich", "text", "note"]
    assert shown[1].rich == "<b>h</b>"
    assert shown[4].text == "[shown as application/vnd.plotly]"
    assert [picture.data for picture in pictures] == [PNG]


def test_what_became_of_a_cell_stands_below_its_outputs() -> None:
    result = CellResult(CellStatus.MEMORY, (), 1, cut_bytes=9, message="too much", state_lost=True)
    notes = [one.text for one in shown_outputs(result, Pictures())]
    assert notes == [
        "9 more bytes of output were not kept.",
        "too much",
        "The kernel lost its variables here.",
    ]


def test_pictures_that_are_too_large_or_of_another_kind_are_left_out() -> None:
    pictures = Pictures()
    assert pictures.add("image/png", "QUJD" * (MAX_BYTES // 3 + 1)) is None
    assert pictures.add("text/html", PNG) is None
    assert pictures.add("image/png", "") is None
    kept = pictures.add("image/svg+xml", "<svg/>")
    assert kept is not None
    assert kept.data == "PHN2Zy8+"


def test_the_verdict_tells_each_part_and_by_whose_rules() -> None:
    record = a_record()
    verdict = verdict_of(record)
    (part,) = verdict.parts
    assert (part.name, part.expected, part.answered, part.right, part.strict) == (
        "mass", "4207.3", "4207.3", True, True,
    )  # fmt: skip
    assert verdict.expected is None
    assert verdict_kind(record) == "right"
    assert verdict_kind(replace(record, strict_correct=False)) == "ours"
    assert verdict_kind(replace(record, correct=False)) == "strict"
    assert verdict_kind(replace(record, correct=False, strict_correct=False)) == "wrong"


def test_a_label_that_names_nothing_is_shown_whole() -> None:
    verdict = verdict_of(
        replace(a_record(), label={"rows": [[1, "a"]]}, parts={"rows equal": False})
    )
    assert '"rows"' in (verdict.expected or "")
    repeated = replace(
        a_record(), label=[["c", "1"], ["c", "2"]], parts={"c": True, "c#2": False}, answer="@c[1]"
    )
    assert [part.expected for part in verdict_of(repeated).parts] == ["1", "2"]


@pytest.mark.parametrize(
    ("label", "parts", "answer", "answered"),
    [
        ([["c", "1"], ["c", "2"]], {"c": True, "c#2": True}, "@c[1]\n@c[2]", ["1", "2"]),
        ([["c", "1"], ["c", "2"]], {"c": True, "c#2": True}, "@c[2] @c[1]", ["1", "2"]),
        ([["c", "1"], ["c", "2"]], {"c": False, "c#2": True}, "@c[3] @c[2]", ["3", "2"]),
        ([["mean_age", "34.65"]], {"mean_age": True}, "@Mean Age[34.65]", ["34.65"]),
        ([["x", "1"]], {"x": False}, "@x[1] @x[2]", ["2"]),
        ([["x", "1"]], {"x": False}, "@y[1]", [None]),
        ({"mean_age": 34.65}, {"mean_age": True}, "@Mean Age[34.650]", ["34.650"]),
        (None, {"mean_age": True}, "@Mean Age[34.65]", ["34.65"]),
        (None, {"c": True, "c#2": True}, "@c[1] @c[2]", [None, None]),
    ],
)
def test_beside_each_label_stands_the_answer_that_the_scorer_held_against_it(
    label: object, parts: dict[str, bool], answer: str, answered: list[str | None]
) -> None:
    verdict = verdict_of(replace(a_record(), label=label, parts=parts, answer=answer))
    assert [part.answered for part in verdict.parts] == answered
    assert [part.right for part in verdict.parts] == list(parts.values())


def test_votes_are_shown_largest_group_first() -> None:
    vote = search_from_json({**VOTE, "runs": []})
    assert isinstance(vote, VoteCount)
    rows = vote_page(vote).rows
    assert [(row.count, row.trials, row.is_chosen) for row in rows] == [
        (2, "1, 2", True),
        (1, "3", False),
    ]


def test_the_chosen_path_of_a_tree_leads_from_the_root() -> None:
    tree = search_from_json(TREE)
    assert isinstance(tree, Tree)
    assert tree.best_path == (0, 2)
    assert tree.nodes[0].value == 0.5
    assert [row.is_best for row in tree_page(tree).rows] == [True, False, True]


def test_no_two_leaves_share_a_row_and_parents_stand_between_their_children() -> None:
    # by hand: leaves 3, 4, 2 in the order of the walk; 1 between 3 and 4; 0 between 1 and 2
    raw = [a_node(0, None), a_node(1, 0), a_node(2, 0), a_node(3, 1), a_node(4, 1)]
    tree = search_from_json({"kind": "search", "nodes": raw, "chosen": 4})
    assert isinstance(tree, Tree)
    assert rows_of(tree.nodes) == {3: 0.0, 4: 1.0, 1: 0.5, 2: 2.0, 0: 1.25}


def test_a_deep_tree_is_drawn() -> None:
    raw = [a_node(0, None), *(a_node(number, number - 1) for number in range(1, 3000))]
    tree = search_from_json({"kind": "search", "nodes": raw, "chosen": 2999})
    assert isinstance(tree, Tree)
    assert len(tree_page(tree).rows) == 3000


_NAMES = st.sampled_from(["id", "parent", "visits", "answer", "terminal"])
_VALUES = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(_NAMES, inner),
)


@given(st.dictionaries(st.sampled_from(["nodes", "groups", "chosen"]), _VALUES))
def test_whatever_is_stored_is_no_crash(raw: dict[str, object]) -> None:
    for kind in ("vote", "search", None):
        try:
            found = search_from_json({**raw, "kind": kind})
        except SearchError:
            continue
        assert isinstance(found, VoteCount)  # of no groups


def _figures(*, trials: int = 1):
    rights = {"a": True, "b": False, "c": True}
    records = [
        replace(a_record(name=name, right=right, trial=t), tokens=10 + t, groups={"level": [name]})
        for name, right in rights.items()
        for t in range(trials)
    ]
    return figures_of("run", records, {})


@pytest.mark.parametrize("plot", [accuracy_plot, failure_plot, token_plot])
def test_a_plot_has_a_title_and_names_its_runs(plot: Callable) -> None:
    one, two = plot([_figures()]), plot([_figures(), _figures()])
    assert f'aria-label="{one.title.split(",")[0].split(";")[0]}' in one.svg.replace("&#39;", "'")
    assert len(two.svg) > len(one.svg)


def test_the_plots_show_the_figures() -> None:
    figures = _figures()
    assert "run: 66.7% (21% to 94%)" in accuracy_plot([figures]).svg  # Wilson, 2 of 3
    assert "wrong value: 1 (33.3%)" in failure_plot([figures]).svg
    assert failure_plot([figures]).legend == (("c1", "wrong value"),)
    assert token_plot([figures]).svg.count("<circle") == 3


def test_pass_at_k_is_drawn_where_there_are_several_tries() -> None:
    assert pass_plot([_figures()]) is None
    several = pass_plot([_figures(trials=2)])
    assert several is not None
    assert several.svg.count("<circle") == 2
    rows = {row.labels[0]: row.cells for row in overall([_figures(trials=2), _figures()]).rows}
    assert rows["pass@2, by our rules"] == ("66.7% (21–94)", "–")
    assert rows["any of the tries, by our rules"] == ("66.7% (21–94)", "–")
    assert rows["right by our rules"][1] == "66.7% (21–94)"


def test_counts_lie_on_a_scale_of_doublings() -> None:
    scale = LogScale(0, 100, 1, 16)
    assert [scale.place(count) for count in (0, 1, 4, 16, 99)] == [0, 0, 50, 100, 100]
    assert list(scale.ticks()) == [1, 2, 5, 10]
    assert LogScale(0, 100, 7, 7).place(7) == 0
