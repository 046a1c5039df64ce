"""What the model is told of the kernel that asks: its variables and the cells that ran in it.

Worked on in the output of the cell, a question gets copies of the variables: the person's own are
never changed, and what can't be copied is not told.
"""

from __future__ import annotations

import pickle
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from dm_jupyter.agent.continued import asks_the_analyst
from dm_jupyter.agent.notebook_context import NotebookCell, NotebookView, PartKind, notebook_context
from dm_jupyter.data.kernel_tables import (
    Alive,
    alive_from_text,
    variables_expression,
    variables_text,
)
from kernel_sandbox.runners.session import KernelSession

__all__ = ["Copies"]

_PRIVATE = re.compile(r"(?i)key|token|secret|passw|pwd|credential|auth|cookie")
_MOST_BYTES = 256 * 2**20
_MOST_CELLS = 200
_FILE = "variables.pickle"
_LOAD_S = 60.0
_LOAD = f"""
def _dm_jupyter_load():
    import pickle
    with open({_FILE!r}, "rb") as file:
        copies = pickle.load(file)
    for name, copy in copies.items():
        try:
            globals()[name] = pickle.loads(copy)
        except Exception:
            pass  # of a class that is not there
"""


class Copies:
    """Copies of a shell's variables for a kernel of their own; implements `Surroundings`."""

    document: Any = None
    content: bytes | None = None

    def __init__(
        self, shell: InteractiveShell, chars: int, withheld: Sequence[PartKind] = ()
    ) -> None:
        """Copies what can be copied.

        Args:
            shell: whose variables and cells they are.
            chars: the most that the model is told of them.
            withheld: what it is not told; variables that are withheld are not copied either.
        """
        self._chars = chars
        self._withheld = withheld
        self._cells = _cells_of(shell)
        is_told = "variables" not in withheld
        alive = alive_from_text(variables_text(shell.user_ns)) if is_told else Alive()
        self._folder = tempfile.TemporaryDirectory(prefix="dm-copies-")
        self._file = Path(self._folder.name) / _FILE
        self._file.write_bytes(pickle.dumps(_copied(shell.user_ns, alive)))

    @property
    def inputs(self) -> Mapping[str, Path]:
        """The file of copies."""
        return {_FILE: self._file}

    async def revive(self, kernel: KernelSession) -> str:
        """Makes the copies variables of the kernel; returns what the model is told of them.

        Args:
            kernel: an empty one.
        """
        await kernel.evaluate(_LOAD, "_dm_jupyter_load()", _LOAD_S)
        text = await kernel.evaluate("", variables_expression(), _LOAD_S)
        alive = alive_from_text(text or "")
        view = NotebookView(cells=self._cells, tables=alive.tables, values=alive.values)
        return "\n\n".join(
            part.text for part in notebook_context(view, self._chars, self._withheld)
        )

    def close(self) -> None:
        """Removes the file of copies."""
        self._folder.cleanup()


def _copied(namespace: Mapping[str, Any], alive: Alive) -> dict[str, bytes]:
    """The pickle of each variable that is told, as far as there is room; the last made first."""
    told = [str(one["name"]) for one in (*reversed(alive.tables), *reversed(alive.values))]
    copies: dict[str, bytes] = {}
    left = _MOST_BYTES
    for name in told:
        if name not in namespace or _PRIVATE.search(name):
            continue
        try:
            copy = pickle.dumps(namespace[name])
        except Exception:  # noqa: BLE001, S112  (whatever a class of the person's does)
            continue
        if len(copy) <= left:
            copies[name] = copy
            left -= len(copy)
    return dict(reversed(copies.items()))


def _cells_of(shell: InteractiveShell) -> list[NotebookCell]:
    """The cells that ran, but for those that ask the analyst, with the values that they gave."""
    history = shell.history_manager
    if history is None:
        return []
    shown: Mapping[int, Any] = getattr(history, "output_hist_reprs", {})
    ran = list(enumerate(history.input_hist_raw))[1:][-_MOST_CELLS:]
    return [
        NotebookCell("code", source, str(shown.get(count, "")), count)
        for count, source in ran
        if source.strip() and not asks_the_analyst(source)
    ]
