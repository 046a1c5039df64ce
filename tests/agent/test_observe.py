import base64

import pytest

from dm_jupyter.agent.observe import describe, figures_in, pictures_in, shorten
from kernel_sandbox.types import CellError, CellResult, CellStatus, Display, Stream
from tests.fakes import printed


def test_short_text_is_left_alone() -> None:
    assert shorten("abc", 3) == "abc"


def test_a_cut_keeps_head_and_tail_and_says_how_much() -> None:
    text = "H" * 1_000 + "T" * 1_000
    cut = shorten(text, 300)
    assert cut.startswith("H" * 200 + "\n")
    assert cut.endswith("\n" + "T" * 100)
    assert "1,700 characters cut" in cut


def test_streams_displays_and_figures_come_in_order() -> None:
    result = CellResult(
        CellStatus.OK,
        (
            Stream("stdout", "one\n"),
            Display({"text/plain": "<Figure>", "image/png": "aGk="}),
            Display({"text/plain": "   a\n0  1", "text/html": "<table>"}, {}, 3),
        ),
    )
    assert describe(result) == "one\n[a figure was shown]\n   a\n0  1"


def test_library_warnings_are_left_out() -> None:
    noise = "/x/y.py:3: FutureWarning: soon gone\n  frame.agg()\nreal trouble"
    result = CellResult(CellStatus.OK, (Stream("stderr", noise),))
    assert describe(result) == "real trouble"


def test_an_error_names_the_line_of_the_cell() -> None:
    trace = (
        "\x1b[31mKeyError\x1b[39m",
        "Cell In[2], line 3\n      1 import x\n----> 3 df['agee'].mean()",
        "File /lib/frame.py:10, in get\n---> 10 raise KeyError(key)",
        "KeyError: 'agee'",
    )
    result = CellResult(CellStatus.ERROR, (CellError("KeyError", "'agee'", trace),))
    assert describe(result) == "line: df['agee'].mean()\nKeyError: 'agee'"


def test_a_syntax_error_is_shown_whole() -> None:
    trace = ("  Cell In[1], line 1\n    x = = 1\n        ^\nSyntaxError: invalid syntax",)
    result = CellResult(CellStatus.ERROR, (CellError("SyntaxError", "invalid", trace),))
    assert "x = = 1" in describe(result)


def test_a_limit_and_the_lost_state_are_told() -> None:
    result = CellResult(
        CellStatus.MEMORY, (), message="It needed over 2 GiB.", cut_bytes=5_000, state_lost=True
    )
    told = describe(result)
    assert "over 2 GiB" in told
    assert "5,000 more bytes" in told
    assert "every variable is gone" in told


def test_a_bare_status_is_told() -> None:
    assert describe(CellResult(CellStatus.KILLED)) == "The cell ended with status killed."


def test_long_output_is_cut_but_the_error_is_whole() -> None:
    result = CellResult(
        CellStatus.ERROR, (*printed("x" * 9_000).outputs, CellError("ValueError", "the reason"))
    )
    told = describe(result, 900)
    assert len(told) < 1_100
    assert told.endswith("ValueError: the reason")


PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 30).decode()
WORDS = "Figure: 'Rain'; line 'Seattle' of 3 points"


def _figure(**data: str) -> CellResult:
    kinds = {"png": "image/png", "jpeg": "image/jpeg", "plain": "text/plain"}
    bundle = {kinds[name]: value for name, value in data.items()}
    return CellResult(CellStatus.OK, (Display(bundle),))


def test_a_figure_is_told_in_the_words_of_its_kernel() -> None:
    assert describe(_figure(png=PNG, plain=WORDS)) == f"[a figure was shown. {WORDS}]"
    assert figures_in(_figure(png=PNG, plain=WORDS)) == [WORDS]
    assert figures_in(_figure(plain=WORDS)) == []
    assert figures_in(_figure(png=PNG, plain="<Figure size 1x1 with 1 Axes>")) == []


def test_a_picture_is_taken_for_one_by_its_bytes_and_its_size() -> None:
    assert pictures_in(_figure(png=PNG[:20] + "\n" + PNG[20:])) == (f"data:image/png;base64,{PNG}",)
    jpeg = base64.b64encode(b"\xff\xd8\xff" + b"0" * 30).decode()
    assert pictures_in(_figure(jpeg=jpeg)) == (f"data:image/jpeg;base64,{jpeg}",)


@pytest.mark.parametrize(
    "data",
    [
        "no base64 at all!",
        base64.b64encode(b"<svg onload=...>").decode(),
        base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 2_000_000).decode(),
        "",
    ],
)
def test_what_is_no_picture_is_not_sent(data: str) -> None:
    assert pictures_in(_figure(png=data)) == ()


def test_of_many_pictures_the_last_are_sent() -> None:
    shown = tuple(Display({"image/png": PNG}) for _ in range(9))
    assert len(pictures_in(CellResult(CellStatus.OK, shown))) == 2
