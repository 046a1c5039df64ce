from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from typer.testing import CliRunner

from dm_jupyter.cli.model import _announce, _print_key, model_app
from dm_jupyter.models.local import catalogue, endpoint
from dm_jupyter.models.local import pull as pull_module
from dm_jupyter.models.local.adapters import Adapter
from dm_jupyter.models.local.pull import PullProgress
from kernel_sandbox.packages.commands import install_extra, own_command
from tests.waiting import PATIENCE_S

SMALL = catalogue.find("smollm2-135m")


def _run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner(env={"COLUMNS": "300"}).invoke(model_app, arguments)
    return result.exit_code, result.stdout, result.stderr


def test_list_names_every_model(tmp_path: Path) -> None:
    code, out, _ = _run("list", "--cache-dir", str(tmp_path))
    assert code == 0
    for model in catalogue.MODELS:
        assert re.search(rf"{re.escape(model.name)}.*MB.*Apache-2.0.*no", out)


def test_a_model_is_here_when_its_weights_and_its_adapter_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    adapter = Adapter("a", "CC-BY-4.0", "a.gguf", 5_000_000, "0" * 64, "http://127.0.0.1:1/a")
    tuned = replace(SMALL, name="small-tuned", adapter=adapter)
    monkeypatch.setattr(catalogue, "MODELS", (SMALL, tuned))
    with (tmp_path / SMALL.file_name).open("wb") as out:
        out.truncate(SMALL.size_bytes)  # a file of holes: the size is what is looked at
    listing = ("list", "--cache-dir", str(tmp_path))
    code, out_text, _ = _run(*listing)
    assert code == 0
    assert re.search(r"smollm2-135m .*98 MB.*yes\b", out_text)
    assert re.search(r"small-tuned .*103 MB.*Apache-2\.0, CC-BY-4\.0.*no\b", out_text)
    with (tmp_path / "a.gguf").open("wb") as out:
        out.truncate(adapter.size_bytes)
    assert re.search(r"small-tuned .*103 MB.*yes .*yes\b", _run(*listing)[1].replace("│", " "))
    found = (0, f"{tmp_path / SMALL.file_name}\n", "")
    assert _run("pull", "small-tuned", "--cache-dir", str(tmp_path)) == found


def test_remove_deletes_a_model_and_names_those_that_shared_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = Adapter("a", "CC-BY-4.0", "a.gguf", 5_000_000, "0" * 64, "http://127.0.0.1:1/a")
    tuned = replace(SMALL, name="small-tuned", adapter=adapter)
    monkeypatch.setattr(catalogue, "MODELS", (SMALL, tuned))
    weights, trained = tmp_path / SMALL.file_name, tmp_path / f"{SMALL.file_name[:-5]}-bfloat16"
    for file, size in ((weights, SMALL.size_bytes), (tmp_path / "a.gguf", adapter.size_bytes)):
        with file.open("wb") as out:
            out.truncate(size)
    trained.mkdir()
    (trained / "model.safetensors").write_bytes(b"0" * 2_000_000)
    (tmp_path / "other.gguf").write_bytes(b"GGUF")
    where = ("--cache-dir", str(tmp_path))

    with (tmp_path / f"{SMALL.file_name}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        code, _, err = _run("remove", SMALL.name, *where)
    assert code == 4
    assert "is being downloaded" in err
    assert weights.exists()

    code, out, err = _run("remove", SMALL.name, *where)
    assert (code, out) == (0, "")
    assert "Removed smollm2-135m: 100 MB are free again." in err
    assert "part of small-tuned" in err
    assert {one.name for one in tmp_path.iterdir() if not one.name.endswith(".lock")} == {
        "a.gguf",
        "other.gguf",
    }
    code, _, err = _run("remove", SMALL.name, *where)
    assert code == 1
    assert f"smollm2-135m has no file in {tmp_path}." in err
    assert _run("remove", SMALL.name, "--cache-dir", str(tmp_path / "absent"))[0] == 1


def test_path_of_an_absent_file_is_exit_code_1(tmp_path: Path) -> None:
    code, out, err = _run("path", SMALL.name, "--cache-dir", str(tmp_path))
    assert (code, out) == (1, "")
    assert f"dm-jupyter model pull {SMALL.name}" in err


def test_path_is_all_that_is_printed(tmp_path: Path) -> None:
    file = tmp_path / SMALL.file_name
    with file.open("wb") as out:
        out.truncate(SMALL.size_bytes)  # a file of holes: the size is what is looked at
    for command in ("path", "pull"):
        assert _run(command, SMALL.name, "--cache-dir", str(tmp_path)) == (0, f"{file}\n", "")


@pytest.mark.parametrize("command", ["pull", "path"])
def test_unknown_model_is_wrong_usage(command: str) -> None:
    code, _, err = _run(command, "nonsense")
    assert code == 2
    assert SMALL.name in err


def test_pull_that_fails_names_the_ways_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lonely = replace(SMALL, parts=None)
    monkeypatch.setattr(catalogue, "MODELS", (lonely,))
    code, out, err = _run("pull", SMALL.name, "--cache-dir", str(tmp_path))
    assert (code, out) == (4, "")
    assert "--base-url" in err


def test_interrupted_pull_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr(pull_module.parts, "assemble_model", interrupted)
    code, _, err = _run("pull", SMALL.name, "--cache-dir", str(tmp_path))
    assert code == 130
    assert f"{own_command('model', 'pull', SMALL.name)}` resumes it" in err


def test_pull_says_first_that_the_engine_is_missing_and_fetches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    monkeypatch.setattr(pull_module, "pull", lambda *_: tmp_path / "file")
    code, out, err = _run("pull", SMALL.name, "--cache-dir", str(tmp_path))
    assert (code, out) == (0, f"{tmp_path / 'file'}\n")
    assert f"Run `{install_extra('local')}`. The model's file is fetched all the same." in err


def test_terminal_shows_each_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(_model: object, _cache: object, tell: Callable[[PullProgress], None]) -> Path:
        for stage in get_args(get_type_hints(PullProgress)["stage"]):
            tell(PullProgress(stage, 50_000_000, SMALL.size_bytes))
        return tmp_path

    monkeypatch.setattr(pull_module, "pull", slow)
    monkeypatch.setenv("FORCE_COLOR", "1")
    code, out, err = _run("pull", SMALL.name)
    assert (code, out) == (0, f"{tmp_path}\n")
    for words in ("another pull", "model hub", "package index", "checking", "50.0/98.4 MB"):
        assert words in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", err)


def test_running_server_of_another_port_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    running = endpoint.LocalEndpoint(
        "http://127.0.0.1:1234/v1", "secret", "tiny", 8192, 1, Path("/run/api-key")
    )
    _announce("tiny", running, 99)
    _print_key("tiny", running)
    shown = capsys.readouterr()
    assert "already runs on another port than 99" in shown.err
    assert shown.out.endswith("--print-key\nsecret\n")


def test_key_without_a_server_is_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "running_endpoint", lambda _: None)
    code, out, err = _run("serve", SMALL.name, "--print-key")
    assert (code, out) == (1, "")
    assert "dm-jupyter model serve" in err


def test_serve_of_an_absent_file_is_exit_code_4(tmp_path: Path) -> None:
    code, _, err = _run("serve", SMALL.name, "--cache-dir", str(tmp_path))
    assert code == 4
    assert "model pull" in err


@contextmanager
def _serving(folder: Path) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """A tiny server that a process serves, and the lines that it announces."""
    model_file = folder / "well.gguf"
    model_file.write_text("well")
    tiny = Path(__file__).parents[1] / "models" / "local" / "tiny_server.py"
    program = (
        "import sys, typer\n"
        "from pathlib import Path\n"
        "from dm_jupyter.models.local import endpoint\n"
        "from dm_jupyter.cli import model\n"
        f"command = (sys.executable, {str(tiny)!r})\n"
        f"run = Path({str(folder / 'run')!r})\n"
        "options = endpoint.ServerOptions(runtime_dir=run, command=command, port=0)\n"
        "try:\n"
        "    with model._faults():\n"
        f"        model._serve({str(model_file)!r}, options)\n"
        "except typer.Exit as exit:\n"
        "    sys.exit(exit.exit_code)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process, [process.stdout.readline() for _ in range(4)]
        finally:
            with suppress(ProcessLookupError):
                process.kill()


def test_serve_announces_and_ends_on_interrupt(tmp_path: Path) -> None:
    with _serving(tmp_path) as (process, lines):
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
    assert re.fullmatch(r"base URL +http://127\.0\.0\.1:\d+/v1\n", lines[0])
    assert "api-key" in lines[2]


def test_serve_ends_with_its_server_and_shows_its_log(tmp_path: Path) -> None:
    with _serving(tmp_path) as (process, lines):
        folder = Path(lines[2].removeprefix("key file").strip()).parent
        os.kill(int((folder / "alive.lock").read_text()), signal.SIGKILL)
        assert process.wait(PATIENCE_S) == 4
        assert process.stderr is not None
        said = process.stderr.read()
    assert re.search(r"The server of .*well\.gguf ended\. Its log:\nengine: well", said)


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from dm_jupyter.cli.model import model_app\n"
        "heavy = {'rich.progress', 'platformdirs', 'openai', 'pandas', 'xllamacpp'}\n"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
