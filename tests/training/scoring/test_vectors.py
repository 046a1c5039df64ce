from __future__ import annotations

import json
from pathlib import Path

import pytest

from training.scoring.closed_form import main
from training.scoring.vectors import KINDS, disagreements, read_vectors

CHECKOUT = Path(__file__).resolve().parents[3]
DIFFERENT = {"tab-009"}
"""Rows whose judgement we don't share, each with its reason in docs/benchmarks/scorers.md."""

ROW = {
    "id": "own-1",
    "kind": "closed_form",
    "label": [["x", "1"]],
    "response": "@x[1]",
    "scorers": {"infiagent.eval_closed_form": {"correct": {"x": True}}},
    "sensible": {"x": False},
    "note": "a judgement we do not share",
}


@pytest.mark.parametrize("kind", KINDS)
def test_our_scorers_meet_the_judgements_but_for_the_rows_named(
    kind: str, shared_data: Path
) -> None:
    rows = read_vectors(shared_data / "scorer_vectors.jsonl", kind)
    assert rows
    found = {one.row["id"] for one in disagreements(rows)}
    assert found == DIFFERENT & {row["id"] for row in rows}


def test_each_row_we_differ_on_has_its_reason_on_the_page_of_scorers() -> None:
    page = (CHECKOUT / "docs" / "benchmarks" / "scorers.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in page for name in DIFFERENT)


def test_strict_differs_from_the_published_scorer_on_lists_alone(shared_data: Path) -> None:
    rows = read_vectors(shared_data / "scorer_vectors.jsonl")
    found = list(disagreements(rows, "strict"))
    assert {one.row["category"] for one in found} == {"lists"}
    page = (CHECKOUT / "docs" / "benchmarks" / "scorers.md").read_text(encoding="utf-8")
    assert all(f"`{one.row['id']}`" in page for one in found)


@pytest.mark.parametrize(
    ("kind", "label", "response"),
    [("tablebench_em", "10.6", "106"), ("table_compare", "a\n1\n", "a\n1\n1\n")],
)
def test_a_judgement_that_we_do_not_share_is_found(kind: str, label: str, response: str) -> None:
    row = {**ROW, "kind": kind, "label": label, "response": response, "sensible": True}
    (found,) = disagreements([row])
    assert (found.ours, found.recorded) == (False, True)
    assert list(disagreements([{**row, "sensible": False}])) == []
    assert list(disagreements([row], "strict")) == []


def test_the_report_prints_each_kind_and_each_disagreement(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short = {**ROW, "kind": "tablebench_em", "label": "1", "response": "1.0", "sensible": True}
    file = tmp_path / "vectors.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in (ROW, short, {"kind": "other"})))
    assert main(["--vectors", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "closed_form, sensible against the judgements: 0 of 1 rows agree (0.0%)" in printed
    assert "a judgement we do not share" in printed
    assert "closed_form, strict against infiagent.eval_closed_form: 1 of 1" in printed
    assert "tablebench_em, sensible against the judgements: 1 of 1" in printed
    assert "table_compare" not in printed


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "FileNotFoundError: [Errno 2]"),
        (b"id,kind\n", "JSONDecodeError: Expecting value"),
        (b"\xff\xfe", "UnicodeDecodeError: "),
        (b"[1]\n", "TypeError: "),
        (b"{}\n", "KeyError: 'kind'"),
    ],
)
def test_a_file_without_vectors_is_named_in_one_line(
    content: bytes | None, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "vectors.jsonl"
    if content is not None:
        file.write_bytes(content)
    assert main(["--vectors", str(file)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"closed_form: {file} can't be read as scorer vectors ({why}")
    assert said.err.count("\n") == 1
