"""A notebook to hand on, through a real restricted kernel."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from dm_jupyter.agent.outline import outline_of
from dm_jupyter.agent.tidy import Tidied, TidySettings, tidy
from dm_jupyter.core.errors import NotebookError

QUESTION = new_markdown_cell(
    "## What is the sum?", metadata={"dm_jupyter": {"run": "r", "role": "question"}}
)
LOAD = "import pandas as pd\ndf = pd.read_csv('sales.csv')"


def _ran(count: int, source: str, *outputs: Any, **metadata: Any) -> Any:
    return new_code_cell(
        source, execution_count=count, outputs=list(outputs), metadata=metadata, id=f"c{count}"
    )


def _said(text: str) -> Any:
    return new_output("stream", name="stdout", text=text)


def _failed(name: str) -> Any:
    return new_output("error", ename=name, evalue="it failed", traceback=[])


def _answer(text: str = "The sum is 40.", *cell_ids: str) -> Any:
    numbers = [
        {"text": "40", "start": 0, "verdict": "supported", "cell_id": one, "why": ""}
        for one in cell_ids
    ]
    mark = {"run": "r", "role": "answer", "numbers": numbers}
    return new_markdown_cell(f"## Answer\n\n{text}", metadata={"dm_jupyter": mark})


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "sales.csv").write_text("month,sales\n1,10\n2,30\n")
    return tmp_path / "work.ipynb"


def _write(place: Path, *cells: Any) -> None:
    nbformat.write(new_notebook(cells=list(cells)), place)


async def _tidied(place: Path, **settings: Any) -> Tidied:
    before, names = place.read_bytes(), sorted(path.name for path in place.parent.iterdir())
    tidied = await tidy(place, TidySettings(**settings), lambda _: None)
    assert place.read_bytes() == before
    assert sorted(x.name for x in place.parent.iterdir()) == sorted([*names, tidied.path.name])
    return tidied


def _read(tidied: Tidied) -> Any:
    document = nbformat.read(tidied.path, as_version=4)
    nbformat.validate(document)
    return document


def _sources(tidied: Tidied) -> list[str]:
    return [cell.source for cell in _read(tidied).cells if cell.cell_type == "code"]


async def test_only_the_needed_cells_are_kept_and_ran_again(place: Path) -> None:
    _write(
        place,
        new_markdown_cell("# Mine"),
        _ran(1, "unused = 1"),
        QUESTION,
        _ran(2, LOAD),
        new_markdown_cell("I look.", metadata={"dm_jupyter": {"run": "r", "role": "thought"}}),
        _ran(3, "df.head()", _said("x"), jupyter={"source_hidden": True}),
        _ran(4, "df.gone", _failed("AttributeError"), tags=["raises-exception"]),
        _ran(5, "print('sum', df.sales.sum())", _said("sum 40\n"), dm_jupyter={"run": "r"}),
        _answer("The sum is 40.", "c5"),
        _ran(6, "after = 1"),
    )
    tidied = await _tidied(place)
    assert tidied.path.name == "work-tidy.ipynb"
    assert tidied.words == "2 of 5 cells kept; outputs are the same"
    assert tidied.left_out == ("[1]", "[3]", "[4]")
    document = _read(tidied)
    assert [cell.source for cell in document.cells] == [
        "## What is the sum?", LOAD, "print('sum', df.sales.sum())", "## Answer\n\nThe sum is 40.",
    ]  # fmt: skip
    assert [cell.get("execution_count") for cell in document.cells[1:3]] == [1, 2]
    assert document.cells[2].outputs[0].text == "sum 40\n"
    assert document.cells[3].metadata["dm_jupyter"]["numbers"][0]["cell_id"] == "c5"
    assert "'run'" not in str(document)
    assert document.metadata.kernelspec.name == "python3"


async def test_no_notebook_is_overwritten(place: Path) -> None:
    _write(place, QUESTION, _ran(1, "print(40)", _said("40\n")), _answer())
    (place.parent / "work-tidy.ipynb").write_text("mine")
    tidied = await _tidied(place)
    assert tidied.path.name == "work-tidy-2.ipynb"
    assert (place.parent / "work-tidy.ipynb").read_text() == "mine"


async def test_a_cell_that_needs_more_than_its_text_shows_keeps_the_whole(place: Path) -> None:
    _write(
        place,
        QUESTION,
        _ran(1, "import builtins\nclass Box: pass\nbox = builtins"),
        _ran(2, "vars(box)['hidden'] = 40"),
        _ran(3, "print(hidden)", _said("40\n")),
        _answer(),
    )
    tidied = await _tidied(place)
    assert (tidied.is_same, tidied.differs, tidied.left_out) == (True, "[3]", ())
    assert tidied.words == (
        "cell [3] needs more cells than its text shows. All 3 cells kept; outputs are the same"
    )
    assert len(_sources(tidied)) == 3


async def test_an_output_that_differs_is_named_and_the_old_ones_stay(place: Path) -> None:
    (place.parent / "sales.csv").write_text("month,sales\n1,10\n2,31\n")
    look = _ran(2, "df.head()", _said("x"))
    _write(place, QUESTION, _ran(1, LOAD), look, _ran(3, "print(df.sales.sum())", _said("40\n")),
           _answer())  # fmt: skip
    tidied = await _tidied(place)
    assert (tidied.is_same, tidied.differs) == (False, "[3]")
    document = _read(tidied)
    assert document.cells[3].outputs[0].text == "40\n"
    assert "cell [3] gave a different output when run again" in document.cells[-1].source
    assert len(_sources(tidied)) == 3


@pytest.mark.slow
async def test_figures_are_compared_by_what_they_show(place: Path) -> None:
    draw = "import matplotlib.pyplot as plt\nplt.bar(['a', 'b'], df.sales)\nplt.show()"
    png = {"image/png": "iVBORw0KGgo=", "text/plain": "<Figure size 640x480 with 1 Axes>"}
    plain = new_output("display_data", data=png)
    sum_ = _ran(3, "print(df.sales.sum())", _said("40\n"))
    _write(place, QUESTION, _ran(1, LOAD), _ran(2, draw, plain), sum_, _answer("40", "c3"))
    first = await _tidied(place)
    assert first.words == "3 of 3 cells kept; outputs are the same"
    document = _read(first)
    shown = document.cells[2].outputs[0].data["text/plain"]
    document.cells[2].outputs[0].data["text/plain"] = f"{shown} and something else"
    document.cells[-1].metadata["dm_jupyter"]["numbers"] = []
    nbformat.write(document, place)
    assert (await _tidied(place)).differs == "[2]"
    document.cells[2].outputs = []
    nbformat.write(document, place)
    assert (await _tidied(place)).is_same  # no figure was shown: the cell is not needed


async def test_a_file_that_a_needed_cell_makes_is_made_again_and_not_read_from_before(
    place: Path,
) -> None:
    (place.parent / "clean.csv").write_text("sales\n999\n")
    _write(
        place,
        QUESTION,
        _ran(1, LOAD),
        _ran(2, "df.head()", _said("x")),
        _ran(3, "df.to_csv('clean.csv', index=False)"),
        _ran(4, "print(pd.read_csv('clean.csv').sales.sum())", _said("40\n")),
        _answer("40", "c4"),
    )
    assert (await _tidied(place)).words == "3 of 4 cells kept; outputs are the same"
    assert (place.parent / "clean.csv").read_text() == "sales\n999\n"


async def test_a_file_elsewhere_is_read_only_where_it_is_named(
    place: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "far.txt"
    outside.write_text("40")
    _write(place, QUESTION, _ran(1, f"print(open({str(outside)!r}).read())", _said("40\n")),
           _answer())  # fmt: skip
    with pytest.raises(NotebookError, match="name it after the notebook"):
        await tidy(place, TidySettings(), lambda _: None)
    assert (await _tidied(place, files=(outside,))).is_same


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("import os\nos.kill(os.getpid(), 9)", "failed when run again"),
    ],
    ids=["raises", "dies"],
)
async def test_a_cell_that_fails_now_leaves_no_notebook(place: Path, source: str, why: str) -> None:
    _write(place, QUESTION, _ran(1, source, _said("40\n")), _answer())
    with pytest.raises(NotebookError, match=why) as caught:
        await tidy(place, TidySettings(), lambda _: None)
    assert "cell [1] of work.ipynb" in str(caught.value)
    assert str(caught.value).endswith("No notebook was written")
    assert sorted(path.name for path in place.parent.iterdir()) == ["sales.csv", "work.ipynb"]


async def test_a_stop_leaves_no_notebook(place: Path) -> None:
    source = "import time\ntime.sleep(60)"
    _write(place, QUESTION, _ran(1, source), _answer())
    begun = asyncio.Event()
    task = asyncio.create_task(tidy(place, TidySettings(), lambda _: begun.set()))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(path.name for path in place.parent.iterdir()) == ["sales.csv", "work.ipynb"]


async def test_a_full_disk_leaves_no_half_of_a_notebook(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    _write(place, QUESTION, _ran(1, "print(40)", _said("40\n")), _answer())
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(NotebookError, match="No space left on device") as caught:
        await tidy(place, TidySettings(), lambda _: None)
    assert "work.ipynb is unchanged" in str(caught.value)
    assert sorted(path.name for path in place.parent.iterdir()) == ["sales.csv", "work.ipynb"]


async def test_a_file_system_without_links_gets_it_too(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    _write(place, QUESTION, _ran(1, "print(40)", _said("40\n")), _answer())
    monkeypatch.setattr(Path, "hardlink_to", refused)
    assert (await _tidied(place)).is_same


# which question, and what is none


def test_the_last_answer_counts_unless_a_run_is_named() -> None:
    earlier = [
        new_markdown_cell("## First?", metadata={"dm_jupyter": {"run": "a", "role": "question"}}),
        _ran(1, "x = 1", _said("1")),
        new_markdown_cell(
            "## Answer\n\n1", metadata={"dm_jupyter": {"run": "a", "role": "answer"}}
        ),
    ]
    cells = [*earlier, QUESTION, _ran(2, "print(x)", _said("1")), _answer("1")]
    document = new_notebook(cells=cells)
    last = outline_of(document)
    assert (last.question.source, last.first, sorted(last.needed)) == (
        "## What is the sum?", 1, [0, 1],
    )  # fmt: skip
    first = outline_of(document, run_id="a")
    assert (first.question.source, len(first.cells)) == ("## First?", 1)
    with pytest.raises(NotebookError, match="contains no answer"):
        outline_of(document, run_id="unknown")


def test_a_notebook_of_an_earlier_release_is_understood() -> None:
    cells = [new_markdown_cell("## How many?"), _ran(1, "print(3)", _said("3\n")),
             new_markdown_cell("## Answer\n\n3")]  # fmt: skip
    outline = outline_of(new_notebook(cells=cells))
    assert (outline.question.source, sorted(outline.rests_on)) == ("## How many?", [0])


def test_cells_are_called_by_their_counts_or_else_by_their_places() -> None:
    cells = [_ran(4, "x = 1"), new_markdown_cell("words"), _ran(7, "print(x)")]
    counted = outline_of(new_notebook(cells=[QUESTION, *cells, _ran(9, " "), _answer()]))
    assert [one.name for one in counted.cells] == ["[4]", "[7]"]
    bare = [new_code_cell(source) for source in ("x = 1", "", "print(x)")]
    uncounted = outline_of(new_notebook(cells=[QUESTION, *bare, _answer()]))
    assert [one.name for one in uncounted.cells] == ["number 1", "number 3"]
    mixed = outline_of(new_notebook(cells=[QUESTION, *cells, new_code_cell("never"), _answer()]))
    assert [one.source for one in mixed.cells] == ["x = 1", "print(x)"]


def test_the_question_of_an_answer_is_that_of_its_run() -> None:
    other = new_markdown_cell(
        "## Other?", metadata={"dm_jupyter": {"run": "o", "role": "question"}}
    )
    cells = [QUESTION, _ran(1, "x = 1", dm_jupyter={"run": "r", "role": "cell"}), other]
    outline = outline_of(new_notebook(cells=[*cells, _ran(2, "print(x)"), _answer()]))
    assert outline.question.source == QUESTION.source
    assert outline.first == 0
    nobody = outline_of(new_notebook(cells=[_ran(1, "x = 1"), _answer()]))
    assert (nobody.question, nobody.first) == (None, 0)


@pytest.mark.parametrize(
    "cells",
    [[], [QUESTION, _answer()], [QUESTION, _ran(1, "x"), new_markdown_cell("## No answer")],
     [_ran(1, "x"), QUESTION, _answer()]],
    ids=["empty", "no cell", "no answer", "no cell of its own"],
)  # fmt: skip
async def test_a_notebook_without_an_answer_is_refused(place: Path, cells: list[Any]) -> None:
    _write(place, *cells)
    with pytest.raises(NotebookError, match="can't be tidied"):
        await tidy(place, TidySettings(), lambda _: None)


@pytest.mark.parametrize(
    "mark", [{"numbers": "x"}, {"numbers": [1, None, {"cell_id": 3}]}, 7, {"role": []}, [], None]
)
def test_any_marks_are_read(mark: Any) -> None:
    answer = new_markdown_cell("## Answer\n\n3")
    answer.metadata["dm_jupyter"] = mark
    document = new_notebook(cells=[_ran(1, "print(3)", _said("3"), dm_jupyter=mark), answer])
    try:
        assert outline_of(document).rests_on == {0}
    except NotebookError:
        assert mark == {"role": []}
