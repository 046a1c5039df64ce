"""Output that was not kept is told where the person looks: in the step, and in the cell."""

from __future__ import annotations

import asyncio

import pytest

from tests.dm_jupyter.server.jupyter import JupyterServer, Panel


@pytest.mark.slow
async def test_output_that_was_cut_is_told_in_the_step_and_in_the_cell(
    server: JupyterServer, say
) -> None:
    say(
        "for _ in range(70):\n    print('x' * 99_999, flush=True)\nprint(df.sales.sum())\n```",
        "Much.",
    )
    path = server.notebook("cut.ipynb")
    async with asyncio.timeout(90), Panel(server, client_id="cut") as panel:
        await panel.attach(path)
        await panel.ask(path, "Print", files=["sales.csv"])
        closed = await panel.until("cell_closed")
        await panel.until("run_closed")
    assert closed["status"] == "ok"
    assert closed["cut_bytes"] == 70 * 100_000 + 3 - 4 * 2**20
    outputs = [
        message["operation"]["output"]
        for message in panel.of("operated")
        if message["operation"]["op"] == "append_output"
    ]
    assert outputs[-1]["name"] == "stderr"
    assert f"{closed['cut_bytes']:,} bytes of output were cut" in outputs[-1]["text"]
