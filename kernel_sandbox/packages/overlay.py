"""Packages added to an environment, in a folder beside it that kernels only read.

The contract with the starter of a kernel: it creates the folder `Overlay.site` if it is missing,
and never moves it. It binds the folder read-only. It appends the folder to the END of `sys.path`,
as text, not by `site.addsitedir`, which would run `.pth` files. So nothing in the folder can
replace a module of the environment, and a running kernel can import what is installed meanwhile.

Covered: only wheels are installed, since a source distribution would run code outside of the
sandbox. A package of the environment is never installed again, and one of the overlay is never
replaced. An install that fails, is cancelled or is killed leaves the packages as they were. With a
lock file of pip, a package or dependency without a hash in it is refused by name. So is a file
with another hash.
Not covered: what an installed package does inside a kernel, where the kernel's own limits apply.
Code of a kernel without the file view can write to the folder as the user can. Nor is it checked
whether the packages of a lock file are good.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from kernel_sandbox.aio import run_shielded
from kernel_sandbox.errors import PackageError
from kernel_sandbox.packages.overlay_place import overlay_site
from kernel_sandbox.packages.pip_process import Pip, Wheel, ask, canonical, check_requirement

__all__ = ["LockFile", "Overlay", "OverlayState", "Package"]

_LOCK_POLL_S = 0.05
_STAGING = "staging-"
_LINE = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*==\s*([A-Za-z0-9.!+_-]+)(\s.*|;.*)?")
_HASH = re.compile(r"--hash[= ]sha256:([0-9a-f]{64})(?=\s|$)")


class Overlay:
    """The added packages of one environment; many tasks and processes may use it at once."""

    def __init__(
        self,
        root: Path,
        python: Path | None = None,
        lock: Path | None = None,
        timeout_s: float = 300.0,
    ) -> None:
        """Create nothing yet; a query to another interpreter blocks for a tenth of a second.

        Args:
            root: the folder of the overlays of all environments.
            python: the interpreter of the environment; `None` for the current one.
            lock: a file with the versions and hashes that may be installed; `None` allows any.
            timeout_s: how long one installation may take, waiting for others included, seconds.

        Raises:
            PackageError: the interpreter does not run, or the lock file can't be used.
        """
        self._python = Path(sys.executable if python is None else python)
        self._lock = None if lock is None else LockFile(lock)
        self._timeout_s = timeout_s
        self.site = overlay_site(root, "" if python is None else str(ask(python, "name")))
        """The folder for the end of the kernels' `sys.path`; the first installation makes it."""
        self._home = self.site.parent
        self._record = self._home / "installed.json"

    def _make(self) -> None:
        try:
            self.site.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PackageError(f"the folder {self.site} can't be made: {error}") from error

    @property
    def packages(self) -> tuple[Package, ...]:
        """All packages of the overlay, oldest first.

        Raises:
            PackageError: the record of them can't be read.
        """
        return OverlayState.read(self._record).packages

    async def importable(self, names: Iterable[str]) -> frozenset[str]:
        """Return which of the modules the environment or the overlay has.

        Args:
            names: the names of top-level modules.

        Raises:
            PackageError: the interpreter can't be queried.
        """
        found = await asyncio.to_thread(ask, self._python, "find", str(self.site), *names)
        return frozenset(found)

    async def install(
        self, requirements: Iterable[str], on_progress: Callable[[str], None] = lambda _: None
    ) -> tuple[Package, ...]:
        """Add packages with what they need, all or none; return those that this call added.

        Args:
            requirements: names, with or without versions.
            on_progress: called now and then with a line for a person.

        Raises:
            PackageError: they were not installed; the message says why.
            asyncio.CancelledError: the caller was cancelled; pip has ended.
        """
        wanted = tuple(dict.fromkeys(check_requirement(text) for text in requirements))
        try:
            async with asyncio.timeout(self._timeout_s), self._alone():
                return await self._install(wanted, on_progress)
        except TimeoutError as error:
            message = f"the installation took longer than {self._timeout_s:g} s and was stopped"
            raise PackageError(f"{', '.join(wanted)}: {message}") from error
        except OSError as error:
            if error.errno == errno.ENOSPC:
                message = f"the disk of {self._home} is full: make room and try again"
                raise PackageError(message) from error
            raise PackageError(f"the overlay {self._home} can't be changed: {error}") from error
        except PackageError as error:
            raise PackageError(f"{', '.join(wanted)} was not installed: {error}") from error

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Hold the lock that tasks and processes share; the system frees it if we die."""
        self._make()
        descriptor = os.open(self._home / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            while not _is_locked(descriptor):  # noqa: ASYNC110 (no event crosses processes)
                await asyncio.sleep(_LOCK_POLL_S)
            yield
        finally:
            os.close(descriptor)

    async def _install(
        self, wanted: tuple[str, ...], on_progress: Callable[[str], None]
    ) -> tuple[Package, ...]:
        state = await asyncio.to_thread(self._recover)
        missing = [text for text in wanted if text not in state.requirements]
        if not missing:
            return ()
        staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=self._home))
        try:
            pip = Pip(self._python, staging, on_progress)
            on_progress(f"Looking for {', '.join(missing)}")
            wheels = await self._resolve(pip, missing, state)
            if wheels:
                names = ", ".join(f"{one.name} {one.version}" for one in wheels)
                on_progress(f"Installing {names}")
                await pip.unpack(wheels, staging / "site")
            # Nothing is awaited from here on: a cancellation comes before, or after everything.
            added = self._merge(staging / "site", wheels, state) if wheels else ()
            state.with_requirements(missing).with_packages(added).write(self._record)
            return added
        finally:  # also removes what a failed merge has moved
            await run_shielded(asyncio.to_thread(self._recover))

    async def _resolve(
        self, pip: Pip, missing: list[str], state: OverlayState
    ) -> tuple[Wheel, ...]:
        """Return the wheels that neither the environment nor the overlay has."""
        versions = await asyncio.to_thread(ask, self._python, "versions")
        # pip does not see the overlay: it would load modules from it, outside the sandbox.
        # Packages that are already there come back in the same version, and are left out.
        there = {canonical(one.name): one.version for one in state.packages}
        pins: Mapping[str, str] = {
            **(self._lock.versions if self._lock else {}),
            **there,
            **{canonical(name): version for name, version in versions.items()},
        }
        resolved = await pip.resolve(missing, pins)
        wheels = tuple(one for one in resolved if canonical(one.name) not in there)
        if self._lock is not None:
            self._lock.check(wheels)
        return wheels

    def _merge(
        self, source: Path, wheels: tuple[Wheel, ...], state: OverlayState
    ) -> tuple[Package, ...]:
        """Move what was unpacked into the overlay; the next record that is written keeps it.

        The record first names what will appear: a process that dies between the two records
        leaves a list of what to remove.
        """
        shutil.rmtree(source / "bin", ignore_errors=True)  # kernels start no programs
        plan = tuple(_new_entries(source, self.site, Path()))
        replace(state, pending=tuple(map(str, plan))).write(self._record)
        for entry in plan:
            (source / entry).rename(self.site / entry)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return tuple(Package(one.name, one.version, one.sha256, now) for one in wheels)

    def _recover(self) -> OverlayState:
        """Remove what is not in the record, of this installation or an older one that died."""
        for abandoned in self._home.glob(f"{_STAGING}*"):
            shutil.rmtree(abandoned, ignore_errors=True)
        state = OverlayState.read(self._record)
        if not state.pending:
            return state
        for entry in state.pending:
            path = self.site / entry
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        state = replace(state, pending=())
        state.write(self._record)
        return state


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _new_entries(source: Path, target: Path, folder: Path) -> Iterable[Path]:
    """Yield the topmost paths that the overlay lacks; a file that it has stays as it is."""
    for path in sorted((source / folder).iterdir()):
        entry = folder / path.name
        there = target / entry
        if not there.exists():
            yield entry
        elif path.is_dir() and there.is_dir():  # a folder that packages share
            yield from _new_entries(source, target, entry)


@dataclass(frozen=True, slots=True)
class Package:
    """A package that was installed into an overlay."""

    name: str
    version: str
    sha256: str
    """Of the wheel."""
    installed_at: str
    """ISO 8601, UTC."""


@dataclass(frozen=True, slots=True)
class OverlayState:
    """The content of `installed.json`; changed only under the overlay's lock."""

    packages: tuple[Package, ...] = ()
    """Oldest first, dependencies included."""
    requirements: tuple[str, ...] = ()
    """The requirements that were asked for and are installed, verbatim."""
    pending: tuple[str, ...] = ()
    """Paths in the overlay that belong to no package yet: an installation is adding them."""

    def with_requirements(self, added: Iterable[str]) -> OverlayState:
        """Return the state with these requirements added."""
        return replace(self, requirements=(*self.requirements, *added))

    def with_packages(self, added: Iterable[Package]) -> OverlayState:
        """Return the state with these packages added."""
        return replace(self, packages=(*self.packages, *added))

    @classmethod
    def read(cls, path: Path) -> OverlayState:
        """Read the record; a missing one is empty.

        Raises:
            PackageError: it can't be read, or is not such a record.
        """
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
            packages = tuple(Package(**package) for package in raw.pop("packages"))
            fields = {name: tuple(_checked(name, texts)) for name, texts in raw.items()}
            return cls(packages, **fields)
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            what = f"{path} is not a valid package record ({error!r})"
            raise PackageError(f"{what}. Remove the folder {path.parent}") from error

    def write(self, path: Path) -> None:
        """Write the record atomically: a reader sees the old one or the new one.

        Raises:
            OSError: it can't be written; the old one is kept.
        """
        draft = path.with_suffix(".part")
        draft.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")
        draft.replace(path)


def _checked(name: str, texts: list[str]) -> list[str]:
    # A writer of the record must not be able to choose what the next installation removes.
    for text in texts if name == "pending" else ():
        parts = PurePosixPath(text).parts
        if not parts or ".." in parts or parts[0] == "/":
            raise ValueError(f"{text!r} lies outside of the overlay")
    return texts


class LockFile:
    """A lock file of `pip-compile --generate-hashes`, `uv export` or `pip freeze` with hashes."""

    def __init__(self, path: Path) -> None:
        """Read the file.

        Args:
            path: lines of the form `name==version --hash=sha256:...`.

        Raises:
            PackageError: it can't be read, or a line has another form.
        """
        self._path = path
        self.versions: dict[str, str] = {}
        """The version of each package, by its canonical name."""
        self._hashes: dict[str, set[str]] = {}
        for line in _logical_lines(path):
            self._add(line)

    def _add(self, line: str) -> None:
        match = _LINE.fullmatch(line)
        if match is None:
            raise PackageError(f"{self._path}: not `name==version --hash=sha256:...`: {line}")
        name, version = canonical(match[1]), match[2]
        if self.versions.setdefault(name, version) != version:
            raise PackageError(f"{self._path}: two versions of {name}; lock for one Python")
        self._hashes.setdefault(name, set()).update(_HASH.findall(match[3] or ""))

    def check(self, wheels: Iterable[Wheel]) -> None:
        """Check that the file contains the hash of each wheel.

        Args:
            wheels: what would be installed.

        Raises:
            PackageError: a wheel's hash is not in the file; the message names the wheel.
        """
        for wheel in wheels:
            hashes = self._hashes.get(canonical(wheel.name))
            if not hashes:
                raise PackageError(f"{wheel.name} has no hash in the lock file {self._path}")
            if wheel.sha256 not in hashes:
                found = f"{wheel.name} {wheel.version} has the hash {wheel.sha256}"
                raise PackageError(f"{found}, which is not in the lock file {self._path}")


def _logical_lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise PackageError(f"the lock file {path} can't be read: {error}") from error
    joined = re.sub(r"\\\r?\n", " ", text)
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in joined.splitlines())
    return [line for line in lines if line]
