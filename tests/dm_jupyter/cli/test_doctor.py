from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dm_jupyter.cli import doctor
from dm_jupyter.cli.app import app
from dm_jupyter.models.local.catalogue import DEFAULT_MODEL
from kernel_sandbox.confine.layers import LAYER_NAMES, Containment, Layer, LayerState
from kernel_sandbox.conformance.selfcheck import Check
from kernel_sandbox.errors import KernelStartError
from kernel_sandbox.packages.commands import install_extra, own_command
from tests.endpoint import LocalServer, ScriptedEndpoint, unused_url

ALL = Containment(tuple(Layer(name, LayerState.ACTIVE, f"[{name}]") for name in LAYER_NAMES))
NO_FILES = ALL.with_layers(
    Layer(name, LayerState.ABSENT, "not [here] :smile:") for name in ("read_only_view", "landlock")
)
READS = Check("an input can be read", True, "2", is_needed=True)
ESCAPES = Check("the network is out of reach", False, "[went/] through")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """What a kernel here would be found to be; no model is on it."""
    found: dict[str, Any] = {"containment": ALL, "checks": (READS,)}

    async def check_machine() -> tuple[Containment, tuple[Check, ...]]:
        if "fault" in found:
            raise found["fault"]
        return found["containment"], found["checks"]

    monkeypatch.setattr(doctor, "check_machine", check_machine)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in ("DM_JUPYTER_MODEL", "DM_JUPYTER_BASE_URL", "DM_JUPYTER_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return found


def _run(*options: str) -> tuple[int, str]:
    done = CliRunner(env={"COLUMNS": "500"}).invoke(app, ["doctor", *options])
    return done.exit_code, done.output


def _report(*options: str) -> tuple[int, dict[str, Any]]:
    code, output = _run("--json", *options)
    return code, json.loads(output)


def _blockers(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [finding for finding in report["findings"] if finding["is_blocker"]]


def test_an_adapter_that_is_not_there_keeps_from_asking(
    machine: dict[str, Any], tmp_path: Path
) -> None:
    code, report = _report("--adapter", str(tmp_path / "none.gguf"))
    assert code == 1
    (blocker,) = _blockers(report)
    assert f"There is no adapter file at {tmp_path / 'none.gguf'}" in blocker["detail"]
    assert blocker["command"] == own_command("model", "list")


def test_the_table_says_what_json_says_cell_by_cell(
    machine: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.update(containment=NO_FILES, checks=(READS, ESCAPES))
    for package in ("xllamacpp", "pyarrow", "scipy", "sklearn"):
        monkeypatch.setitem(sys.modules, package, None)
    _, report = _report()
    code, text = _run()
    rows = [line.split("│")[1:-1] for line in text.splitlines() if line.startswith("│")]
    columns = ("part", "name", "state", "detail")
    assert [[cell.strip() for cell in row] for row in rows] == [
        [finding[column] for column in columns] for finding in report["findings"]
    ]
    commands = {finding["command"] for finding in report["findings"]} - {""}
    assert len(commands) == 4
    assert commands <= {line.strip() for line in text.splitlines()}
    assert code == 1


def test_blockers_come_first_in_the_order_of_what_to_do(
    machine: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    code, text = _run()
    lines = text.splitlines()
    assert code == 1
    assert lines[0] == "You can't ask yet:"
    assert lines[1].startswith("1. The local model needs the package xllamacpp")
    assert lines[2].strip() == install_extra("local")
    assert lines[3].startswith(f"2. The local model {DEFAULT_MODEL} (1.1 GB) is not on this")
    assert lines[4].strip() == own_command("model", "pull", DEFAULT_MODEL)


def test_a_machine_with_all_of_it_is_exit_code_0(machine: dict[str, Any]) -> None:
    with ScriptedEndpoint([], models=["tiny"]) as endpoint:
        code, text = _run("--base-url", endpoint.base_url, "--model", "tiny")
    assert code == 0
    assert text.startswith("You can ask.\n\nThis machine meets the profile interactive.\n")


@pytest.mark.parametrize(
    ("profile", "containment", "checks", "unmet"),
    [
        ("interactive", NO_FILES, (READS,), []),
        ("rollout", NO_FILES, (READS,), ["files (read_only_view is absent: not [here] :smile:"]),
        ("rollout", ALL, (READS,), []),
        ("interactive", ALL, (READS, ESCAPES), ["the network is out of reach: [went/] through"]),
    ],
)
def test_a_profile_that_is_not_met_is_exit_code_5(
    machine: dict[str, Any],
    profile: str,
    containment: Containment,
    checks: tuple[Check, ...],
    unmet: list[str],
) -> None:
    machine.update(containment=containment, checks=checks)
    with ScriptedEndpoint([], models=["tiny"]) as endpoint:
        options = ("--profile", profile, "--base-url", endpoint.base_url, "--model", "tiny")
        code, report = _report(*options)
        _, text = _run(*options)
    assert code == (5 if unmet else 0)
    assert len(report["unmet"]) == len(unmet)
    for found, expected in zip(report["unmet"], unmet, strict=True):
        assert found.startswith(expected)
        assert f"- {found}\n" in text
    assert report["profile"] == profile


def test_what_a_machine_leaves_open_is_said(machine: dict[str, Any]) -> None:
    assert _report()[1]["weaknesses"] == []
    no_namespaces = ("workspace_layer", "read_only_view", "pid_namespace", "network_namespace")
    machine["containment"] = ALL.with_layers(
        Layer(name, LayerState.ABSENT) for name in (*no_namespaces, "pid_limit", "cgroup")
    )
    _, report = _report()
    _, text = _run()
    processes, writes, names = report["weaknesses"]
    assert "can freeze the machine" in processes
    assert "changes the notebook's folder directly" in writes
    assert "modes, dates and attributes" in names
    assert all(line in text for line in report["weaknesses"])


@pytest.mark.parametrize(
    "found",
    [
        {"fault": KernelStartError("the kernel did not start: its [log]")},
        {"checks": (Check("an input can be read", False, "ImportError: pandas", is_needed=True),)},
    ],
)
def test_a_kernel_that_can_not_work_is_a_blocker(
    machine: dict[str, Any], found: dict[str, Any]
) -> None:
    machine.update(found)
    with ScriptedEndpoint([], models=["tiny"]) as endpoint:
        code, report = _report("--base-url", endpoint.base_url, "--model", "tiny")
    assert code == 1
    (blocker,) = _blockers(report)
    assert "its [log]" in blocker["detail"] or "ImportError: pandas" in blocker["detail"]


@pytest.mark.parametrize(
    ("models", "words", "helps"),
    [
        (["tiny-2", "big"], "has no model tiny, but tiny-2, big", "--model tiny-2"),
        ([], "has no model tiny. It lists no models.", ""),
        (401, "refuses the key", "export DM_JUPYTER_API_KEY"),
        (503, "answers 503", "--model tiny"),
    ],
)
def test_an_endpoint_that_can_not_answer_is_a_blocker(
    machine: dict[str, Any], models: list[str] | int, words: str, helps: str
) -> None:
    with ScriptedEndpoint([], models=models) as endpoint:
        code, report = _report("--base-url", endpoint.base_url, "--model", "tiny")
        (blocker,) = _blockers(report)
    assert code == 1
    assert words in blocker["detail"]
    assert blocker["command"].endswith(helps)
    assert bool(blocker["command"]) == bool(helps)


class _Page(BaseHTTPRequestHandler):
    """Answers everything with 200 and the same content."""

    endpoint: Pages

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.endpoint.content)))
        self.end_headers()
        self.wfile.write(self.endpoint.content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


class Pages(LocalServer):
    """A server that is none of a model."""

    handler = _Page

    def __init__(self, content: bytes) -> None:
        self.content = content


@pytest.mark.parametrize("content", [b"<html>Welcome</html>", b"\xff", b'{"status": "ok"}', b"7"])
@pytest.mark.parametrize("path", ["", "/", "/v1"])
def test_a_server_that_is_no_endpoint_is_a_blocker_and_its_address_said_to_be_wrong(
    machine: dict[str, Any], content: bytes, path: str
) -> None:
    with Pages(content) as pages:
        root = f"http://127.0.0.1:{pages.port}"
        code, report = _report("--base-url", root + path, "--model", "tiny")
    assert code == 1
    (blocker,) = _blockers(report)
    assert "answers, but not as a model's endpoint" in blocker["detail"]
    again = own_command("doctor", "--base-url", f"{root}/v1", "--model", "tiny")
    assert blocker["command"] == again


@pytest.mark.parametrize(
    ("content", "words"),
    [(b'[{"id": "big"}, 7]', "but big."), (b'{"data": null}', "It lists no models.")],
)
def test_lists_of_models_come_in_several_forms(
    machine: dict[str, Any], content: bytes, words: str
) -> None:
    with Pages(content) as pages:
        url = f"http://127.0.0.1:{pages.port}/v1"
        code, report = _report("--base-url", url, "--model", "tiny")
    assert code == 1
    (blocker,) = _blockers(report)
    assert words in blocker["detail"]


def test_an_endpoint_that_lists_no_models_may_be_asked(machine: dict[str, Any]) -> None:
    with ScriptedEndpoint([], models=404) as endpoint:
        code, report = _report("--base-url", endpoint.base_url, "--model", "tiny")
    assert (code, _blockers(report)) == (0, [])
    (model,) = (finding for finding in report["findings"] if finding["part"] == "model")
    assert model["state"] == "missing"


def test_a_silent_endpoint_is_a_blocker_and_its_password_shown_nowhere(
    machine: dict[str, Any],
) -> None:
    url = unused_url()
    code, report = _report("--base-url", url, "--model", "tiny")
    assert code == 1
    (blocker,) = _blockers(report)
    assert blocker["detail"].startswith(f"Nothing answers at {url}.")
    assert blocker["command"] == own_command("doctor", "--base-url", url, "--model", "tiny")
    with_password = url.replace("http://", "http://bob:s3cret@") + "?key=s3cret"
    assert _report("--base-url", with_password, "--model", "tiny") == (code, report)


def test_wrong_usage_is_exit_code_2(machine: dict[str, Any]) -> None:
    assert _run("--profile", "off")[0] == 2
    assert _run("--base-url", "http://models.example/v1")[0] == 2


@pytest.mark.slow
def test_the_real_machine_is_looked_at(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    code, report = _report()
    assert code == 1
    assert [blocker["part"] for blocker in _blockers(report)] == ["model"]
    assert {"kernel", "tried", "model", "package"} == {x["part"] for x in report["findings"]}
