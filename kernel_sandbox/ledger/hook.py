"""The ledger of a kernel: begins and ends with a cell, and waits for pandas to be imported.

Covered: between two cells, and in cells that do not request it, pandas is unchanged. The ledger
imports no data library by itself. Not covered: pandas that was set up without an import.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any

from kernel_sandbox.ledger.book import Book
from kernel_sandbox.ledger.facts import MOST_FACTS, facts_from

__all__ = ["Ledger"]


class Ledger:
    """Ledger of one kernel."""

    def __init__(self, shell: Any) -> None:
        """Create the ledger; pandas stays unchanged.

        Args:
            shell: the shell of IPython, whose global names are those of the cells.
        """
        self._shell = shell
        self._book = Book()
        self._wrapping: Any = None
        self._is_on = False
        self._error: object = None
        self._waiting = _Waiting(self)
        self.facts: list[dict[str, Any]] = []
        """Facts of the last cell that requested them, as JSON values."""

    @contextmanager
    def of_a_cell(self, is_wanted: bool) -> Iterator[None]:
        """Record what happens to the data meanwhile; `facts` contains it afterwards.

        Args:
            is_wanted: whether anything is recorded.
        """
        if not is_wanted:
            yield
            return
        self.facts = []
        with suppress(Exception):  # a cell runs whether it is recorded or not
            self._begin()
        try:
            yield
        finally:
            with suppress(Exception):
                self._end()

    def prepare(self) -> None:
        """Create the wrappers if pandas is loaded, so that the first cell need not wait for it."""
        if self._wrapping is None and "pandas" in sys.modules:
            from kernel_sandbox.ledger.wrapping import Wrapping  # noqa: PLC0415 (loads pandas)

            self._wrapping = Wrapping(self._book)

    def pandas_is_there(self) -> None:
        """Install the wrappers; called if pandas is loaded, or once a cell has loaded it."""
        self.prepare()
        if self._wrapping is not None:
            self._is_on = True
            self._wrapping.put_on()

    def _begin(self) -> None:
        self._book.open(self._shell.user_ns)
        self._error = getattr(sys, "last_value", None)
        formatter = self._shell.display_formatter
        formatter.format = _shown_too(self._book, formatter.format)
        if "pandas" in sys.modules:
            self.pandas_is_there()
        else:
            sys.meta_path.insert(0, self._waiting)

    def _end(self) -> None:
        with suppress(Exception):
            self._note_failure()
        noted = [fact.to_json() for fact in self._book.close()[:MOST_FACTS]]
        self.facts = [fact.to_json() for fact in facts_from(noted)]  # a reply must stay small
        with suppress(ValueError):
            sys.meta_path.remove(self._waiting)
        formatter = self._shell.display_formatter
        original = getattr(formatter.format, "_dm_jupyter_original", None)
        if original is not None:  # a cell may have set its own
            formatter.format = original
        if self._is_on:
            self._is_on = False
            self._wrapping.take_off(self._shell.user_ns)

    def _note_failure(self) -> None:
        """Record which existing names are like one that the cell has failed on."""
        error = getattr(sys, "last_value", None)  # IPython leaves it there
        before, self._error = self._error, None  # it would keep its frames alive
        self._book.is_quiet = True
        if error is None or error is before:
            return
        from kernel_sandbox.ledger.unknown_names import unknown_name  # noqa: PLC0415 (rarely)

        if fact := unknown_name(error):
            self._book.note(fact)


def _shown_too(book: Book, formatted: Any) -> Any:
    """Wrap IPython's `format` to record tables without values."""

    def function(shown: object, *args: Any, **kwargs: Any) -> Any:
        if not book.is_quiet and type(shown).__module__.split(".")[0] == "pandas":
            book.is_quiet = True
            try:
                sys.modules["kernel_sandbox.ledger.notes"].note_shown(book, shown)
            except Exception:  # noqa: BLE001, S110 (nothing of ours may reach the cell)
                pass
            finally:
                book.is_quiet = False
        return formatted(shown, *args, **kwargs)

    function._dm_jupyter_original = formatted  # type: ignore[attr-defined]
    return function


class _Waiting:
    """Import finder that finds nothing itself and reports when pandas has been loaded."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Hook the loader of pandas. The import system calls this for each unloaded module.

        Args:
            name: the name of the module.
            path: not used.
            target: not used.
        """
        del path, target
        if name != "pandas" or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("pandas")
        if spec is not None and spec.loader is not None:
            loader, ledger = spec.loader, self._ledger
            execute = loader.exec_module

            def then_tell(module: ModuleType) -> None:
                del loader.exec_module  # restores the method of the class
                execute(module)
                with suppress(Exception):
                    ledger.pandas_is_there()

            loader.exec_module = then_tell  # type: ignore[method-assign]
        return spec
