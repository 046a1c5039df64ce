"""A notebook that a question goes on from: its files, its variables, and whether it is open."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from dm_jupyter.agent.continued import (
    MOST_INPUTS,
    Continued,
    asks_the_analyst,
    has_failed,
    open_notebook,
    quoted_names,
    refuse_open_elsewhere,
)
from dm_jupyter.core.errors import NotebookError
from kernel_sandbox.runners.session import KernelSession


def _continued(folder: Path, *cells: Any, chars: int = 4_000) -> Continued:
    path = folder / "work.ipynb"
    nbformat.write(new_notebook(cells=list(cells)), path)
    return open_notebook(path, chars, lambda _: None)


def _ran(source: str, count: int | None = 1, **fields: Any) -> Any:
    return new_code_cell(source, execution_count=count, **fields)


# files


def test_the_files_that_cells_name_are_those_below_the_notebooks_folder(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    (folder / "data").mkdir(parents=True)
    for name in ("a.csv", "data/b.csv", "unnamed.csv", ".hidden.csv"):
        (folder / name).write_text("x\n1\n")
    (tmp_path / "above.csv").write_text("x\n1\n")
    (folder / "link.csv").symlink_to(tmp_path / "above.csv")
    named = ["a.csv", "data/b.csv", "data", "gone.csv", ".hidden.csv", "link.csv", "../above.csv"]
    named += [str(folder / "a.csv"), str(tmp_path / "above.csv")]
    code = _ran("\n".join(f"open('{name}')" for name in named))
    words = new_markdown_cell("'unnamed.csv'")
    inputs = _continued(folder, code, words).inputs
    assert inputs == {"a.csv": folder / "a.csv", "data/b.csv": folder / "data/b.csv"}


def test_only_so_many_files_are_given_to_the_kernel(tmp_path: Path) -> None:
    names = [f"{number}.csv" for number in range(MOST_INPUTS + 2)]
    for name in names:
        (tmp_path / name).write_text("x\n")
    inputs = _continued(tmp_path, _ran(f"names = {names}")).inputs
    assert list(inputs) == names[:MOST_INPUTS]


def test_texts_in_quotes_are_found_in_code_alone() -> None:
    document = new_notebook(cells=[_ran("a = 'x.csv', \"y z.csv\", ''"), new_markdown_cell("'n'")])
    assert list(quoted_names(document)) == ["x.csv", "y z.csv"]


# which cells run again


@pytest.mark.parametrize(
    ("source", "asks"),
    [
        ("%%analyze\nHow many?", True),
        ("%analyze How many?", True),
        ("x = 1\nrun = %analyze How many?", True),
        ("print('%analyze')", False),
        ("analyze(x)", False),
        ("%%analyzer", False),
    ],
)
def test_a_cell_that_asks_the_analyst_is_known_by_its_magic(source: str, asks: bool) -> None:
    assert asks_the_analyst(source) is asks


def test_a_cell_has_failed_by_its_outputs_or_its_tag() -> None:
    error = new_output("error", ename="E", evalue="", traceback=[])
    text = new_output("stream", text="x")
    assert has_failed(_ran("x", outputs=[text, error]))
    assert has_failed(_ran("x", metadata={"tags": ["raises-exception"]}))
    assert not has_failed(_ran("x", outputs=[text], metadata={"tags": ["mine"]}))
    assert not has_failed(_ran("x"))


async def test_the_cells_make_their_variables_again_and_the_model_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    told: list[str] = []
    notebook = _continued(
        tmp_path,
        new_markdown_cell("# Mine"),
        _ran("total = 40 + 2", 1),
        _ran("never = 1", None),
        _ran("%analyze How many?", 2),
        _ran("gone / 0", 3, outputs=[new_output("error", ename="E", evalue="", traceback=[])]),
        _ran("name = 'a.csv'", 4),
    )
    notebook = Continued(
        notebook.path, notebook.document, notebook.content, notebook.chars, told.append
    )
    async with KernelSession() as kernel:
        words = await notebook.revive(kernel)
    assert "- total (int): 42" in words
    assert "# Mine" in words
    assert "- a.csv (0.0 kB)" in words
    assert "- never (" not in words
    assert told == [
        "running cell 1 of 2 of work.ipynb again",
        "running cell 2 of 2 of work.ipynb again",
    ]
    assert notebook.left_out == []


async def test_a_cell_that_fails_again_is_named_and_one_that_may_not_run_is_left_out(
    tmp_path: Path,
) -> None:
    notebook = _continued(
        tmp_path, _ran("import os\nos.system('ls')", None), _ran("1 / 0", None), _ran("x = 1", None)
    )
    async with KernelSession() as kernel:
        with pytest.raises(NotebookError, match=r"cell number 2 of .* ZeroDivision"):
            await notebook.revive(kernel)
    assert len(notebook.left_out) == 1
    assert notebook.left_out[0].startswith("cell number 1 was not run again: ")


# whether it is open


class _Server:
    """Answers as a Jupyter server does that is asked for its sessions."""

    def __init__(self, runtime: Path, root: Path, body: bytes) -> None:
        self.tokens: list[str | None] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.tokens.append(self.headers["Authorization"])
                self.send_response(200 if self.path == "/api/sessions" else 404)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.http = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{self.http.server_port}/"
        (runtime / "jpserver-1.json").write_text(
            json.dumps({"url": url, "root_dir": str(root), "token": "secret"})
        )

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "runtime"
    folder.mkdir()
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(folder))
    return folder


@pytest.fixture
def served(runtime: Path, tmp_path: Path) -> Iterator[_Server]:
    sessions = [None, {"path": "other.ipynb"}, {"path": "/below/open.ipynb"}]
    server = _Server(runtime, tmp_path, json.dumps(sessions).encode())
    yield server
    server.close()


def test_a_notebook_with_a_kernel_in_jupyter_is_refused(served: _Server, tmp_path: Path) -> None:
    with pytest.raises(NotebookError, match="is open in Jupyter"):
        refuse_open_elsewhere(tmp_path / "below" / "open.ipynb")
    assert served.tokens == ["token secret"]
    refuse_open_elsewhere(tmp_path / "below" / "closed.ipynb")
    refuse_open_elsewhere(tmp_path / "open.ipynb")
    assert len(served.tokens) == 3
    refuse_open_elsewhere(tmp_path.parent / "below" / "open.ipynb")
    assert len(served.tokens) == 3  # the server does not show that folder


@pytest.mark.parametrize("body", [b"no json", b"{}", b'"text"', b"[5]"])
def test_a_server_that_answers_something_else_has_no_notebook_open(
    runtime: Path, tmp_path: Path, body: bytes
) -> None:
    server = _Server(runtime, tmp_path, body)
    refuse_open_elsewhere(tmp_path / "open.ipynb")
    server.close()
    assert server.tokens == ["token secret"]
    refuse_open_elsewhere(tmp_path / "open.ipynb")  # and one that is gone


@pytest.mark.parametrize("note", ["", "[]", "{}", '{"url": 5}', '{"url": "file:///x"}'])
def test_what_names_no_server_is_passed_over(runtime: Path, tmp_path: Path, note: str) -> None:
    (runtime / "jpserver-2.json").write_text(note)
    refuse_open_elsewhere(tmp_path / "open.ipynb")
    assert list(runtime.iterdir()) == [runtime / "jpserver-2.json"]
