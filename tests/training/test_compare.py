from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.training.conftest import CHECKOUT
from tests.training.outcomes import tried, tries, write_run
from training.compare import comparison_of, main
from training.records.records import EvalRecord, RunError, read_run

Show = Callable[..., tuple[int, list[str], str]]


@pytest.fixture
def show(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Show:
    """Runs the command; returns its code, its lines with single spaces, and its complaint."""
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments: object) -> tuple[int, list[str], str]:
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return code, [" ".join(line.split()) for line in said.out.splitlines()], said.err

    return run


def _records(rights: str, names: str = "abcdefghijklmnopqrstuvwx") -> list[EvalRecord]:
    """One try a question: `+` is right, `-` wrong, `~` right by our rules alone."""
    return [
        tried(
            name,
            right != "-",
            strict_correct=right == "+",
            failure="" if right == "+" else "format",
        )
        for name, right in zip(names, rights, strict=False)
    ]


@pytest.fixture
def two_runs(tmp_path: Path) -> tuple[Path, Path]:
    """24 questions, of which 1 was right before and 7 are right now; 12 stayed right."""
    first = write_run(tmp_path / "one", _records("+" * 12 + "+" + "-" * 7 + "----"))
    second = write_run(tmp_path / "other", _records("+" * 12 + "-" + "+" * 7 + "----"))
    return first, second


def test_the_command_compares_two_runs(two_runs: tuple[Path, Path]) -> None:
    command = [sys.executable, "-m", "training.compare", *map(str, two_runs)]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=CHECKOUT, timeout=50
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "B less A: +25.0 points" in done.stdout


def test_shares_difference_and_test_are_printed(show: Show, two_runs: tuple[Path, Path]) -> None:
    code, lines, _ = show(*two_runs)
    assert code == 0
    assert any(line.endswith("24 24 13 54.2% 35-72") for line in lines)
    assert any(line.endswith("24 24 19 79.2% 60-91") for line in lines)
    assert any("+25.0 points, 95 % +4.2 to +45.8 (paired bootstrap" in line for line in lines)
    test = "McNemar: of 24 questions A is better at 1, B at 7; p = 0.0703 exact, 0.0391 mid-p"
    assert test in lines
    assert "m right format A" in lines
    assert "n format right B" in lines
    assert "changed: 8" in lines


def test_the_json_file_says_the_same(
    show: Show, two_runs: tuple[Path, Path], tmp_path: Path
) -> None:
    show(*two_runs, "--json", tmp_path / "c.json")
    found = json.loads((tmp_path / "c.json").read_text())
    assert (found["a"], found["b"]) == tuple(map(str, two_runs))
    assert found["mcnemar"] == {"b": 1, "c": 7, "p_exact": 18 / 256, "p_mid": 10 / 256}
    assert found["difference"]["points"] == pytest.approx(25.0)
    assert [one["id"] for one in found["changed"]] == list("mnopqrst")


def test_the_rules_can_be_chosen() -> None:
    first, second = _records("~-"), _records("++")
    assert comparison_of(first, second)["difference"]["points"] == 100.0
    ours = comparison_of(first, second, "ours")
    assert ours["difference"]["points"] == 50.0
    assert [one["id"] for one in ours["changed"]] == ["b"]
    mixed = [tried("a", True, 0, strict_correct=False, failure="format"), tried("a", False, 1)]
    change = comparison_of(mixed, tries("a", [True, True]), "ours")["changed"][0]
    assert change["a"] == {"share": 0.5, "runs": 2, "failures": ["wrong value"]}


def test_questions_of_one_run_alone_are_named(show: Show, tmp_path: Path) -> None:
    first = write_run(tmp_path / "one", _records("+++", "abc"))
    second = write_run(tmp_path / "other", _records("+--", "cde"))
    code, lines, _ = show(first, second)
    assert code == 0
    assert "only in A, not compared (2): a, b" in lines
    assert "only in B, not compared (2): d, e" in lines
    assert "B less A: +0.0 points; no interval, as all questions changed alike" in lines
    assert not any(line.startswith("changed") for line in lines)


def test_an_interval_of_few_questions_is_said_to_be_narrow(show: Show, tmp_path: Path) -> None:
    first, second = write_run(tmp_path / "one", _records("+-")), _records("++")
    _, lines, _ = show(first, write_run(tmp_path / "other", second))
    assert "Of fewer than 20 questions it is too narrow." in lines


def test_several_tries_are_compared_by_question_or_by_try(show: Show, tmp_path: Path) -> None:
    first = write_run(tmp_path / "one", [*tries("a", [True, False]), *tries("b", [True, True])])
    second = write_run(tmp_path / "other", [*tries("a", [True, True]), *tries("b", [True, True])])
    _, lines, _ = show(first, second)
    assert "a 1 of 2 right 2 of 2 right B" in lines
    assert any("of 2 questions A is better at 0, B at 1;" in line for line in lines)
    _, lines, _ = show(first, second, "--by", "try")
    assert "a#1 wrong value right B" in lines
    assert any("of 4 tries A is better at 0, B at 1; p = 1 exact" in line for line in lines)
    assert any(line.startswith("Tries at one question resemble") for line in lines)


def test_unequal_numbers_of_tries_have_no_test(show: Show, tmp_path: Path) -> None:
    first = write_run(tmp_path / "one", tries("a", [True]))
    second = write_run(tmp_path / "other", tries("a", [True, False, False]))
    _, lines, _ = show(first, second)
    assert "McNemar: none, as the runs didn't try every question equally often" in lines
    _, lines, _ = show(first, second, "--by", "try")
    assert "only in B, not compared (2): a#1, a#2" in lines


def test_runs_without_a_common_question_are_refused(show: Show, tmp_path: Path) -> None:
    first = write_run(tmp_path / "one", _records("+", "a"))
    code, lines, complaint = show(first, write_run(tmp_path / "other", _records("+", "b")))
    assert (code, lines) == (1, [])
    assert complaint == (
        "compare: the runs have no question in common: A begins with a, B with b\n"
    )


def _asked(question: str, label: str = "3", suite: str = "dabench") -> EvalRecord:
    task = {"question": question, "metadata": {"suite": suite}}
    return tried("a", True, trajectory={"task": task}, label=label)


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (_asked("How many?"), ""),
        (_asked("How many?").compacted(), ""),
        (_asked("How few?"), "question"),
        (_asked("How many?", "4"), "label"),
        (_asked("How many?", suite="qrdata"), "suite"),
    ],
)
def test_other_questions_with_the_same_ids_are_refused(
    show: Show, tmp_path: Path, other: EvalRecord, difference: str
) -> None:
    first = write_run(tmp_path / "one", [_asked("How many?")])
    code, _, complaint = show(first, write_run(tmp_path / "other", [other]))
    told = f"compare: a has another {difference} in A than in B: compare runs of one suite"
    assert code == bool(difference)
    assert complaint.startswith(told) is bool(difference)


@pytest.mark.parametrize("name", ["two\nlines", "NaN"])
def test_equal_labels_are_equal_however_they_are_written(name: str) -> None:
    plain = replace(_asked("How many?"), label=[name, float("nan")])
    restated = {"question": "Less words", "metadata": {"question_as_asked": "How many?"}}
    again = replace(plain, label=[name, float("nan")], trajectory={"task": restated})
    assert comparison_of([plain], [again])["changed"] == []


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        ({"suite": "dabench", "questions": "abc"}, ""),
        ({"suite": "dabench"}, ""),  # of an older release
        ({"suite": "qrdata", "questions": "abc"}, "run of the suite dabench, B of qrdata"),
        ({"suite": "dabench", "questions": "def"}, "name both records.jsonl"),
    ],
)
def test_runs_of_another_suite_or_release_of_a_split_are_refused(
    show: Show, two_runs: tuple[Path, Path], manifest: dict[str, str], told: str
) -> None:
    first, second = two_runs
    (first / "run.json").write_text(json.dumps({"suite": "dabench", "questions": "abc"}))
    (second / "run.json").write_text(json.dumps(manifest))
    code, _, complaint = show(first, second)
    assert code == bool(told)
    assert told in complaint
    code, _, complaint = show(first / "records.jsonl", second / "records.jsonl")
    assert (code, complaint) == (0, "")


def test_a_damaged_manifest_is_named(show: Show, two_runs: tuple[Path, Path]) -> None:
    (two_runs[1] / "run.json").write_text("[" * 100_000)
    code, _, complaint = show(*two_runs)
    assert code == 1
    assert f"{two_runs[1] / 'run.json'} can't be read" in complaint


def test_markup_in_a_name_is_printed_as_it_is(show: Show, tmp_path: Path) -> None:
    first = write_run(tmp_path / "one", [tried("[red]q", True)])
    _, lines, _ = show(first, write_run(tmp_path / "other", [tried("[red]q", False)]))
    assert "[red]q right wrong value A" in lines


def test_a_run_is_a_folder_or_a_file_of_compact_records(tmp_path: Path) -> None:
    records = [replace(record, label="3") for record in _records("+-")]
    folder = write_run(tmp_path / "run", records)
    assert read_run(folder) == records
    compact = write_run(tmp_path / "compact", [record.compacted() for record in records])
    file = (compact / "records.jsonl").rename(tmp_path / "compact.jsonl")
    assert read_run(file) == [record.compacted() for record in records]


def _line(**changes: object) -> str:
    plain = tried("a", True)
    fields = {name: getattr(plain, name) for name in EvalRecord.__dataclass_fields__}
    return json.dumps({**fields, **changes})


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([], "holds no records"),
        (["", " "], "holds no records"),
        ([_line(), _line()[:40]], "line 2: not JSON"),
        (["[1]"], "line 1: expected a JSON object, found list"),
        ([_line(correct="yes")], "field 'correct': expected true or false, found str"),
        ([_line(right="yes")], "field 'correct': expected true or false, found str"),
        ([_line(trial=True)], "line 1, field 'trial': expected a whole number, found bool"),
        ([_line(id=3)], "line 1, field 'id': expected a string, found int"),
        (['{"id": "a"}'], "line 1, field 'trial': is missing"),
        ([_line(failure=None)], "line 1, field 'failure': expected a string, found NoneType"),
        ([_line(answer=3)], "line 1, field 'answer': expected a string or null, found int"),
        ([_line(turns=1.5)], "line 1, field 'turns': expected a whole number, found 1.5"),
        ([_line(seconds="1")], "field 'seconds': expected a finite number, found str"),
        ([_line(seconds=True)], "field 'seconds': expected a finite number, found bool"),
        ([_line(grades={"a": float("nan")})], "'grades.a': expected a finite number, found nan"),
        ([_line(grades={"a": 10**400})], "'grades.a': expected a finite number, found int"),
        ([_line(groups=[])], "field 'groups': expected an object, found list"),
        ([_line(groups={"level": "x"})], "field 'groups.level': expected a list, found str"),
        ([_line(groups={"level": ["x", 1]})], "'groups.level.1': expected a string, found int"),
        ([_line(parts={"a": "x"})], "field 'parts.a': expected true or false, found str"),
        ([_line(strict_parts={"a": 1})], "'strict_parts.a': expected true or false, found int"),
        (
            [_line(self_corrected="no")],
            "'self_corrected': expected true or false or null, found str",
        ),
        ([_line(trajectory=None)], "'trajectory': expected an object, found NoneType"),
        ([_line(level="easy")], "line 1: not a record of this release"),
        ([_line(), _line()], "line 2: a, try 0, appears twice"),
    ],
)
def test_a_broken_run_is_named_with_its_line(
    show: Show, tmp_path: Path, lines: Sequence[str], problem: str
) -> None:
    file = tmp_path / "broken.jsonl"
    file.write_text("\n".join(lines))
    code, _, complaint = show(file, file)
    assert code == 1
    assert complaint.startswith(f"compare: {file}")
    assert problem in complaint
    assert file.read_text() == "\n".join(lines)  # a run that still goes on is left alone


def test_a_missing_run_is_named(show: Show, tmp_path: Path) -> None:
    code, _, complaint = show(tmp_path, tmp_path)
    assert code == 1
    assert complaint == f"compare: {tmp_path / 'records.jsonl'} can't be read: " + (
        "No such file or directory\n"
    )
    (tmp_path / "run.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(RunError, match="can't be read"):
        read_run(tmp_path / "run.jsonl")


def test_figures_that_can_not_be_written_are_a_fault(
    show: Show, two_runs: tuple[Path, Path], tmp_path: Path
) -> None:
    code, _, complaint = show(*two_runs, "--json", tmp_path / "nowhere" / "c.json")
    assert code == 1
    assert "nowhere" in complaint
