"""The measurement of the pages' language, on texts counted by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.prose import HEADINGS, main, read_prose, split_sentences

PAGE = """\
# A heading. With two sentences.

The first sentence has six words. The second; it has a semicolon and runs
on over the line's end (as this (nested) one shows). Is `a. b c` one word? Yes!

```
This code is left out. It takes 5 s.
```

- An item is a sentence
- It takes 2.5 s, or 12 % of [3 MiB](page.md), not `7 ms`. See [Limits](limits.md) first.

| head. | unit |
|---|---|
| no full stop here | 40 s |
| One sentence of 9 ms. And another | x |

<p>HTML is left out. All of it.</p>

![A picture. Left out.](img/a.png)

> A quotation counts, e.g. this one.
"""


def _lines(text: str) -> list[tuple[int, int, str]]:
    return [(one.line, one.words, one.text) for one in read_prose("p.md", text).sentences]


def test_prose_is_split_and_counted_and_all_else_left_out() -> None:
    assert _lines(PAGE) == [
        (3, 6, "The first sentence has six words."),
        (3, 18, "The second; it has a semicolon and runs on over the line's end (as this (nested)"
         " one shows)."),
        (3, 4, "Is `a. b c` one word?"),
        (3, 1, "Yes!"),
        (10, 5, "An item is a sentence"),
        (11, 11, "It takes 2.5 s, or 12 % of 3 MiB, not `7 ms`."),
        (11, 3, "See Limits first."),
        (16, 5, "One sentence of 9 ms."),
        (16, 2, "And another"),
        (22, 6, "A quotation counts, e.g. this one."),
    ]  # fmt: skip


def test_a_row_has_the_figures_worked_out_by_hand() -> None:
    # 61 words in 10 sentences; 2.5 s and 12 % are figures; one sentence is nested twice
    assert dict(zip(HEADINGS, read_prose("p.md", PAGE).row(), strict=True)) == {
        "page": "p.md",
        "sentences": "10",
        "mean": "6.1",
        "longest": "18",
        "> 35": "0",
        "> 25": "0",
        "figures": "2",
        "nested": "1",
    }


@pytest.mark.parametrize(
    ("words", "above_25", "above_35"),
    [(25, "0", "0"), (26, "1", "0"), (35, "1", "0"), (36, "1", "1")],
)
def test_a_limit_is_kept_by_a_sentence_of_just_so_many_words(
    words: int, above_25: str, above_35: str
) -> None:
    row = dict(zip(HEADINGS, read_prose("p", "word " * words).row(), strict=True))
    assert (row["longest"], row["> 25"], row["> 35"]) == (str(words), above_25, above_35)


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("It takes 5 s and 0.2 ms.", ("5 s", "0.2 ms")),
        ("Up to 2,048 MiB or 12%.", ("2,048 MiB", "12%")),
        ("It is 3x faster, 1.5 × smaller.", ("3x", "1.5 ×")),
        ("The 4 sheets of 2 files in x86-64, 3 seasons.", ()),
        ("A context of 32,000 tokens.", ("32,000 tokens",)),
        ("[30 s](a.md) and `30 s`", ()),
        ("| a |\n|---|\n| It takes 5 s. |", ()),
    ],
)
def test_a_figure_is_a_number_with_a_unit(text: str, figures: tuple[str, ...]) -> None:
    found = [figure for one in read_prose("p", text).sentences for figure in one.figures]
    assert tuple(found) == figures


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two? Three! Four… five", 5),
        ("Version 4.6 of a.b is one; so: this, too.", 1),
        ("See e.g. this, i.e. that, etc. and so on.", 1),
        ("He said \"no.\" Then (so he says.) he left.", 3),
        ("*Stop.* **Go.** On.", 3),
        ("— … —", 0),
        ("", 0),
    ],
)  # fmt: skip
def test_a_sentence_ends_at_a_mark_before_white_space(text: str, sentences: int) -> None:
    assert len(split_sentences(text)) == sentences


def test_an_admonition_s_title_is_no_prose() -> None:
    assert _lines('!!! warning "Not run here"\nIt waits.') == [(1, 2, "It waits.")]


def test_the_command_prints_pages_a_total_the_worst_and_the_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "a.md", tmp_path / "b.md"
    first.write_text("Two words. It takes all of 5 s.")
    second.write_text("One `code` word.")
    main([str(first), str(second), "--markdown", "--worst", "1", "--figures"])
    assert capsys.readouterr().out == (
        "| page | sentences | mean | longest | > 35 | > 25 | figures | nested |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        f"| {first} | 2 | 4.0 | 6 | 0 | 0 | 1 | 0 |\n"
        f"| {second} | 1 | 3.0 | 3 | 0 | 0 | 0 | 0 |\n"
        "| all | 3 | 3.7 | 6 | 0 | 0 | 1 | 0 |\n"
        f"\n{first}:1: 6 words\n    It takes all of 5 s.\n"
        f"\n{first}:1: 5 s\n    It takes all of 5 s.\n"
    )


def test_without_files_the_checkout_s_pages_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    main([])
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split() == " ".join(HEADINGS).split()
    named = {line.split()[0].rpartition("/")[2] for line in printed[1:]}
    assert {"README.md", "index.md", "0001-markdown-dialect.md", "all"} <= named
