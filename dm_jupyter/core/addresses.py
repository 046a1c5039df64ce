"""An endpoint's address as it may be shown and kept."""

from __future__ import annotations

import re

__all__ = ["shown_address"]

_USER = re.compile(r"^([a-z][a-z0-9+.-]*://)?[^/?#]*@", re.IGNORECASE)
_QUERY = re.compile(r"[?#].*$", re.DOTALL)


def shown_address(url: str) -> str:
    """Returns an address without what may be secret in it: user, password, query and fragment."""
    return _QUERY.sub("", _USER.sub(r"\1", url))
