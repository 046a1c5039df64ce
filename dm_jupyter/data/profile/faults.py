"""Attribution of errors: what a format's library rejects is damage, all else is our bug.

One boundary, `attempted`, catches `Exception`. `reading` wraps only calls of a file format's
library (openpyxl, xlrd, odf, pandas' parsers, pyarrow, sqlite3, json), and reports the file as
damaged. Code that finds the layout, cleans and profiles runs in `attempted` itself. If it raises,
the caller loads the table as plainly as the library does, and the profile says so.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dm_jupyter.core.errors import DataFileError
from kernel_sandbox.packages.commands import pip_install

__all__ = ["Attempt", "attempted", "needs_package", "reading"]

_log = logging.getLogger(__name__)


@dataclass
class Attempt:
    """How a block under `attempted` ended."""

    fault: Exception | None = None
    """The exception it raised; `None` if it completed."""


@contextmanager
def attempted() -> Iterator[Attempt]:
    """Keep any exception of the block as a value, except a `DataFileError`, which propagates.

    Readers of damaged files raise nearly everything (struct.error, KeyError, AssertionError,
    RecursionError, MemoryError …), and so may our own code on a layout that nobody foresaw.

    Yields:
        How the block ended, to be read after it.

    Raises:
        DataFileError: as the block raised it.
    """
    attempt = Attempt()
    try:
        yield attempt
    except DataFileError:
        raise
    except Exception as error:  # noqa: BLE001 - the boundary of the profile
        # Only at DEBUG: the text of an exception may contain a person's data.
        _log.debug("a step of the profile failed", exc_info=True)
        attempt.fault = error


@contextmanager
def reading(name: str, what: str, way_out: str) -> Iterator[None]:
    """Attribute any failure inside the block to the file; it may contain only a library's calls.

    Args:
        name: the file, as the person wrote it.
        what: what was being read, as in "the workbook".
        way_out: what the person can do.

    Yields:
        Nothing.

    Raises:
        DataFileError: whatever went wrong inside, with its reason.
    """
    with attempted() as attempt:
        yield
    error = attempt.fault
    if isinstance(error, MemoryError):
        raise DataFileError(
            f"{name}: {what} needs more memory than there is, or is damaged. Read a part of it, or "
            "save that part in a file of its own."
        ) from error
    if error is not None:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        message = f"{name}: {what} can't be read ({reason}). {way_out}"
        raise DataFileError(message) from error


def needs_package(name: str, format_name: str, package: str) -> DataFileError:
    """Return the error for a format whose reader is not installed."""
    return DataFileError(
        f"{name}: reading {format_name} needs the package {package}, which is not installed. "
        f"Install it with: {pip_install(package)}"
    )
