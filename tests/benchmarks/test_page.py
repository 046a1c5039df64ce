"""The page of headline results: what its table says, and what its check refuses."""

from __future__ import annotations

import re

import pytest

from benchmarks.page import find_faults, main, page_anchors, read_results, render

HEAD = """
[machines]
A = "two cores"

[areas]
speed = "Speed"
"""
ROWS = """
[[experiments]]
area = "speed"
log = "fast-start"
command = "python -m fast"
date = 2026-11-21
machine = "A"
conditions = "load 1"
results = [
  { id = "start", what = "a|b", figure = "5 s", aim = "6 s", met = true, peer = "b", ratio = "2" },
  { id = "end", what = "an end", figure = "9 ms", aim = "8 ms", met = false },
]
"""
LOG = "# Log\n\n### Fast start\n"


def test_each_result_is_a_row_below_its_area() -> None:
    table = [line for line in render(read_results(HEAD + ROWS)).splitlines() if "<a id" in line]
    entry = "[2026-11-21](experiments.md#fast-start), A, load 1<br>`python -m fast`"
    assert table == [
        '| <a id="speed"></a>**Speed** | | | | |',
        f'| <a id="start"></a>a\\|b | 5 s | 6 s, met | b, ratio 2 | {entry} |',
        f'| <a id="end"></a>an end | 9 ms | 8 ms, **missed** | | {entry} |',
    ]


def test_the_check_names_a_stale_page_and_an_entry_that_is_missing() -> None:
    results = read_results(HEAD + ROWS)
    page = render(results)
    assert find_faults(results, page, LOG) == []
    (stale,) = find_faults(results, page.replace("5 s", "4 s"), LOG)
    assert "python -m benchmarks.page" in stale
    (missing,) = find_faults(results, page, LOG.replace("Fast", "Slow"))
    assert "#fast-start" in missing


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("met = true, ", "", "start: `aim` and `met`"),
        ('aim = "6 s", ', "", "start: `aim` and `met`"),
        ('figure = "9 ms", ', "", "figure"),
        ('peer = "', 'pear = "', "unknown fields pear"),
        ('id = "end"', 'id = "start"', "share an id: start"),
        ('id = "end"', 'id = "speed"', "share an id: speed"),
        ('area = "speed"', 'area = "size"', "no area 'size'"),
        ('machine = "A"', 'machine = "B"', "no machine 'B'"),
    ],
)
def test_results_that_lack_or_contradict_something_are_refused(
    old: str, new: str, fault: str
) -> None:
    assert old in ROWS
    with pytest.raises(ValueError, match=re.escape(fault)):
        read_results(HEAD + ROWS.replace(old, new))


def test_anchors_are_those_of_github_and_of_python_markdown() -> None:
    page = '# What `ask`, a - b, does\n\n## Twice\n\n## Twice\n\n| <a id="row"></a>x |\n|---|\n'
    github, mkdocs = page_anchors(page)
    assert github == {"what-ask-a---b-does", "twice", "twice-1", "row"}
    assert mkdocs == {"what-ask-a-b-does", "twice", "twice_1", "row"}


def test_the_page_of_this_repository_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capsys.readouterr().out
