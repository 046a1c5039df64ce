from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dm_jupyter.core.errors import UsageError
from dm_jupyter.magic.arguments import Request, request_from, takes_arguments

Asking = Callable[..., Request]


@pytest.fixture
def asked() -> Asking:
    @takes_arguments
    def analyze(line: str, cell: str | None = None) -> None:
        """Says what it is for."""

    def ask(line: str, cell: str | None = None) -> Request:
        return request_from(analyze.parser, line, cell)

    ask.__doc__ = analyze.__doc__
    return ask


def test_a_line_ends_in_its_question(asked: Asking) -> None:
    request = asked('sales.csv "my orders.xlsx" "How many, and why?"')
    assert request == Request("How many, and why?", ("sales.csv", "my orders.xlsx"))


def test_a_cell_is_the_question_and_the_line_names_files(asked: Asking) -> None:
    request = asked("'a b.csv' c.csv", "\nHow many?\n\nBy region.\n")
    assert (request.files, request.question) == (("a b.csv", "c.csv"), "How many?\n\nBy region.")


def test_options_may_stand_anywhere(asked: Asking) -> None:
    request = asked(
        "--model m --seed 3 a.csv --base-url http://x/v1 --max-turns 2 --into output "
        "--api-key-file key.txt --format '@n[count]' --dialect tools --turn-tokens 9 "
        "--temperature 0.5",
        "How many?",
    )
    first = ("How many?", ("a.csv",), "@n[count]", "m", "http://x/v1", Path("key.txt"), 2, 3)
    assert request == Request(*first, "tools", 9, 0.5, "output")
    assert {"--dialect", "--turn-tokens", "--temperature"} <= set(request.for_output_alone)


def test_what_of_the_notebook_is_not_told(asked: Asking) -> None:
    assert asked("a.csv", "n?").without == ()
    assert asked("a.csv --without 'files, cells'", "n?").without == ("cells", "files")
    everything = ("variables", "cells", "files", "earlier")
    assert asked("a.csv --alone --without files", "n?").without == everything
    assert not asked("a.csv --without files", "n?").for_output_alone


def test_an_adapter_is_handed_on_in_the_models_name(
    asked: Asking, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("DM_JUPYTER_MODEL", raising=False)
    monkeypatch.delenv("DM_JUPYTER_BASE_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    request = asked("a.csv --adapter mine.gguf", "n?")
    assert request.model == f"local+{tmp_path}/mine.gguf"
    assert not request.for_output_alone
    request = asked("a.csv --adapter /a/mine.gguf --model smollm2-135m", "n?")
    assert request.model == "smollm2-135m+/a/mine.gguf"
    with pytest.raises(UsageError, match="is an endpoint"):
        asked("a.csv --adapter mine.gguf --model m --base-url http://h/v1", "n?")


def test_a_home_folder_is_found(asked: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/somewhere")
    assert asked("~/a.csv", "n?").files == ("/somewhere/a.csv",)


@pytest.mark.parametrize(
    ("line", "cell", "words"),
    [
        ("", "", "give the question, and data files before it"),
        ("", None, "give the question, and data files before it"),
        (__file__, None, "give the question, and data files before it"),
        ("a.csv --nonsense", "q", "unrecognized arguments: --nonsense; %analyze\\? lists"),
        ("a.csv --max-turns 0", "q", "--max-turns: must be 1 or more, not 0"),
        ("a.csv --max-turns x", "q", "--max-turns: invalid"),
        ("a.csv --temperature -1", "q", "--temperature: must be 0 to 2, not -1"),
        ("a.csv --temperature nan", "q", "--temperature: must be 0 to 2, not nan"),
        ("a.csv --temperature x", "q", "--temperature: invalid"),
        ("a.csv --without cells,outputs", "q", "--without: 'outputs' is none of variables, cells"),
        ("a.csv --without ''", "q", "--without: '' is none of"),
        ("a.csv --into space", "q", "--into: invalid choice"),
        ("a.csv What's this", None, 'no closing quotation: put the question in "double quotes"'),
    ],
)
def test_a_mistake_is_named(asked: Asking, line: str, cell: str | None, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        asked(line, cell)


def test_the_help_names_every_option_and_gives_an_example(asked: Asking) -> None:
    told = asked.__doc__ or ""
    assert told.count("--") >= 7
    for words in ("Says what it is for", "--into", "%%analyze sales.csv\n", "Which region"):
        assert words in told
