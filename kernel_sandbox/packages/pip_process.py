"""pip as a process outside the sandbox, which resolves the missing wheels and unpacks them.

Covered: a source distribution is never used, since it would run its own code outside the sandbox;
a wheel is only unpacked. What is unpacked has the hash that was seen when the versions were
resolved. pip gets the variables that `environment.py` lists, so no key or token of the parent.
Not covered: passwords in pip's own settings or in the address of an index, which pip needs. Nor is
what an index serves, if no lock file says what to expect.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_sandbox.aio import run_shielded
from kernel_sandbox.environment import pip_environment
from kernel_sandbox.errors import PackageError
from kernel_sandbox.packages.commands import ensure_pip
from kernel_sandbox.packages.pip_child import NO_PROGRAM

__all__ = ["Pip", "Wheel", "ask", "canonical", "check_requirement"]

_CHILD = Path(__file__).with_name("pip_child.py")
_ASK_TIMEOUT_S = 60.0
_TAIL_CHARACTERS = 4000

_ALWAYS = (
    *("--only-binary", ":all:", "--no-input", "--disable-pip-version-check"),
    *("--progress-bar", "off", "--no-color"),
)
_REQUIREMENT = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?(?:\[[A-Za-z0-9., _-]+\])?"
    r"(?:\s*(?:[<>]=?|[=!~]=)\s*[A-Za-z0-9.*+!]+(?:\s*,\s*(?:[<>]=?|[=!~]=)\s*[A-Za-z0-9.*+!]+)*)?"
)
_VERSION = re.compile(r"[A-Za-z0-9.!+_-]+")
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")
_REASONS = {
    "No space left on device": "the disk is full: make room and try again",
    NO_PROGRAM: "it needs a source archive, whose build would run code outside the sandbox",
    "ResolutionImpossible": "it needs other versions than those installed, which stay as they are",
    "DO NOT MATCH THE HASHES": "the hash of a downloaded file is not the expected one",
    "No matching distribution": (
        "there is no wheel of it, or of what it needs, for this Python (source archives are not "
        "used), or the package index can't be reached"
    ),
    "No module named pip": f"this Python has no pip: run `{ensure_pip()}`",
}


@dataclass(frozen=True, slots=True)
class Wheel:
    """One version of a package, as the index has it."""

    name: str
    version: str
    sha256: str


def canonical(name: str) -> str:
    """Return the canonical spelling of a package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def check_requirement(text: str) -> str:
    """Return the text if it is a name, with or without extras and versions.

    Raises:
        PackageError: it is anything else, such as an address, a path or an option of pip.
    """
    if not _REQUIREMENT.fullmatch(text):
        raise PackageError(f"{text!r} is not a package name with versions, such as 'pandas>=2'")
    return text


def ask(python: Path, *arguments: str) -> Any:
    """Return what `pip_child.py` prints for a command; block for a tenth of a second.

    Args:
        python: the interpreter of the environment.
        *arguments: the command and its arguments.

    Raises:
        PackageError: the interpreter can't be run.
    """
    command = [str(python), "-I", str(_CHILD), *arguments]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            check=True,
            timeout=_ASK_TIMEOUT_S,
            cwd=_CHILD.parent,
            env=pip_environment(_CHILD.parent),
        )
        return json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise PackageError(f"the interpreter {python} can't be asked: {error}") from error


class Pip:
    """The two steps of one installation, in a folder of its own."""

    def __init__(self, python: Path, folder: Path, on_progress: Callable[[str], None]) -> None:
        """Start nothing yet.

        Args:
            python: the interpreter of the environment; its pip is used.
            folder: an existing folder for all that pip writes.
            on_progress: called with a line now and then.
        """
        self._python = python
        self._folder = folder
        self._on_progress = on_progress

    async def resolve(
        self, requirements: Iterable[str], pins: Mapping[str, str]
    ) -> tuple[Wheel, ...]:
        """Return the wheels that the environment lacks; install nothing.

        Args:
            requirements: the packages that are wanted.
            pins: the versions that must stay, by name.

        Raises:
            PackageError: there is no solution; the message says why.
        """
        constraints, report = self._folder / "constraints.txt", self._folder / "report.json"
        lines = (f"{name}=={pin}\n" for name, pin in pins.items() if _VERSION.fullmatch(pin))
        constraints.write_text("".join(lines), encoding="utf-8")
        files = ("--constraint", str(constraints), "--report", str(report))
        await self._run("install", "--dry-run", *files, "--", *requirements)
        items = json.loads(report.read_text(encoding="utf-8"))["install"]
        return tuple(_wheel(item) for item in items)

    async def unpack(self, wheels: Iterable[Wheel], target: Path) -> None:
        """Unpack exactly these wheels.

        Args:
            wheels: what `resolve` returned.
            target: a folder that does not exist yet.

        Raises:
            PackageError: a wheel is not available, or is not the one that was resolved.
        """
        wanted = self._folder / "wanted.txt"
        lines = (f"{one.name}=={one.version} --hash=sha256:{one.sha256}\n" for one in wheels)
        wanted.write_text("".join(lines), encoding="utf-8")
        exact = ("--no-deps", "--require-hashes", "--requirement", str(wanted))
        await self._run("install", "--target", str(target), *exact)

    async def _run(self, command: str, *arguments: str) -> None:
        child = (str(self._python), "-I", str(_CHILD), "pip", str(os.getpid()))
        process = await asyncio.create_subprocess_exec(
            *(*child, command, *_ALWAYS, *arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=self._folder,
            env=pip_environment(self._folder),
            start_new_session=True,
        )
        try:
            tail = await self._read(process)
        finally:
            await run_shielded(_reap(process))
        if process.returncode:
            raise PackageError(_reason(tail))

    async def _read(self, process: asyncio.subprocess.Process) -> str:
        """Read the output to its end, report each download, and return the last part."""
        tail = rest = ""
        while process.stdout is not None and (chunk := await process.stdout.read(65536)):
            text = chunk.decode("utf-8", "replace")
            tail = (tail + text)[-_TAIL_CHARACTERS:]
            *lines, rest = (rest + text)[-_TAIL_CHARACTERS:].split("\n")
            for line in lines:
                if line.lstrip().startswith("Downloading "):
                    self._on_progress(_CREDENTIALS.sub("", line.strip()))
        await process.wait()
        return tail


async def _reap(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.communicate()


def _wheel(item: Mapping[str, Any]) -> Wheel:
    name, version = item["metadata"]["name"], item["metadata"]["version"]
    sha256 = item["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256")
    if item["is_direct"] or not sha256:
        raise PackageError(f"{name} {version} comes from an address, not from the package index")
    return Wheel(name, version, sha256)


def _reason(tail: str) -> str:
    for sign, reason in _REASONS.items():
        if sign in tail:
            return reason
    lines = [line for line in tail.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")] or lines or ["nothing"]
    return f"pip said: {_CREDENTIALS.sub('', errors[-1]).removeprefix('ERROR: ')}"
