"""Ten questions in a row, a fault in each at a random moment: nothing that was written is lost."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.faults import kill_kernel
from tests.browser.lab import Lab, until
from tests.dm_jupyter.server.jupyter import JupyterServer

pytestmark = [pytest.mark.browser, pytest.mark.slow]

RUNS = 10
LINES = 30
FAULTS = ("tab", "network", "kernel", "server")
ANSWER = "It was counted."
AFTER_DEATH = "print('in a new kernel')\n```"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_faults_lose_no_cell_and_no_line(
    own_server: JupyterServer,
    open_lab: Callable[..., Lab],
    say: Callable[..., None],
    seed: int,
) -> None:
    random = Random(seed)
    lab = open_lab(server=own_server)
    mine = "mine = 1"
    for number in range(RUNS):
        fault = random.choice(FAULTS)
        print(f"run {number}: {fault}")
        say(_counting(number), *([AFTER_DEATH] if fault == "kernel" else []), ANSWER)
        seen = _begin(lab, number, line=random.randrange(LINES - 10))
        if fault in {"network", "kernel"}:
            mine = f"mine = {number + 2}"
            lab.write_cell(lab.cells.first, mine)
        lab = _befall(fault, lab, open_lab, random)
        run_id = _ended_run(lab, number)
        _expect_written(lab, run_id)
        document = lab.saved_document(len(lab.open_document()["cells"]), first=mine)
        assert document.cells[-1].source == "other = 2"
        lines = _lines(document, run_id, number)
        assert lines == list(range(LINES if fault in {"tab", "network"} else len(lines)))
        assert lines[: len(seen)] == seen
        expect(lab.questions).to_have_count(0)
        lab.dismiss_news()


def _counting(number: int) -> str:
    return (
        f"import time\nfor i in range({LINES}):\n"
        f"    print('run {number} line', i, flush=True)\n    time.sleep(0.1)\n```"
    )


def _begin(lab: Lab, number: int, line: int) -> list[int]:
    """Asks; returns the lines that the page shows once it shows this one."""

    def seen() -> list[int]:
        numbers = lab.lines(rf"run {number} line (\d+)")
        return numbers if line in numbers else []

    lab.ask(f"Count to {number}")
    return list(until(lab.page, seen, f"line {line} of run {number}"))


def _befall(fault: str, lab: Lab, open_lab: Callable[..., Lab], random: Random) -> Lab:
    """Lets it happen; returns the tab in which the person goes on."""
    match fault:
        case "tab":
            lab.page.close()
            return open_lab(server=lab.server)
        case "network":
            lab.page.context.set_offline(True)
            expect(lab.button("offline-banner")).to_be_visible()
            lab.page.wait_for_timeout(random.randrange(4000))  # the outage is a length of time
            lab.page.context.set_offline(False)
        case "kernel":
            kill_kernel(lab.server)
        case "server":
            lab.server.kill()
            expect(lab.button("offline-banner")).to_be_visible()
            lab.server.start()
            lab.page.close()
            return open_lab(server=lab.server)
    return lab


def _ended_run(lab: Lab, number: int) -> str:
    """The id of the run, once it has ended and the kernel is free."""

    def ended() -> str:
        last = lab.server.get("/dm-jupyter/api/runs")["runs"][0]
        assert last["question"].startswith(f"Count to {number}")
        return str(last["run_id"]) if last["stop"] else ""

    run_id = until(lab.page, ended, f"the end of run {number}", timeout_s=90)
    lab.wait_until_idle()
    return str(run_id)


def _expect_written(lab: Lab, run_id: str) -> None:
    """The file and the tab come to hold what the run's journal says, and each cell once."""
    wanted = _journal(lab, run_id)

    def is_written() -> bool:
        on_disk = lab.document()
        ids = [cell["id"] for cell in on_disk["cells"]]
        return (
            len(set(ids)) == len(ids)
            and _written(on_disk, run_id) == wanted
            and _written(lab.open_document(), run_id) == wanted
        )

    until(lab.page, is_written, f"the run in the notebook: {wanted}")


def _journal(lab: Lab, run_id: str) -> dict[str, str]:
    """Cell id to the printed text, of the cells that the run left in the notebook."""
    cells: dict[str, str] = {}
    for message in lab.server.get(f"/dm-jupyter/api/runs/{run_id}")["messages"]:
        operation = message.get("operation") or {}
        match operation.get("op"):
            case "insert_cell":
                cells[operation["cell_id"]] = ""
            case "delete_cell":
                del cells[operation["cell_id"]]
            case "append_output" if operation["output"]["output_type"] == "stream":
                cells[operation["cell_id"]] += operation["output"]["text"]
    return cells


def _written(document: Any, run_id: str) -> dict[str, str]:
    """The same of a notebook."""
    return {
        cell["id"]: "".join(
            "".join(output["text"])
            for output in cell.get("outputs", ())
            if output["output_type"] == "stream"
        )
        for cell in document["cells"]
        if cell["metadata"].get("dm_jupyter", {}).get("run") == run_id
    }


def _lines(document: Any, run_id: str, number: int) -> list[int]:
    text = "".join(_written(document, run_id).values())
    words = f"run {number} line "
    return [int(line.removeprefix(words)) for line in text.splitlines() if line.startswith(words)]
