"""A notebook that a question continues: its variables are restored, its cells shown to the model.

Covered: the notebook's own cells are never changed. A notebook that somebody else has written
meanwhile is never overwritten. The cells read no file except those below the notebook's folder
that they name. Not covered: the notebook's cells do what their author wrote, within the sandbox.
"""

from __future__ import annotations

import json
import os
import re
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from jupyter_core.paths import jupyter_runtime_dir

from dm_jupyter.agent.notebook_context import NotebookView, cells_of_document, notebook_context
from dm_jupyter.agent.notebook_file import read_notebook
from dm_jupyter.core.errors import NotebookError
from dm_jupyter.data.kernel_tables import alive_from_text, variables_expression
from kernel_sandbox.runners.session import KernelSession
from kernel_sandbox.types import CellResult, CellStatus

__all__ = [
    "MOST_INPUTS",
    "Continued",
    "Surroundings",
    "asks_the_analyst",
    "has_failed",
    "open_notebook",
    "quoted_names",
    "refuse_open_elsewhere",
]

_ASKS = re.compile(r"^\s*(?:[^\s=]+\s*=\s*)?%%?analyze\b", re.MULTILINE)
_QUOTED = re.compile(r"""["']([^"'\n\\]{1,200})["']""")
MOST_INPUTS = 50
"""Limit for the files that a notebook's kernel gets because its cells name them."""
_VARIABLES_S = 10.0
_SERVER_S = 2.0


def asks_the_analyst(source: str) -> bool:
    """Whether a cell asks the analyst, and so would begin a new run if run again."""
    return _ASKS.search(source) is not None


class Surroundings(Protocol):
    """The notebook around a question, whose variables are created in the kernel before the run."""

    @property
    def document(self) -> Any:
        """The notebook to which the new cells are added; `None` for an empty one."""
        ...

    @property
    def content(self) -> bytes | None:
        """The content that the notebook's file must still have when written; `None` for any."""
        ...

    @property
    def inputs(self) -> Mapping[str, Path]:
        """The files that the kernel needs for it, by the names under which it reads them."""
        ...

    async def revive(self, kernel: KernelSession) -> str:
        """Restore the variables and return what the model is shown besides the data.

        Called once, before the run.

        Args:
            kernel: an empty kernel.
        """
        ...


@dataclass(frozen=True)
class Continued:
    """A notebook as it was read; `revive` restores its variables in a kernel."""

    path: Path
    document: Any
    """The notebook in nbformat 4."""
    content: bytes
    """The file's bytes when it was read."""
    chars: int
    """Most characters of it that the model is shown."""
    on_progress: Callable[[str], None] = lambda _: None
    left_out: list[str] = field(default_factory=list)
    """Why cells were not run again, one sentence each; filled by `revive`."""

    @property
    def inputs(self) -> dict[str, Path]:
        """The files below the notebook's folder that its cells name, by their relative names."""
        folder = self.path.parent
        found: dict[str, Path] = {}
        for name in quoted_names(self.document):
            place = folder / name
            if len(found) < MOST_INPUTS and _is_inside(place, folder):
                found[place.relative_to(folder).as_posix()] = place
        return found

    async def revive(self, kernel: KernelSession) -> str:
        """Run the notebook's cells again, and return what the model is shown of the notebook.

        Args:
            kernel: an empty kernel.

        Raises:
            NotebookError: a cell failed; the message says which.
            SandboxError: the kernel can't run cells.
        """
        cells = list(self._runnable())
        for number, (name, source) in enumerate(cells, 1):
            self.on_progress(f"running cell {number} of {len(cells)} of {self.path.name} again")
            result = await kernel.run(source)
            if result.status is CellStatus.DENIED:
                self.left_out.append(f"cell {name} was not run again: {result.message}")
            elif not result.ok:
                raise NotebookError(self._failure(name, result))
        kernel.workspace.forget_new_files()
        text = await kernel.evaluate("", variables_expression(), _VARIABLES_S)
        alive = alive_from_text(text or "")
        sizes = [(name, path.stat().st_size) for name, path in self.inputs.items()]
        view = NotebookView(
            cells=cells_of_document(self.document),
            tables=alive.tables,
            values=alive.values,
            files=sizes,
        )
        return "\n\n".join(part.text for part in notebook_context(view, self.chars))

    def _failure(self, name: str, result: CellResult) -> str:
        error = result.error
        why = f"{error.name}: {error.message}" if error is not None else result.message
        return (
            f"cell {name} of {self.path.name} failed when run again: {why.rstrip('.')}. The "
            "question was not asked and the notebook is unchanged. Fix or clear the cell, then ask "
            "again"
        )

    def _runnable(self) -> Iterator[tuple[str, str]]:
        """Yield the name and the source of each cell that created the notebook's variables."""
        codes = [cell for cell in self.document["cells"] if cell["cell_type"] == "code"]
        are_counted = any(cell.get("execution_count") is not None for cell in codes)
        for place, cell in enumerate(codes, 1):
            count = cell.get("execution_count")
            is_left_out = (are_counted and count is None) or asks_the_analyst(cell["source"])
            if cell["source"].strip() and not is_left_out and not has_failed(cell):
                yield (f"[{count}]" if count is not None else f"number {place}"), cell["source"]


def quoted_names(document: Any) -> Iterator[str]:
    """Yield the quoted texts in a notebook's code, some of which name files.

    Args:
        document: the notebook in nbformat 4.
    """
    for cell in document["cells"]:
        if cell["cell_type"] == "code":
            yield from _QUOTED.findall(cell["source"])


def open_notebook(path: Path, chars: int, on_progress: Callable[[str], None]) -> Continued:
    """Return the notebook at a path.

    Args:
        path: path of its file.
        chars: most characters of it that the model is shown.
        on_progress: callback with a line before each cell that is run again.

    Raises:
        NotebookError: the notebook is missing, can't be continued, or can't be written.
    """
    path = path.resolve()
    content, document = read_notebook(path)
    if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK | os.X_OK):
        raise NotebookError(f"{path} can't be written, so it can't be continued")
    return Continued(path, document, content, chars, on_progress)


def refuse_open_elsewhere(path: Path) -> None:
    """Raise an error if a Jupyter server of this account has a kernel for a notebook; blocks.

    Args:
        path: path of its file.

    Raises:
        NotebookError: a server has one, and its page would overwrite what is added here.
    """
    path = path.resolve()
    for server in _servers():
        root = Path(str(server.get("root_dir", ""))).resolve()
        if not path.is_relative_to(root):
            continue
        name = path.relative_to(root).as_posix()
        if any(session.get("path", "").lstrip("/") == name for session in _sessions(server)):
            raise NotebookError(
                f"{path} is open in Jupyter, which would overwrite what is added: ask in its "
                "panel, or close the notebook and shut down its kernel"
            )


def _servers() -> Iterator[Mapping[str, Any]]:
    for file in Path(jupyter_runtime_dir()).glob("jpserver-*.json"):
        try:
            raw = json.loads(file.read_bytes())
        except (OSError, ValueError):
            continue
        if isinstance(raw, dict) and str(raw.get("url", "")).startswith(("http://", "https://")):
            yield raw


def _sessions(server: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the open notebooks of a server; empty if it does not answer."""
    request = urllib.request.Request(  # noqa: S310  (its scheme was looked at)
        f"{server['url']}api/sessions",
        headers={"Authorization": f"token {server.get('token', '')}"},
    )
    try:
        # The token goes to this machine's server, never through a proxy.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=_SERVER_S) as answer:
            found = json.loads(answer.read())
    except (OSError, ValueError):
        return []
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _is_inside(place: Path, folder: Path) -> bool:
    """Whether a path is a regular file below the folder, without links or hidden parts."""
    if place.is_absolute() and not place.is_relative_to(folder):
        return False
    parts = place.relative_to(folder).parts
    if not parts or any(part.startswith(".") for part in parts):
        return False
    try:
        return place.is_file() and place.resolve() == place
    except OSError:
        return False


def has_failed(cell: Mapping[str, Any]) -> bool:
    """Whether a code cell ended in an error when it ran.

    Args:
        cell: the cell as an nbformat node.
    """
    tags = (cell.get("metadata") or {}).get("tags") or ()
    outputs = cell.get("outputs") or ()
    return "raises-exception" in tags or any(one["output_type"] == "error" for one in outputs)
