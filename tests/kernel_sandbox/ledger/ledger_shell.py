"""Cells of Python with a ledger, without a kernel: real pandas and IPython's own formatter."""

from __future__ import annotations

import ast
from types import SimpleNamespace
from typing import Any

from IPython.core.formatters import DisplayFormatter

from kernel_sandbox.ledger.facts import Fact, facts_from
from kernel_sandbox.ledger.hook import Ledger

__all__ = ["LedgerShell"]

SET_UP = """
import numpy as np
import pandas as pd
df = pd.DataFrame({
    'country': ['GREAT BRITAIN'] * 12 + ['France'] * 30 + ['Spain'] * 6,
    'amount': np.arange(48.0),
    'units': range(48),
    'day': pd.date_range('2021-01-03', periods=48, freq='30D'),
    'store': ['a', 'b', None] * 16,
})
"""


class LedgerShell:
    """Has what a ledger needs of a shell."""

    def __init__(self) -> None:
        self.user_ns: dict[str, Any] = {"__name__": "__main__"}
        self.display_formatter = DisplayFormatter()
        shell = SimpleNamespace(user_ns=self.user_ns, display_formatter=self.display_formatter)
        self.ledger = Ledger(shell)

    def run(self, source: str, *, keeps: bool = True) -> tuple[Fact, ...]:
        """Runs a cell, displays the value of its last expression, returns what was noted."""
        tree = ast.parse(source)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        with self.ledger.of_a_cell(keeps):
            exec(compile(tree, "cell", "exec"), self.user_ns)
            if isinstance(last, ast.Expr):
                code = compile(ast.Expression(last.value), "cell", "eval")
                value = eval(code, self.user_ns)
                self.display_formatter.format(value)
        return facts_from(self.ledger.facts)
