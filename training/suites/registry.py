"""The suites by name. A new suite is one module with a class like those below.

A suite of this package gets a line in `_OURS`. A suite elsewhere needs none: it is found as
`package.module:ClassName`.
"""

from __future__ import annotations

import importlib

from training.suites.dabench import DABench
from training.suites.dsbench_modeling import DSBenchModeling
from training.suites.generated.absent import AbsentQuestions
from training.suites.generated.suite import FreeQuestions, GeneratedQuestions
from training.suites.own import OwnQuestions
from training.suites.qrdata import QRData
from training.suites.reports import Reports
from training.suites.sql import SqlQuestions
from training.suites.suite import Suite
from training.suites.tablebench import TableBench
from training.suites.xlsx import XlsxQuestions

__all__ = ["SUITES", "find_suite"]

_OURS: tuple[Suite, ...] = (
    AbsentQuestions(),
    DABench(),
    DSBenchModeling(),
    FreeQuestions(),
    GeneratedQuestions(),
    OwnQuestions(),
    QRData(),
    Reports(),
    SqlQuestions(),
    TableBench(),
    XlsxQuestions(),
)

_NEEDS = "it needs `name`, `load`, `score` and `agree`; a class is made without arguments"

SUITES: dict[str, Suite] = {suite.name: suite for suite in _OURS}


def find_suite(name: str) -> Suite:
    """Return the suite of that name, or of `package.module:ClassName`.

    Raises:
        ValueError: no suite has the name, its module can't be imported, or the object found is not
            a suite.
    """
    if name in SUITES:
        return SUITES[name]
    module, _, attribute = name.partition(":")
    if not (module and attribute) or module.startswith("."):
        known = ", ".join(sorted(SUITES))
        raise ValueError(f"no suite is called {name!r}; there are {known}, or 'module:ClassName'")
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except ImportError as error:
        raise ValueError(f"the suite {name!r} can't be imported: {error}") from error
    try:
        suite = found() if isinstance(found, type) else found
    except TypeError as error:
        raise ValueError(f"{name!r} is no suite ({error}): {_NEEDS}") from error
    if not isinstance(suite, Suite):
        # ValueError, because a command line treats it as one more kind of wrong name.
        raise ValueError(f"{name!r} is no suite: {_NEEDS}")  # noqa: TRY004
    return suite
