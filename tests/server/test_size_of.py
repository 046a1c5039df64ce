"""The size of a data file is that of the file itself, never of what a link leads to."""

from pathlib import Path

from dm_jupyter.server.data_files import DataFiles


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
