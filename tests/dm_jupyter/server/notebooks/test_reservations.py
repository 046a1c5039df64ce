"""Notebooks that are kept from all other work."""

from __future__ import annotations

from contextlib import suppress

from dm_jupyter.server.notebooks.open_notebooks import NotebookLocks


def test_a_reservation_follows_its_notebook() -> None:
    reserved = NotebookLocks()
    with reserved.hold("a.ipynb") as one, reserved.hold("b.ipynb") as other:
        reserved.rename("a.ipynb", "c.ipynb")
        assert (one.path, other.path) == ("c.ipynb", "b.ipynb")
        assert "c.ipynb" in reserved
        assert "a.ipynb" not in reserved
    assert "c.ipynb" not in reserved
    assert "b.ipynb" not in reserved


def test_work_that_broke_reserves_nothing() -> None:
    reserved = NotebookLocks()
    with suppress(OSError), reserved.hold("a.ipynb"):
        raise OSError
    assert "a.ipynb" not in reserved
