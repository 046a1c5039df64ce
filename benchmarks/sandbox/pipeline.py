"""A plain analysis in six cells, and its file: 178,000 rows, 10 MB, the same each time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from kernel_sandbox.types import CellResult

__all__ = ["CELLS", "NAME", "ROWS", "checked", "csv_file"]

NAME = "sales.csv"
ROWS = 178_000
CELLS = (
    f"import pandas as pd\ndf = pd.read_csv('{NAME}', parse_dates=['when'])\nprint(df.shape)",
    "df = df.drop_duplicates().dropna(subset=['price'])\n"
    "df['product'] = df['product'].str.strip().str.lower()\n"
    "df['revenue'] = df['price'] * df['quantity']\nprint(len(df))",
    "by_store = df.groupby(['store', 'product'])['revenue'].agg(['sum', 'mean', 'count'])\n"
    "print(by_store.sort_values('sum').tail(3))",
    "stores = pd.DataFrame({'store': range(40), 'region': [s % 5 for s in range(40)]})\n"
    "df = df.merge(stores, on='store')\nprint(df.groupby('region')['revenue'].sum())",
    "from sklearn.linear_model import LinearRegression\n"
    "features = df[['quantity', 'price', 'region']]\n"
    "model = LinearRegression().fit(features, df['revenue'])\n"
    "print(round(model.score(features, df['revenue']), 6))",
    "daily = df.set_index('when')['revenue'].resample('D').sum()\n"
    "print(daily.rolling(7).mean().describe().round(3))",
)
"""Read, clean, group, merge, regress, resample."""
_PRODUCTS = ("Apple juice", " pear cider ", "Plum jam", "quince jelly ", "Cherry Cake")


@contextmanager
def csv_file(rows: int = ROWS) -> Iterator[Path]:
    """Create the file in a separate folder, which is removed at the end."""
    with TemporaryDirectory(prefix="dm-bench-") as folder:
        path = Path(folder) / NAME
        with path.open("w", encoding="utf-8") as stream:
            stream.write("id,when,store,product,quantity,price,note\n")
            stream.writelines(map(_line, range(rows)))
        yield path


def _line(i: int) -> str:
    price = "" if i % 97 == 0 else f"{i * 7919 % 9000 / 100 + 1:.2f}"
    return (
        f"{i},2024-{1 + i % 12:02d}-{1 + i % 28:02d} {i % 24:02d}:00,{i * 31 % 40},"
        f"{_PRODUCTS[i * 17 % 5]},{1 + i * 13 % 9},{price},order {i % 1000}\n"
    )


def checked(result: CellResult) -> CellResult:
    """Return the result of a successful cell; a failed one is fast and would distort the figures.

    Raises:
        RuntimeError: the cell failed.
    """
    if not result.ok:
        raise RuntimeError(f"a cell ended with {result.status}: {result.message} {result.error}")
    return result
