"""Data files below the server's folder: what is found, in which order, and what is not."""

from pathlib import Path

import pytest

from dm_jupyter.server.files.data_files import DataFiles
from dm_jupyter.server.files.file_search import FileSearch

TREE = (
    "penguins.csv",
    "notes.txt",
    "data/penguins-2020.csv",
    "data/deep/big penguin table.xlsx",
    "data/sales.csv",
    "other/sales.csv",
    ".secret/penguins.csv",
    "data/.penguins.csv",
    "node_modules/pkg/penguins.json",
    "env/lib/penguins.csv",
    "env/pyvenv.cfg",
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for name in TREE:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a\n1\n")
    return root


def test_a_piece_of_a_name_finds_files_in_folders_below(root: Path) -> None:
    found = FileSearch(root).matching("pengu")
    assert found.paths == (
        "penguins.csv",
        "data/penguins-2020.csv",
        "data/deep/big penguin table.xlsx",
    )
    assert found.is_whole


@pytest.mark.parametrize(
    ("match", "first"),
    [
        ("PNG20", "data/penguins-2020.csv"),
        ("bigtab", "data/deep/big penguin table.xlsx"),
        ("data/sal", "data/sales.csv"),
        ("osales", "other/sales.csv"),
    ],
)
def test_letters_in_their_order_suffice(root: Path, match: str, first: str) -> None:
    assert FileSearch(root).matching(match).paths[0] == first


def test_the_nearer_file_comes_first(root: Path) -> None:
    search = FileSearch(root)
    assert search.matching("sales", "other").paths == ("other/sales.csv", "data/sales.csv")
    assert search.matching("sales", "data/deep").paths == ("data/sales.csv", "other/sales.csv")
    assert search.named("sales.csv", "other") == ("other/sales.csv", "data/sales.csv")


def test_a_whole_name_or_a_paths_end_names_a_file(root: Path) -> None:
    search = FileSearch(root)
    assert search.named("data/sales.csv") == ("data/sales.csv",)
    assert search.named("ales.csv") == ()
    assert search.named("penguins") == ()


def test_hidden_files_are_found_only_where_the_server_shows_them(root: Path) -> None:
    shown = {".secret/penguins.csv", "data/.penguins.csv"}
    assert not shown & set(FileSearch(root).matching("pengu", ".secret", most=99).paths)
    all_of_them = FileSearch(root, allows_hidden=True).matching("pengu", most=99)
    assert shown <= set(all_of_them.paths)


def test_links_are_not_followed_and_listed_only_at_hand(root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "linked.csv").write_text("a\n1\n")
    (root / "door").symlink_to(outside)
    (root / "data" / "linked.csv").symlink_to(outside / "linked.csv")
    (root / "loop").symlink_to(root)
    search = FileSearch(root)
    assert search.matching("linked").paths == ()
    assert search.matching("linked", "data").paths == ("data/linked.csv",)
    assert search.matching("linked", "door").paths == ()
    assert search.matching("linked", "../outside").paths == ()


def test_a_search_ends_after_so_many_entries_and_says_so(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"part{number:03}.csv").write_text("")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "last.csv").write_text("")
    small = FileSearch(tmp_path, most_entries=200)
    assert not small.matching("part").is_whole
    assert small.matching("last").paths == ()
    assert small.matching("last", "below").paths == ("below/last.csv",)
    assert FileSearch(tmp_path, most_s=-1.0).matching("part").paths == ()


def test_a_folder_that_is_gone_is_passed_over(root: Path) -> None:
    assert FileSearch(root).matching("sales", "no/such").paths[0] == "data/sales.csv"


def test_a_link_a_folder_and_what_is_elsewhere_have_no_size(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "below").mkdir(parents=True)
    (root / "below" / "sales.csv").write_text("a\n1\n")
    (tmp_path / "secret.csv").write_text("secret")
    (root / "link.csv").symlink_to(tmp_path / "secret.csv")
    (root / "folder.csv").symlink_to(tmp_path)
    files = DataFiles(root)
    assert files.size_of("below/sales.csv") == 4
    for name in ("link.csv", "folder.csv/secret.csv", "below", "../secret.csv", "none.csv", ""):
        assert files.size_of(name) is None
