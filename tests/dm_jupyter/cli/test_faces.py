import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from dm_jupyter import __version__
from dm_jupyter.agent.loop import RunSettings, run
from dm_jupyter.cli import profile as profile_command
from dm_jupyter.cli.app import app
from dm_jupyter.cli.show import Screen
from dm_jupyter.core.dialects import DIALECTS
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import DataContext, Trajectory
from tests.fakes import ScriptedNotebook, ScriptedPolicy, printed, raised

FREE = Trajectory(Task("t", "How many rows?", (Path("t.csv"),)), "markdown", DataContext("f"))


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


async def test_the_screen_prints_markup_and_drops_what_a_terminal_would_obey() -> None:
    terminal = io.StringIO()
    console = Console(width=100, file=terminal, force_terminal=True)
    with Screen(console) as screen:
        screen.progress("loading my[local]model")
    assert "my[local]model" in terminal.getvalue()
    title = "\x1b]0;owned\x07"
    texts = [f"a = 1 # {title}\n```", f"[bold]There[/bold] are 4 {title}.", "```"]
    policy, notebook = ScriptedPolicy(texts), ScriptedNotebook([printed(f"[/link][local]{title}")])
    with Screen(console) as screen:
        await run(FREE, policy, notebook, RunSettings(max_turns=3), screen.show)
    shown = terminal.getvalue()
    assert "[/link][local]" in shown
    assert "[bold]There[/bold]" in shown
    assert shown.count("owned") >= 3
    assert "\x1b]" not in shown


async def test_the_screen_shows_errors_answers_sent_back_and_the_end_without_one() -> None:
    texts = ["x\n```", "\ny\n```", "There are 4.", "```python\nz\n```", "```"]
    shown = await _shown(texts, [raised("KeyError", "'a'"), printed("3"), printed("3")], turns=5)
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


def test_profile_shows_how_far_it_is_on_a_line_that_a_file_name_cannot_break(
    capsys: pytest.CaptureFixture[str],
) -> None:
    profile_command._shown("x\x1b[31m\n.csv")(0.5)
    shown = capsys.readouterr().err
    assert shown.endswith(".csv: 50%")
    assert "\n" not in shown
    assert "\x1b[31m" not in shown


def test_profile_takes_a_time_limit(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("a,b\n1,x\n2,y\n")
    assert CliRunner().invoke(app, ["profile", str(file), "--seconds", "60"]).exit_code == 0
    assert CliRunner().invoke(app, ["profile", str(file), "--seconds", "0"]).exit_code == 2


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
    assert (
        "a csv, tsv, Excel, ods, json, parquet, SQLite, Stata, SPSS, SAS … or zip file" in profiling
    )


def test_h_is_help_everywhere_and_the_version_is_printed() -> None:
    for command in ([], ["ask"], ["profile"], ["doctor"], ["model"], ["model", "pull"]):
        short, long = (CliRunner().invoke(app, [*command, name]) for name in ("-h", "--help"))
        assert (short.exit_code, short.output) == (0, long.output)
    printed_version = CliRunner().invoke(app, ["--version"])
    assert (printed_version.exit_code, printed_version.output) == (0, f"dm-jupyter {__version__}\n")


@pytest.mark.parametrize(
    ("words", "completed"), [("dm-jupyter do", "doctor"), ("dm-jupyter model s", "serve")]
)
def test_a_shell_completes_commands_once_completion_is_installed(
    tmp_path: Path, words: str, completed: str
) -> None:
    program = tmp_path / "dm-jupyter"
    code = "from dm_jupyter.cli import main; main()"
    program.write_text(f"#!{sys.executable}\n{code}\n")
    program.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "HOME": str(tmp_path), "PATH": path}
    typed = f"COMP_WORDS=({words}) COMP_CWORD={len(words.split()) - 1}"
    script = (
        "dm-jupyter --install-completion\n"
        ". ~/.bashrc\n"
        f"{typed}; _dm_jupyter_completion dm-jupyter; echo ${{COMPREPLY[@]}}\n"
    )
    done = subprocess.run(
        ["bash", "--norc"], input=script, env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == completed, done.stderr


@pytest.mark.parametrize("value", ["nan", "-1", "2.5"])
def test_a_temperature_that_is_none_is_wrong_usage(value: str) -> None:
    outcome = CliRunner().invoke(app, ["ask", "a.csv", "How many?", "--temperature", value])
    assert outcome.exit_code == 2
    assert "--temperature" in outcome.output
