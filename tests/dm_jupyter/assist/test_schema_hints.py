import pytest

from dm_jupyter.assist.schema_hints import schema_hint
from dm_jupyter.core.codec import decode_value, encode_value
from dm_jupyter.core.schema import DatabaseTable, Join, Link, join_path


def _link(table: str, own: str, other: str) -> tuple[Link]:
    return (Link(table, ((own, other),)),)


MAKERS = DatabaseTable("makers", ("id", "maker", "country"), _link("länder", "country", "id"))
MODELS = DatabaseTable("models", ("id", "maker", "model"), _link("makers", "maker", "id"))
NAMES = DatabaseTable("names", ("make_id", "model"), _link("models", "model", "model"))
DATA = DatabaseTable("data", ("id", "weight", "top speed"), _link("names", "id", "make_id"))
COUNTRIES = DatabaseTable("länder", ("id", "name"))
ALONE = DatabaseTable("alone", ("moon",))
TABLES = (MAKERS, MODELS, NAMES, DATA, COUNTRIES, ALONE)


def test_a_path_follows_keys_in_both_directions() -> None:
    assert join_path(TABLES, "models", "data") == (
        Join("names", (("names", "model", "models", "model"),)),
        Join("data", (("data", "id", "names", "make_id"),)),
    )
    assert join_path(TABLES, "models", "alone") == ()
    assert join_path(TABLES, "models", "models") == ()


def test_a_table_goes_through_json() -> None:
    assert [decode_value(DatabaseTable, encode_value(table), "table") for table in TABLES] == list(
        TABLES
    )


@pytest.mark.parametrize(
    ("message", "query", "hint"),
    [
        (
            "no such column: weight",
            "SELECT model FROM models WHERE weight > 3",
            "weight is a column of data: models JOIN names ON names.model = models.model "
            "JOIN data ON data.id = names.make_id.",
        ),
        (
            "no such column: d.model",
            "SELECT m.model FROM models AS m JOIN data d ON m.id = d.model",
            'data has only the columns id, weight, "top speed". model is a column of models, '
            "names: data JOIN names ON data.id = names.make_id.",
        ),
        (
            "no such column: modells.model",
            "SELECT modells.model FROM models",
            "The query calls no table modells; it reads models. model is a column of models, "
            "names: models JOIN names ON names.model = models.model.",
        ),
        (
            "no such column: COUNTRY",
            'SELECT name FROM "länder" WHERE COUNTRY = 1',
            'COUNTRY is a column of makers: "länder" JOIN makers ON makers.country = "länder".id.',
        ),
        ("no such column: moon", "SELECT moon FROM data", "moon is a column of alone."),
        ("no such column: moon", "a cell without a query", "moon is a column of alone."),
        (
            "no such column: topspeed",
            "SELECT topspeed FROM data",
            'Columns with a similar name: "top speed" of data.',
        ),
        (
            'no such column: "wait" - should this be a string literal in single-quotes?',
            'SELECT "wait" FROM data',
            "Columns with a similar name: weight of data.",
        ),
        (
            "ambiguous column name: model",
            "SELECT model, name FROM models m JOIN names ON m.model = names.model",
            "model stands in 2 of the tables in the query. Put the table before it each time: "
            "m.model or names.model.",
        ),
        (
            "ambiguous column name: main.ID",
            'SELECT main.ID FROM data, "länder"',
            "ID stands in 2 of the tables in the query. Put the table before it each time: "
            'data.ID or "länder".ID.',
        ),
        ("ambiguous column name: model", "SELECT model FROM models JOIN models", ""),
        ("no such table: model", "SELECT 1 FROM model", "Tables with a similar name: models."),
        ("no such table: main.xyz", "SELECT 1 FROM xyz", ""),
        ("no such column: zzzzzz", "SELECT zzzzzz FROM data", ""),
        ("near SELECT: syntax error", "SELECT SELECT", ""),
    ],
)
def test_where_a_name_is_to_be_found(message: str, query: str, hint: str) -> None:
    assert schema_hint(message, query, TABLES) == hint


def test_without_a_schema_nothing_is_said() -> None:
    assert schema_hint("no such column: weight", "SELECT weight FROM data", ()) == ""


CUSTOMERS = DatabaseTable("customers", ("CustomerId", "Country"))
INVOICES = DatabaseTable(
    "invoices", ("InvoiceId", "CustomerId", "Total"), _link("customers", "CustomerId", "CustomerId")
)
ITEMS = DatabaseTable(
    "invoice_items",
    ("InvoiceId", "TrackId", "UnitPrice"),
    (
        *_link("invoices", "InvoiceId", "InvoiceId"),
        *_link("tracks", "TrackId", "TrackId"),
    ),
)
TRACKS = DatabaseTable("tracks", ("TrackId", "GenreId"), _link("genres", "GenreId", "GenreId"))
GENRES = DatabaseTable("genres", ("GenreId", "Genre"))
SHOP = (CUSTOMERS, INVOICES, ITEMS, TRACKS, GENRES)


@pytest.mark.parametrize(
    ("column", "query"),
    [
        ("Total", "SELECT Genre, SUM(Total) FROM genres GROUP BY 1"),
        ("Genre", "SELECT Genre, SUM(Total) FROM invoices GROUP BY 1"),
        ("TrackId", "SELECT TrackId, AVG(i.Total) FROM invoices i GROUP BY 1"),
        ("Total", "SELECT sum(Total) FROM invoice_items"),
    ],
)
def test_a_join_that_would_count_amounts_twice_is_not_advised(column: str, query: str) -> None:
    told = schema_hint(f"no such column: {column}", query, SHOP)
    assert " ON " not in told
    assert "repeats each row of invoices" in told
    assert "a row of invoice_items holds" in told


@pytest.mark.parametrize(
    ("column", "query"),
    [
        ("Country", "SELECT Country, SUM(Total) FROM invoices GROUP BY 1"),
        ("Genre", "SELECT Genre, SUM(UnitPrice) FROM invoice_items GROUP BY 1"),
        ("Genre", "SELECT Genre, COUNT(*) FROM invoice_items GROUP BY 1"),
        ("UnitPrice", "SELECT Country, SUM(UnitPrice) FROM customers GROUP BY 1"),
        ("Genre", "SELECT MAX(Total) FROM invoices WHERE Genre = 'Jazz'"),
    ],
)
def test_a_join_that_counts_each_amount_once_is_advised(column: str, query: str) -> None:
    told = schema_hint(f"no such column: {column}", query, SHOP)
    assert " ON " in told
    assert "repeats" not in told


def test_similar_names_of_the_tables_in_the_query_come_first() -> None:
    told = schema_hint("no such column: Genres", "SELECT Genres FROM genres", SHOP)
    assert told == "Columns with a similar name: Genre of genres, GenreId of genres."
    told = schema_hint("no such column: Countries", "SELECT Countries FROM genres", SHOP)
    assert told.startswith("Columns with a similar name: Country of customers")
