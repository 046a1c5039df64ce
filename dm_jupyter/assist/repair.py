"""A cell that failed for a slip, corrected, where running it once more changes nothing twice.

A cell always runs as it was written first. Only when the failure has happened that a rule predicts
is the corrected cell run in its place, with a comment that says what was corrected. A forgotten
import is added only for a name that has just raised: no variable of the kernel has it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from dm_jupyter.assist.cell_effects import CHANGES, WRITES
from dm_jupyter.assist.cell_names import HARMLESS, loaded_names, stored_names
from dm_jupyter.assist.loaded_tables import EarlierCell
from dm_jupyter.assist.misspelt_columns import misspelt_column
from dm_jupyter.core.assistance import Finding
from dm_jupyter.core.limits_met import limit_met
from dm_jupyter.core.tracebacks import lines_in_cell, parsed
from dm_jupyter.core.trajectory import RunCell, Trajectory
from kernel_sandbox.types import CellError, CellResult

__all__ = ["missing_import", "repair_of"]

_MODULES = {
    "pd": "import pandas as pd",
    "np": "import numpy as np",
    "plt": "import matplotlib.pyplot as plt",
    "sns": "import seaborn as sns",
    "sm": "import statsmodels.api as sm",
    "smf": "import statsmodels.formula.api as smf",
    "math": "import math",
    "re": "import re",
    "json": "import json",
    "itertools": "import itertools",
    "sqlite3": "import sqlite3",
    "statistics": "import statistics",
    "stats": "from scipy import stats",
}
_MEMBERS = {
    "collections": "Counter defaultdict",
    "itertools": "combinations",
    "datetime": "timedelta",
    "scipy.stats": (
        "anderson chi2_contingency f_oneway kruskal kstest mannwhitneyu pearsonr shapiro spearmanr "
        "ttest_ind ttest_rel wilcoxon zscore"
    ),
    "sklearn.cluster": "AgglomerativeClustering DBSCAN KMeans",
    "sklearn.compose": "ColumnTransformer",
    "sklearn.decomposition": "PCA",
    "sklearn.ensemble": (
        "GradientBoostingClassifier GradientBoostingRegressor IsolationForest "
        "RandomForestClassifier RandomForestRegressor"
    ),
    "sklearn.impute": "KNNImputer SimpleImputer",
    "sklearn.linear_model": "ElasticNet Lasso LinearRegression LogisticRegression Ridge",
    "sklearn.metrics": (
        "accuracy_score classification_report confusion_matrix f1_score mean_absolute_error "
        "mean_squared_error precision_score r2_score recall_score roc_auc_score silhouette_score"
    ),
    "sklearn.model_selection": (
        "GridSearchCV KFold StratifiedKFold cross_val_score train_test_split"
    ),
    "sklearn.naive_bayes": "GaussianNB",
    "sklearn.neighbors": "KNeighborsClassifier KNeighborsRegressor",
    "sklearn.pipeline": "Pipeline make_pipeline",
    "sklearn.preprocessing": (
        "LabelEncoder MinMaxScaler OneHotEncoder OrdinalEncoder PolynomialFeatures RobustScaler "
        "StandardScaler"
    ),
    "sklearn.svm": "SVC SVR",
    "sklearn.tree": "DecisionTreeClassifier DecisionTreeRegressor",
    "statsmodels.stats.outliers_influence": "variance_inflation_factor",
    "statsmodels.tsa.stattools": "adfuller",
}
_LINES = _MODULES | {
    name: f"from {module} import {name}"
    for module, names in _MEMBERS.items()
    for name in names.split()
}
_UNDEFINED = re.compile(r"name '(\w+)' is not defined")


def repair_of(cell: RunCell, result: CellResult, trajectory: Trajectory) -> Finding | None:
    """Returns the correction of a cell that failed, to be run in its place, or nothing.

    Args:
        cell: as it ran.
        result: what became of it.
        trajectory: the run before it.
    """
    error, tree = result.error, parsed(cell.source)
    if error is None or tree is None or cell.language != "python":
        return None
    lines = lines_in_cell(error)
    if lines is None or result.state_lost or limit_met(result) or not _runs_again(tree, lines.last):
        return None
    assists, earlier, data_context = (
        trajectory.assists,
        _earlier(trajectory),
        trajectory.data_context,
    )
    found = None
    if assists.imports:
        sources = [one.source for one in earlier]
        found = missing_import(cell.source, error, sources, data_context.variables)
    if found is None and assists.columns:
        found = misspelt_column(cell.source, error, lines.innermost, earlier, data_context.frames)
    if found is None:
        return None
    return replace(found, edit=f"# {found.suggestion}\n{found.edit}")


def _earlier(trajectory: Trajectory) -> list[EarlierCell]:
    """The python cells that have run since the kernel was empty."""
    cells: list[EarlierCell] = []
    for step in trajectory.steps:
        if step.result is None:
            continue
        if step.result.state_lost:
            cells.clear()
            continue
        match step.turn.action:
            case RunCell(source, language="python"):
                cells.append(EarlierCell(source, step.result.ok))
    return cells


def _runs_again(tree: ast.Module, last: int) -> bool:
    """Whether the statements up to a line may run twice and come to the same.

    They may change what the cell itself has made, and nothing else.
    """
    again = _Again()
    begun = [statement for statement in tree.body if statement.lineno <= last]
    return all(again.takes(statement, is_last=statement is begun[-1]) for statement in begun)


class _Again:
    """Which names the cell has made by itself, and which older ones it has read."""

    def __init__(self) -> None:
        self._own: set[str] = set()
        self._read: set[str] = set()

    def takes(self, statement: ast.stmt, *, is_last: bool = False) -> bool:
        """Whether the statement may run twice.

        Args:
            statement: the next one of the cell.
            is_last: whether it raised: a plain assignment has then not happened.
        """
        if isinstance(statement, ast.Import | ast.ImportFrom):
            self._own |= stored_names(statement)
            return True
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            return self._defines(statement)
        inner = [one for one in _children(statement) if isinstance(one, ast.stmt)]
        outer = [one for one in _children(statement) if not isinstance(one, ast.stmt)]
        stored = set().union(*map(stored_names, outer))
        is_loop = bool(inner)  # or another block: what its head binds is bound before it is read
        self._own |= stored if is_loop else set()
        self._read |= set().union(*map(loaded_names, outer)) - self._own
        parts = [node for one in outer for node in ast.walk(one)]
        if not all(map(self._is_harmless, [*parts, *([] if inner else [statement])])):
            return False
        if inner:
            return all(map(self.takes, inner))
        is_undone = is_last and isinstance(statement, ast.Assign | ast.Expr | ast.AnnAssign)
        if not is_undone and stored & self._read:  # it would start from what it has left
            return False
        if isinstance(statement, ast.Assign) and not self._is_own(statement.value):
            self._own -= stored  # another name for what was there before
        else:
            self._own |= stored
        return True

    def _defines(self, made: ast.FunctionDef | ast.ClassDef) -> bool:
        """Takes a function or class whose code changes nothing but its own names."""
        inside = _Again()
        inside._own = self._own | stored_names(made)
        self._own.add(made.name)
        return all(map(inside._is_harmless, ast.walk(made)))

    def _is_harmless(self, node: ast.AST) -> bool:
        match node:
            case ast.Global() | ast.Nonlocal() | ast.Delete() | ast.Await() | ast.Yield():
                return False
            case ast.AugAssign(target=ast.Name(id=name)):
                return name in self._own
            case ast.Subscript(ctx=ast.Store()) | ast.Attribute(ctx=ast.Store()):
                return self._is_own(node)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=value))):
                return self._is_own(value) or self._is_known_module(value)
            case ast.Call():
                return self._is_harmless_call(node)
        return True

    def _is_harmless_call(self, call: ast.Call) -> bool:
        is_inplace = any(word.arg == "inplace" for word in call.keywords)
        match call.func:
            case ast.Name(id=name):
                return name in HARMLESS or name in self._own or name[:1].isupper()
            case ast.Attribute(value=value, attr=name):
                if WRITES.fullmatch(name):
                    return False
                return self._is_own(value) or not (is_inplace or CHANGES.fullmatch(name))
        return False

    def _is_own(self, node: ast.expr) -> bool:
        """Whether an expression gives what the cell has made, or something new."""
        while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
            node = node.value
        return node.id in self._own if isinstance(node, ast.Name) else True

    def _is_known_module(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id in {"plt", "sns", "np", "pd"}


def _children(statement: ast.AST) -> Iterator[ast.AST]:
    """What a statement consists of; of a handler or a case, what that consists of."""
    for node in ast.iter_child_nodes(statement):
        if isinstance(node, ast.ExceptHandler | ast.match_case):
            yield from _children(node)
        else:
            yield node


def missing_import(
    source: str, error: CellError, earlier: Iterable[str], variables: Iterable[str] = ()
) -> Finding | None:
    """Returns the cell with an import above it for the well-known name that it failed for.

    Not where the cell itself, or one before it, gives the name to something else, nor where the
    person has a variable of that name.

    Args:
        source: the cell, which raised.
        error: what it raised.
        earlier: the cells that ran before it, to their end or not.
        variables: names of the person's variables.
    """
    undefined = _UNDEFINED.match(error.message) if error.name == "NameError" else None
    name = undefined[1] if undefined else ""
    tree = parsed(source)
    if name not in _LINES or tree is None or name in set(variables):
        return None
    before = filter(None, map(parsed, earlier))
    if name in _bound(tree, with_imports=True) or any(name in _bound(one) for one in before):
        return None
    return Finding(
        "imports",
        f"NameError: {error.message[:200]}",
        "certain",
        f"Import added: {_LINES[name]}",
        f"{_LINES[name]}\n{source}",
    )


def _bound(tree: ast.Module, *, with_imports: bool = False) -> set[str]:
    """Every name that the code gives a meaning to, wherever it does."""
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.ClassDef(name=name) | ast.arg(arg=name):
                names.add(name)
            case ast.alias(name=name, asname=other) if with_imports:
                names.add(other or name.split(".")[0])
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                names.add(name)
    return names
