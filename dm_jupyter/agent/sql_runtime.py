"""Read-only queries on SQLite files. The source goes into notebooks, so it needs only pandas."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pandas as pd


def run_sql(
    database: str,
    query: str,
    save_as: str,
    max_rows: int = 1_000_000,
    max_seconds: float = 60.0,
) -> pd.DataFrame:
    """Run one SELECT read-only, save its entire result as csv and return it as a DataFrame.

    Raises:
        sqlite3.Error: the query is wrong, would write, or runs longer than `max_seconds`.
    """
    reading = {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    }
    deadline = time.monotonic() + max_seconds
    address = Path(database).resolve().as_uri() + "?mode=ro"
    with closing(sqlite3.connect(address, uri=True)) as connection:
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        connection.set_authorizer(
            lambda action, first, second, *_: (
                sqlite3.SQLITE_OK
                if action in reading and "load_extension" not in (first, second)
                else sqlite3.SQLITE_DENY
            )
        )
        connection.set_progress_handler(lambda: time.monotonic() > deadline, 100_000)
        cursor = connection.execute(query)
        rows = cursor.fetchmany(max_rows + 1)
        names = [column[0] for column in cursor.description or ()]
    result = pd.DataFrame(rows[:max_rows], columns=names)
    result.attrs["query"] = (database, query)
    result.to_csv(save_as, index=False)
    more = f", cut at {max_rows} rows" if len(rows) > max_rows else ""
    print(f"{len(result)} rows x {len(names)} columns{more}, saved as {save_as}")
    return result
