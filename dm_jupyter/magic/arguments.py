"""Parsing of a magic's line and cell into a request."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from IPython.core import magic_arguments
from IPython.core.error import UsageError as IPythonUsageError

from dm_jupyter.core.errors import UsageError

__all__ = ["Request", "request_from", "takes_arguments"]

F = TypeVar("F", bound=Callable[..., Any])
_Part = Literal["variables", "cells", "files", "earlier"]
_NOTEBOOK: tuple[_Part, ...] = get_args(_Part)
"""Parts of the notebook that the model is shown when a cell asks."""

_EXAMPLE = """
Examples::

  %%analyze sales.csv
  Which region grew fastest?

  answer = %analyze "my sales.csv" orders.xlsx "Mean order value?" --format "@mean[value]"
  answer.values["mean"]
"""


@dataclass(frozen=True, slots=True)
class Request:
    """A person's request; options that were not given are `None`."""

    question: str
    files: tuple[str, ...]
    """The data files, relative to the current folder or absolute."""
    answer_format: str = ""
    model: str | None = None
    base_url: str | None = None
    api_key_file: Path | None = None
    max_turns: int | None = None
    seed: int | None = None
    dialect: str | None = None
    turn_tokens: int | None = None
    temperature: float | None = None
    into: Literal["cells", "output"] | None = None
    """Where the analysis goes; `None` tries cells first, unless an option needs the output."""
    without: tuple[_Part, ...] = ()
    """Parts of the surrounding notebook that the model is not shown."""

    @property
    def for_output_alone(self) -> tuple[str, ...]:
        """The given options that an analysis in new cells does not support.

        There the server's settings apply, no answer is returned, and no key is passed on.
        """
        given = {
            "--format": self.answer_format,
            "--base-url": self.base_url,
            "--api-key-file": self.api_key_file,
            "--max-turns": self.max_turns,
            "--seed": self.seed,
            "--dialect": self.dialect,
            "--turn-tokens": self.turn_tokens,
            "--temperature": self.temperature,
        }
        return tuple(name for name, value in given.items() if value not in (None, ""))


def takes_arguments(magic: F) -> F:
    """Add the parser to a magic, and the list of options to its documentation."""
    ipython: Any = magic_arguments  # untyped
    for option in reversed(_options(ipython.argument)):
        magic = option(magic)
    magic = ipython.kwds(epilog=_EXAMPLE)(magic)
    return ipython.magic_arguments()(magic)  # type: ignore[no-any-return]


def request_from(parser: argparse.ArgumentParser, line: str, cell: str | None) -> Request:
    """Return the request of a line and, in the form with two `%`, of the cell below it.

    Raises:
        UsageError: an option or a quote is wrong, or there is no question.
    """
    try:
        given = parser.parse_args(shlex.split(line))
    except IPythonUsageError as error:
        raise UsageError(f"{error}; %analyze? lists the options") from error
    except ValueError as error:
        raise UsageError(f'{str(error).lower()}: put the question in "double quotes"') from error
    words = list(given.arguments)
    if cell is None:
        question = words.pop() if words else ""
        shape = '%analyze sales.csv "…?"'
    else:
        question = cell.strip()
        shape = "%%analyze sales.csv, and the question in the lines below"
    is_file = os.path.isfile(os.path.expanduser(question))  # noqa: PTH111, PTH113  (any length)
    if not words and (not question or is_file):
        raise UsageError(f"give the question, and data files before it: {shape}")
    return Request(
        question=question,
        files=tuple(os.path.expanduser(word) for word in words),  # noqa: PTH111
        answer_format=given.format,
        model=_model(given),
        base_url=given.base_url,
        api_key_file=given.api_key_file,
        max_turns=given.max_turns,
        seed=given.seed,
        dialect=given.dialect,
        turn_tokens=given.turn_tokens,
        temperature=given.temperature,
        without=_NOTEBOOK if given.alone else given.without,
        into=given.into,
    )


def _model(given: argparse.Namespace) -> str | None:
    """Return the model's name including the adapter; `None` if neither was given.

    Raises:
        UsageError: the adapter has no local model below it.
    """
    if given.adapter is None:
        name: str | None = given.model
        return name
    from dm_jupyter.config import model_choice  # noqa: PLC0415  (most cells name no adapter)

    return model_choice(given.model, given.base_url, None, given.adapter).model


def _options(argument: Any) -> tuple[Any, ...]:
    return (
        argument("arguments", nargs="*", metavar="FILE", help=_FILE_HELP),
        argument("--format", default="", help="form of the answer, such as '@mean_fare[value]'"),
        argument("--model", help="local (default), a .gguf file, or a name at --base-url"),
        argument("--adapter", type=Path, metavar="FILE", help=_ADAPTER_HELP),
        argument("--base-url", help="an OpenAI-compatible endpoint: an address, or a name: openai"),
        argument(
            "--api-key-file",
            type=Path,
            help="file with the endpoint's key (or set DM_JUPYTER_API_KEY)",
        ),
        argument("--max-turns", type=_count, help="turns of the model (default 10)"),
        argument("--seed", type=int, help="sampling seed (default 0)"),
        argument("--dialect", help="the form in which the model is asked (default auto)"),
        argument("--turn-tokens", type=_count, help="most tokens of one turn (default 1000)"),
        argument("--temperature", type=_temperature, help="sampling temperature (default 0.2)"),
        argument("--alone", action="store_true", help="tell nothing of this notebook"),
        argument("--without", type=_parts, default=(), help=_WITHOUT_HELP),
        argument("--into", choices=("cells", "output"), help=_INTO_HELP),
    )


_ADAPTER_HELP = "a .gguf adapter for the local model"
_FILE_HELP = "data files, from the notebook's folder; on one line the question comes last, quoted"
_WITHOUT_HELP = (
    "tell nothing of these parts of this notebook: variables, cells, files, earlier (the runs "
    "before); several with commas between"
)
_INTO_HELP = (
    "cells: new cells below, where JupyterLab with dm-jupyter shows the notebook (the default "
    "there, unless --format, --base-url, --api-key-file, --max-turns, --seed, --dialect, "
    "--turn-tokens or --temperature is given); output: all in the output of this cell"
)


def _parts(text: str) -> tuple[_Part, ...]:
    named = [name.strip() for name in text.split(",")]
    for name in named:
        if name not in _NOTEBOOK:
            known = ", ".join(_NOTEBOOK)
            raise argparse.ArgumentTypeError(f"{name!r} is none of {known}")
    return tuple(part for part in _NOTEBOOK if part in named)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, not {number}")
    return number


def _temperature(text: str) -> float:
    from dm_jupyter.models.protocols import MOST_TEMPERATURE  # noqa: PLC0415  (as above)

    number = float(text)
    if not 0 <= number <= MOST_TEMPERATURE:
        raise argparse.ArgumentTypeError(f"must be 0 to {MOST_TEMPERATURE:g}, not {text}")
    return number
