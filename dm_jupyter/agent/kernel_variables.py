"""Source that runs silently in a person's kernel to list its variables; never imported here.

It calls nothing that a variable's own class defines but what pandas and numpy define, so that
looking has no effect. Texts that are called like keys, or look like them, are left out.
"""


def variables(names: dict[str, object]) -> object:
    """The variables among the names of a kernel, as JSON."""
    import json
    import sys

    class Text(str):
        __slots__ = ()
        __repr__ = str.__str__  # what is sent is a `repr`, and JSON is simple to read

    pandas = sys.modules.get("pandas")
    frames = (pandas.DataFrame, pandas.Series) if pandas is not None else ()
    hidden = {"In", "Out", "exit", "quit", "open", "get_ipython"}
    tables: list[object] = []
    values: list[object] = []
    for name, value in reversed(list(names.items())):
        if name.startswith("_") or name in hidden:
            continue
        if isinstance(value, frames):
            told = _table(name, value) if len(tables) < 20 else None  # type: ignore[no-untyped-call]
            tables += [told] if told else []
        elif len(values) < 30 and (text := _told(name, value)):  # type: ignore[no-untyped-call]
            values.append({"name": name[:80], "kind": type(value).__name__[:80], "text": text})
    return Text(json.dumps({"tables": tables[::-1], "values": values[::-1]}))


def _table(name, value):  # type: ignore[no-untyped-def]  # pandas is not known here
    frame = value.to_frame() if hasattr(value, "to_frame") else value
    head = frame.iloc[:3, :30]
    values = head.to_numpy(dtype=object)  # all at once: a column at a time takes four times as long
    columns = [
        {
            "name": str(column)[:80],
            "dtype": str(dtype)[:80],
            "samples": [str(item)[:40] for item in values[:, place].tolist()],
        }
        for place, (column, dtype) in enumerate(zip(head.columns, head.dtypes, strict=True))
    ]
    return {
        "name": name[:80],
        "kind": type(value).__name__,
        "shape": [int(size) for size in value.shape],
        "columns": columns,
    }


def _told(name, value):  # type: ignore[no-untyped-def]  # of any class
    """What a value is, in a few words; empty for one that is nobody's business."""
    import re

    kind = type(value)
    if kind in (bool, int, float, complex):
        return repr(value)[:40]
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
