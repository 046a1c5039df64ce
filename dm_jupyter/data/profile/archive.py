"""Archives and compressed files: each member is profiled as the file that it is.

Nothing is unpacked under a name that the archive chose. A member's bytes go to a file with a name
of ours, which is removed at once. The notebook gets code that unpacks into memory.

Covered: members named like paths, links and devices in a tar, members that unpack to more than the
limit, archives inside archives, members with a password. Not covered: the time that unpacking
takes, which the worker that runs this limits.
"""

from __future__ import annotations

import ast
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO

from dm_jupyter.core.errors import DataFileError
from dm_jupyter.data.profile.faults import reading
from dm_jupyter.data.profile.literals import text_literal
from dm_jupyter.data.profile.model import FileProfile, TableProfile
from dm_jupyter.data.profile.signatures import DATA_SUFFIXES, DATABASE_KINDS
from dm_jupyter.data.profile.source import CHUNK_BYTES, Source, inferred_compression

__all__ = ["profile_archive"]

_MOST_BYTES = 192 << 20
"""Largest unpacked size of a member that is read; the worker's disk has room for one."""
_MOST_MEMBERS = 20
_MOST_LISTED = 10_000
_BUDGET_S = 12.0
_NAMED = 8
_PACKED = frozenset({".gz", ".bz2", ".xz", ".zst"})
_MODULES = {"gzip": "gzip", "bz2": "bz2", "xz": "lzma", "zstd": "zstandard"}
_WAY_OUT = "It is damaged or incomplete: download it again."

_DATABASE = "a database, which is queried on disk: unpack it and name it"

_CONTENT = "io.BytesIO(content)"

ProfileOne = Callable[[Path, str], FileProfile]


@dataclass(frozen=True)
class _Member:
    """A file in an archive."""

    name: str
    size_bytes: int
    """Unpacked, as the archive declares it."""
    problem: str | None = None
    """Why it can't be read."""


@dataclass(frozen=True)
class _Opened:
    """An open archive."""

    members: tuple[_Member, ...]
    open: Callable[[str], IO[bytes]]
    """Function that returns the bytes of a member."""


def profile_archive(source: Source, kind: str, profile_one: ProfileOne) -> FileProfile:
    """Return the profile of the tables inside a file.

    Args:
        source: the archive or compressed file.
        kind: zip, tar, or packed for one compressed file.
        profile_one: profiles a file that is not an archive, from its path and under a name.

    Raises:
        DataFileError: it is damaged, or nothing inside can be read; the message says why.
        OSError: the file can't be read.
    """
    if kind == "packed":
        return _packed(source, profile_one)
    opened = _opened_zip if kind == "zip" else _opened_tar
    with reading(source.name, f"the {kind} archive", _WAY_OUT), opened(source) as archive:
        found = _members_profiled(source, kind, archive, profile_one)
    size = source.path.stat().st_size
    if not found.tables:
        why = "; ".join(found.told[:_NAMED]) or "it holds no file"
        raise DataFileError(f"{source.name}: a {kind} archive without a readable table: {why}.")
    notes = [f"each load code unpacks one file of the {kind} archive into memory"]
    if found.unread:
        shown = ", ".join(map(repr, found.unread[:_NAMED]))
        more = len(found.unread) - _NAMED
        notes.append(f"also inside: {shown}{f' and {more:,} more' if more > 0 else ''}")
    return FileProfile(source.name, kind, size, found.tables, found.told, tuple(notes))


def _packed(source: Source, profile_one: ProfileOne) -> FileProfile:
    """Return the profile of one compressed file."""
    name = Path(source.name).stem if inferred_compression(source.name) else source.name
    with (
        reading(source.name, f"the {source.compression} file", _WAY_OUT),
        source.open() as stream,
        _unpacked(stream, name) as copy,
    ):
        profile = profile_one(copy, name)
    if profile.kind in DATABASE_KINDS:
        raise DataFileError(f"{source.name}: inside is {_DATABASE}.")
    module = _MODULES[str(source.compression)]
    opening = (
        f"import io\nimport {module}\n"
        f'with {module}.open({text_literal(source.name)}, "rb") as packed:\n'
        "    content = packed.read()\n"
    )
    tables = tuple(_in_memory(table, name, opening) for table in profile.tables)
    note = f"compressed with {source.compression}"
    size = source.path.stat().st_size
    notes = (note, *profile.notes)
    return replace(profile, name=source.name, size_bytes=size, tables=tables, notes=notes)


@dataclass(frozen=True)
class _Found:
    """Findings from the members."""

    tables: tuple[TableProfile, ...]
    told: tuple[str, ...]
    unread: tuple[str, ...]
    """Names of members that were not read."""


def _members_profiled(
    source: Source, kind: str, archive: _Opened, profile_one: ProfileOne
) -> _Found:
    chosen, unread = _chosen(archive.members)
    tables: list[TableProfile] = []
    told: list[str] = []
    ends = time.monotonic() + _BUDGET_S
    for position, member in enumerate(chosen):
        if time.monotonic() > ends or position == _MOST_MEMBERS:
            unread += [one.name for one in chosen[position:]]
            told.append(f"{len(chosen) - position:,} more files inside are not described")
            break
        try:
            profile = _member_profile(source, archive, member, profile_one)
        except DataFileError as error:
            told.append(f"{member.name!r} inside is not described: {_reason(error, member.name)}")
            continue
        tables += _named_tables(profile, member.name, _opening(source, kind, member.name))
        told += [f"{member.name!r}: {warning}" for warning in profile.warnings]
    return _Found(tuple(tables), tuple(told), tuple(unread))


def _chosen(members: tuple[_Member, ...]) -> tuple[list[_Member], list[str]]:
    """Return the members to read and the names of the others.

    Beside data there often are a readme, a licence and pages. If any member is data by its name,
    only such members are read.
    """
    seen = [member for member in members if not _is_clutter(member.name)]
    data = [member for member in seen if _data_suffix(member.name)]
    chosen = data or seen
    return chosen, [member.name for member in seen if member not in chosen]


def _is_clutter(name: str) -> bool:
    """Return whether a member is one that a file manager adds."""
    parts = PurePosixPath(name).parts
    return not parts or parts[0] == "__MACOSX" or parts[-1].startswith(".")


def _data_suffix(name: str) -> bool:
    path = PurePosixPath(name.lower())
    return (path.stem if path.suffix in _PACKED else path.name).endswith(tuple(DATA_SUFFIXES))


def _member_profile(
    source: Source, archive: _Opened, member: _Member, profile_one: ProfileOne
) -> FileProfile:
    """Return the profile of one member.

    Raises:
        DataFileError: it can't be read; the message says why.
    """
    if member.problem is not None:
        raise DataFileError(member.problem)
    if member.size_bytes > _MOST_BYTES:
        raise _too_large(member.size_bytes)
    what = f"{member.name!r} inside"
    with (
        reading(source.name, what, _WAY_OUT),
        archive.open(member.name) as stream,
        _unpacked(stream, member.name) as copy,
    ):
        profile = profile_one(copy, member.name)
    if profile.kind in DATABASE_KINDS:
        raise DataFileError(f"it is {_DATABASE}")
    return profile


@contextmanager
def _unpacked(stream: IO[bytes], name: str) -> Iterator[Path]:
    """Copy bytes into a file with a name of ours.

    Args:
        stream: the bytes.
        name: their name in the archive. Only `.gz` and the like is used of it, from which pandas
            infers how they are packed.

    Yields:
        Its path, valid while the block runs.

    Raises:
        DataFileError: there is more than the limit, whatever the archive declares.
    """
    with tempfile.TemporaryDirectory(prefix="dm-member-") as folder:
        ending = PurePosixPath(name.lower()).suffix
        copy = Path(folder) / f"member{ending if ending in _PACKED else ''}"
        total = 0
        with copy.open("wb") as target:
            while block := stream.read(CHUNK_BYTES):
                total += len(block)
                if total > _MOST_BYTES:
                    raise _too_large(total)
                target.write(block)
        yield copy


def _too_large(size_bytes: int) -> DataFileError:
    return DataFileError(
        f"it unpacks to {size_bytes / 1e6:,.0f} MB or more, and only {_MOST_BYTES >> 20} MiB are "
        "looked at: unpack it and name the file itself"
    )


def _reason(error: DataFileError, name: str) -> str:
    return str(error).removeprefix(f"{name}: ").rstrip(".")


def _opening(source: Source, kind: str, member: str) -> str:
    """Return code that sets `content` to a member's bytes."""
    name, inner = text_literal(source.name), text_literal(member)
    if kind == "zip":
        return (
            f"import io\nimport zipfile\nwith zipfile.ZipFile({name}) as archive:\n"
            f"    content = archive.read({inner})\n"
        )
    if source.compression == "zstd":  # tarfile supports it from Python 3.14 on
        return (
            f"import io\nimport tarfile\nimport zstandard\n"
            f'with zstandard.open({name}, "rb") as packed, '
            f'tarfile.open(fileobj=packed, mode="r|") as archive:\n'
            f"    content = next(archive.extractfile(one).read() for one in archive "
            f"if one.name == {inner})\n"
        )
    return (
        f"import io\nimport tarfile\nwith tarfile.open({name}) as archive:\n"
        f"    content = archive.extractfile({inner}).read()\n"
    )


def _named_tables(profile: FileProfile, member: str, opening: str) -> list[TableProfile]:
    tables = []
    for table in profile.tables:
        is_alone = len(profile.tables) == 1
        name = member if is_alone else f"{member}: {table.name}"
        tables.append(replace(_in_memory(table, member, opening), name=name))
    return tables


def _in_memory(table: TableProfile, name: str, opening: str) -> TableProfile:
    """Return the table with code that reads `content`, which `opening` sets."""
    if table.load_code is None:  # an empty sheet
        return table
    code = _rewritten(table.load_code, name)
    if code is None:
        told = "unpack the archive to read this: its reader takes no bytes in memory"
        return replace(table, load_code=None, warnings=(*table.warnings, told))
    return replace(table, load_code=opening + code)


def _rewritten(code: str, name: str) -> str | None:
    """Return code that reads `content` where the given code reads the file called `name`.

    `None` if the code does more with the name than open it.
    """
    calls = [
        node
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Call)
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and node.args[0].value == name
    ]
    lines = [line.encode() for line in code.splitlines()]
    # From the end on, so that a replacement does not move the calls still to come.
    for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset), reverse=True):
        new = _read_from_memory(call, name)
        if new is None or call.lineno != call.end_lineno:
            return None
        line = lines[call.lineno - 1]
        lines[call.lineno - 1] = (
            line[: call.col_offset] + new.encode() + line[call.end_col_offset :]
        )
    return b"\n".join(lines).decode() if calls else None


def _read_from_memory(call: ast.Call, name: str) -> str | None:
    """Return the call with `content` as its first argument; `None` if it takes no open file."""
    function = ast.unparse(call.func)
    rest = [ast.unparse(argument) for argument in call.args[1:]]
    named = {word.arg: ast.unparse(word.value) for word in call.keywords}
    if function == "open":
        if rest == ["'rb'"]:
            return _CONTENT
        function = "io.TextIOWrapper"
    elif function.startswith(("pd.read_", "pyreadstat.read_")):
        compression = inferred_compression(name)
        takes_it = function in {"pd.read_csv", "pd.read_json", "pd.read_stata", "pd.read_sas"}
        if compression is not None and takes_it:
            # Bytes have no name from which pandas could infer it.
            named.setdefault("compression", text_literal(compression))
    elif function not in {"gzip.open", "bz2.open", "lzma.open"}:
        return None
    words = [_CONTENT, *rest, *(f"{key}={value}" for key, value in named.items())]
    return f"{function}({', '.join(words)})"


@contextmanager
def _opened_zip(source: Source) -> Iterator[_Opened]:
    """Open a zip archive.

    Yields:
        Its files.
    """
    with zipfile.ZipFile(source.path) as archive:
        listed = archive.infolist()[:_MOST_LISTED]
        members = tuple(
            _Member(
                info.filename,
                info.file_size,
                "it is protected with a password: unpack it" if info.flag_bits & 1 else None,
            )
            for info in listed
            if not info.is_dir()
        )
        yield _Opened(members, archive.open)


@contextmanager
def _opened_tar(source: Source) -> Iterator[_Opened]:
    """Open a tar archive, compressed or not; links and devices in it are ignored.

    Yields:
        Its files.
    """
    with source.open() as stream, tarfile.open(fileobj=stream, mode="r:") as archive:
        files = {}
        for info in archive:
            if info.isreg():
                files[info.name] = info
            if len(files) == _MOST_LISTED:
                break
        members = tuple(_Member(name, info.size) for name, info in files.items())

        def opened(name: str) -> IO[bytes]:
            found = archive.extractfile(files[name])
            if found is None:
                raise DataFileError("it is no file")
            return found

        yield _Opened(members, opened)
