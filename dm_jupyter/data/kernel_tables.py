"""A kernel's variables as the kernel reports them, parsed without trust in the text.

Covered: any text yields only few tables of few columns and few values, each field of the type and
length that `kernel_variables.py` sends. Not covered: whether they are true.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_sandbox.messages import decode

__all__ = ["COMM_TARGET", "Alive", "alive_from_text", "variables_expression", "variables_text"]

COMM_TARGET = "dm-jupyter"
"""Comm that carries a cell's question, with the kernel's variables, to the server."""
_TEXT_CHARS = 256 * 1024
"""Longest text that is parsed; more than twenty tables of thirty columns need."""
_TABLES, _COLUMNS, _SAMPLES, _DIMENSIONS, _VALUES = 20, 30, 3, 2, 30
_NAME_CHARS, _SAMPLE_CHARS = 80, 40
_KINDS = ("DataFrame", "Series")


@dataclass(frozen=True, slots=True)
class Alive:
    """A kernel's variables that a question may be about, in order of creation."""

    tables: tuple[dict[str, Any], ...] = ()
    """Each with `name`, `kind`, `shape` and `columns`, those with `name`, `dtype`, `samples`."""
    values: tuple[dict[str, str], ...] = ()
    """Each with `name`, `kind` and `text`: a number, a size, whether a model is fitted."""


def variables_expression() -> str:
    """Return the expression that lists a kernel's variables; its `repr` is for `alive_from_text`.

    A kernel compiles one expression at once, but splits the text of a cell first. The expression
    also adds no name of ours to the variables.
    """
    source = Path(__file__).with_name("kernel_variables.py").read_text("utf-8")
    return f"(lambda own: exec({source!r}, own) or own['variables'](globals()))({{}})"


def variables_text(namespace: Mapping[str, Any]) -> str:
    """Return the text that a kernel with this namespace would send.

    Args:
        namespace: variables to list; not changed.
    """
    return str(eval(variables_expression(), dict(namespace)))  # noqa: S307  (a file of ours)


def alive_from_text(text: str) -> Alive:
    """Return the variables, without entries that are not valid.

    Args:
        text: JSON, as a kernel sent it.
    """
    if len(text) > _TEXT_CHARS:
        return Alive()
    try:
        found = decode(text.encode("utf-8", "replace"))
    except ValueError:
        return Alive()
    if not isinstance(found, dict):
        return Alive()
    tables = [_table(raw) for raw in _list(found.get("tables"), _TABLES)]
    values = [_value(raw) for raw in _list(found.get("values"), _VALUES)]
    return Alive(
        tuple(table for table in tables if table is not None),
        tuple(value for value in values if value is not None),
    )


def _list(raw: object, most: int) -> list[object]:
    return raw[:most] if isinstance(raw, list) else []


def _value(raw: object) -> dict[str, str] | None:
    if not isinstance(raw, dict):
        return None
    found = {key: _text(raw.get(key), _NAME_CHARS) for key in ("name", "kind", "text")}
    return {key: text for key, text in found.items() if text} if all(found.values()) else None


def _table(raw: object) -> dict[str, Any] | None:
    if not isinstance(raw, dict) or raw.get("kind") not in _KINDS:
        return None
    name, shape, columns = _text(raw.get("name"), _NAME_CHARS), raw.get("shape"), raw.get("columns")
    if not name or not _is_shape(shape) or not isinstance(columns, list):
        return None
    read = [_column(column) for column in columns[:_COLUMNS]]
    if any(column is None for column in read):
        return None
    return {"name": name, "kind": raw["kind"], "shape": shape, "columns": read}


def _column(raw: object) -> dict[str, Any] | None:
    if not isinstance(raw, dict) or not isinstance(raw.get("samples"), list):
        return None
    samples = [_text(sample, _SAMPLE_CHARS) for sample in raw["samples"][:_SAMPLES]]
    name, dtype = _text(raw.get("name"), _NAME_CHARS), _text(raw.get("dtype"), _NAME_CHARS)
    if name is None or dtype is None or None in samples:
        return None
    return {"name": name, "dtype": dtype, "samples": samples}


def _text(value: object, most: int) -> str | None:
    return value[:most] if isinstance(value, str) else None


def _is_shape(value: object) -> bool:
    return (
        isinstance(value, list)
        and 1 <= len(value) <= _DIMENSIONS
        and all(type(size) is int and 0 <= size < 2**53 for size in value)
    )
