"""Text that is safe to show and keep: words from elsewhere, and the addresses of endpoints.

Covered: codes that a terminal obeys, such as those that set its title or fill the clipboard. Also
covered: the parts of an address besides its host and path. Not covered: the meaning of a text.
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
    """Return the text without colours and control characters."""
    return _CONTROL.sub("", _LINE_END.sub("\n", text))


def shown_address(url: str) -> str:
    """Return an address without its possible secrets: user, password, query and fragment."""
    return _QUERY.sub("", _USER.sub(r"\1", url))


def shown_host(url: str) -> str:
    """Return the host and port of an address, without user and password; "" if it is not one."""
    return shown_address(url).partition("://")[2].partition("/")[0]


def is_on_this_machine(url: str) -> bool:
    """Return whether an address leads to this machine; `False` if it is not an address."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
