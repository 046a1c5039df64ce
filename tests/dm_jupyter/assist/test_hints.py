import pandas as pd
import pytest

from dm_jupyter.assist.hints import hint_for
from dm_jupyter.core.schema import DatabaseTable, LoadedTable
from dm_jupyter.core.trajectory import DataContext
from kernel_sandbox.types import CellError, CellResult, CellStatus
from tests.fakes import printed, raised

BRIEF = DataContext(columns=("Fare Paid", "PassengerId", "Age", "Sex"))
CODE = "df.mean()"


def words_of(result: CellResult, source: str, data_context: DataContext) -> str:
    """What the hint says; nothing where there is none."""
    found = hint_for(result, source, data_context)
    assert found is None or (found.rule, found.edit) == ("hints", None)
    return "" if found is None else found.suggestion


def test_a_key_error_names_the_nearest_columns() -> None:
    assert "'Fare Paid'" in words_of(raised("KeyError", "'fare_paid'"), CODE, BRIEF)


def test_an_attribute_error_names_the_nearest_column() -> None:
    error = raised("AttributeError", "'DataFrame' object has no attribute 'age'")
    assert words_of(error, CODE, BRIEF) == "Columns with a similar name: 'Age'."


def test_a_key_error_without_a_near_name_lists_the_columns() -> None:
    assert "'PassengerId'" in words_of(raised("KeyError", "'zzz'"), CODE, BRIEF)


def test_a_row_looked_up_by_a_value_is_told_how_to_choose_it() -> None:
    trace = (
        "File range.py:545, in get_loc(self, key)",
        "\x1b[32m--> \x1b[39m545 return self._range.index(new_key)",
        "Cell In[1], line 2",
        "      1 df = load()",
        "\x1b[32m----> \x1b[39m2 value = df.\x1b[34mloc\x1b[39m[2009, 'Fare Paid']",
    )
    hint = words_of(
        CellResult(CellStatus.ERROR, (CellError("KeyError", "2009", trace),)), CODE, BRIEF
    )
    assert "df.loc[df[column] == 2009, other_column]" in hint
    other = (*trace[:-1], "----> 2 value = df[2009]")
    hint = words_of(
        CellResult(CellStatus.ERROR, (CellError("KeyError", "2009", other),)), CODE, BRIEF
    )
    assert "'PassengerId'" in hint


def _looked_up(line: str, key: str, text: str = "") -> str:
    return _hint_of(line, key, DataContext(text=text, columns=BRIEF.columns))


def _hint_of(line: str, key: str, data_context: DataContext) -> str:
    trace = ("Cell In[1], line 2", f"----> 2 {line}")
    error = CellError("KeyError", key, trace)
    return words_of(CellResult(CellStatus.ERROR, (error,)), CODE, data_context)


@pytest.mark.parametrize(
    ("line", "key", "told"),
    [
        ("p = round(fit.params[1], 2)", "1", "fit.params.iloc[1]"),
        ("top = df['a'].value_counts(); first = top[0]", "0", "top.iloc[0]"),
        ("last = table.mean()[-1]", "-1", "table.mean().iloc[-1]"),
    ],
)
def test_a_place_that_was_taken_for_a_name_is_told(line: str, key: str, told: str) -> None:
    hint = _looked_up(line, key)
    assert hint.endswith(f"the one at that place is {told}.")
    assert "PassengerId" not in hint


def test_what_a_place_hint_advises_does_it() -> None:
    params = pd.Series({"const": 1.0, "Age": 2.5})
    with pytest.raises(KeyError) as raised_:
        params[1]
    assert str(raised_.value) == "1"
    assert params.iloc[1] == 2.5


@pytest.mark.parametrize("line", ["x = df[1]", "x = df.loc[1]", "x = sales[1]", "x = f(1)"])
def test_a_column_of_a_table_is_no_place(line: str) -> None:
    frames = (LoadedTable("sales", "", BRIEF.columns),)
    hint = _hint_of(line, "1", DataContext(columns=BRIEF.columns, frames=frames))
    assert "the one at that place" not in hint


def test_a_value_is_looked_for_in_the_profile() -> None:
    profile = "Columns:\n- 'year': str, 3 distinct: 'bern', 'basel', …\n- '2008': int64, 1 … 9"
    hint = _looked_up("x = df.loc['bern', '2008']", "'bern'", profile)
    assert "Write df.loc[df['year'] == 'bern', '2008'].iloc[0] in place of" in hint
    hint = _looked_up("x = df.loc['rome', '2008']", "'rome'", profile)
    assert "df[df" not in hint
    assert "df['year'] == 'rome'" in hint
    assert "df[column] == 9" in _looked_up("x = df.loc[9]", "9", "- 'a': int, 9\n- 'b': int, 9")
    assert "df[column] == 1" in _looked_up("x = df.loc[1]", "1", "- 'a': int, 11 … 31")


def test_a_row_looked_up_by_a_variable_is_told_the_code_for_it() -> None:
    profile = "a.csv\n- 'island': str, 3 distinct: 'Biscoe', …\n\nb.csv\n- 'island': str: 'Biscoe'"
    hint = _looked_up("top = islands.loc[best, 'latitude']", "'Biscoe'", profile)
    assert "Write islands.loc[islands['island'] == best, 'latitude'].iloc[0] in place of" in hint
    assert hint.endswith("in place of islands.loc[best, 'latitude'].")
    two = profile.replace("b.csv\n- 'island'", "b.csv\n- 'where'")
    assert "df[column]" in _looked_up("top = islands.loc[best, 'latitude']", "'Biscoe'", two)


def test_a_column_in_a_row_lookup_is_no_label() -> None:
    hint = _looked_up("x = df.loc[df['town'] == 'bern', 'Age']", "'town'")
    assert hint.startswith("The file's columns are: 'Fare Paid'")


def test_a_column_that_the_cell_dropped() -> None:
    hint = _looked_up("df['Age'] = df['Age'].astype(float)", "'Age'")
    assert hint.startswith("'Age' is a column of the file, but not of this table: the lines before")


@pytest.mark.parametrize(
    ("source", "is_pattern"),
    [
        (r"df.a = df.a.str.replace(r'\D', '').astype(float)", True),
        ("df.a = df.a.str.replace('[$,]', '').astype(float)", True),
        (r"df.a = df.a.str.replace(r'\D', '', regex=True).astype(float)", False),
        ("df.a = df.a.str.replace(',', '').astype(float)", False),
        ("df.a = df.a.str.replace('$', '').astype(float)", False),
    ],
)
def test_a_pattern_that_was_taken_for_text(source: str, is_pattern: bool) -> None:
    error = raised("ValueError", "could not convert string to float: '+ 17'")
    assert ("regex=True" in words_of(error, source, BRIEF)) is is_pattern


def test_an_index_that_was_turned_round() -> None:
    key = "None of [Index([-1, -2], dtype='int64')] are in the [index]"
    assert "not an index" in _looked_up("other = df.loc[~rows, 'Age'].mean()", key)
    assert "No row has the label" not in _looked_up("other = df.loc[rows, 'Age'].mean()", key)


def test_several_missing_columns() -> None:
    error = raised("KeyError", "\"['fare', 'sexx'] not in index\"")
    hint = words_of(error, CODE, BRIEF)
    assert "'Sex'" in hint
    assert "'Fare Paid'" in hint


@pytest.mark.parametrize(
    ("name", "message", "expected"),
    [
        ("ValueError", "could not convert string to float: '$5'", "pd.to_numeric"),
        ("ValueError", "could not convert string to float: '4,382'", "numbers with a comma"),
        ("ValueError", "could not convert string to float: '37 min'", 'removesuffix("min")'),
        ("ValueError", 'Unable to parse string "0.6h" at position 3', 'removesuffix("h")'),
        ("ValueError", "could not convert string to float: '5M'", "pd.to_numeric"),
        ("OperationalError", "no such function: STDDEV", "SQLite has no STDDEV()"),
        ("TypeError", "agg function failed [how->mean,dtype->object]", "numeric_only"),
        ("ValueError", "Input contains NaN", "dropna"),
        ("ValueError", "The truth value of a Series is ambiguous.", "parentheses"),
        (
            "AttributeError",
            "'numpy.dtypes.ObjectDType' object has no attribute 'dtype'",
            "two columns of numbers",
        ),
        ("ModuleNotFoundError", "No module named 'polars'", "not installed"),
        ("NameError", "name 'np' is not defined", "whole cell"),
        ("OperationalError", "no such column: Nme", "spelled exactly"),
        (
            "TypeError",
            "got an unexpected keyword argument 'class_weight'",
            "Leave class_weight out",
        ),
        ("ValueError", "Array shapes are incompatible for broadcasting.", "sm.OLS"),
        ("AttributeError", "'LinregressResult' object has no attribute 'pvalues'", "fit.pvalues"),
        ("AttributeError", "'float' object has no attribute 'round'", "round(value, 2)"),
        ("AttributeError", "'float' object has no attribute 'split'", ".str methods"),
        (
            "ValueError",
            "Classification metrics can't handle a mix of binary and continuous targets",
            "of a classifier",
        ),
        ("SyntaxError", "incomplete input (1.py, line 20)", "a shorter cell"),
        ("TypeError", 'can only concatenate str (not "int") to str', "wrap the number in str()"),
        ("TypeError", "unhashable type: 'list'", "use a tuple"),
        (
            "OutOfBoundsDatetime",
            "Out of bounds nanosecond timestamp: 9999-01-01, at position 0",
            "pd.to_datetime",
        ),
    ],
)
def test_typed_hints(name: str, message: str, expected: str) -> None:
    assert expected in words_of(raised(name, message), CODE, BRIEF)


def test_the_code_for_a_unit_reads_one_unit_and_no_other() -> None:
    error = raised("ValueError", "could not convert string to float: '37 min'")
    code = words_of(error, CODE, BRIEF).rpartition(": ")[2].rstrip(".")
    assert [*eval(code, {"column": pd.Series(["37 min", "5.5 min"])})] == [37.0, 5.5]
    for other in ("0.6 h", "1.234,50 min"):
        with pytest.raises(ValueError, match="could not convert"):
            eval(code, {"column": pd.Series(["37 min", other])})


def test_an_argument_of_another_function() -> None:
    error = raised("TypeError", "got an unexpected keyword argument 'class_weight'")
    assert "LogisticRegression(class_weight='balanced')" in words_of(error, CODE, BRIEF)


def test_text_given_to_a_model() -> None:
    trace = ("Cell In[1], line 9", "----> 9 model.fit(X_train, y_train)")
    error = CellError("ValueError", "could not convert string to float: 'male'", trace)
    assert "pd.get_dummies" in words_of(CellResult(CellStatus.ERROR, (error,)), CODE, BRIEF)


def test_an_unknown_sql_column_is_looked_for_in_the_tables() -> None:
    data_context = DataContext(tables=(DatabaseTable("invoices", ("Total", "BillingCountry")),))
    hint = words_of(raised("OperationalError", "no such column: Country"), "SELECT 1", data_context)
    assert hint == "Columns with a similar name: BillingCountry of invoices."


def test_no_hint_for_an_unknown_error_or_none() -> None:
    assert words_of(raised("ZeroDivisionError", "division by zero"), CODE, BRIEF) == ""
    outside = raised("IndexError", "index 5 is out of bounds for axis 0 with size 3")
    assert words_of(outside, CODE, BRIEF) == ""
    assert words_of(printed("fine"), CODE, BRIEF) == ""


SHOPS = LoadedTable("shops", "shops = load()", ("Region", "Turnover"))
PEOPLE = LoadedTable("people", "people = load()", ("Name", "Regional Pay"))


def _keyless(line: str, key: str) -> str:
    trace = (f"Cell In[1], line 1\n----> 1 {line}", f"KeyError: {key}")
    error = CellError("KeyError", key, trace)
    data_context = DataContext(columns=(*SHOPS.columns, *PEOPLE.columns), frames=(SHOPS, PEOPLE))
    return words_of(CellResult(CellStatus.ERROR, (error,)), line, data_context)


def test_only_the_columns_of_the_tables_in_the_line_are_named() -> None:
    assert _keyless("shops['region']", "'region'") == "Columns with a similar name: 'Region'."
    told = _keyless("shops['zzz']", "'zzz'")
    assert told == "The file's columns are: 'Region', 'Turnover'."
    joined = _keyless("shops.merge(people, on='region')", "'region'")
    assert joined == "Columns with a similar name: 'Region', 'Regional Pay'."
    assert "'Name'" in _keyless("frame['zzz']", "'zzz'")


ORDERS = LoadedTable("orders", "orders = pd.read_csv('o.csv')", ("order", "customer", "total"))
BUYERS = LoadedTable("buyers", "buyers = pd.read_csv('p.csv')", ("customer", "zip"))
DAYS = LoadedTable("days", "days = pd.read_csv('d.csv')", ("date", "rain"))


@pytest.mark.parametrize(
    ("line", "frames", "told"),
    [
        (
            "m = pd.merge(orders, buyers, on=['order', 'customer'])",
            (ORDERS, BUYERS),
            "buyers has no column 'order'. Both tables have 'customer': join on that.",
        ),
        (
            "m = orders.merge(days, on='order')",
            (ORDERS, DAYS, BUYERS),
            "days has no column 'order'. They have no column in common: orders has 'order', ",
        ),
        (
            "m = buyers.merge(days, on='order')",
            (ORDERS, DAYS, BUYERS),
            "buyers and days have no column 'order'. They have no column in common",
        ),
    ],
)
def test_a_join_by_a_column_that_one_table_lacks(
    line: str, frames: tuple[LoadedTable, ...], told: str
) -> None:
    data_context = DataContext(
        "", columns=("order", "customer", "total", "zip", "date"), frames=frames
    )
    assert _hint_of(line, "'order'", data_context).startswith(told)


def test_a_join_of_other_tables_says_nothing_of_the_loaded_ones() -> None:
    data_context = DataContext("", columns=("order",), frames=(ORDERS, BUYERS))
    for line in ("m = orders.merge(other, on='order')", "m = orders['order']"):
        assert "no column 'order'. " not in _hint_of(line, "'order'", data_context)
