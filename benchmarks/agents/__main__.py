"""Compare our prompt with published ReAct shapes: `python -m benchmarks.agents`.

The same model answers the same questions in each shape, through the same loop and the same sandbox.
The shapes are InfiAgent's (`react-published`), Jupiter's, and DataMind's tags
(`datamind-published`). As in their publications, they have none of our assistance
(`Assistance.none()`). The loop's limits apply to all, and a cell truncated at its length limit does
not run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.agents.command import Command, Way, arguments_of
from benchmarks.agents.table import table_of
from dm_jupyter.core.assistance import Assistance
from dm_jupyter.core.dialects import DIALECTS
from training.suites.dabench import DABench

__all__ = ["SHAPES", "command", "main"]

SHAPES = ("markdown", "react-published", "jupiter", "datamind-published")


def command(words: Sequence[str] | None = None) -> Command:
    """Return the command of a command line; `None` means this process's."""
    parser = arguments_of("benchmarks.agents", __doc__, Path("runs/agents"))
    parser.add_argument(
        "--prompts", nargs="+", choices=DIALECTS, default=SHAPES, metavar="PROMPT",
        help=f"of {', '.join(DIALECTS)}; the first is compared with the others",
    )  # fmt: skip
    arguments = parser.parse_args(words)
    ways = {name: Way(name, Assistance.for_dialect(name)) for name in arguments.prompts}
    first = arguments.prompts[0]
    return Command("agents", DABench(), ways, lambda runs: table_of(runs, first), arguments)


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code: 0, 1 after a fault, 130 when interrupted."""
    return command(words).run()


if __name__ == "__main__":
    sys.exit(main())
