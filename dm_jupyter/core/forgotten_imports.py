"""Imports that a cell forgot: a small model's most common mistake, and none of thought."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable

from dm_jupyter.core.parsed import parsed

__all__ = ["with_imports"]

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


def with_imports(source: str, earlier: Iterable[str], variables: Iterable[str] = ()) -> str:
    """Returns the cell with an import above it for each well-known name that nothing has defined.

    A cell that does not parse is returned as it is.

    Args:
        source: the cell.
        earlier: the cells that ran before it in the same kernel.
        variables: other names that mean something there, and must go on to.
    """
    tree = parsed(source)
    if tree is None:
        return source
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    missing = sorted(_LINES.keys() & used - _bound(tree))
    if not missing:
        return source
    before = (parsed(cell) for cell in earlier)
    known = set(variables).union(*(_bound(cell) for cell in before if cell is not None))
    lines = [_LINES[name] for name in missing if name not in known]
    return "\n".join([*lines, source])


def _bound(tree: ast.Module) -> set[str]:
    """Every name that the code gives a meaning to, wherever it does; with the builtins."""
    names = set(dir(builtins))
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.ClassDef(name=name) | ast.arg(arg=name):
                names.add(name)
            case ast.alias(name=name, asname=other):
                names.add(other or name.split(".")[0])
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                names.add(name)
    return names
