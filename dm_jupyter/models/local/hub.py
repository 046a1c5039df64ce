"""Download one file from the model hub over HTTPS, going on where an earlier try stopped."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Final

__all__ = ["HubUnreachableError", "download"]

_CHUNK_BYTES: Final = 1 << 18

CONNECT_TIMEOUTS_S: Final = (4.0, 8.0, 16.0)
"""One try each, in order; a stalled read counts as a failed try, and progress starts over."""

_HTTP_REFUSED = range(400, 500)


class HubUnreachableError(Exception):
    """The hub did not give the file; the text is the reason. Never leaves this package."""


def download(
    url: str,
    part_file: Path,
    size_bytes: int,
    on_bytes: Callable[[int], None],
    timeouts_s: tuple[float, ...] = CONNECT_TIMEOUTS_S,
) -> None:
    """Bring `part_file` up to `size_bytes` bytes of `url`.

    Args:
        url: Address of the whole file.
        part_file: Where the bytes go; what it already holds is kept and not asked for again.
        size_bytes: The pinned size; a server that speaks of another size is not our hub.
        on_bytes: Called with the bytes held so far; what it raises ends the download.
        timeouts_s: Time limit of each try, seconds.

    Raises:
        HubUnreachableError: All tries failed, or the server refused.
    """
    failures = 0
    while True:
        before = _held(part_file)
        if before == size_bytes:
            return
        try:
            _one_try(url, part_file, size_bytes, on_bytes, timeouts_s[failures])
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()
                if error.code in _HTTP_REFUSED:
                    raise HubUnreachableError(f"it answered {error.code} {error.reason}") from None
            failures = 0 if _held(part_file) > before else failures + 1
            if failures == len(timeouts_s):
                reason = getattr(error, "reason", None) or error
                raise HubUnreachableError(str(reason) or type(error).__name__) from error


def _one_try(
    url: str,
    part_file: Path,
    size_bytes: int,
    on_bytes: Callable[[int], None],
    timeout_s: float,
) -> None:
    held = _held(part_file)
    request = urllib.request.Request(url, headers={"User-Agent": "dm-jupyter"})  # noqa: S310 the address is the catalogue's
    if held:
        request.add_header("Range", f"bytes={held}-")
    with urllib.request.urlopen(request, timeout=timeout_s) as response:  # noqa: S310 as above
        start = held if response.status == http.HTTPStatus.PARTIAL_CONTENT else 0
        # A login page of a captive network answers 200 with a size of its own: not worth reading.
        length = response.headers.get("Content-Length")
        if length is not None and start + int(length) != size_bytes:
            raise HubUnreachableError(
                f"it offered {start + int(length):,} bytes instead of {size_bytes:,}"
            )
        with part_file.open("r+b" if part_file.exists() else "wb") as out:
            out.truncate(start)
            out.seek(start)
            done = start
            while chunk := response.read(_CHUNK_BYTES):
                out.write(chunk)
                done += len(chunk)
                if done > size_bytes:
                    raise HubUnreachableError(f"it sent more than {size_bytes:,} bytes")
                on_bytes(done)
    if done < size_bytes:
        raise http.client.IncompleteRead(b"", size_bytes - done)


def _held(part_file: Path) -> int:
    return part_file.stat().st_size if part_file.exists() else 0
