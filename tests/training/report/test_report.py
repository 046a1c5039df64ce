import base64
import hashlib
import html
import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from dm_jupyter.analysis import AnalysisSettings, analyze
from dm_jupyter.core.task import Task
from kernel_sandbox.types import Display, Stream
from tests.fakes import ScriptedPolicy
from tests.training.report.report_runs import (
    PNG,
    SCRIPT,
    TREE,
    VOTE,
    a_node,
    a_record,
    a_trajectory,
    write_run,
)
from training.durable.budget import Price
from training.evaluation.summary import write_summary
from training.judge.judged import JudgedLog, JudgedRecord
from training.records.records import EvalRecord
from training.report.__main__ import main
from training.report.page import write_page


class Page(HTMLParser):
    """The tags of a page, as a browser would meet them."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.text = file.read_text(encoding="utf-8")
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def all(self, tag: str, css: str = "") -> list[dict[str, str | None]]:
        return [
            held
            for name, held in self.tags
            if name == tag and css in ["", *(held.get("class") or "").split()]
        ]

    @property
    def words(self) -> str:
        """The text without tags, on one line."""
        return " ".join(re.sub(r"<[^>]*>", " ", self.text).split())


@pytest.fixture
def page_about(tmp_path: Path) -> Callable[..., Page]:
    def make(*runs: Path) -> Page:
        write_page(runs, tmp_path / "page.html")
        return Page(tmp_path / "page.html")

    return make


def _policy(page: Page) -> str:
    (meta,) = [one for one in page.all("meta") if "http-equiv" in one]
    assert meta["http-equiv"] == "Content-Security-Policy"
    return str(meta["content"])


def test_the_page_needs_nothing_but_itself(page_about, tmp_path: Path) -> None:
    page = page_about(write_run(tmp_path / "run"))
    assert not {"link", "iframe", "object", "embed", "base"} & {tag for tag, _ in page.tags}
    for tag, held in page.tags:
        assert "src" not in held, tag
        assert (held.get("href") or "#").startswith("#")
        assert not any(name.startswith("on") or name == "style" for name in held)
    assert "http://" not in page.text.replace("http://www.w3.org", "")
    assert "https://" not in page.text


def test_the_policy_names_the_one_script_and_the_one_style(page_about, tmp_path: Path) -> None:
    page = page_about(write_run(tmp_path / "run", a_record(a_trajectory(SCRIPT))))
    policy = _policy(page)
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for tag in ("script", "style"):
        inlined = re.findall(rf"<{tag}>(.*?)</{tag}>", page.text, re.DOTALL)
        assert len(inlined) == 1
        digest = base64.b64encode(hashlib.sha256(inlined[0].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert [one for one in page.all("script") if one.get("type") != "text/plain"] == [{}]
    assert page.text.index("Content-Security-Policy") < page.text.index("<style>")


def test_every_record_has_its_entry(page_about, tmp_path: Path) -> None:
    first = write_run(
        tmp_path / "first", *(a_record(trial=t, name=n) for n in ("a", "b") for t in (0, 1))
    )
    second = write_run(tmp_path / "second", a_record(name="b", right=False), a_record(name="c"))
    page = page_about(first, second)
    keys = [str(entry["data-keys"]).split("\n") for entry in page.all("details", "entry")]
    assert ["run=second" in one for one in keys] == [False, False, False, False, True, True]
    assert ["verdict=failed" in one for one in keys] == [False] * 4 + [True, False]
    assert ["verdict=differs" in one for one in keys] == [False, False, True, True, True, False]
    assert len(page.all("template")) == len(page.all("article", "notebook")) == 6
    assert "Show the failures (1)" in page.words


def test_a_notebook_holds_thoughts_code_outputs_errors_and_the_verdict(
    page_about, tmp_path
) -> None:
    page = page_about(write_run(tmp_path / "run", a_record(right=False)))
    assert "<strong>thought</strong>" in page.text
    assert '<i class="k">import</i>' in page.text
    for words in ("four thousand", "a warning", "4207.3", "KeyError: 'mass'", "no tag",
                  "the whole turn", "what was told", "wrong value"):  # fmt: skip
        assert words in page.text.replace("&#39;", "'"), words
    assert "\x1b" not in page.text
    assert '<th colspan="2">mass</th>' in page.text
    assert "color: red" not in page.text


def test_a_compact_record_is_a_row_without_a_notebook(page_about, tmp_path: Path) -> None:
    page = page_about(write_run(tmp_path / "run", a_record().compacted()))
    (entry,) = page.all("details", "entry")
    assert "group level=easy" in str(entry["data-keys"])
    assert page.all("section", "turn") == []
    assert "These records are compact" in page.words


def test_a_picture_is_kept_once_however_often_it_was_shown(page_about, tmp_path: Path) -> None:
    shown = Display({"image/png": PNG})
    records = [a_record(a_trajectory(outputs=[shown, shown], name=name)) for name in "ab"]
    page = page_about(write_run(tmp_path / "run", *records))
    assert len(page.all("img")) == 4
    assert page.text.count(PNG) == 1


def test_what_is_hostile_stays_text_wherever_it_stands(page_about, tmp_path: Path) -> None:
    out = (
        Stream("stdout", SCRIPT + "</pre></template>"),
        Display({"text/html": SCRIPT + "<b onclick='window.ran = 1'>bold</b>"}),
        Display({"text/markdown": SCRIPT + "[x](javascript:window.ran)"}),
        Display({"image/svg+xml": f"<svg>{SCRIPT}</svg>"}),
        Display({"image/png": '"><script>window.ran = 1</script>'}),
        Display({"application/javascript": "window.ran = 1"}),
    )
    record = a_record(a_trajectory(SCRIPT, out, SCRIPT, SCRIPT), right=False)
    record = replace(
        record,
        groups={"level": [SCRIPT], SCRIPT: ["x", SCRIPT]},
        parts={SCRIPT: False},
        grades={SCRIPT: 1.0},
        failure=SCRIPT,
        label={SCRIPT: SCRIPT},
        search={**VOTE, "groups": [{"answer": SCRIPT, "count": 1, "trials": [0]}]},
    )
    tree = {"kind": "search", "nodes": [a_node(0, None, answer=SCRIPT)], "chosen": 0}
    other = a_record(search=tree, name="b")
    page = page_about(write_run(tmp_path / "<b>run", record, other, manifest={SCRIPT: SCRIPT}))
    assert len([one for one in page.all("script") if one.get("type") != "text/plain"]) == 1
    assert all("src" not in image and "onerror" not in image for image in page.all("img"))
    assert not any(name.startswith("on") for _, held in page.tags for name in held)
    assert len(page.all("template")) == page.text.count("</template>") == 2
    assert "&lt;script&gt;window.ran = 1" in page.text


def test_votes_and_trees_are_shown(page_about, tmp_path: Path) -> None:
    records = [a_record(search=VOTE, name="a"), a_record(search=TREE, name="b")]
    page = page_about(write_run(tmp_path / "run", *records))
    assert "Votes of 3 candidates" in page.words
    assert "(chosen)" in page.words
    (tree,) = page.all("svg", "tree")
    assert tree["aria-label"] == "Search tree of 3 nodes; the path to node 2 was chosen"
    assert len(page.all("path", "best")) == 1
    assert len(page.all("g", "errors")) == 1


def test_the_other_candidates_and_the_turns_of_a_tree_can_be_read(
    page_about, tmp_path: Path
) -> None:
    chosen = a_record(name="a")
    other = {**chosen.trajectory, "answer": "@mass[another one]"}
    vote = {**VOTE, "runs": [chosen.trajectory, other]}
    said = [{"role": "assistant", "content": "the turn of <b>one</b> node"}]
    nodes = [{**node, "messages": said} for node in TREE["nodes"]]
    records = [a_record(search=vote, name="a"), a_record(search={**TREE, "nodes": nodes}, name="b")]
    page = page_about(write_run(tmp_path / "run", *records))
    assert "Candidate 2: @mass[another one]" in page.words
    assert "Candidate 1:" not in page.words
    assert page.words.count("the turn of &lt;b&gt;one&lt;/b&gt; node") == 3
    assert "node 2, after node 0: @a[1] (chosen path)" in page.words


def _judged(folder: Path, *rows: JudgedRecord) -> None:
    for row in rows:
        JudgedLog(folder / "judged.jsonl").append(row)


def test_what_a_judge_said_stands_beside_the_rules(page_about, tmp_path: Path) -> None:
    records = [a_record(name=name) for name in ("same", "other", "silent", "changed", "none")]
    run = write_run(tmp_path / "run", *records)
    answer, strict = records[0].answer or "", records[0].strict_correct
    row = JudgedRecord("same", 0, answer, "a-judge", "p", True, strict, strict, "near <b>", "")
    made_anew = replace(row, id="changed", answer="what it said before", reason="stale")
    other = replace(row, id="other", judged=not strict, reason="far", reformat="f",
        reformatted="@mass[1]", reformatted_right=True, reformatted_strict=False)  # fmt: skip
    silent = replace(row, id="silent", judged=None, reason="", error="no score in the reply")
    _judged(run, row, other, silent, made_anew)
    with (run / "judged.jsonl").open("a") as file:
        file.write('{"id": "no')  # the judge is at work
    page = page_about(run)
    keys = [one["data-keys"] or "" for one in page.all("details", "entry")]
    opinions = [[key for key in one.split("\n") if key.startswith("judge=")] for one in keys]
    assert opinions == [["judge=agrees"], ["judge=differs"], ["judge=none"], [], []]
    assert "near &lt;b&gt;" in page.text
    assert "no score in the reply" in page.words
    assert "stale" not in page.words
    for words in (
        "judge a-judge",
        "answers judged 2 of 5 tries",
        "without a verdict 1",
        "right by the judge 1 of 3 so far",
        "agrees with the benchmark's rules 50.0%, kappa 0.00",
        "right after reformatting, by the benchmark's rules 0 of 3 so far",
        "right after reformatting, by our rules 1 of 3 so far",
    ):
        assert words in html.unescape(page.words)
    (run / "judged.jsonl").unlink()
    none = replace(row, id="none", judged=not strict)
    _judged(run, row, other, silent, replace(made_anew, answer=answer), none)
    whole = html.unescape(page_about(run).words)
    assert "right by the judge 40.0% (2)" in whole
    assert "right after reformatting, by the benchmark's rules 0.0% (0)" in whole
    assert "right after reformatting, by our rules 20.0% (1)" in whole


def test_a_broken_column_of_a_judge_is_named(tmp_path: Path, capsys) -> None:
    run = write_run(tmp_path / "run")
    (run / "judged.jsonl").write_text('{"id": "a"}\n')
    assert main([str(run), "--html", str(tmp_path / "page.html")]) == 1
    assert "judged.jsonl, line 1: no record" in capsys.readouterr().err


def test_runs_are_compared_by_what_they_were_made_with(page_about, tmp_path: Path) -> None:
    made = {"suite": "dabench", "settings": {"max_turns": 10}, "trials": 1}
    runs = [
        write_run(tmp_path / "a" / "run", manifest=made),
        write_run(tmp_path / "b" / "run", manifest={**made, "settings": {"max_turns": 5}}),
    ]
    page = page_about(*runs)
    assert len(page.all("tr", "differs")) == 1
    assert "settings.max_turns (differs) 10 5" in page.words
    assert "a/run" in page.words
    assert "b/run" in page.words


def test_a_run_without_a_manifest_says_what_its_trajectories_know(page_about, tmp_path) -> None:
    page = page_about(write_run(tmp_path / "run"))
    assert "model m dialect datamind" in page.words


def test_half_a_character_does_not_stop_the_page(page_about, tmp_path: Path) -> None:
    page = page_about(write_run(tmp_path / "run", a_record(a_trajectory("half \ud83d of one"))))
    assert "half ? of one" in page.text


def _broken(folder: Path, change: Callable[[dict], object]) -> Path:
    """A run whose second line is not as it should be."""
    write_run(folder, a_record(name="a"), a_record(name="b", search=TREE))
    lines = (folder / "records.jsonl").read_text().splitlines()
    fields = json.loads(lines[1])
    change(fields)
    (folder / "records.jsonl").write_text(f"{lines[0]}\n{json.dumps(fields)}\n")
    return folder


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r: r.pop("tokens"), "tokens"),
        (lambda r: r.update(tokens="many"), "'tokens'"),
        (lambda r: r.update(seconds=float("nan")), "'seconds'"),
        (lambda r: r.update(groups={"level": "easy"}), "'groups.level'"),
        (lambda r: r.update(groups={"level": [1]}), "'groups.level.0': expected a string"),
        (lambda r: r.update(parts={"a": "x"}), "'parts.a': expected true or false"),
        (lambda r: r.update(id="a"), "twice"),
        (lambda r: r["trajectory"].pop("steps"), "'trajectory'"),
        (lambda r: r["trajectory"].update(schema_version=99), "schema version 99"),
        (lambda r: r["trajectory"].update(schema_version=[1]), "schema version [1]"),
        (lambda r: r["trajectory"]["steps"][0]["result"].update(outputs=["text"]), "'trajectory'"),
        (lambda r: r["trajectory"].update(stop_detail=3), "stop_detail: Expected `str`"),
        (lambda r: r["search"].update(kind="vote", groups=[], runs=[[1]]), "found list"),
        (lambda r: r["search"].update(kind="guess"), "'guess'"),
        (lambda r: r["search"].update(chosen=9), "chosen node 9"),
        (lambda r: r["search"]["nodes"][1].update(parent=7), "parent 7"),
        (lambda r: r["search"]["nodes"][1].pop("visits"), "'visits'"),
        (lambda r: r["search"]["nodes"][2].update(id=1), "twice"),
    ],
)
def test_a_broken_line_is_named(change, said: str, tmp_path: Path, capsys) -> None:
    folder = _broken(tmp_path / "run", change)
    assert main([str(folder), "--html", str(tmp_path / "page.html")]) == 1
    error = capsys.readouterr().err
    assert f"{folder / 'records.jsonl'}, line 2" in error
    assert said in error
    assert not (tmp_path / "page.html").exists()


def test_a_missing_run_and_a_broken_manifest_are_named(tmp_path: Path, capsys) -> None:
    assert main([str(tmp_path / "no"), "--html", str(tmp_path / "page.html")]) == 1
    assert str(tmp_path / "no") in capsys.readouterr().err
    folder = write_run(tmp_path / "run")
    (folder / "run.json").write_text("[1]")
    assert main([str(folder), "--html", str(tmp_path / "page.html")]) == 1
    assert "run.json: expected a JSON object" in capsys.readouterr().err


def test_what_a_run_cost_is_shown_where_its_summary_tells(page_about, tmp_path: Path) -> None:
    records = [a_record(name=name) for name in "ab"]  # each 50 tokens read and 20 sampled
    dear, free = write_run(tmp_path / "dear", *records), write_run(tmp_path / "free", *records)
    write_summary(records, dear / "summary.json", Price(100, 1000))
    write_summary(records, free / "summary.json")
    assert "dollars 0.0250 0.0250 0.0500 – – –" in page_about(dear, free).words
    assert "dollars" not in page_about(free).words
    write_run(dear, *records, a_record(name="c"))  # its summary was made before
    assert "dollars" not in page_about(dear).words


@pytest.mark.parametrize(
    "costs", [None, {}, {"dollars": 1}, {"dollars": {"mean": 1.0}}, {"dollars": {"total": "x"}}]
)
def test_a_summary_that_tells_no_dollars_is_left_alone(
    costs: object, page_about, tmp_path: Path
) -> None:
    run = write_run(tmp_path / "run")
    (run / "summary.json").write_text(json.dumps({"costs": costs}))
    assert "dollars" not in page_about(run).words


def test_a_page_that_can_not_be_written_is_named(tmp_path: Path, capsys) -> None:
    page = tmp_path / "nowhere" / "x.html"
    assert main([str(write_run(tmp_path / "run")), "--html", str(page)]) == 1
    assert capsys.readouterr().err == (
        f"report: [Errno 2] No such file or directory: {str(page)!r}\n"
    )


def test_the_old_page_stays_when_the_new_one_fails(tmp_path: Path, capsys) -> None:
    page = tmp_path / "page.html"
    assert main([str(write_run(tmp_path / "run")), "--html", str(page)]) == 0
    assert "page.html (0." in capsys.readouterr().out
    before = page.read_bytes()
    assert main([str(_broken(tmp_path / "run", dict.clear)), "--html", str(page)]) == 1
    assert page.read_bytes() == before
    taken = tmp_path / "folder"
    taken.mkdir()
    assert main([str(write_run(tmp_path / "run")), "--html", str(taken)]) == 1
    assert sorted(file.name for file in tmp_path.iterdir()) == ["folder", "page.html", "run"]


def test_the_run_is_only_read(tmp_path: Path, capsys) -> None:
    folder = write_run(tmp_path / "run")
    with (folder / "records.jsonl").open("a") as file:
        file.write('{"id": "b", "tri')
    before = (folder / "records.jsonl").read_bytes()
    assert main([str(folder), "--html", str(tmp_path / "page.html")]) == 1
    assert "line 2" in capsys.readouterr().err
    assert (folder / "records.jsonl").read_bytes() == before


async def test_what_a_real_kernel_left_is_shown(page_about, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n2\n")
    code = (
        "import base64\nfrom IPython.display import HTML, Image, display\nimport pandas as pd\n"
        f"display(HTML({SCRIPT!r} + '<b>bold</b>'))\n"
        f"display(Image(base64.b64decode({PNG!r})))\n"
        "pd.read_csv('t.csv')"
    )
    texts = [f"<think>look</think><code>{code}</code>", "<think>so</think><answer>two</answer>"]
    settings = AnalysisSettings(dialect="datamind", notebook=tmp_path / "n.ipynb")
    task = Task("t", "How many rows?", (tmp_path / "t.csv",))
    analysis = await analyze(task, ScriptedPolicy(texts), settings, lambda _: None)
    record: EvalRecord = a_record(analysis.trajectory)
    page = page_about(write_run(tmp_path / "run", record))
    assert "<b>bold</b>" in page.text
    assert "<th>a</th>" in page.text
    assert len(page.all("img")) == 1
    assert page.text.count(PNG) >= 1


def test_two_runs_are_compared_as_pairs_and_filtered_by_who_won(page_about, tmp_path: Path) -> None:
    def records(*rights: bool) -> list[EvalRecord]:
        return [a_record(name=f"q{place}", right=right) for place, right in enumerate(rights)]

    first = write_run(tmp_path / "first", *records(True, True, False, False))
    second = write_run(tmp_path / "second", *records(True, False, True, False))
    page = page_about(first, second)
    assert "A is first, B is second" in page.words
    assert "McNemar: of 4 questions A is better at 1, B at 1; p = 1 exact" in page.words
    won = [
        {key for key in (entry["data-keys"] or "").split("\n") if key.startswith("won=")}
        for entry in page.all("details", "entry")
    ]
    assert won == [{"won=both"}] * 2 + [{"won=a"}] * 2 + [{"won=b"}] * 2 + [{"won=neither"}] * 2
    assert "only second right" in page.words
    alone = page_about(first)
    assert "McNemar" not in alone.words
    assert "won=" not in alone.text


def test_runs_of_other_questions_are_not_compared(page_about, tmp_path: Path) -> None:
    first = write_run(tmp_path / "first", a_record(), manifest={"suite": "dabench"})
    other = a_record(a_trajectory("How light?"))
    for second in (
        write_run(tmp_path / "qrdata", a_record(), manifest={"suite": "qrdata"}),
        write_run(tmp_path / "other", other, manifest={"suite": "dabench"}),
    ):
        page = page_about(first, second)
        assert "not compared by question: " in page.words
        assert "McNemar" not in page.words
        assert "won=" not in page.text
