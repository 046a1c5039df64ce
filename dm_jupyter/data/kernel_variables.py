"""Source that runs silently in a person's kernel to list its variables; never imported here.

It calls only methods of pandas, numpy and the standard library, none of a person's own class, so
that looking has no effect. Texts that are named like keys, or look like them, are left out.
"""


def variables(names: dict[str, object]) -> object:
    """Return the variables among the names of a kernel, as JSON."""
    import json
    import sys

    class Text(str):
        __slots__ = ()
        __repr__ = str.__str__  # the kernel sends a `repr`, and JSON is simple to read

    pandas = sys.modules.get("pandas")
    frames = (pandas.DataFrame, pandas.Series) if pandas is not None else ()
    hidden = {"In", "Out", "exit", "quit", "open", "get_ipython"}
    tables: list[object] = []
    values: list[object] = []
    for name, value in reversed(list(names.items())):
        if name.startswith("_") or name in hidden:
            continue
        if isinstance(value, frames):
            if len(tables) < 20:
                _add_table(tables, values, name, value)  # type: ignore[no-untyped-call]
        elif len(values) < 30 and (text := _told(name, value)):  # type: ignore[no-untyped-call]
            values.append({"name": name[:80], "kind": type(value).__name__[:80], "text": text})
    return Text(json.dumps({"tables": tables[::-1], "values": values[::-1]}))


def _add_table(tables, values, name, value):  # type: ignore[no-untyped-def]
    try:
        tables.append(_table(name, value))  # type: ignore[no-untyped-call]
    except Exception:  # noqa: BLE001  (a person's own subclass; the others are still listed)
        text = "a table that can't be looked at"
        values.append({"name": name[:80], "kind": type(value).__name__[:80], "text": text})


def _table(name, value):  # type: ignore[no-untyped-def]  # pandas is not known here
    frame = value.to_frame() if hasattr(value, "to_frame") else value
    head = frame.iloc[:3, :30]
    values = head.to_numpy(dtype=object)  # all at once: a column at a time takes four times as long
    columns = [
        {
            "name": _shown(column)[:80],  # type: ignore[no-untyped-call]
            "dtype": str(dtype)[:80],
            "samples": [_shown(item)[:40] for item in values[:, place].tolist()],  # type: ignore[no-untyped-call]
        }
        for place, (column, dtype) in enumerate(zip(head.columns, head.dtypes, strict=True))
    ]
    return {
        "name": name[:80],
        "kind": type(value).__name__,
        "shape": [int(size) for size in value.shape],
        "columns": columns,
    }


def _shown(item):  # type: ignore[no-untyped-def]  # of any class
    """Return an item of a table as text, without calling a person's class or printing a long value.

    The text must not take long: the kernel answers nobody meanwhile.
    """
    kind = type(item)
    plain = (bool, int, float, complex, str, type(None))
    known = ("numpy", "datetime", "decimal", "uuid", "fractions", "pandas", "ipaddress")
    is_long = kind is int and item.bit_length() > 256
    if kind in (list, tuple, dict, set, frozenset):
        parts = [*item, *item.values()] if kind is dict and len(item) <= 8 else item
        is_short = len(item) <= 16 and all(
            type(part) in plain and not (type(part) is int and part.bit_length() > 256)
            for part in parts
        )
        return str(item) if is_short else f"{len(item)} items"
    module = str(kind.__module__)
    is_array = hasattr(kind, "__len__" if module.startswith("pandas") else "__array_finalize__")
    if kind in plain or (module.startswith(known) and not is_array):
        return "a long number" if is_long else str(item)
    return str(item[:40]) if kind is bytes else f"<{kind.__name__}>"


def _told(name, value):  # type: ignore[no-untyped-def]  # of any class
    """Return a description of a value in a few words; empty if it is private or of no interest."""
    import re

    kind = type(value)
    if kind in (bool, int, float, complex):
        return _shown(value)[:40]  # type: ignore[no-untyped-call]
    if kind is str:
        private = r"(?i)key|token|secret|passw|pwd|credential|auth|cookie|url"
        is_secret = len(value) > 20 or re.search(private, name)
        return "" if is_secret else repr(value)
    if kind in (list, tuple, dict, set, frozenset):
        return f"{len(value)} items"
    module = str(kind.__module__)
    if module == "numpy" and kind.__name__ == "ndarray":
        return f"shape {tuple(value.shape)}, {value.dtype}"
    if not module.startswith(("sklearn.", "statsmodels.", "xgboost.", "lightgbm.")):
        return ""
    own = getattr(value, "__dict__", {})
    is_fitted = any(key.endswith("_") and key[0] != "_" for key in own) or "esults" in kind.__name__
    return "fitted model" if is_fitted else "model"
