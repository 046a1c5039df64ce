import base64
import warnings

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


NOISE = {
    "future": "/x/y.py:3: FutureWarning: soon gone\n  frame.agg()\n",
    "deprecated": "/x/y.py:3: DeprecationWarning: soon gone\n  frame.agg()\n",
    "of pandas": "<ipython-input-1>:1: Pandas4Warning: soon gone\n",
    "performance": "/x/y.py:3: PerformanceWarning: fragmented\n  frame['a'] = 1\n",
    "dtype": "<string>:1: DtypeWarning: Columns (3) have mixed types. Specify dtype option.\n",
    "glyph": "/x/y.py:3: UserWarning: Glyph 8364 (EURO) missing from font(s) Arial.\n  d()\n",
    "font": "findfont: Font family 'Arial' not found.\n",
}
SIGNS = {
    "empty": ("/x/y.py:3: RuntimeWarning: Mean of empty slice\n  return mean()\n", "Mean of empty"),
    "freedom": ("/x/y.py:3: RuntimeWarning: Degrees of freedom <= 0 for slice.\n", "Degrees of"),
    "invalid": (
        "/x/y.py:3: RuntimeWarning: invalid value encountered in divide\n",
        "invalid value",
    ),
    "zero": ("/x/y.py:3: RuntimeWarning: divide by zero encountered in log\n", "divide by zero"),
    "all missing": ("/x/y.py:3: RuntimeWarning: All-NaN slice encountered\n", "All-NaN slice"),
    "constant": ("/x/y.py:3: ConstantInputWarning: An input array is constant\n", "is constant"),
    "small sample": ("/x/y.py:3: SmallSampleWarning: too small\n  test()\n", "too small"),
    "not converged": ("/x/y.py:3: ConvergenceWarning: lbfgs failed to converge\n", "converge"),
    "a copy": ("/x/y.py:3: SettingWithCopyWarning: a value is set on a copy\n", "on a copy"),
    "dates": ("/x/y.py:3: UserWarning: Could not infer format\n  to_datetime()\n", "infer format"),
}


def _stderr(text: str, *, is_quiet: bool = True) -> str:
    return describe(CellResult(CellStatus.OK, (Stream("stderr", text),)), is_quiet=is_quiet)


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE)
def test_named_noise_of_libraries_is_left_out(noise: str) -> None:
    assert _stderr(f"{noise}real trouble") == "real trouble"
    assert _stderr(noise, is_quiet=False) == noise.rstrip("\n")


@pytest.mark.parametrize(("text", "sign"), SIGNS.values(), ids=SIGNS)
def test_a_sign_of_an_empty_or_undefined_result_is_shown_once(text: str, sign: str) -> None:
    told = _stderr(text * 3 + NOISE["future"] + "more")
    assert told.count(sign) == 1
    assert told.endswith("more")
    assert "/x/y.py" not in told


def test_what_numpy_says_of_an_empty_selection_is_shown() -> None:
    np = pytest.importorskip("numpy")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        np.array([]).mean()
    texts = [warnings.formatwarning(str(w.message), w.category, "/lib/n.py", 3) for w in caught]
    told = _stderr("".join(texts))
    assert "RuntimeWarning: Mean of empty slice" in told
    assert "RuntimeWarning: invalid value encountered" in told


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
