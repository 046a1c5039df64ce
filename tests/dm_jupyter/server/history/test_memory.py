"""What a follow-up is told: the code and figures before it, and what has changed since."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dm_jupyter.server.history.memory import Memory, before
from dm_jupyter.server.history.summaries import Summary
from tests.dm_jupyter.server.jupyter import JupyterServer, Panel
from tests.endpoint import ScriptedEndpoint

DRAW = (
    "import matplotlib.pyplot as plt\n"
    "plt.plot([1, 2, 3], [4, 9, 5], label='north')\n"
    "plt.title('Sales by month')\n"
    "plt.show()\n"
    "total = 18\n"
    "print(total)\n```"
)
CODE = DRAW.removesuffix("\n```")


@pytest.fixture(params=["dm-sandbox", pytest.param("python3", marks=pytest.mark.slow)])
def kernel(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def _ask(panel: Panel, path: str, question: str, **fields: Any) -> dict[str, str]:
    """Asks, waits for the end, and returns what the model was told, by the kind of the part."""
    await panel.ask(path, question, kernel="own", **fields)
    parts = (await panel.until("context_told"))["parts"]
    while (message := await panel.until(_waits_or_closed))["kind"] == "cell_opened":
        await panel.say(
            "decide", run_id=message["run_id"], cell_id=message["cell_id"], decision="approve"
        )
    return {part["kind"]: part["text"] for part in parts}


def _waits_or_closed(message: dict[str, Any]) -> bool:
    waits = message["kind"] == "cell_opened" and bool(message["waits_because"])
    return waits or message["kind"] == "run_closed"


def _cell(source: str, cell_id: str, count: int | None = 1) -> dict[str, Any]:
    return {
        "kind": "code", "source": source, "output": "", "count": count, "role": "cell",
        "id": cell_id,
    }  # fmt: skip


async def test_a_follow_up_is_told_the_code_and_the_figures_before_it(
    server: JupyterServer, endpoint: ScriptedEndpoint, say, kernel: str
) -> None:
    say(DRAW, "The total is 18.", "print(total)\n```", "18.")
    path = server.notebook(f"memory-{kernel}.ipynb", kernel)
    async with asyncio.timeout(120), Panel(server) as panel:
        await panel.attach(path)
        first = await _ask(panel, path, "Draw the sales.", files=["sales.csv"])
        assert "earlier" not in first
        told = await _ask(panel, path, "And the total?")
    assert "Q: Draw the sales.\nA: The total is 18." in told["earlier"]
    assert "plt.title('Sales by month')" in told["earlier"]
    assert "Its figure: Figure: 'Sales by month';" in told["earlier"]
    assert "line 'north' of 3 points: lowest 4 at 1, highest 9 at 2" in told["earlier"]
    assert "- total (int): 18" in told["variables"]
    assert "changes" not in told
    words, picture = endpoint.bodies[1]["messages"][-1]["content"]
    assert "highest 9 at 2" in words["text"], "the first run's own model reads of its figure, too"
    assert picture["image_url"]["url"].startswith("data:image/png;base64,"), "and sees it"


@pytest.mark.slow
async def test_a_follow_up_is_told_what_has_changed(
    server: JupyterServer, endpoint: ScriptedEndpoint, say
) -> None:
    say(DRAW, "The total is 18.", "print(1)\n```", "1.")
    path = server.notebook("changes.ipynb")
    (server.root / "changing.csv").write_text("a,b\n1,2\n")
    async with asyncio.timeout(120), Panel(server) as panel:
        await panel.attach(path)
        await _ask(panel, path, "Draw the sales.", files=["changing.csv"])
        (opened,) = panel.of("cell_opened")
        server.request("POST", f"/api/kernels/{server.kernel_id(path)}/restart")
        (server.root / "changing.csv").write_text("a,b\n1,2\n3,4\n")
        cells = [_cell(CODE.replace("18", "19"), opened["cell_id"], None)]
        told = await _ask(panel, path, "And now?", files=["changing.csv"], cells=cells)
    assert "The kernel was restarted" in told["changes"]
    assert "The file changing.csv was changed" in told["changes"]
    assert "edited a cell of these runs. It has not been run since." in told["changes"]
    assert "total = 19" in told["changes"]
    assert "total" not in told.get("variables", "")


@pytest.mark.slow
async def test_nothing_is_said_to_have_changed_where_nothing_has(
    server: JupyterServer, endpoint: ScriptedEndpoint, say
) -> None:
    say(DRAW, "The total is 18.", "print(1)\n```", "1.")
    path = server.notebook("same.ipynb")
    async with asyncio.timeout(120), Panel(server) as panel:
        await panel.attach(path)
        await _ask(panel, path, "Draw the sales.", files=["sales.csv"])
        (opened,) = panel.of("cell_opened")
        cells = [_cell(opened_source(panel, opened["cell_id"]), opened["cell_id"])]
        told = await _ask(panel, path, "And now?", files=["sales.csv"], cells=cells)
    assert "changes" not in told


def _run(question: str, kernel: str, **files: str) -> tuple[Summary, Memory]:
    summary = Summary(question, "n.ipynb", question, tuple(files), 1.0, "local", answer="7")
    return summary, Memory(kernel=kernel, files=files)


@pytest.mark.parametrize(
    ("kernels", "restarts"),
    [
        (("b", "b"), []),
        (("a", "a"), ["variables of these runs are gone"]),
        (("a", "b"), ['after "Sales?": variables of that run are gone']),
        (("", "a"), ['after "Stock?": variables of that run are gone']),
    ],
)
def test_each_run_is_compared_with_the_kernel_of_now(
    kernels: tuple[str, str], restarts: list[str]
) -> None:
    earlier = [_run("Stock?", kernels[1]), _run("Sales?", kernels[0])]
    told = "".join(part.text for part in before(earlier, Memory(kernel="b"), [], 4_000)[1:])
    assert told.count("The kernel was restarted") == len(restarts)
    assert all(words in told for words in restarts)


@pytest.mark.parametrize(
    ("sales", "of_next", "is_told"),
    [("1", {}, True), ("2", {}, False), ("1", {"sales": "2"}, False), ("2", {"sales": "1"}, True)],
)
def test_a_file_is_compared_with_the_newest_run_that_knew_it(
    sales: str, of_next: dict[str, str], is_told: bool
) -> None:
    earlier = [_run("Stock?", "", stock="1", **of_next), _run("Sales?", "", sales=sales)]
    parts = before(earlier, Memory(files={"sales": "2", "stock": "1"}), [], 4_000)
    assert ("The file sales was changed" in parts[-1].text) == is_told
    assert "The file stock" not in parts[-1].text


def opened_source(panel: Panel, cell_id: str) -> str:
    """The text of a cell as the run wrote it."""
    operations = [message["operation"] for message in panel.of("operated")]
    return str(next(one["source"] for one in operations if one.get("cell_id") == cell_id))
