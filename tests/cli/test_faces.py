import json
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from dm_jupyter.agent.loop import RunSettings, run
from dm_jupyter.cli import doctor
from dm_jupyter.cli.app import app
from dm_jupyter.cli.show import Screen
from dm_jupyter.core.dialects import DIALECTS
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Brief, Trajectory
from kernel_sandbox.containment import Containment, Layer, LayerState
from kernel_sandbox.selfcheck import Check
from tests.fakes import ScriptedNotebook, ScriptedPolicy, printed, raised

FREE = Trajectory(Task("t", "How many rows?", (Path("t.csv"),)), "markdown", Brief("f"))


async def _shown(texts: list[str], results: list, *, turns: int = 4) -> str:
    console = Console(record=True, width=100, file=None, force_terminal=False)
    with Screen(console, is_live=False) as screen:
        screen.progress("loading")
        settings = RunSettings(max_turns=turns)
        await run(FREE, ScriptedPolicy(texts), ScriptedNotebook(results), settings, screen.show)
    return console.export_text()


async def test_the_screen_shows_question_cells_outputs_and_the_cost() -> None:
    shown = await _shown(["print(len(df))\n```", "There are 3."], [printed("3\n")])
    for words in ("How many rows?", "t.csv · scripted", "print(len(df))", "ok · ", "2 turns"):
        assert words in shown


async def test_the_screen_shows_errors_answers_sent_back_and_the_end_without_one() -> None:
    texts = ["x\n```", "y\n```", "There are 4.", "```"]
    shown = await _shown(texts, [raised("KeyError", "'a'"), printed("3")])
    for words in ("KeyError: 'a'", "sent back: ", "neither code nor an answer", "turn_limit"):
        assert words in shown


def test_profile_prints_text_and_json(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("a,b\n1,x\n2,y\n")
    text = CliRunner().invoke(app, ["profile", str(file)])
    assert text.exit_code == 0
    assert "2 rows x 2 columns" in text.output
    raw = CliRunner().invoke(app, ["profile", str(file), "--json"])
    assert json.loads(raw.output)["tables"][0]["row_count"] == 2


def test_profile_of_a_missing_file_is_exit_code_3(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["profile", str(tmp_path / "gone.csv")])
    assert done.exit_code == 3
    assert "gone.csv" in done.output


def test_help_shows_the_form_of_an_answer_every_dialect_and_every_kind_of_file() -> None:
    wide = CliRunner(env={"COLUMNS": "300"})
    asking = wide.invoke(app, ["ask", "--help"]).output
    assert "such as '@mean_fare[value]'" in asking
    assert f"one of {', '.join(DIALECTS)} " in asking
    profiling = wide.invoke(app, ["profile", "--help"]).output
    assert "a csv, tsv, Excel, ods, json, parquet or SQLite file" in profiling


CONTAINMENT = Containment((Layer("screen", LayerState.ACTIVE, "advice"),))


@pytest.mark.parametrize(("passed", "code"), [(True, 0), (False, 1)])
def test_doctor_reports_layers_checks_model_and_packages(
    monkeypatch: pytest.MonkeyPatch, passed: bool, code: int
) -> None:
    async def checked() -> tuple[Containment, tuple[Check, ...]]:
        return CONTAINMENT, (Check("network", passed, "refused"),)

    monkeypatch.setattr(doctor, "check_machine", checked)
    done = CliRunner().invoke(app, ["doctor", "--json"])
    assert done.exit_code == code
    findings = {(entry["part"], entry["name"]): entry for entry in json.loads(done.output)}
    assert findings["kernel", "screen"]["state"] == "ok"
    assert findings["tried", "network"]["state"] == ("ok" if passed else "failed")
    assert ("package", "pyarrow") in findings
    assert any(part == "model" for part, _ in findings)


def test_doctor_says_that_an_endpoint_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def checked() -> tuple[Containment, tuple[Check, ...]]:
        return CONTAINMENT, ()

    monkeypatch.setattr(doctor, "check_machine", checked)
    options = ["doctor", "--json", "--model", "m", "--base-url", "http://127.0.0.1:9/v1"]
    done = CliRunner().invoke(app, options)
    assert done.exit_code == 1
    assert "check --base-url" in done.output
    with_password = [*options[:-1], "http://bob:s3cret@127.0.0.1:9/v1?key=s3cret"]
    assert CliRunner().invoke(app, with_password).output == done.output
