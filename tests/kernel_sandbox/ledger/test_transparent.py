"""A cell comes to the same with a ledger and without one, and pandas is as it was after it."""

from __future__ import annotations

import gc
import inspect
import pickle
import signal
import threading
import traceback
import warnings
import weakref
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_sandbox.ledger import notes
from tests.examples import examples
from tests.kernel_sandbox.ledger.ledger_shell import SET_UP, LedgerShell

STEPS = (
    "x = x[x.units > {n}]",
    "x = x[x.country == {word!r}]",
    "x = x[(x.units > {n}) & (x.country != {word!r})]",
    "x = x[~((x.amount < {n}) | x.store.isna())]",
    "x = x.loc[x.amount.between({n}, 40)]",
    "m = x.units > {n}; m |= x.country == {word!r}; m &= x.amount < 40; m ^= m[::-1]; x = x[m]",
    "m = x.units > {n}; m &= 1; m |= x.store; x = x[m]",
    "x = x.query('units != {n} and country != {word!r}')",
    "x = x.dropna(subset=['store'])",
    "x = x.drop_duplicates('country')",
    "x = x.merge(pd.DataFrame({{'country': ['France', {word!r}], 'code': [1, {n}]}}), how='left')",
    "x = x[['country', 'units', 'amount', 'store']].merge(x[['units']], on='units')",
    "x = x.set_index('units', drop=False).rename_axis(None).reindex([1, 2, {n}])",
    "x = x.assign(amount=pd.to_numeric(x.amount.astype(str).where(x.units != {n}, 'n/a'),"
    " errors='coerce'))",
    "x = x[x.country.str.contains({word!r}, na=False)]",
    "x = x.assign(country=x.country.map({{'France': 'FR', 'Spain': {word!r}}}))",
    "y.append(x.amount.sum()); y.append(x.amount.mean()); y.append(len(x))",
    "y.append(x.groupby('country').amount.agg(['sum', 'count']).to_dict())",
    "y.append(x[['units', 'amount']].max().to_dict()); y.append(int((x.units == {n}).sum()))",
    "x = pd.concat([x, x.head({n})], ignore_index=True)",
    "x = x.assign(store=x.store.fillna({word!r})).ffill()",
    "x = x.copy(); x.fillna({{'store': {word!r}, 'amount': {n}}}, inplace=True)",
    "import io\nx = pd.read_csv(io.StringIO(x.to_csv(index=False)), dtype={{'country': str}})",
)

chains = st.lists(
    st.tuples(
        st.sampled_from(STEPS), st.integers(0, 50), st.sampled_from(["France", "UK", "spain", "F"])
    ),
    min_size=1,
    max_size=7,
)


@examples(60)
@given(chains)
def test_random_chains_give_the_same_tables_with_a_ledger(
    chain: list[tuple[str, int, str]],
) -> None:
    source = "\n".join(step.format(n=n, word=word) for step, n, word in chain)
    outcomes = [_outcome(source, keeps=keeps) for keeps in (False, True)]
    (plain, plain_values, plain_error), (noted, noted_values, noted_error) = outcomes
    assert plain_error == noted_error
    assert repr(plain_values) == repr(noted_values)
    pd.testing.assert_frame_equal(plain, noted, check_exact=True)
    assert plain.attrs == noted.attrs


def _outcome(source: str, *, keeps: bool) -> tuple[pd.DataFrame, Any, str]:
    shell = LedgerShell()
    shell.run(f"{SET_UP}\nx, y = df, []", keeps=False)
    error = ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            shell.run(source, keeps=keeps)
        except Exception as raised:  # noqa: BLE001 (whatever pandas raises)
            error = "".join(traceback.format_exception(raised)[2:])
    return shell.user_ns["x"], shell.user_ns["y"], error


@pytest.mark.parametrize(
    "source",
    [
        "df['nope']",
        "df[df.nope == 1]",
        "df.query('nope > 1')",
        "df.merge(df, on='nope')",
        "df.merge()",
        "df[df.units > 1].loc['nope']",
        "pd.to_numeric(['x'])",
        "df.units.sum(nope=1)",
        "df.units[pd.Series([True])]",
        "m = df.units > 3\nm &= 'x'",
    ],
)
def test_an_error_has_the_traceback_that_it_has_without(source: str) -> None:
    def trace(*, keeps: bool) -> list[Any]:
        shell = LedgerShell()
        shell.run(SET_UP, keeps=False)
        with pytest.raises(Exception) as caught:  # noqa: PT011 (whatever pandas raises)
            shell.run(source, keeps=keeps)
        frames = traceback.extract_tb(caught.value.__traceback__)
        start = next(place for place, frame in enumerate(frames) if frame.filename == "cell")
        return [repr(caught.value), *[(x.filename, x.lineno) for x in frames[start:]]]

    assert trace(keeps=True) == trace(keeps=False)


def test_a_warning_is_about_the_line_that_it_is_about_without() -> None:
    def warned(*, keeps: bool) -> list[tuple[str, str, int]]:
        shell = LedgerShell()
        shell.run(SET_UP, keeps=False)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            shell.run(
                "df.dropna(inplace=True)\ndf.units[df.units > 3][5] = 1\n"
                "pd.to_datetime(pd.Series(['1/2/2020', 'x', '2020-03']), errors='coerce')\n"
                "import io\npd.read_csv(io.StringIO('d\\nx\\ny'), parse_dates=['d'])",
                keeps=keeps,
            )
        return [(str(one.message), one.filename, one.lineno) for one in caught]

    assert warned(keeps=False) == warned(keeps=True)
    assert {name for _, name, _ in warned(keeps=True)} == {"cell"}


def test_a_query_finds_the_names_of_the_function_that_it_stands_in() -> None:
    shell = LedgerShell()
    shell.run(SET_UP, keeps=False)
    shell.run("def f(least):\n    return df.query('units > @least')\nrows = len(f(40))")
    assert shell.user_ns["rows"] == 7


def test_pandas_is_as_it_was_between_cells() -> None:
    owners = (pd, pd.DataFrame, pd.Series)
    before = [dict(vars(owner)) for owner in owners]
    shell = LedgerShell()
    shell.run(f"{SET_UP}\nfrom pandas import concat, merge, to_numeric\nkept = df.sum")
    shell.run("df[df.units > 99].sum(numeric_only=True)")
    assert [dict(vars(owner)) for owner in owners] == before
    assert shell.user_ns["merge"] is pd.merge
    assert shell.user_ns["kept"](numeric_only=True).units == 1128


def test_what_a_cell_puts_in_place_of_an_operation_stays() -> None:
    shell = LedgerShell()
    original = pd.DataFrame.query
    try:
        shell.run(f"{SET_UP}\npd.DataFrame.query = lambda self, text: text")
        assert shell.run("said = df.query('anything')") == ()
        assert shell.user_ns["said"] == "anything"
    finally:
        pd.DataFrame.query = original  # type: ignore[method-assign]


def test_wrapped_operations_can_be_pickled_copied_and_inspected() -> None:
    shell = LedgerShell()
    shell.run(
        f"{SET_UP}\nimport copy, inspect, pickle\n"
        "functions = [pd.merge, pd.to_numeric, pd.concat, pd.DataFrame.query, pd.Series.sum]\n"
        "same = [pickle.loads(pickle.dumps(f)) is f and copy.deepcopy(f) is f for f in functions]\n"
        "bound = pickle.loads(pickle.dumps(df.units.sum))()\n"
        "signatures = [str(inspect.signature(f)) for f in functions]\n"
        "names = [f.__qualname__ for f in functions]\n"
        "class Own(pd.DataFrame):\n"
        "    _constructor = property(lambda self: Own)\n"
        "own = Own(df)[lambda x: x.units > 40]\n"
    )
    found = shell.user_ns
    functions: list[Any] = [pd.merge, pd.to_numeric, pd.concat, pd.DataFrame.query, pd.Series.sum]
    assert found["same"] == [True] * 5
    assert found["bound"] == 1128
    assert found["signatures"] == [str(inspect.signature(f)) for f in functions]
    assert found["names"] == [f.__qualname__ for f in functions]
    assert (type(found["own"]).__name__, len(found["own"])) == ("Own", 7)
    assert pickle.loads(pickle.dumps(found["df"])).equals(found["df"])


def test_no_table_is_kept_alive() -> None:
    shell = LedgerShell()
    shell.run(SET_UP, keeps=False)
    seen: list[weakref.ref[Any]] = []
    shell.user_ns["watch"] = lambda table: seen.append(weakref.ref(table))
    source = (
        "big = df[df.units >= 0]\nwatch(big)\nmask = big.units > 99\nwatch(mask)\n"
        "watch(big[mask].amount)\nbig[mask].amount.sum()\ndel big, mask\nimport gc\ngc.collect()\n"
        "alive = [ref() is not None for ref in refs]"
    )
    shell.user_ns["refs"] = seen
    shell.run(source)
    assert shell.user_ns["alive"] == [False] * 3
    gc.collect()


def test_a_note_that_fails_harms_no_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a fault of the ledger")

    monkeypatch.setattr(notes.pd.api.types, "is_bool_dtype", broken)
    shell = LedgerShell()
    shell.run(f"{SET_UP}\ntotal = df[df.country == 'Spain'].units.sum()")
    assert shell.user_ns["total"] == 267


def test_threads_of_a_cell_work_and_are_not_noted() -> None:
    shell = LedgerShell()
    shell.run(SET_UP, keeps=False)
    facts = shell.run(
        "from concurrent.futures import ThreadPoolExecutor\n"
        "def count(n):\n    return len(df[df.units > n])\n"
        "with ThreadPoolExecutor(4) as pool:\n    counts = list(pool.map(count, range(48)))"
    )
    assert shell.user_ns["counts"] == list(range(47, -1, -1))
    assert facts == ()
    assert threading.active_count() >= 1


def test_an_interrupt_reaches_the_cell_and_pandas_is_whole_after_it() -> None:
    shell = LedgerShell()
    shell.run(SET_UP, keeps=False)
    before = dict(vars(pd.Series))
    shell.user_ns["alarm"] = lambda: signal.setitimer(signal.ITIMER_REAL, 0.2)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    listening = signal.signal(signal.SIGALRM, stop)
    try:
        with pytest.raises(KeyboardInterrupt):
            shell.run("alarm()\nwhile True:\n    df[df.country == 'UK'].amount.sum()")
    finally:
        signal.signal(signal.SIGALRM, listening)
    assert dict(vars(pd.Series)) == before
    facts = shell.run("df[df.country == 'UK'].amount.sum()")
    assert [fact.kind for fact in facts] == ["kept", "nothing"]


@pytest.mark.slow
def test_odd_data_do_not_raise_and_do_not_take_long() -> None:
    shell = LedgerShell()
    shell.run(
        "import numpy as np, pandas as pd\n"
        "class Odd:\n    def __repr__(self): raise ValueError\n    __hash__ = None\n"
        "odd = pd.DataFrame({'o': [Odd(), [1], {}, None, 'x'], ('a', 1): range(5)})\n"
        "wide = pd.Series([str(n) * 50 for n in range(200_000)], name='w' * 9_000)",
        keeps=False,
    )
    facts = shell.run(
        "odd[odd.o == 'y']; odd[odd.o == Odd]; odd[odd[('a', 1)] > 9]\n"
        "none = wide[wide == 'x' * 100_000]; none.sum()\nodd.groupby('o', dropna=False)\n"
        "odd[odd.o.astype(str).isin({'q'})] if False else None"
    )
    texts = [fact.condition for fact in facts]
    assert len(facts) >= 4
    assert max(map(len, texts)) <= 240
    assert np.all([fact.after == 0 for fact in facts if fact.kind == "kept"])
