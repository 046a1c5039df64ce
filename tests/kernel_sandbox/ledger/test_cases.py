"""What the ledger notes of each operation of pandas that it sees."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from dm_jupyter.agent.sql_cell import runtime_source, sql_as_python
from kernel_sandbox.ledger.coverage import coverage_of
from tests.kernel_sandbox.ledger.ledger_shell import SET_UP, LedgerShell

NEAR = {"near": (("'GREAT BRITAIN'", 12),)}
OFTEN = {"frequent": (("'France'", 30), ("'GREAT BRITAIN'", 12), ("'Spain'", 6))}
DAYS = {"low": "2021-01-03", "high": "2024-11-13"}
AMOUNTS = {"low": "0.0", "high": "47.0"}
LOST = {"kind": "lost", "before": 3, "after": 1}
NOTHING = {"kind": "nothing", "before": 0}


def kept(condition: str, after: int, coverage: Any = None, **more: Any) -> dict[str, Any]:
    found = {"kind": "kept", "before": 48, "after": after, "condition": condition, **more}
    return {**found, "coverage": coverage} if coverage is not None else found


CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "equal, kept": ("df[df.country == 'Spain']", kept("country == 'Spain'", 6, ())),
    "equal, other case": (
        "df[df.country == 'Great Britain']",
        kept("country == 'Great Britain'", 0, (NEAR,)),
    ),
    "equal, misspelt": ("df[df['country'] == 'Great Britan']", kept(
        "country == 'Great Britan'", 0, (NEAR,))),
    "equal, part of it": ("df[df.country == 'Britain']", kept("country == 'Britain'", 0, (NEAR,))),
    "equal, nothing like it": (
        "df[df.country == 'xyzzy']",
        kept("country == 'xyzzy'", 0, (OFTEN,)),
    ),
    "equal, the method": ("df[df.country.eq('xyzzy')]", kept("country == 'xyzzy'", 0, (OFTEN,))),
    "unequal": ("df[df.units != 3]", kept("units != 3", 47)),
    "greater": ("df[df.amount > 900]", kept("amount > 900", 0, (AMOUNTS,))),
    "at least a day": ("df[df.day >= '2026-01-01']", kept("day >= '2026-01-01'", 0, (DAYS,))),
    "before a timestamp": (
        "df[df.day < pd.Timestamp('2020-01-01')]",
        kept("day < 2020-01-01", 0, (DAYS,)),
    ),
    "a year": (
        "df[df.day.dt.year == 2012]",
        kept("day == 2012", 0, ({"low": "2021", "high": "2024"},)),
    ),
    "at most": ("df[df.units <= 3]", kept("units <= 3", 4)),
    "text where numbers are": (
        "df[df.units == '7']",
        kept("units == '7'", 0, ({"low": "0", "high": "47", "dtype": "int64"},)),
    ),
    "a number where text is": (
        "df[df.country == 7]",
        kept("country == 7", 0, ({"dtype": "text"},)),
    ),
    "one of several": ("df[df.country.isin(['Spain', 'UK'])]", kept(
        "country in ['Spain', 'UK']", 6)),
    "one of several, none": (
        "df[df.country.isin(['Great-Britain', 'UK'])]",
        kept("country in ['Great-Britain', 'UK']", 0, (NEAR,)),
    ),
    "between": (
        "df[df.amount.between(100, 200)]",
        kept("amount between [100, 200]", 0, (AMOUNTS,)),
    ),
    "missing": ("df[df.store.isna()]", kept("store missing", 16)),
    "not missing": ("df[df.store.notnull()]", kept("store not missing", 32)),
    "contains": (
        "df[df.country.str.contains('Britain')]",
        kept("country contains 'Britain'", 0, (NEAR,)),
    ),
    "starts with": (
        "df[df.country.str.startswith('Fr')]",
        kept("country startswith 'Fr'", 30),
    ),
    "and, one part is empty": (
        "df[(df.country == 'France') & (df.amount > 100)]",
        kept("country == 'France' and amount > 100", 0, ({"rows": 30}, AMOUNTS)),
    ),
    "and, both parts have rows": (
        "df[(df.country == 'Spain') & (df.units < 10)]",
        kept("country == 'Spain' and units < 10", 0, ({"rows": 6}, {"rows": 10})),
    ),
    "or": (
        "df[(df.country == 'UK') | (df.units == 99)]",
        kept("country == 'UK' or units == 99", 0),
    ),
    "or, then and": (
        "df[((df.country == 'UK') | (df.units == 3)) & (df.amount < 9)]",
        kept("(country == 'UK' or units == 3) and amount < 9", 1),
    ),
    "a mask of objects": (
        "df['n'] = ['ax', None, 3] * 16\ndf[df.n.str.contains('zz') & (df.units > 3)]",
        kept("n contains 'zz' and units > 3", 0, ({"rows": 0}, {"rows": 44})),
    ),
    "xor": (
        "df[(df.units >= 0) ^ (df.amount >= 0)]",
        kept("units >= 0 xor amount >= 0", 0, ({"rows": 48}, {"rows": 48})),
    ),
    "and, in place": (
        "m = df.amount > 3\nm &= df.country == 'UK'\ndf[m]",
        kept("amount > 3 and country == 'UK'", 0, ({"rows": 44}, OFTEN)),
    ),
    "or, in place": (
        "m = df.country == 'UK'\nm |= df.country == 'Spain'\nm |= df.units == 3\ndf.loc[m]",
        kept("country == 'UK' or country == 'Spain' or units == 3", 7),
    ),
    "xor, in place": (
        "m = df.units >= 0\nm ^= df.units > 3\ndf[m]",
        kept("units >= 0 xor units > 3", 4),
    ),
    "a mask that was changed": ("m = df.country == 'Spain'\nm[45:] = False\ndf[m]", kept("", 3)),
    "a mask that was changed before it was joined": (
        "m = df.country == 'Spain'\nm[:] = False\nm &= df.units > 3\ndf[m]",
        kept("… and units > 3", 0, ({"rows": 44},)),
    ),
    "a mask that was changed before it was inverted": (
        "m = df.country == 'UK'\nm[:] = True\ndf[~m]", kept("", 0),
    ),
    "not": ("df[~(df.units >= 0)]", kept("not (units >= 0)", 0)),
    "a mask of unknown origin": ("df[np.arange(48) > 99]", kept("", 0)),
    "a list of truths": ("df[[True] + [False] * 47]", kept("", 1)),
    "a column's own mask": ("df.amount[df.amount > 40]", kept("amount > 40", 7)),
    "loc": ("df.loc[df.country == 'UK']", kept("country == 'UK'", 0, (OFTEN,))),
    "loc with columns": ("df.loc[df.units > 40, ['units']]", kept("units > 40", 7)),
    "loc with a slice of days": (
        "df.set_index('day').loc['2012-11':'2012-12']",
        kept("day within '2012-11' to '2012-12'", 0, (DAYS,)),
    ),
    "query": (
        "df.query('amount > 900 and units < 5')",
        kept("amount > 900 and units < 5", 0, (AMOUNTS, {"rows": 5})),
    ),
    "query with a quoted name": (
        "df.rename(columns={'country': 'the country'}).query('`the country` == \"Great Britain\"')",
        kept("`the country` == \"Great Britain\"", 0, (NEAR,)),
    ),
    "query with a name": ("least = 40\ndf.query('units > @least')", kept("units > @least", 7)),
    "dropna": ("df.dropna()", {"kind": "dropped", "before": 48, "after": 32}),
    "dropna of a column": (
        "df = df.dropna(subset=['store'])",
        {"kind": "dropped", "before": 48, "after": 32, "condition": "['store']"},
    ),
    "drop_duplicates": (
        "df[['country']].drop_duplicates()",
        {"kind": "dropped", "operation": "drop_duplicates", "before": 48, "after": 3},
    ),
    "drop": ("df.drop([0, 1])", {"kind": "dropped", "operation": "drop", "after": 46}),
    "groups without a key": (
        "df.groupby('store').amount.sum()",
        {"kind": "dropped", "operation": "groupby", "before": 48, "after": 32},
    ),
    "merge that loses rows": (
        "df.merge(pd.DataFrame({'country': ['France'], 'code': ['FR']}), on='country')",
        {"kind": "merged", "before": 48, "other": 1, "after": 30, "condition": "country (inner)"},
    ),
    "merge that multiplies rows": (
        "pd.merge(df, pd.DataFrame({'store': ['a', 'a', 'b']}))",
        {"kind": "merged", "before": 48, "other": 3, "after": 48, "condition": "store (inner)"},
    ),
    "merge without partners": (
        "df.merge(pd.DataFrame({'country': ['France'], 'rank': [1]}), how='left')",
        {"kind": "merged", "after": 48, "missed": 18, "condition": "country (left)"},
    ),
    "merge without partners, by a number": (
        "df.merge(pd.DataFrame({'units': range(4), 'rank': 1}), on='units', how='left')",
        {"kind": "merged", "after": 48, "missed": 44, "condition": "units (left)"},
    ),
    "merge without partners, by words alone": (
        "df.merge(pd.DataFrame({'units': range(4), 'name': list('wxyz')}), 'left')",
        {"kind": "merged", "after": 48, "missed": 44, "condition": "units (left)"},
    ),
    "merge with a column of both sides": (
        "right = pd.DataFrame({'k': range(48), 'store': 'c', 'amount': 1.0, 'rank': 1})\n"
        "df.merge(right, left_on='units', right_on='k', how='left', suffixes=('', '_r'))",
        {"kind": "merged", "after": 48, "missed": 0},
    ),
    "merge with nothing but a key and columns of both sides": (
        "right = pd.DataFrame({'k': range(4), 'amount': 1.0})\n"
        "df.merge(right, left_on='units', right_on='k', how='left')",
        {"kind": "merged", "after": 48, "missed": None},
    ),
    "merge with an index": (
        "right = pd.DataFrame({'units': range(4), 'rank': 1}).set_index('units', drop=False)\n"
        "df.merge(right.rename_axis(None), left_on='units', right_index=True, how='left')",
        {"kind": "merged", "after": 48, "missed": 44},
    ),
    "merge with a column": (
        "pd.merge(left=df, right=pd.Series([1], ['France'], name='rank'), left_on='country',"
        " right_index=True, how='left')",
        {"kind": "merged", "before": 48, "other": 1, "after": 48, "missed": 18},
    ),
    "merge that keeps the right side": (
        "df.merge(pd.DataFrame({'units': range(50), 'rank': 1}), on='units', how='right')",
        {"kind": "merged", "after": 50, "missed": 2, "condition": "units (right)"},
    ),
    "merge that keeps both sides": (
        "df.merge(pd.DataFrame({'units': range(40, 50), 'rank': 1}), on='units', how='outer')",
        {"kind": "merged", "after": 50, "missed": 42, "condition": "units (outer)"},
    ),
    "merge that keeps both sides, one without a column of its own": (
        "df[['units']].merge(pd.DataFrame({'units': range(9), 'rank': 1}), how='outer')",
        {"kind": "merged", "after": 48, "missed": None},
    ),
    "join without partners": (
        "df.join(pd.DataFrame({'rank': range(4)}))",
        {"kind": "merged", "operation": "join", "after": 48, "missed": 44},
    ),
    "merge_asof without partners": (
        "right = pd.DataFrame({'day': df.day[40:], 'units': 1, 'rate': 1})\n"
        "pd.merge_asof(df, right, on='day')",
        {"kind": "merged", "operation": "merge_asof", "after": 48, "missed": 40},
    ),
    "join": (
        "df.set_index('country').join(pd.DataFrame({'rank': [1]}, index=['France']), how='inner')",
        {"kind": "merged", "operation": "join", "before": 48, "after": 30},
    ),
    "merge_asof": (
        "pd.merge_asof(df, pd.DataFrame({'day': df.day[:2], 'rate': [1, 2]}), on='day')",
        {"kind": "merged", "operation": "merge_asof", "after": 48, "condition": "day"},
    ),
    "concat side by side": (
        "pd.concat([df.units, df.amount.set_axis(range(40, 88))], axis=1)",
        {"kind": "merged", "operation": "concat", "before": 48, "after": 88},
    ),
    "to_numeric": (
        "pd.to_numeric(pd.Series(['1', 'n/a', '2 EUR'], name='price'), errors='coerce')",
        {**LOST, "condition": "price", "result": "'n/a', '2 EUR'"},
    ),
    "to_numeric by apply": (
        "pd.DataFrame({'p': ['1', 'x', 'y']}).apply(pd.to_numeric, errors='coerce')",
        {**LOST, "condition": "p", "line": 1},
    ),
    "to_datetime": (
        "pd.to_datetime(pd.Series(['2020-01-01', 'soon', 'late']), errors='coerce')",
        {**LOST, "operation": "to_datetime"},
    ),
    "map": (
        "df.country.map({'France': 'FR', 'Spain': 'ES'})",
        {"kind": "lost", "operation": "map", "before": 48, "after": 36},
    ),
    "reindex": (
        "df.units.reindex([0, 1, 99])",
        {"kind": "lost", "operation": "reindex", "before": 3, "after": 2, "result": "99"},
    ),
    "merge without any partner": (
        "both = df.merge(pd.DataFrame({'country': ['Peru'], 'rank': [1]}))\nboth['rank'].sum()",
        {**NOTHING, "operation": "sum", "condition": "country (inner)"},
    ),
    "a label that a table of groups lacks": (
        "df.groupby('country').amount.sum().get('Great Britain', 0)",
        {"kind": "kept", "operation": "get", "before": 3, "after": 0,
         "condition": "country == 'Great Britain'", "coverage": ({"near": (
             ("'GREAT BRITAIN'", 1),)},)},
    ),
    "a pair of labels, each of them known": (
        "df.groupby(['country', 'store']).units.max().drop(('Spain', 'a')).get(('Spain', 'a'))",
        {"kind": "kept", "operation": "get", "condition": "country == 'Spain' and store == 'a'",
         "coverage": ({"rows": 1}, {"rows": 2})},
    ),
    "sum of no rows": (
        "df[df.country == 'UK']['amount'].sum()",
        {**NOTHING, "operation": "sum", "result": "0.0", "condition": "country == 'UK'"},
    ),
    "mean of no rows, by an attribute": (
        "df[df.country == 'UK'].amount.mean()",
        {**NOTHING, "operation": "mean", "result": "nan", "condition": "country == 'UK'"},
    ),
    "sum of missing values": (
        "pd.Series([np.nan] * 3, name='x').sum()",
        {"kind": "nothing", "before": 3, "after": 0, "result": "0.0", "condition": "x"},
    ),
    "means of a table with a column without values": (
        "df.assign(x=np.nan)[['units', 'x']].mean()",
        {"kind": "nothing", "before": 48, "after": 0, "result": "nan", "condition": "x"},
    ),
    "groups of no rows": (
        "df[df.units > 99].groupby('country').amount.sum()",
        {**NOTHING, "operation": "groupby", "condition": "units > 99"},
    ),
    "counting a mask": (
        "(df.country == 'Great Britain').sum()",
        kept("country == 'Great Britain'", 0, (NEAR,), operation="sum"),
    ),
    "counting a mask that all rows meet": (
        "(df.units > -10).sum()",
        kept("units > -10", 48, (), operation="sum"),
    ),
    "a table without rows is shown": (
        "df[df.units > 99]",
        {"kind": "shown", "operation": "display", "condition": "units > 99"},
    ),
    "a table of missing values is shown": (
        "pd.DataFrame({'total': [None]})",
        {"kind": "shown", "before": 1, "after": 0, "condition": "total"},
    ),
    "a table without rows is saved": (
        "import io\ndf[df.units > 99].to_csv(io.StringIO())",
        {"kind": "shown", "operation": "to_csv"},
    ),
    "a file is read": (
        "df.to_csv('a.csv')\npd.read_csv('a.csv')",
        {"kind": "read", "operation": "read_csv", "before": None, "after": 48,
         "condition": "a.csv"},
    ),
    "a file of another kind is read by a path": (
        "from pathlib import Path\ndf[['units']].to_json('a.json')\npd.read_json(Path('a.json'))",
        {"kind": "read", "operation": "read_json", "after": 48, "condition": "a.json"},
    ),
    "a table is saved": (
        "df.head(7).to_csv('b.csv', index=False)",
        {"kind": "saved", "operation": "to_csv", "after": 7, "condition": "b.csv", "line": 1},
    ),
    "a table is saved with a writer": (
        "with pd.ExcelWriter('b.xlsx') as w:\n    df.to_excel(w)",
        {"kind": "saved", "operation": "to_excel", "after": 48, "condition": "b.xlsx"},
    ),
    "gaps of a column are filled": (
        "df['store'] = df.store.fillna('c')",
        {"kind": "filled", "operation": "fillna", "before": 16, "after": 0, "condition": "store"},
    ),
    "gaps of a table are filled in place": (
        "df.fillna({'store': 'c'}, inplace=True)",
        {"kind": "filled", "operation": "fillna", "before": 16, "after": 0, "condition": "store"},
    ),
    "gaps are filled from the row before": (
        "df.ffill()", {"kind": "filled", "operation": "ffill", "before": 16, "condition": "store"},
    ),
    "a query of a database": (
        "import sqlite3\nc = sqlite3.connect(':memory:')\ndf.to_sql('t', c)\n"
        "pd.read_sql('SELECT * FROM t WHERE units > 99', c)",
        {"kind": "kept", "operation": "read_sql", "after": 0},
    ),
    "in a function of the cell": (
        "def total(name):\n    return df[df.country == name].amount.sum()\ntotal('UK')",
        {**NOTHING, "operation": "sum", "line": 2},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("source", "expected"), CASES.values(), ids=CASES)
def test_an_operation_is_noted(
    source: str, expected: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shell = LedgerShell()
    shell.run(SET_UP, keeps=False)
    facts = [asdict(fact) for fact in shell.run(source)]
    assert any(_fits(expected, fact) for fact in facts), facts


def _fits(expected: Any, found: Any) -> bool:
    if isinstance(expected, dict):
        return all(_fits(value, found[name]) for name, value in expected.items())
    if isinstance(expected, tuple) and expected and isinstance(expected[0], dict):
        return len(expected) == len(found) and all(map(_fits, expected, found))
    return bool(expected == found)


@pytest.mark.parametrize(
    "source",
    [
        "df.head(); df.sort_values('units'); df.describe(); df.amount.sum(); len(df)",
        "df['units']; df[['units', 'amount']]; df.loc[3]; df.loc[:, 'units']; df.units[3]",
        "pd.to_numeric(df.units, errors='coerce'); pd.to_datetime(['2020-01-01'])",
        "df.dropna(subset=['amount']); df.drop(columns='store'); df.units.drop_duplicates()",
        "df.groupby('country').agg({'amount': 'sum'}); df.pivot_table('units', 'country')",
        "(df.units > 3).sum(); df.units.isna().sum(); df.isna().sum()",
        "m = df.country == 'UK'; m |= df.country == 'France'; m.sum()",
        "m = df.country == 'UK'; m[3:] = True; m.sum(); m.loc[9:] = False; m.any()",
        "n = df.units + 0; n &= 3; n |= 4; n ^= 1; n.sum()",
        "pd.concat([df, df]); df.units.map(lambda x: x + 1)",
        "df.units.get(3); df.units.get([1, 2]); df.country.value_counts().get('Spain', 0)",
        "import io; df.to_csv(io.StringIO()); df.to_csv(); df.amount.fillna(0); df.units.bfill()",
        "import io; pd.read_csv(io.StringIO('a,b\\n1,2'))",
    ],
)
def test_what_changes_no_rows_is_no_fact(source: str) -> None:
    shell = LedgerShell()
    shell.run(SET_UP, keeps=False)
    assert shell.run(source) == ()


def test_what_libraries_do_is_no_fact() -> None:
    shell = LedgerShell()
    shell.run(SET_UP, keeps=False)
    library = {"__name__": "library"}
    exec("def select(df):\n    return df[df.units > 99].amount.sum()", library)
    shell.user_ns["select"] = library["select"]
    assert shell.run("select(df)") == ()


@pytest.mark.slow
def test_a_loop_is_told_in_a_few_facts() -> None:
    shell = LedgerShell()
    shell.run(SET_UP, keeps=False)
    facts = shell.run("for n in range(5_000):\n    df[df.units == n]\n    df[df.units > 40]")
    assert len(facts) < 30
    assert any(fact.condition == "units > 40" and fact.times > 100 for fact in facts)


def test_the_origin_of_a_table_without_rows_is_known_in_the_next_cell() -> None:
    shell = LedgerShell()
    shell.run(SET_UP, keeps=False)
    shell.run("none = df[df.country == 'UK']")
    (fact,) = shell.run("total = none['amount'].sum()")
    assert (fact.kind, fact.condition, fact.result) == ("nothing", "country == 'UK'", "0.0")


def test_a_sql_cell_of_the_analyst_without_rows_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("shop.db")) as connection:
        connection.execute("CREATE TABLE sales (country TEXT, total REAL)")
        connection.execute("INSERT INTO sales VALUES ('GREAT BRITAIN', 12.0)")
        connection.commit()
    shell = LedgerShell()
    shell.run(runtime_source(), keeps=False)
    query = "SELECT * FROM sales WHERE country = 'Great Britain'"
    facts = shell.run(sql_as_python(query, ("shop.db",), 1))
    assert [(fact.kind, fact.operation) for fact in facts] == [
        ("kept", "read_sql"),
        ("shown", "to_csv"),
        ("saved", "to_csv"),
        ("shown", "display"),
    ]
    query = "SELECT SUM(total) FROM sales WHERE country = 'Great Britain'"
    facts = shell.run(sql_as_python(query, ("shop.db",), 2))
    assert [(fact.kind, fact.condition) for fact in facts] == [
        ("kept", query),
        ("saved", "result_2.csv"),
        ("shown", "SUM(total)"),
    ]
    assert facts[0].coverage[0].near == (("'GREAT BRITAIN'", 1),)


def test_a_month_written_with_other_signs_comes_before_what_only_looks_like_it() -> None:
    pd = pytest.importorskip("pandas")
    days = pd.Series(pd.date_range("2012-01-01", "2013-12-31").strftime("%Y/%m/%d"), name="date")
    found = coverage_of(days, "2012-08", "date contains '2012-08'")
    assert [value[:9] for value, _ in found.near] == ["'2012/08/"] * 3
