"""Which addresses a page may load by itself, and how the others are named to a person."""

from __future__ import annotations

import re

__all__ = ["host_of", "hosts_in", "is_inert", "is_link", "is_remote", "shown_address"]

_IGNORED = re.compile(r"[\x00-\x20\x7f-\xa0\u200b-\u200f\u2028\u2029\u2060\ufeff]+")
"""What browsers, or those who read along, skip in an address."""
_MEDIA = re.compile(r"data:(?:image|audio|video)/[a-z0-9.+-]{1,40}[;,]", re.IGNORECASE)
_ATTACHED = re.compile(r"attachment:[\w][\w. -]*")
_BESIDE = re.compile(r"(?!.*(?:\.\.|//))[\w][\w./ -]*")
"""A file beside the notebook: no scheme, no host, no query, and nothing above its folder."""
_HOST = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?[/\\]{2,}([^/\\?#]*)", re.IGNORECASE)
_WRITTEN = re.compile(
    r"(?:^|(?<=[\s\"'(=,;]))(?:https?:|wss?:|ftp:)?//[^\s\"'()<>,;]+", re.IGNORECASE
)
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_LINKED = frozenset({"http", "https", "mailto"})
_MOST_CHARS = 1_000
_MOST_HOST_CHARS = 80


def is_inert(url: str) -> bool:
    """Whether a picture at the address lies in the document itself or beside the notebook."""
    url = url.strip(" \t\r\n\f")
    if _MEDIA.match(url):
        return True
    return len(url) <= _MOST_CHARS and bool(_ATTACHED.fullmatch(url) or _BESIDE.fullmatch(url))


def is_link(url: str) -> bool:
    """Whether a link may lead there once somebody clicks it."""
    bare = _IGNORED.sub("", url)
    scheme = _SCHEME.match(bare)
    return scheme is None or scheme[1].lower() in _LINKED


def is_remote(url: str) -> bool:
    """Whether the text looks like an address that something else than the document answers."""
    bare = _IGNORED.sub("", url)
    return bool(_HOST.search(bare) or _SCHEME.match(bare)) and not is_inert(url)


def host_of(url: str) -> str:
    """Returns the host that an address names, without a user or password."""
    found = _HOST.search(_IGNORED.sub("", url))
    host = found[1].rpartition("@")[2] if found else ""
    return host[:_MOST_HOST_CHARS] or "another place"


def hosts_in(text: str) -> list[str]:
    """Returns the hosts of the addresses in a style or a list of addresses."""
    return [host_of(address) for address in _WRITTEN.findall(text)]


def shown_address(url: str) -> str:
    """Returns the address as text of bounded length, without characters that can't be seen."""
    bare = _IGNORED.sub("", url)
    return bare if len(bare) <= _MOST_CHARS else f"{bare[:_MOST_CHARS]}…"
