from __future__ import annotations

from pathlib import Path

import pytest

from training.suites.registry import SUITES, find_suite
from training.suites.suite import JudgedSuite, Outcome, Suite

THEIR_FILE = """
import json

from dm_jupyter.core.task import Task
from training.suites.suite import Sample, ItemScore


class Capitals:
    name = "capitals"

    def load(self, split):
        rows = json.loads((split / "capitals.json").read_text())
        return [Sample(Task(land, f"Capital of {land}?"), town) for land, town in rows.items()]

    def score(self, item, outcome):
        right = item.label in outcome.answer
        return ItemScore(right, outcome.answer == item.label, {"town": right})

    def agree(self, item, one, other):
        return bool(one.answer) and one.answer == other.answer


class NoSuite:
    name = "none"


READY = Capitals()
"""


@pytest.fixture
def their_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "their_capitals.py").write_text(THEIR_FILE)
    (tmp_path / "capitals.json").write_text('{"France": "Paris"}')
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.parametrize("attribute", ["Capitals", "READY"])
def test_a_suite_from_elsewhere_is_one_file_and_no_line_of_ours(
    attribute: str, their_folder: Path
) -> None:
    suite = find_suite(f"their_capitals:{attribute}")
    (item,) = suite.load(their_folder)
    outcome = Outcome("It is Paris.", their_folder)
    assert (suite.score(item, outcome).correct, suite.score(item, outcome).strict_correct) == (
        True,
        False,
    )
    assert suite.agree(item, outcome, outcome)


def test_what_is_no_suite_is_refused_by_name(their_folder: Path) -> None:
    with pytest.raises(ValueError, match="'their_capitals:NoSuite' is no suite: it needs `name`"):
        find_suite("their_capitals:NoSuite")
    with pytest.raises(ValueError, match="is no suite"):
        find_suite("their_capitals:absent")
    with pytest.raises(ValueError, match="can't be imported: No module named"):
        find_suite("no_such_module_of_theirs:Suite")
    for name in ("their_capitals:", ":Capitals", "..their_capitals:Capitals"):
        with pytest.raises(ValueError, match=f"no suite is called '{name}'; .*'module:ClassName'"):
            find_suite(name)
    with pytest.raises(ValueError, match=r"there are dabench, .*sql, tablebench, xlsx, or"):
        find_suite("absent")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("training.suites.suite:Sample", "missing 2 required positional arguments"),
        ("training.suites.suite:Suite", "Protocols cannot be instantiated"),
    ],
)
def test_a_class_that_cannot_be_made_is_no_suite(name: str, reason: str) -> None:
    needs = f"'{name}' is no suite .*{reason}.*: it needs `name`, .*made without arguments"
    with pytest.raises(ValueError, match=needs):
        find_suite(name)


def test_the_registry_names_suites_as_they_name_themselves() -> None:
    assert all(isinstance(suite, Suite) for suite in SUITES.values())
    assert {name: suite.name for name, suite in SUITES.items()} == {n: n for n in SUITES}
    assert find_suite("dabench") is SUITES["dabench"]
    ours = {
        "dabench", "dsbench-modeling", "generated", "generated-absent", "generated-free", "own",
        "qrdata", "reports", "sql", "tablebench", "xlsx",
    }  # fmt: skip
    assert set(SUITES) == ours


def test_only_reports_need_a_judge() -> None:
    assert [name for name, suite in SUITES.items() if isinstance(suite, JudgedSuite)] == ["reports"]
