"""Text made fit to be shown and kept: words from elsewhere, and the addresses of endpoints.

Covered: codes that a terminal obeys, among them those that set its title or fill the clipboard;
what an address says besides its host and path. Not covered: what a text says.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import urlsplit

__all__ = ["harmless_text", "is_on_this_machine", "shown_address", "shown_host"]

_LINE_END = re.compile(r"\r\n?")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_USER = re.compile(r"^([a-z][a-z0-9+.-]*://)?[^/?#]*@", re.IGNORECASE)
_QUERY = re.compile(r"[?#].*$", re.DOTALL)


def harmless_text(text: str) -> str:
    """Returns the text without colours and control characters."""
    return _CONTROL.sub("", _LINE_END.sub("\n", text))


def shown_address(url: str) -> str:
    """Returns an address without what may be secret in it: user, password, query and fragment."""
    return _QUERY.sub("", _USER.sub(r"\1", url))


def shown_host(url: str) -> str:
    """Returns the host and port of an address, without user and password; empty for no address."""
    return shown_address(url).partition("://")[2].partition("/")[0]


def is_on_this_machine(url: str) -> bool:
    """Returns whether an address leads to the machine itself; no for what is no address."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
