"""Mutation of valid messages into hostile ones; the same seed always gives the same inputs.

There are three ways, which can be combined:

- A value becomes another one: of another type, far too large, too deep, half a character and so on.
- The text of the message is damaged: cut off, with doubled keys, or with bytes that are not UTF-8.
- A name becomes one that leads somewhere else.
"""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

from kernel_sandbox.messages import MESSAGE_BYTES

__all__ = ["NAMES", "hostile_bytes", "hostile_json", "hostile_name", "large_message", "mutated"]

_NUMBERS = (0, -1, 1, 2**31, 2**53, 2**63, -(2**64), 10**30, 10**400, 1e308, -0.0, 1e-320)
_ODD_NUMBERS = (float("nan"), float("inf"), float("-inf"))
_TEXTS = (
    *(
        "",
        "\x00",
        "a\x00b",
        "\ud800",
        "\udfff\ud800",
        "\udcff",
        "\ufeff",
        "\u202e",
        "\r",
        "\x1b[2J",
    ),
    *("stdout", "stderr", "ok", "error", "idle", "busy", "abandoned", "dm-jupyter", "active"),
    *("text/plain", "application/json", "text/html", "image/png", "KeyboardInterrupt"),
    *("__class__", "__proto__", "constructor", "{0.__class__}", "%s%s%n", "<script>", "'; --"),
)
NAMES = (
    *("a.csv", "old.csv", "./in/a.csv", "in//a.csv"),
    *(
        "../.ssh/id_rsa",
        "/etc/passwd",
        "..",
        ".",
        "/",
        "//",
        "a/../../b",
        "./a",
        "a//b",
        "a/.",
        "~",
    ),
    *("/proc/self/environ", "/dev/zero", "/dev/stdin", "C:\\x", "\\\\host\\x", "a\\..\\b", "CON"),
    *(
        ".git/config",
        ".GIT/config",
        "polars.py",
        "conftest.py",
        "x.PTH",
        "a.ipynb",
        "-rf",
        " a",
        "a ",
    ),
    *("a\nb", "a\x00b", "\ud800.csv", "a\u202evsc.exe", "i\u0307", "ﬁle.csv", "‥/a", "%2e%2e/a"),
    *("link.csv", "folder/a.csv", "loop/a", "in/pipe.csv", "in/a.csv", "in/a.csv/b", "work/a.csv"),
)
"""File names, some of which exist in the folder of the targets."""
_PIECES = (
    *(
        b"a",
        b",",
        b":,",
        b'\\",',
        b'\\"',
        b"\\n",
        b"\\\\",
        b"\\u0041",
        b"\\ud800",
        b"\\ud83d\\ude00",
        b"\xff",
    ),
    *("\u0416".encode(), "\U0001f600".encode(), b"[", b" "),
)
_LARGE = (
    (b'stream|{"name":"stdout","text":"', b'"}'),
    (b'display_data|{"metadata":{},"data":{"text/html":"', b'"}}'),
    (b'display_data|{"metadata":{},"data":{"application/json":"', b'"}}'),
    (b'display_data|{"data":{},"metadata":{"a":["', b'"]}}'),
    (b'error|{"ename":"","traceback":[],"evalue":"', b'"}'),
    (b'comm_open|{"target_name":"dm-jupyter","comm_id":"', b'"}'),
)
_CODINGS = ("utf-16", "utf-7", "utf-32")
_LONG = (80, 4_095, 4_097, 20_001, 70_000)
_HUGE = (300_000, 1_100_000, 5_300_000)
_HUGE_ONE_IN = 1_500


def _scalar(random: Random) -> Any:
    makers = (_number, _number, _text, _text, hostile_name, _long_text, _constant)
    return random.choice(makers)(random)


def _constant(random: Random) -> bool | None:
    return random.choice((None, True, False))


def _number(random: Random) -> float:
    few = random.choice(_NUMBERS if random.randrange(4) else _ODD_NUMBERS)
    return random.choice((few, few, random.randrange(-(2**70), 2**70)))


def _text(random: Random) -> str:
    return random.choice(_TEXTS)


def _long_text(random: Random) -> str:
    sizes = _HUGE if random.randrange(_HUGE_ONE_IN) == 0 else _LONG
    piece = random.choice(
        ("x", "\n", '"', "\\", '\\"', "\u0416", "\U0001f600", "\ud800", ",", "[{")
    )
    return piece * (random.choice(sizes) // len(piece))


def _nested(random: Random) -> Any:
    value: Any = _scalar(random)
    for _ in range(random.choice((1, 3, 60, 400))):
        value = [value] if random.randrange(2) else {"a": value}
    return value


def _wide(random: Random) -> Any:
    count = random.choice((0, 3, 50, 51, 3_000))
    if random.randrange(_HUGE_ONE_IN) == 0:
        count = 210_000
    if random.randrange(2):
        return [random.choice(_NUMBERS)] * count
    return {f"k{number}": number for number in range(min(count, 60_000))}


def _value(random: Random) -> Any:
    kind = random.randrange(20)
    if kind == 0:
        return _nested(random)
    if kind == 1:
        return _wide(random)
    if kind == 2:
        return [_scalar(random) for _ in range(random.randrange(4))]
    if kind == 3:
        return {str(_scalar(random))[:9]: _scalar(random) for _ in range(random.randrange(4))}
    return _scalar(random)


def mutated(random: Random, message: Any) -> Any:
    """Return a copy of the message with some of its values, keys or items changed.

    Args:
        random: source of the random choices.
        message: of plain JSON values; it is not changed.
    """
    changed = [copy.deepcopy(message)]
    for _ in range(random.choice((0, 1, 1, 2, 4))):
        _change_one(random, changed)
    return changed[0]


def _change_one(random: Random, holder: list[Any]) -> None:
    """Change one value in the holder, at a random position and depth."""
    here: Any = holder
    key: Any = 0
    while isinstance(here[key], dict | list) and here[key]:
        if random.randrange(20 if here is holder else 5) == 0:
            break
        here = here[key]
        key = random.choice(list(here)) if isinstance(here, dict) else random.randrange(len(here))
    match random.randrange(6):
        case 0 if here is not holder:
            del here[key]
        case 1 if isinstance(here, dict):
            here[str(_scalar(random))[:300]] = here.pop(key)
        case 2 if isinstance(here, list) and here is not holder:
            here += [here[key]] * random.choice((1, 3, 60))
        case _:
            here[key] = _value(random)


def hostile_json(random: Random, message: Any) -> bytes:
    """Return a mutated message as bytes that may be neither valid JSON nor valid text."""
    text = json.dumps(mutated(random, message), ensure_ascii=bool(random.randrange(2)))
    return hostile_bytes(random, text.encode("utf-8", "surrogatepass"))


def hostile_bytes(random: Random, body: bytes) -> bytes:
    """Return the bytes of a message: unchanged five times out of six, otherwise damaged."""
    if random.randrange(6):
        return body
    at = random.randrange(len(body) + 1)
    return random.choice(
        (
            body[:at],
            body[:at] + random.randbytes(random.randrange(1, 9)) + body[at:],
            body[:at] + random.randbytes(4) + body[at + 4 :],
            body.replace(b"{", b'{"kind":0,"kind":"stream","data":[],', 1),
            body[:70_000].decode("utf-8", "replace").encode(random.choice(_CODINGS)),
            random.choice(
                (b"", b"[" * 40_000, b'{"a":' * 9_000, b'"', b"\xff" * 300, b"9" * 5_000)
            ),
            body + body,
            body.replace(b"1", random.choice((b"1e999", b"-1E+999", b"0x1", b"1" * 4_500)), 20),
        )
    )


def large_message(random: Random) -> tuple[str, bytes]:
    """Return the kind and the content of a message that is nearly, or just, too long."""
    size = MESSAGE_BYTES - random.choice((-1, 1_000, 1_100_000, 2_000_000))
    piece = random.choice(_PIECES)
    if random.randrange(4) == 0:
        items = random.choice(
            (b"1", b'""', b"{}", b"[]", b'"a,:"', b"1e9", b"1." + b"1" * 20, b"9" * 410)
        )
        count = min(random.choice((50_000, 69_000)), size // (len(items) + 1))
        wide = b"[" + b",".join([items] * count) + b"]"
        return "display_data", b'{"data":{"application/json":%s},"metadata":{}}' % wide
    if random.randrange(8) == 0:
        wide = b",".join(b'"%d":1' % number for number in range(34_000))
        return "display_data", b'{"data":{"application/json":{%s}},"metadata":{}}' % wide
    start, end = random.choice(_LARGE)
    room = (size - len(start) - len(end)) // len(piece)
    return start.split(b"|")[0].decode(), start.split(b"|")[1] + piece * room + end


def hostile_name(random: Random) -> str:
    """Return a file name or path that may lead elsewhere or be invalid."""
    name = random.choice(NAMES)
    match random.randrange(6):
        case 0:
            return "/".join(random.choice(NAMES) for _ in range(random.randrange(1, 6)))
        case 1:
            return "../" * random.choice((1, 2, 60)) + name
        case 2:
            return name * random.choice((2, 30, 400))
        case 3:
            return name.swapcase()
        case 4:
            at = random.randrange(len(name) + 1)
            return name[:at] + chr(random.randrange(0x11000)) + name[at:]
    return name
