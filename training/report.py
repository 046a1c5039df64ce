"""Writes one page about evaluation runs: `python -m training.report RUN… --html FILE`.

A run is a folder with `records.jsonl` and, where it has one, `run.json`. The page holds everything
itself: it opens from a disk, without a network, and shows every question with its notebook.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from training.evaluation.read_run import RunError
from training.html.page import page_of
from training.html.source import ReportRun, read_report_runs
from training.whole_file import write_whole

__all__ = ["main", "write_page"]


def write_page(runs: Sequence[Path], file: Path, title: str | None = None) -> int:
    """Writes the page, all at once, and returns its size in bytes.

    Args:
        runs: folders of the runs, in the order in which they are shown.
        file: where the page goes.
        title: of the page; `None` names the runs.

    Raises:
        RunError: a run can't be read; the message names the file, and the line where there is one.
        OSError: the page can't be written; an old one is then as it was.
    """
    read = read_report_runs(runs)
    # A model may write half of a pair of surrogates, which is no character and can't be written.
    page = page_of(read, title or _title(read)).encode("utf-8", "replace")
    write_whole(page, file)
    return len(page)


def _title(runs: Sequence[ReportRun]) -> str:
    names = ", ".join(run.name for run in runs)
    return f"Evaluation: {names}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training.report", description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="the folder of a run")
    parser.add_argument("--html", type=Path, required=True, metavar="FILE", help="the page")
    parser.add_argument("--title", help="of the page (default: the runs' names)")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code: 0, or 1 after a fault, which is printed."""
    given = _parser().parse_args(arguments)
    try:
        size = write_page(given.runs, given.html, given.title)
    except (RunError, OSError) as fault:
        print(f"report: {fault}", file=sys.stderr)
        return 1
    print(f"{given.html} ({size / 1e6:.1f} MB)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
