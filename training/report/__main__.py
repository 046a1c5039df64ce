"""Write one page about evaluation runs: `python -m training.report RUN… --html FILE`.

With `--serve`, the page is served at a local address instead. It then follows a run in progress
and keeps notes beside the run.

A run is a folder with `records.jsonl` and, optionally, `run.json`. The page is self-contained: it
opens from disk, without a network, and shows every question with its notebook.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from training.records.records import RunError
from training.report.page import write_page
from training.report.server import LivePage, ReportServer

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training.report", description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="the folder of a run")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--html", type=Path, metavar="FILE", help="write the page")
    where.add_argument(
        "--serve", action="store_true", help="show the page, follow the runs and keep notes"
    )
    parser.add_argument("--port", type=int, default=0, help="of --serve (default: a free one)")
    parser.add_argument("--title", help="of the page (default: the runs' names)")
    return parser


def _serve(runs: Sequence[Path], title: str | None, port: int) -> int:
    """Serve the page until Ctrl+C.

    Raises:
        RunError: there is no such run.
        OSError: the port is taken.
    """
    for run in runs:
        if not run.exists():
            raise RunError(f"{run} is not there: give the folder of a run")
    with ReportServer(LivePage(runs, title), port) as server:
        print(f"{server.url}\nCtrl+C ends it.", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit code: 0, or 1 after a fault, which is printed."""
    given = _parser().parse_args(arguments)
    try:
        if given.serve:
            return _serve(given.runs, given.title, given.port)
        size = write_page(given.runs, given.html, given.title)
    except (RunError, OSError, OverflowError) as fault:  # OverflowError: the port is out of range
        print(f"report: {fault}", file=sys.stderr)
        return 1
    print(f"{given.html} ({size / 1e6:.1f} MB)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
