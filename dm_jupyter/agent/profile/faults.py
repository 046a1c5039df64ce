"""One place where a reader's own exceptions become a `DataFileError` that names the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dm_jupyter.core.errors import DataFileError
from kernel_sandbox.commands import pip_install

__all__ = ["needs_package", "reading"]


@contextmanager
def reading(name: str, what: str, way_out: str) -> Iterator[None]:
    """Attributes any failure inside the block to the file.

    Readers of damaged files raise nearly everything (struct.error, KeyError, AssertionError,
    RecursionError, MemoryError …), so this is one of the named boundaries that catch `Exception`.

    Args:
        name: the file, as the person wrote it.
        what: what was being read, as in "the workbook".
        way_out: what the person can do.

    Yields:
        Nothing.

    Raises:
        DataFileError: whatever went wrong inside, with its reason.
    """
    try:
        yield
    except DataFileError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        message = f"{name}: {what} can't be read ({reason}). {way_out}"
        raise DataFileError(message) from error


def needs_package(name: str, format_name: str, package: str) -> DataFileError:
    """Returns the error for a format whose reader is not installed."""
    return DataFileError(
        f"{name}: reading {format_name} needs the package {package}, which is not installed. "
        f"Install it with: {pip_install(package)}"
    )
