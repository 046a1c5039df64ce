"""Imports that a cell forgot: a small model's most common mistake, and none of thought.

Added is only the import of a name that has just raised: no variable of the kernel has it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from dm_jupyter.core.assistance import Finding
from dm_jupyter.core.parsed import parsed
from kernel_sandbox.types import CellError

__all__ = ["missing_import"]

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
