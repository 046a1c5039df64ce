"""On a real shell, as a terminal has it: no kernel, no channels."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell

import dm_jupyter
from dm_jupyter.core.errors import DataFileError, PolicyError, UsageError
from dm_jupyter.magic.inline import ShownAnswer
from kernel_sandbox.environment import OFF_VARIABLE, RUN_DIR_VARIABLE
from tests.endpoint import ScriptedEndpoint, unused_url

CELL = "await get_ipython().run_cell_magic('analyze', 'a.csv', 'How many?\\n')\n"
LINE = "await get_ipython().run_line_magic('analyze', 'a.csv \"How many?\"')\n"


async def _run(shell: InteractiveShell, source: str) -> ExecutionResult:
    transformed = shell.transform_cell(source)
    return await shell.run_cell_async(source, transformed_cell=transformed, store_history=True)


async def _value(shell: InteractiveShell, source: str) -> Any:
    done = await _run(shell, source)
    done.raise_error()
    return done.result


# how a cell is read


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("%%analyze a.csv\nHow many?", CELL),
        ('%analyze a.csv "How many?"', LINE),
        ('answer = %analyze a.csv "How many?"', f"answer = {LINE}"),
        ('answers["x"] = %analyze a.csv "How many?"', f'answers["x"] = {LINE}'),
        ('for f in fs:\n    %analyze a.csv "How many?"', f"for f in fs:\n    {LINE}"),
        ("%analyze?", "get_ipython().run_line_magic('pinfo', '%analyze')\n"),
        ("%analyzer x", "get_ipython().run_line_magic('analyzer', 'x')\n"),
        (f"{LINE}", LINE),
    ],
)
def test_our_magics_and_no_others_are_awaited(
    shell: InteractiveShell, source: str, code: str
) -> None:
    assert shell.transform_cell(source) == code


def test_a_cell_magic_is_complete_only_after_its_question(shell: InteractiveShell) -> None:
    assert shell.check_complete("%%analyze a.csv")[0] == "incomplete"
    assert shell.check_complete("%%analyze a.csv\nHow many?\n\n")[0] == "complete"


def test_loading_twice_is_loading_once_and_unloading_leaves_nothing(
    shell: InteractiveShell,
) -> None:
    dm_jupyter.load_ipython_extension(shell)
    assert len(shell.input_transformers_post) == 1
    for _ in range(2):
        dm_jupyter.unload_ipython_extension(shell)
    assert not shell.input_transformers_post
    assert shell.find_magic("analyze") is shell.find_magic("analyze", "cell") is None


def test_the_help_shows_options_and_examples(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_line_magic("pinfo", "%analyze")
    told = capsys.readouterr().out
    for words in ("Ask data files a question", "--max-turns", "Which region grew fastest?"):
        assert words in told


def test_loading_is_quick() -> None:
    code = (
        "import sys, dm_jupyter; from IPython.core.interactiveshell import InteractiveShell\n"
        "dm_jupyter.load_ipython_extension(InteractiveShell())\n"
        "print([n for n in ('pandas', 'openai', 'jupyter_client', 'nbformat') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# a run in a terminal


async def test_a_cell_is_answered_and_remembered_as_it_was_typed(
    shell: InteractiveShell, options: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = f'%%analyze "my people.csv" {options} --max-turns 3\nHow many rows?'
    answer = await _value(shell, source)
    assert isinstance(answer, ShownAnswer)
    assert (answer.text, shell.user_ns["_"]) == ("There are **3** rows.", answer)
    assert shell.history_manager.input_hist_raw[-1] == source
    shown = capsys.readouterr()
    assert '    df = pd.read_csv("my people.csv")\n    print(len(df))\n3\n' in shown.out
    assert re.search(r"tiny at 127\.0\.0\.1:\d+ · 2 turns · ", shown.out)
    assert shown.err == ""


async def test_a_line_can_be_assigned_and_takes_variables(
    shell: InteractiveShell, options: str, folder: Path
) -> None:
    (folder / "data").mkdir()
    (folder / "my people.csv").rename(folder / "data/people.csv")
    shell.user_ns["name"] = "data/people.csv"
    await _value(shell, f'answer = %analyze {{name}} "How many?" {options} --format @n[count]')
    answer = shell.user_ns["answer"]
    assert answer.trajectory.task.answer_format == "@n[count]"
    assert any('"data/people.csv"' in cell for cell in answer.cells)


@pytest.mark.slow
def test_an_interrupt_in_a_terminal_stops_the_run_and_its_kernel(folder: Path) -> None:
    with ScriptedEndpoint(["import time\nprint(time.sleep(60))\n```"]) as endpoint:
        terminal = subprocess.Popen(
            [sys.executable, "-m", "IPython", "--simple-prompt", "--ext=dm_jupyter"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert terminal.stdin is not None
        assert terminal.stdout is not None
        options = f"--base-url {endpoint.base_url} --model tiny"
        terminal.stdin.write(f'%analyze "my people.csv" "How many?" {options}\n')
        terminal.stdin.flush()
        while "time.sleep(60)" not in terminal.stdout.readline():
            assert terminal.poll() is None
        started = psutil.Process(terminal.pid).children(recursive=True)
        terminal.send_signal(signal.SIGINT)
        shown, _ = terminal.communicate("print('lives')\nexit\n", timeout=60)
    assert "dm-jupyter: interrupted\n" in shown
    assert "lives\n" in shown
    assert "Traceback" not in shown
    assert started
    _, left = psutil.wait_procs(started, timeout=10)
    assert all(process.status() == psutil.STATUS_ZOMBIE for process in left)


# what can go wrong


@pytest.mark.parametrize(
    ("source", "kind", "line"),
    [
        ('%analyze gone.csv "n?"', DataFileError, "gone.csv: there is no such file; "),
        ("%%analyze 'my people.csv'\n \n", UsageError, "the question is empty"),
        ("%analyze a.csv", UsageError, "give at least one data file, then the question: "),
        ('%analyze a.csv "n?" --no', UsageError, "unrecognized arguments: --no; "),
        (
            "%%analyze 'my people.csv' --into cells --api-key-file k\nn?",
            UsageError,
            "--api-key-file can't go with --into cells",
        ),
        (
            '%analyze "my people.csv" "n?" --into cells --seed 1 --format @n[count]',
            UsageError,
            "--format and --seed can't go with --into cells, where the server's settings count",
        ),
        (
            "%%analyze 'my people.csv' --base-url http://h/v1\nn?",
            UsageError,
            "which model at http://h/v1? Name it with --model",
        ),
    ],
)
async def test_a_mistake_is_one_line(
    shell: InteractiveShell,
    capsys: pytest.CaptureFixture[str],
    source: str,
    kind: type[Exception],
    line: str,
) -> None:
    done = await _run(shell, source)
    assert isinstance(done.error_in_exec, kind)
    shown = capsys.readouterr()
    assert (shown.out + shown.err).strip().startswith(f"dm-jupyter: {line}")
    assert len((shown.out + shown.err).strip().splitlines()) == 1


async def test_an_unknown_model_is_told(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    await _run(shell, "%%analyze 'my people.csv' --model nonsense\nHow many?")
    told = capsys.readouterr().out
    assert told.startswith("dm-jupyter: ")
    assert "nonsense" in told
    assert "Traceback" not in told


@pytest.mark.slow
async def test_a_dead_endpoint_is_one_line(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    url = unused_url()
    done = await _run(shell, f"%%analyze 'my people.csv' --base-url {url} --model m\nHow many?")
    assert isinstance(done.error_in_exec, PolicyError)
    told = capsys.readouterr().out.strip()
    assert told.startswith(f"dm-jupyter: nothing answers for m at {url}")
    assert len(told.splitlines()) == 1


async def test_without_automatic_await_it_says_how_to_switch_it_on(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.autoawait = False
    await _run(shell, "%%analyze 'my people.csv'\nHow many?")
    assert "dm-jupyter: %analyze needs automatic await: run %autoawait" in capsys.readouterr().out


async def test_a_restricted_kernel_without_a_listener_says_what_to_do(
    shell: InteractiveShell,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(RUN_DIR_VARIABLE, "/run/x")
    done = await _run(shell, "%%analyze elsewhere.csv\nHow many?")
    assert isinstance(done.error_in_exec, UsageError)
    told = capsys.readouterr().out
    assert told.startswith("dm-jupyter: this kernel is restricted and reaches no model: ")
    monkeypatch.setenv(OFF_VARIABLE, "1")
    await _run(shell, "%%analyze elsewhere.csv\nHow many?")
    assert "this kernel is restricted" not in capsys.readouterr().out
