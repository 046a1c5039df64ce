"""Hints after a failed cell: for each kind of error, what usually mends it.

A small model practically cannot mend its own code from a bare traceback; the nearest spelling of
a column, or the way to turn text into numbers, is what it lacks.
"""

from __future__ import annotations

import re

from dm_jupyter.assist.schema_hints import schema_hint
from dm_jupyter.core.assistance import Finding
from dm_jupyter.core.schema import nearest
from dm_jupyter.core.tracebacks import failing_line
from dm_jupyter.core.trajectory import DataContext
from kernel_sandbox.types import CellError, CellResult

__all__ = ["hint_for"]

_LOOKED_UP = re.compile(r"\.(?:loc|at|xs)\b")
"""Code that looks a row up by its label."""
_BY_LABEL = re.compile(r"(\w+)\.(?:loc|at)\[([^\[\],]+),\s*(\w+|'[^']+'|\"[^\"]+\")\s*\]")
"""The table, the label and the one column of such a look-up."""
_JOINED = re.compile(r"\b(?:merge|merge_asof|join)\(")
_MOST_SHARED = 12
_PROFILED = re.compile(r"^- ('[^\n]*?'): ([^\n]*)$", re.MULTILINE)
"""A column in a profile: its name as code writes it, and what it holds."""
_PLAIN_REPLACE = re.compile(r"\.str\.replace\(\s*r?['\"][^'\"]*[\\\[|][^)]*(?<!regex=True)\)")
"""A pattern given to a function that takes plain text."""
_NO_PATTERN = (
    "str.replace looks for plain text: add regex=True where it should take a pattern, as in "
    "column.str.replace(r'[^0-9.-]', '', regex=True)."
)
_FITTED = re.compile(r"\.(?:fit|predict|score|fit_predict|fit_transform)\(")
_ENCODE = (
    "The model takes numbers only: encode the text columns before the split, with "
    "X = pd.get_dummies(X, columns=[...]), and leave out those that are not needed."
)
_TAKEN_BY = {
    "class_weight": "The model takes it: LogisticRegression(class_weight='balanced').",
    "stratify": "train_test_split takes it: train_test_split(X, y, stratify=y).",
}
"""Where an argument belongs that is often given to the wrong function."""
_QUOTED = re.compile(r"'([^']+)'|\"([^\"]+)\"")
_NO_ROW = re.compile(r"are in the \[(?:index|columns)\]|not in index")
"""Keys of a whole list, which are no label of one row."""
_SMALL = re.compile(r"-?\d{1,2}")
"""A number that a place may have, in a Series of results."""
_INDEX_TURNED = re.compile(r"\.loc\[\s*~\s*\w+\s*[,\]]")
"""An index, as a search for rows gives it, where a condition is meant."""
_WITH_UNIT = re.compile(
    r"(?:could not convert string to float|Unable to parse string)"
    r".*['\"]-?\d[\d.]* ?([^\W\d]+)['\"]"
)
_SCALES = frozenset({"k", "m", "b", "t", "bn", "mn", "mio", "mrd", "tsd", "e"})
"""What may stand behind a number and is a part of it: `5M` is no 5."""


def hint_for(result: CellResult, source: str, data_context: DataContext) -> Finding | None:
    """Returns one or two sentences on how to correct the error, or nothing when none is known.

    Args:
        result: a cell that failed.
        source: its code.
        data_context: what is known of the data files.
    """
    error = result.error
    words = _words(error, source, data_context) if error is not None else ""
    if error is None or not words:
        return None
    return Finding("hints", f"{error.name}: {error.message[:200]}", "likely", words)


def _words(error: CellError, source: str, data_context: DataContext) -> str:
    text = f"{error.name}: {error.message}"
    if told := schema_hint(error.message, source, data_context.tables):
        return told
    typed = _of_the_cell(error, source) or _of_what_it_names(error.message) or _of_the_message(text)
    if typed or not re.search(r"^KeyError|not in index|has no attribute", text):
        return typed
    return (
        _place(error, data_context)
        or _lookup(error, data_context)
        or _spelling(error, data_context)
    )


def _of_the_cell(error: CellError, source: str) -> str:
    """What the error means for the code that raised it."""
    if refused := re.search(r"unexpected keyword argument '(\w+)'", error.message):
        hint = f"Leave {refused[1]} out of that call: the function does not take it."
        return f"{hint} {_TAKEN_BY.get(refused[1], '')}".strip()
    line = failing_line(error)
    if _NO_ROW.search(error.message) and _INDEX_TURNED.search(line):
        return "~ turns a condition round, not an index: write df.loc[~(df[column] == value)]."
    if "could not convert string" in error.message:
        if _PLAIN_REPLACE.search(source):
            return _NO_PATTERN
        if _FITTED.search(line):
            return _ENCODE
    return ""


def _of_what_it_names(message: str) -> str:
    """What mends an error that names a function or a unit."""
    if absent := re.search(r"no such function: (\w+)", message):
        return (
            f"SQLite has no {absent[1]}(): ask for the rows without it, and compute it from them "
            "with pandas in the next cell."
        )
    unit = _WITH_UNIT.search(message)
    if unit is None or unit[1].casefold() in _SCALES:
        return ""
    # Code that fails where another unit stands: digits alone would mix minutes with hours.
    return (
        "Those values have a unit. Leave that line out if the question does not need the column. "
        f'Where all have it: column.str.removesuffix("{unit[1]}").astype(float).'
    )


def _of_the_message(text: str) -> str:
    """What mends an error of that kind wherever it is raised."""
    return next((hint for pattern, hint in _HINTS if re.search(pattern, text)), "")


def _place(error: CellError, data_context: DataContext) -> str:
    """How a value is taken by its place, which pandas took for a name; empty for a loaded table."""
    key = error.message.strip()
    line = failing_line(error)
    if error.name != "KeyError" or not _SMALL.fullmatch(key) or key in data_context.columns:
        return ""
    held = re.search(rf"([^\W\d][\w.]*)((?:\(\))?)\[\s*{key}\s*\]", line)
    tables = {"df", *(frame.variable for frame in data_context.frames)}
    if held is None or held[1] in tables or _LOOKED_UP.search(held[0]):
        return ""
    holder = "".join(held.groups())
    return (
        f"{holder} has no entry of the name {key}. If it is a Series, its entries have names of "
        f"their own: the one at that place is {holder}.iloc[{key}]."
    )


def _lookup(error: CellError, data_context: DataContext) -> str:
    """What was wrong with a key that is no misspelt column: a row's label, or a column gone."""
    key = error.message.strip()
    name = key.strip("'\"")
    if error.name != "KeyError" or _NO_ROW.search(key):
        return ""
    if name in data_context.columns:
        return _apart(name, failing_line(error), data_context) or (
            f"{key} is a column of the file, but not of this table: the lines before this one "
            "dropped, renamed or grouped it away. Leave that out, or do without the column here."
        )
    line = failing_line(error)
    is_column = re.search(rf"[\w)]\[\s*['\"]{re.escape(name)}['\"]\s*\]", line)
    if is_column or nearest(name, data_context.columns) or not _LOOKED_UP.search(line):
        return ""
    holder = _column_with(key, data_context.text)
    told = f"No row has the label {key}: the rows are numbered. "
    looked_up = _BY_LABEL.search(line)
    if looked_up and holder:
        table, label, column = looked_up.groups()
        chosen = f"{table}.loc[{table}[{holder}] == {label.strip()}, {column}].iloc[0]"
        return f"{told}Write {chosen} in place of {looked_up[0]}."
    return (
        f"{told}Choose rows by the column that holds it: "
        f"df.loc[df[{holder or 'column'}] == {key}, other_column]."
    )


def _apart(name: str, line: str, data_context: DataContext) -> str:
    """Which of the loaded tables that a line joins has no column of that name; empty for none."""
    if not _JOINED.search(line):
        return ""
    named = dict.fromkeys(re.findall(r"[^\W\d]\w*", line))
    frames = [one for word in named for one in data_context.frames if one.variable == word]
    lacking = [one.variable for one in frames if name not in one.columns]
    if len(frames) != 2 or not lacking:
        return ""
    left, right = frames
    shared = [column for column in left.columns if column in right.columns]
    told = f"{' and '.join(lacking)} {'has' if len(lacking) == 1 else 'have'} no column {name!r}. "
    if shared:
        return (
            f"{told}Both tables have {', '.join(map(repr, shared[:_MOST_SHARED]))}: join on that."
        )
    columns = (
        f"{one.variable} has {', '.join(map(repr, one.columns[:_MOST_SHARED]))}" for one in frames
    )
    return (
        f"{told}They have no column in common: {'; '.join(columns)}. Name two columns that hold "
        "the same values with left_on= and right_on=; where there are none, say so."
    )


def _column_with(value: str, profile: str) -> str:
    """The one column, as code writes it, that holds the value, or that alone may hold it."""
    columns = [(line[1], line[2]) for line in _PROFILED.finditer(profile)]
    word = re.compile(rf"(?<!\w){re.escape(value)}(?!\w)")
    showing = [name for name, told in columns if word.search(told)]
    texts = [name for name, told in columns if told.startswith("str")]
    # Two files may have the column, as those that are to be joined do.
    found = set(showing or (texts if value.startswith(("'", '"')) else []))
    return found.pop() if len(found) == 1 else ""


def _spelling(error: CellError, data_context: DataContext) -> str:
    """Which columns exist near the one that was asked for."""
    columns = _columns_at(error, data_context)
    asked = [first or second for first, second in _QUOTED.findall(error.message)]
    if not asked and error.name == "KeyError":
        asked = [error.message.strip("'\"")]
    if "has no attribute" in error.message:
        asked = asked[-1:]
    asked = [name for name in asked if name not in columns]
    near = list(dict.fromkeys(match for name in asked for match in nearest(name, columns)))
    if near:
        return f"Columns with a similar name: {', '.join(map(repr, near[:5]))}."
    if error.name == "KeyError" and columns and len(columns) <= 40:
        return f"The file's columns are: {', '.join(map(repr, columns))}."
    return ""


def _columns_at(error: CellError, data_context: DataContext) -> tuple[str, ...]:
    """The columns of the tables that the failing line names; of all files where it names none."""
    named = set(re.findall(r"[^\W\d]\w*", failing_line(error)))
    meant = [frame for frame in data_context.frames if frame.variable in named]
    columns = dict.fromkeys(column for frame in meant for column in frame.columns)
    return tuple(columns) if columns else data_context.columns


_HINTS: tuple[tuple[str, str], ...] = (
    (
        r"has no attribute 'pvalue'|cannot unpack non-iterable numpy\.float|corr\(\) got",
        "Series.corr gives the coefficient alone: r, p = stats.pearsonr(x, y) gives both.",
    ),
    (
        r"'numpy\.dtypes\.\w+' object has no attribute 'dtype'",
        "A column given to the test holds text: a correlation needs two columns of numbers.",
    ),
    (
        r"Array shapes are incompatible for broadcasting|has no attribute '\w*(?:regress|rsquared)"
        r"|has no attribute 'pvalues'",
        "For a regression on several columns: fit = sm.OLS(y, sm.add_constant(X)).fit(); then "
        "fit.params, fit.pvalues and fit.rsquared.",
    ),
    (
        r"has no attribute 'chi2\w*'",
        "The chi-square test is stats.chi2_contingency(pd.crosstab(a, b)).",
    ),
    (
        r"Can only use \.str accessor",
        "That column holds numbers already: leave the .str conversion out.",
    ),
    (
        r"'numpy\.\w+' object has no attribute 'idxm",
        "That is a single number already; group first: df.groupby(key)[column] gives one value "
        "for each key.",
    ),
    (
        r"(?:could not convert string to float|invalid literal for).*'[^']*\d,\d",
        'Those are numbers with a comma. Where it parts thousands: column.str.replace(",", "")'
        '.astype(float); where it is the decimal sign: column.str.replace(",", ".").astype(float).',
    ),
    (
        r"could not convert string to float|unsupported operand type.*str|invalid literal for",
        "A column holds text. Leave that line out if the question does not need the column, else "
        'use pd.to_numeric(column, errors="coerce").',
    ),
    (
        r"agg function failed|Could not convert .* to numeric|dtype 'str' does not support|"
        r"Cannot perform reduction",
        "Compute on number columns only: pass numeric_only=True, or use "
        "df.select_dtypes('number').",
    ),
    (
        r"can only concatenate str",
        "Text and a number can't be added: wrap the number in str() or use an f-string.",
    ),
    (
        r"(?i)contains? (?:inf|nan)|array must not contain infs or NaNs|"
        r"missing values encoded as NaN",
        "There are missing values: drop them with dropna(subset=[...]) on just the columns used.",
    ),
    (
        r"All arrays must be of the same length|same length|inconsistent numbers of samples|"
        r"must have the same (?:length|size)",
        "Drop missing values from both columns together: "
        "pair = df[[a, b]].dropna(); then use pair[a] and pair[b].",
    ),
    (
        r"unhashable type",
        "A list, dict, slice or whole column can't be a key: use a tuple or single values, and "
        ".loc or .iloc to choose rows.",
    ),
    (
        r"truth value of a (?:Series|DataFrame) is ambiguous",
        "Use & and | with parentheses between conditions, or .any(), .all() or .iloc[0] for a "
        "single value.",
    ),
    (
        r"(?i)time data .* doesn't match format|Unknown datetime string|does not match format|"
        r"out of bounds (?:nanosecond )?timestamp|^OutOfBoundsDatetime",
        'Parse dates with pd.to_datetime(df[column], errors="coerce", format="mixed").',
    ),
    (
        r"unsupported format string passed to (?:Series|numpy\.ndarray)|"
        r"only length-1 arrays|cannot convert the series to",
        "The value is a whole column or array: take one number out of it, with .iloc[0], "
        ".mean() or another reduction, before you format it.",
    ),
    (
        r"'float' object has no attribute 'round'",
        "A plain float: write round(value, 2). A mean is one where no row was chosen: compare with "
        "values that the column holds.",
    ),
    (
        r"'float' object has no attribute '(?:split|strip|lower|upper|title|replace|\w+with)'"
        r"|'float' is not iterable|object of type 'float' has no len",
        "Missing values are floats: use the column's .str methods, which skip them, instead of "
        "apply.",
    ),
    (
        r"can't handle a mix of (?:binary|multiclass) and continuous",
        "The predictions are no classes yet: take model.predict(X_test) of a classifier, or "
        "(predicted >= 0.5).astype(int) of a regression.",
    ),
    (
        r"incomplete input|was never closed",
        "The cell ends too early: close the bracket, or write a shorter cell, with a loop instead "
        "of lines that repeat.",
    ),
    (
        r"No module named",
        "That package is not installed here: use pandas, numpy, scipy, scikit-learn, statsmodels "
        "or matplotlib.",
    ),
    (
        r"No such file or directory|FileNotFoundError",
        "Read the data only with the loading line that was given.",
    ),
    (
        r"name '.*' is not defined",
        "Write the whole cell again, with every import and every variable it uses.",
    ),
    (
        r"no such column|no such table",
        "Use only the tables and columns listed, spelled exactly so, each with its own table.",
    ),
)
