"""Loading of the extension: the magic, the transformer that awaits it, one-line faults."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from IPython.core.interactiveshell import InteractiveShell

from dm_jupyter.core.errors import DmJupyterError, UsageError
from dm_jupyter.magic.arguments import Request, request_from, takes_arguments
from kernel_sandbox.environment import OFF_VARIABLE, RUN_DIR_VARIABLE
from kernel_sandbox.errors import SandboxError

if TYPE_CHECKING:
    from dm_jupyter.magic.handoff import Handoff
    from dm_jupyter.magic.inline import ShownAnswer

__all__ = ["load", "unload"]

_NAME = "analyze"
_SHAPE = '%analyze sales.csv "…?"'
_CALL = re.compile(
    rf"^(\s*|.*=\s*)(get_ipython\(\)\.run_(?:line|cell)_magic\('{_NAME}', )", re.DOTALL
)
E = TypeVar("E", bound=BaseException)


def load(shell: InteractiveShell) -> None:
    """Register `%analyze` and `%%analyze`."""
    unload(shell)
    register: Any = shell.register_magic_function  # its annotations omit the shell
    register(_magic(shell), "line_cell", _NAME)
    shell.input_transformers_post.append(_AwaitCalls(shell))


def unload(shell: InteractiveShell) -> None:
    """Undo `load`, if it was called."""
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop(_NAME, None)
    transformers = shell.input_transformers_post
    transformers[:] = [one for one in transformers if not isinstance(one, _AwaitCalls)]


class _AwaitCalls:
    """An input transformer that puts `await` before the translated call of each of our magics.

    It runs last, so IPython still parses the cell itself: completeness, help calls and assignments.
    The history keeps the text as it was typed.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell

    def __call__(self, lines: list[str]) -> list[str]:
        """Return the lines of a cell with the calls awaited."""
        if not self._shell.autoawait:  # the magic itself reports what to do
            return lines
        return [_CALL.sub(r"\1await \2", line) for line in lines]


def _magic(shell: InteractiveShell) -> Callable[..., Awaitable[ShownAnswer | Handoff]]:
    @takes_arguments
    def analyze(line: str, cell: str | None = None) -> Awaitable[ShownAnswer | Handoff]:
        """Ask data files a question; the value of the cell is the answer.

        %%analyze takes the question from the lines below it, %analyze from the end of its line.
        A model writes cells and a restricted kernel runs them. Check the answers.
        """
        parser: Any = analyze.parser  # type: ignore[attr-defined]
        with _faults_in_one_line():
            if not shell.autoawait:
                raise UsageError(f"%{_NAME} needs automatic await: run %autoawait asyncio first")
            return _answer(shell, request_from(parser, line, cell))

    return analyze


async def _answer(shell: InteractiveShell, request: Request) -> ShownAnswer | Handoff:
    from dm_jupyter.analysis import task_about  # noqa: PLC0415  (%load_ext is quick)
    from dm_jupyter.data.kernel_tables import (  # noqa: PLC0415
        alive_from_text,
        variables_text,
    )
    from dm_jupyter.magic.handoff import hand_over  # noqa: PLC0415
    from dm_jupyter.magic.inline import answer_here  # noqa: PLC0415

    with _faults_in_one_line():
        task = None  # a restricted kernel does not see every file that the server sees
        if not _is_restricted():
            alive = alive_from_text(
                "" if "variables" in request.without else variables_text(shell.user_ns)
            )
            if not request.files and not alive.tables:
                raise UsageError(f"give at least one data file, then the question: {_SHAPE}")
            task = task_about(
                request.files,
                request.question,
                request.answer_format,
                needs_files=False,
            )
        alone = " and ".join(request.for_output_alone)
        if request.into == "cells" and alone:
            raise UsageError(
                f"{alone} can't go with --into cells, where the server's settings count"
            )
        notice = ""
        if request.into != "output" and not alone:
            handoff = await hand_over(shell, request, is_patient=_is_restricted())
            if handoff is not None:
                return handoff
            if request.into == "cells":
                notice = "nobody here writes cells for the analyst: it works in this output"
        if task is None:
            way = f"leave {alone} out or " if alone else "open it in one with dm-jupyter or "
            raise UsageError(
                f"this kernel is restricted and reaches no model: in JupyterLab, {way}choose an "
                "ordinary Python kernel"
            )
        return await answer_here(shell, task, request, notice)


def _is_restricted() -> bool:
    """Whether this process is a restricted kernel."""
    return RUN_DIR_VARIABLE in os.environ and OFF_VARIABLE not in os.environ


@contextmanager
def _faults_in_one_line() -> Iterator[None]:
    """Re-raise the faults of the block, and its cancellation, with a one-line traceback."""
    try:
        yield
    except (DmJupyterError, SandboxError) as fault:
        raise _in_one_line(fault, str(fault)) from None
    except asyncio.CancelledError as fault:
        raise _in_one_line(fault, "interrupted") from None


def _in_one_line(fault: E, text: str) -> E:
    # IPython asks an exception for this method before it writes a traceback of its own.
    fault.__dict__["_render_traceback_"] = lambda: [f"dm-jupyter: {text}"]
    return fault
