"""Kernels and servers that die in the middle of a run."""

import pytest
from playwright.sync_api import expect

from tests.browser.lab import Lab
from tests.dm_jupyter.server.jupyter import JupyterServer

pytestmark = pytest.mark.browser

HOG = """print("before the flood", flush=True)
hog = [bytearray(2**20) for _ in range(5000)]
```"""
COUNT = """import time
for i in range(300):
    print("line", i, flush=True)
    time.sleep(0.2)
```"""
ANSWER = "There was not enough memory."


def test_a_kernel_out_of_memory_names_the_limit_and_is_filled_again(lab: Lab, say) -> None:
    say(HOG, "```python\nprint('less of it')\n```", ANSWER)
    lab.write_cell(lab.cells.first, "mine = 41")
    lab.run_cell(lab.cells.first)
    expect(lab.prompt("mine = 41")).to_have_text("[1]:")
    lab.ask("Fill the memory")
    expect(lab.steps.first).to_have_attribute("data-status", "memory", timeout=60_000)
    expect(lab.steps.first).to_contain_text("2048 MiB")
    cell = lab.cell("bytearray").locator(".jp-OutputArea").first
    expect(cell).to_contain_text("before the flood")
    expect(cell).to_contain_text("2048 MiB")
    lab.expect_run("answered")
    lab.saved_document(cells=6)

    lab.dismiss_news()
    lab.panel.get_by_role("button", name="Run the notebook’s cells again").click()
    expect(lab.run).to_contain_text("2 cells were run again")
    lab.write_cell(lab.cells.nth(5), "print('kept:', mine + 1)")
    lab.run_cell(lab.cells.nth(5))
    expect(lab.cells.nth(5).locator(".jp-OutputArea")).to_contain_text("kept: 42")


def test_a_server_that_crashes_ends_the_run_and_loses_no_output(
    own_server: JupyterServer, open_lab, say
) -> None:
    say(COUNT, ANSWER)
    lab = open_lab(server=own_server)
    lab.write_cell(lab.cells.first, "mine = 'never lost'")
    lab.ask("Count")
    expect(lab.cell("line 5").last).to_be_visible()
    own_server.kill()
    expect(lab.button("offline-banner")).to_be_visible()
    seen = lab.lines(r"line (\d+)")
    own_server.start()
    expect(lab.button("offline-banner")).to_have_count(0, timeout=60_000)
    lab.expect_run("failed")
    expect(lab.run).to_contain_text("the server stopped")
    document = lab.saved_document(cells=4, first="mine = 'never lost'")
    assert document.cells[3].source == "other = 2"
    lines = document.cells[2].outputs[0].text.splitlines()
    assert lines == [f"line {i}" for i in range(len(lines))]
    assert len(lines) >= len(seen)
    assert lab.lines(r"line (\d+)") == list(range(len(lines)))
    expect(lab.prompt("time.sleep")).not_to_have_text("[*]:")
    expect(lab.questions).to_have_count(0)
    # Its kernel died with it: a new one is started, without a choice among kernels that are gone.
    say("print('sum', df.sales.sum())\n```", "It is 40.")
    lab.dismiss_news()
    lab.run.get_by_role("button", name="Ask again").click()
    lab.expect_run("answered")
    expect(lab.questions).to_have_count(0)
    expect(lab.panel).to_contain_text("a new one was started")
    expect(lab.cell("sum 40")).to_be_visible()
