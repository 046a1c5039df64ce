"""What the person sees of files that cells make, change or want read, and what they can say."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from kernel_sandbox.confine.probe import probe
from tests.browser.conftest import TABLE, OpenLab
from tests.browser.lab import LAB_OPTIONS, Lab, until
from tests.dm_jupyter.server.jupyter import JupyterServer
from tests.endpoint import ScriptedEndpoint

pytestmark = pytest.mark.browser

needs_layer = pytest.mark.skipif(not probe().has_view, reason="namespaces do not work here")

OVERWRITE = "open('sales.csv', 'w').write('month,sales\\n1,0\\n')\nprint('written')\n```"
LATE = """import threading
threading.Timer(3, open, ["sales.csv", "w"]).start()
print("later")
```"""
ANSWER = "It is done."
HAND_OVER = """
from comm import create_comm
question = {'question': 'What is in it?', 'files': ['../%s']}
comm = create_comm(target_name='dm-jupyter', data=question)
comm.send({'kind': 'waits'})
"""


@pytest.fixture
def place(lab: Lab) -> Path:
    """The folder of the notebook."""
    return (lab.server.root / lab.path).parent


@needs_layer
def test_what_a_cell_overwrote_is_discarded(lab: Lab, say, place: Path) -> None:
    say(OVERWRITE, ANSWER)
    lab.ask("Write")
    expect(lab.steps.first).to_have_attribute("data-status", "files_wait")
    approval = lab.button("files-approval")
    expect(approval).to_contain_text("sales.csv")
    expect(approval).to_contain_text("changed · 22 B → 16 B")
    assert (place / "sales.csv").read_text() == TABLE
    assert lab.violations() == []
    # With the keyboard alone, and the focus stays in the step.
    lab.button("files-apply").focus()
    lab.page.keyboard.press("Tab")
    expect(lab.button("files-discard")).to_be_focused()
    lab.page.keyboard.press("Enter")
    lab.expect_run("answered")
    expect(lab.steps.first.locator(".jp-dm-Step-toggle")).to_be_focused()
    expect(lab.button("files")).to_contain_text("not changed · discarded")
    assert (place / "sales.csv").read_text() == TABLE


@needs_layer
def test_what_a_cell_overwrote_is_applied(lab: Lab, say, place: Path) -> None:
    say(OVERWRITE, ANSWER)
    lab.ask("Write")
    expect(lab.button("files-apply")).to_be_visible()
    lab.reload()
    assert (place / "sales.csv").read_text() == TABLE
    lab.button("files-apply").click()
    lab.expect_run("answered")
    assert (place / "sales.csv").read_text() == "month,sales\n1,0\n"
    entry = lab.button("file")
    expect(entry).to_have_text("sales.csv changed · 22 B → 16 B")
    expect(entry).to_have_attribute("data-fate", "written")


@needs_layer
def test_a_new_table_passes_unasked_and_is_opened(lab: Lab, say, place: Path) -> None:
    say(
        "open('new.csv', 'w').write('a\\n7\\n')\nopen('polars.py', 'w').write('')\n```",
        ANSWER,
    )
    lab.ask("Make a table")
    lab.expect_run("answered")
    assert (place / "new.csv").read_text() == "a\n7\n"
    assert not (place / "polars.py").exists()
    refused = lab.button("file").filter(has_text="polars.py")
    expect(refused).to_contain_text("not made · refused")
    expect(refused).to_contain_text("hides the module polars")
    expect(refused.get_by_role("button")).to_have_count(0)
    assert lab.violations() == []
    lab.button("files").get_by_role("button", name="Open new.csv").click()
    expect(lab.page.locator(".jp-CSVViewer")).to_be_visible()


@needs_layer
def test_a_program_waits_and_is_not_opened(lab: Lab, say, place: Path) -> None:
    say("open('tool.py', 'w').write('print(1)')\n```", ANSWER)
    lab.ask("Write a program")
    expect(lab.button("files-approval")).to_contain_text("new · 8 B · a program")
    lab.button("files-apply").click()
    lab.expect_run("answered")
    assert (place / "tool.py").read_text() == "print(1)"
    expect(lab.button("files")).to_contain_text("tool.py")
    expect(lab.button("files").get_by_role("button")).to_have_count(0)


def test_more_than_five_files_are_folded_away(lab: Lab, say) -> None:
    say("for n in range(7):\n    open(f'{n}.csv', 'w').write('a')\nprint(7)\n```", ANSWER)
    lab.ask("Make tables")
    lab.expect_run("answered")
    toggle = lab.button("files").get_by_role("button", name="7 files: 7 new")
    expect(lab.button("file")).to_have_count(0)
    toggle.click()
    expect(lab.button("file")).to_have_count(7)


def test_a_link_is_read_only_when_the_person_says_so(lab: Lab, say, place: Path) -> None:
    elsewhere = lab.server.folder / f"{place.name}-elsewhere.csv"
    elsewhere.write_text("month,sales\n1,7\n")
    (place / "linked.csv").symlink_to(elsewhere)
    say("print(df.sales.sum())\n```", "The sum is 7.")
    lab.composer.fill("Sum ")
    lab.attach("linked.csv")
    lab.composer.press("Enter")
    dialog = lab.questions
    expect(dialog).to_contain_text(f"{place.name}/linked.csv")
    expect(dialog).to_contain_text(str(elsewhere))
    assert lab.violations("[data-testid=dm-link-dialog]") == []
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    dialog.get_by_role("button", name="Cancel").click()
    expect(lab.composer).to_have_value("Sum linked.csv")
    expect(lab.chips).to_have_count(1)
    expect(lab.runs).to_have_count(0)
    lab.composer.press("Enter")
    dialog.get_by_role("button", name="Read it").click()
    lab.expect_run("answered")
    expect(lab.answer).to_contain_text("The sum is 7.")


@needs_layer
def test_code_reads_other_files_only_when_the_person_asks(
    open_lab: OpenLab, say, folder: str
) -> None:
    name = f"{folder}-secret.csv"
    lab = open_lab(sources=(HAND_OVER % name, "other = 2"))
    (lab.server.root / name).write_text("month,sales\n1,7\n")
    say("print(df.sales.sum())\n```", "The sum is 7.")
    lab.run_cell(lab.cells.first)
    wanted = lab.button("wanted")
    expect(wanted).to_contain_text("What is in it?")
    expect(wanted).to_contain_text(str(lab.server.root / name))
    assert lab.violations() == []
    lab.button("wanted-dismiss").click()
    expect(wanted).to_have_count(0)
    expect(lab.runs).to_have_count(0)
    lab.run_cell(lab.cells.first)
    lab.button("wanted-ask").click()
    lab.expect_run("answered")
    expect(lab.answer).to_contain_text("The sum is 7.")
    expect(wanted).to_have_count(0)


@needs_layer
def test_what_a_run_leaves_behind_is_told_and_the_persons_own_cell_writes(
    open_lab: OpenLab, say
) -> None:
    lab = open_lab(sources=("import os; os.remove('sales.csv')", "other = 2"))
    file = (lab.server.root / lab.path).parent / "sales.csv"
    say(LATE, ANSWER)
    lab.ask("Write later")
    lab.expect_run("answered")
    notice = lab.button("left-out")
    expect(notice).to_contain_text("1 file that code of the notebook changed outside of a run")
    expect(notice).to_contain_text("sales.csv")
    assert file.read_text() == TABLE
    assert lab.violations() == []
    notice.get_by_role("button", name="Dismiss").click()
    expect(notice).to_have_count(0)
    lab.run_cell(lab.cells.first)
    until(lab.page, lambda: not file.exists(), "the file is removed by the person's own cell")
    expect(notice).to_have_count(0)


def test_without_a_layer_the_choice_says_what_nobody_sees(
    open_lab: OpenLab, say, endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    options = (*LAB_OPTIONS, "--SandboxProvisioner.isolate=False")
    with JupyterServer(tmp_path, endpoint.base_url, app="lab", options=options) as server:
        lab = open_lab(server=server)
        unseen = lab.button("unseen-writes")
        expect(unseen).to_contain_text("cells write straight into your folder")
        assert lab.violations() == []
        say(OVERWRITE, ANSWER)
        lab.ask("Write")
        lab.expect_run("answered")
        file = (server.root / lab.path).parent / "sales.csv"
        assert file.read_text() == "month,sales\n1,0\n"
        expect(lab.button("file")).to_have_text("sales.csv changed")
        lab.button("approval-mode").select_option("ask")
        expect(unseen).to_have_count(0)
