"""What a figure shows, told in words by every kind of kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from kernel_sandbox.cells.figures import describe_figure
from kernel_sandbox.runners.pool import SandboxPool
from kernel_sandbox.runners.pool_settings import PoolSettings
from kernel_sandbox.runners.session import KernelSession
from kernel_sandbox.types import CellResult, Display, Limits

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

DRAW = (
    "import matplotlib.pyplot as plt\n"
    "plt.plot([1, 2, 3], [4.0, 9.0, 5.0], label='Seattle')\n"
    "plt.title('Rain')\n"
    "plt.show()"
)


@pytest.fixture
def axes() -> Any:
    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


def test_a_line_is_told_with_its_labels_and_extremes(axes: Any) -> None:
    axes.plot([1, 2, 3], [4.0, np.nan, 5.0], label="Seattle")
    axes.set(title="Rain", xlabel="month", ylabel="mm")
    text = describe_figure(axes.figure)
    assert text.startswith("Figure: 'Rain'; x 'month': ")
    assert "y 'mm': axis from 3.95 to 5.05;" in text
    assert "line 'Seattle' of 2 points: lowest 4 at 1, highest 5 at 3, 1 missing" in text


def test_bars_are_told_by_the_words_below_them(axes: Any) -> None:
    pd.DataFrame({"region": list("abc"), "n": [3, 1, 7]}).plot.bar(x="region", y="n", ax=axes)
    text = describe_figure(axes.figure)
    assert "3 ticks (a, b, c)" in text
    assert "bars 'n' of 3: lowest 1 at b, highest 7 at c" in text
    axes.set(ylim=(0, 53_300))
    assert "; y: axis from 0 to 53,300;" in describe_figure(axes.figure)
    axes.set_yticks([])  # nobody sees the axis
    axes.yaxis.set_major_formatter("")
    assert "axis from" not in describe_figure(axes.figure)


def test_flat_bars_and_the_days_of_a_series_are_told(axes: Any) -> None:
    axes.barh(["x", "y"], [2, 5])
    assert "bars of 2: lowest 2 at x, highest 5 at y" in describe_figure(axes.figure)
    axes.clear()
    days = pd.date_range("2020-01-01", periods=90)
    pd.Series(range(90), index=days).plot(ax=axes)
    assert "lowest 0 at 2020-01-01, highest 89 at 2020-03-30" in describe_figure(axes.figure)
    axes.clear()
    figure, dated = plt.subplots()
    dated.plot(days, range(90))
    assert "highest 89 at 2020-03-30" in describe_figure(figure)
    plt.close(figure)


def test_points_heat_maps_and_pies_are_told(axes: Any) -> None:
    axes.scatter([1, 2], [30, 4])
    assert "scatter of 2 points: lowest 4 at 2, highest 30 at 1" in describe_figure(axes.figure)
    axes.clear()
    axes.imshow(np.arange(6).reshape(2, 3))
    assert "heat map of 2 x 3: 0 to 5" in describe_figure(axes.figure)
    axes.clear()
    axes.pcolormesh(np.arange(6).reshape(2, 3))
    assert "heat map of 2 x 3: 0 to 5" in describe_figure(axes.figure)
    axes.clear()
    axes.pie([1, 3], labels=["north", "south"])
    assert "pie of 2: north 25.0 %, south 75.0 %" in describe_figure(axes.figure)


@pytest.mark.parametrize("is_flat", [False, True])
@pytest.mark.parametrize("has_patches", [False, True])
def test_boxes_are_told_by_name(axes: Any, *, is_flat: bool, has_patches: bool) -> None:
    axes.boxplot(
        [[1, 2, 3, 4, 5], [10, 20, 30, 40, 50, 999], [7]],
        tick_labels=["Adelie", "Gentoo", "3"],
        orientation="horizontal" if is_flat else "vertical",
        patch_artist=has_patches,
        showmeans=True,
    )
    assert describe_figure(axes.figure).split("; ")[-3:] == [
        "box 'Adelie': median 3, middle half 2 to 4, whiskers 1 to 5",
        "box 'Gentoo': median 35, middle half 22.5 to 47.5, whiskers 10 to 50, 1 point beyond",
        "box: median 7, middle half 7 to 7, whiskers 7 to 7",  # its number names nothing
    ]


def test_short_lines_are_no_boxes(axes: Any) -> None:
    axes.plot([1, 1], [2, 3])
    axes.plot([1, 1], [5, 6])
    axes.plot([0, 2], [4.5, 4.5])
    assert "box" in describe_figure(axes.figure)
    axes.lines[-1].set_ydata([9, 9])  # beyond what would be its middle half
    text = describe_figure(axes.figure)
    assert "box" not in text
    assert "line of 2 points: lowest 2 at 1, highest 3 at 1" in text


def test_an_empty_plot_says_why_it_is_empty(axes: Any) -> None:
    assert "nothing is drawn in it" in describe_figure(axes.figure)
    axes.plot([1, 2], [np.nan, np.nan], label="sales")
    assert "line 'sales': all 2 values are missing" in describe_figure(axes.figure)
    axes.clear()
    axes.plot([], [])
    assert "line: no point" in describe_figure(axes.figure)
    assert "nothing is drawn in it" in describe_figure(plt.figure())


def test_many_axes_and_long_words_stay_short() -> None:
    figure, many = plt.subplots(3, 3)
    figure.suptitle("w" * 5_000)
    for one in many.flat:
        for number in range(12):
            one.plot([1, 2], [number, 3], label="v" * 900)
    assert len(describe_figure(figure)) <= 1_200
    plt.close(figure)


def _words(result: CellResult) -> str:
    shown = [output for output in result.outputs if isinstance(output, Display)]
    assert "image/png" in shown[-1].data, result
    return str(shown[-1].data["text/plain"])


async def test_a_restricted_kernel_tells_its_figures() -> None:
    async with KernelSession(Limits()) as kernel:
        assert "line 'Seattle' of 3 points" in _words(await kernel.run(DRAW))


@pytest.mark.slow
async def test_a_forked_worker_tells_its_figures() -> None:
    async with SandboxPool(PoolSettings(), Limits()) as pool, pool.runner() as runner:
        assert "line 'Seattle' of 3 points" in _words(await runner.run(DRAW))


COLOURS = "import matplotlib\nprint(matplotlib.rcParams['axes.prop_cycle'].by_key()['color'][1])"


async def test_charts_have_colours_for_every_kind_of_sight_until_code_chooses_others() -> None:
    async with KernelSession(Limits()) as kernel:
        assert (await kernel.run(COLOURS)).stdout == "#E69F00\n"
        changed = await kernel.run(f"import matplotlib.style as s\ns.use('ggplot')\n{COLOURS}")
        assert changed.stdout == "#348ABD\n"
    async with SandboxPool(PoolSettings(), Limits()) as pool, pool.runner() as runner:
        assert (await runner.run(COLOURS)).stdout == "#E69F00\n"


@pytest.mark.slow
async def test_the_style_warns_of_nothing_and_bears_tight_layout() -> None:
    code = DRAW.replace("plt.show()", "plt.tight_layout()\nplt.show()")
    async with SandboxPool(PoolSettings(), Limits()) as pool, pool.runner() as runner:
        result = await runner.run(f"import warnings\nwarnings.simplefilter('error')\n{code}")
    assert result.ok, result


WARNS = (
    "import warnings, numpy as np\n"
    "warnings.warn('a plan of the library', DeprecationWarning)\n"
    "print(np.mean([]))"
)


@pytest.mark.slow
async def test_warnings_about_data_are_shown_and_those_about_a_librarys_plans_are_not() -> None:
    async with KernelSession() as session:
        result = await session.run(WARNS)
    async with SandboxPool(PoolSettings()) as pool, pool.runner() as runner:
        again = await runner.run(WARNS)
    for one in (result, again):
        text = str(one.outputs)
        assert one.ok
        assert "Mean of empty slice" in text
        assert "a plan of the library" not in text
