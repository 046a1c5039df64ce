"""Which files and tables a question names."""

from pathlib import Path

import pytest

from dm_jupyter.server.files.data_files import DataFiles
from dm_jupyter.server.files.meaning import Meaning, meaning_of, mentions_in, tables_in
from dm_jupyter.server.protocol import DataCandidate


@pytest.fixture
def files(tmp_path: Path) -> DataFiles:
    for name in ("sales.csv", "old-sales.csv", "my sales.csv", "sub/penguins.csv",
                 "one/twice.csv", "two/twice.csv"):  # fmt: skip
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("a\n1\n")
    return DataFiles(tmp_path)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Sum of @sales.csv?", ("sales.csv",)),
        ("(@a.csv), @b. And @a.csv!", ("a.csv", "b")),
        ("mail me@home.org", ()),
        ("tweets by `@alice` and '@bob'", ()),
        ("Fix:\n```python\n@property\ndef f(): ...\n```", ()),
        ("at @ noon", ()),
    ],
)
def test_words_after_an_at_sign_are_mentions(question: str, words: tuple[str, ...]) -> None:
    assert mentions_in(question) == words


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("How many rows has sales.csv?", {"sales.csv"}),
        ("Is it in sales.csv.", {"sales.csv"}),
        ("Compare sales.csv with old-sales.csv", {"sales.csv", "old-sales.csv"}),
        ("What is in old-sales.csv?", {"old-sales.csv"}),
        ("What is in my sales.csv?", {"my sales.csv"}),
        ("What is in sales.csvx or presales.csv?", set()),
        ("What is in sales.csv.gz?", set()),
        ("Which species in penguins.csv is heavy?", {"sub/penguins.csv"}),
        ("Which species in sub/penguins.csv is heavy?", {"sub/penguins.csv"}),
        ("Save the sums as out.csv", set()),
        ("What is in `sales.csv`?", {"sales.csv"}),
        ("Fix:\n```\npd.read_csv('sales.csv')\n```", {"sales.csv"}),
        ("Fix:\n```\ndf.to_csv('penguins.csv')\n```", set()),
    ],
)
def test_a_file_is_meant_by_its_whole_name_alone(
    files: DataFiles, question: str, named: set[str]
) -> None:
    assert set(meaning_of(question, files, "").files) == named


def test_a_mention_finds_a_file_in_a_folder_below(files: DataFiles) -> None:
    assert meaning_of("Mean of @penguins.csv", files, "") == Meaning(("sub/penguins.csv",))
    assert meaning_of("Mean of @sales.csv", files, "sub") == Meaning(("sales.csv",))
    assert meaning_of("Mean of @../sales.csv", files, "sub") == Meaning(("sales.csv",))


def test_a_mention_of_a_table_or_of_a_given_file_is_clear(files: DataFiles) -> None:
    assert meaning_of("Mean of @df", files, "", variables=["df"]) == Meaning((), ("df",))
    given = meaning_of("Mean of @twice.csv", files, "", given=["one/twice.csv"])
    assert given == Meaning()


def test_what_nothing_is_called_is_unclear_and_the_alike_are_named(files: DataFiles) -> None:
    (unclear,) = meaning_of("Mean of @pengu", files, "").unclear
    assert (unclear.word, unclear.is_unknown) == ("pengu", True)
    assert unclear.candidates == (DataCandidate("file", "sub/penguins.csv"),)
    assert "“@pengu” names no file" in unclear.sentence
    (nothing,) = meaning_of("Mean of @qqq", files, "").unclear
    assert nothing.candidates == ()


def test_two_files_of_a_name_are_asked_about(files: DataFiles) -> None:
    for question in ("What is in twice.csv?", "What is in @twice.csv?"):
        (unclear,) = meaning_of(question, files, "").unclear
        assert not unclear.is_unknown
        assert [one.name for one in unclear.candidates] == ["one/twice.csv", "two/twice.csv"]
    assert meaning_of("What is in twice.csv?", files, "two").files == ("two/twice.csv",)


def test_a_name_that_leads_out_of_the_root_names_nothing(files: DataFiles, tmp_path: Path) -> None:
    (tmp_path.parent / "outside.csv").write_text("a\n1\n")
    for word in ("../outside.csv", str(tmp_path.parent / "outside.csv")):
        assert meaning_of(f"What is in @{word}", files, "").files == ()


@pytest.mark.parametrize(
    ("question", "tables", "meant"),
    [
        ("Mean of b?", ["a", "b"], ("b",)),
        ("Mean of all?", ["only"], ("only",)),
        ("Mean of ab?", ["a", "b"], ()),
        ("Mean?", [], ()),
    ],
)
def test_a_table_is_meant_by_its_name_or_by_being_the_only_one(
    question: str, tables: list[str], meant: tuple[str, ...]
) -> None:
    assert tables_in(question, tables) == meant
