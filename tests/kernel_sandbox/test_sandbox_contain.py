"""The layers: their states tell the truth, and each one holds against a cell that tries."""

import json
import os
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kernel_sandbox import environment, launch
from kernel_sandbox.contain import bubblewrap, namespaces, privileges, rlimits
from kernel_sandbox.containment import LAYER_NAMES, Containment, Layer, LayerState
from kernel_sandbox.policy import Policy, Report
from kernel_sandbox.types import MIB

POLICY = Policy(
    memory_bytes=1 << 40,
    cpu_s=10**6,
    processes=64,
    file_bytes=1 << 40,
    network=False,
    workspace="/nowhere",
    report="/nowhere/report.json",
    parent_pid=os.getppid(),
    is_root=False,
    namespaces={},
    environment=(),
    no_view="there is none",
    no_view_state="absent",
)


def test_containment_is_ordered_complete_and_survives_json():
    whole = Containment().with_layers(
        [Layer("screen", LayerState.ACTIVE), Layer("rlimits", LayerState.REFUSED, "no")]
    )
    assert [layer.name for layer in whole.layers] == ["rlimits", "screen"]
    assert whole.summary() == "1 of 2 layers active (rlimits refused)"
    assert Containment.from_json(json.loads(json.dumps(whole.to_json()))) == whole
    assert [layer.name for layer in whole.missing(LAYER_NAMES)] == [
        name for name in LAYER_NAMES if name != "screen"
    ]
    assert whole.get("environment").state is LayerState.ABSENT
    better = whole.with_layers([Layer("rlimits", LayerState.ACTIVE)])
    assert better.summary() == "2 of 2 layers active"


def test_policy_and_report_survive_their_files(tmp_path):
    POLICY.write(tmp_path / "policy.json")
    assert Policy.read(tmp_path / "policy.json") == POLICY
    report = Report(7, Containment((Layer("screen", LayerState.OFF, "x"),)))
    report.write(tmp_path / "report.json")
    assert Report.read(tmp_path / "report.json") == report
    assert sorted(path.name for path in tmp_path.iterdir()) == ["policy.json", "report.json"]


def test_the_environment_is_a_list_of_what_may_pass(monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("https_proxy", "http://user:secret@proxy")
    monkeypatch.setenv("PYTHONPATH", "/evil")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.delenv("PATH")
    found = environment.kernel_environment(tmp_path, tmp_path / "run")
    assert "secret" not in str(found)
    assert "PYTHONPATH" not in found
    assert found["LC_ALL"] == "C.UTF-8"
    assert found["PATH"] == os.defpath
    assert found["HOME"] == str(tmp_path / "run" / "home")
    assert "OPENAI_API_KEY" in environment.unexpected_names(found)


def test_the_run_folder_is_short_and_font_lists_are_found(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert environment.runtime_base() == tmp_path
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "none"))
    assert environment.runtime_base() == Path("/tmp")
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert environment.runtime_base() == Path("/tmp")
    (tmp_path / "matplotlib").mkdir()
    (tmp_path / "matplotlib" / "fontlist-v1.json").write_text("{}")
    monkeypatch.delenv("MPLCONFIGDIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert [path.name for path in environment.font_caches()] == ["fontlist-v1.json"]
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path))
    assert environment.font_caches() == ()


def test_limits_are_what_the_policy_says():
    tight = replace(POLICY, memory_bytes=MIB, cpu_s=3)
    assert rlimits.wanted(tight, counts_processes=False)[resource.RLIMIT_CPU] == (3, 8)
    assert resource.RLIMIT_NPROC not in rlimits.wanted(tight, counts_processes=False)
    assert rlimits.wanted(tight, counts_processes=True)[resource.RLIMIT_NPROC] == (320, 320)


@pytest.fixture
def harmless_limits(monkeypatch):
    """Limits that this process can take for good: higher than any test needs."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    monkeypatch.setattr(rlimits, "OPEN_FILES", hard)


def test_limits_are_set_and_never_loosened(harmless_limits):
    layer = rlimits.apply(POLICY, counts_processes=False)
    assert layer.state is LayerState.ACTIVE
    assert "by the watchdog" in layer.reason
    assert resource.getrlimit(resource.RLIMIT_FSIZE) == (1 << 40, 1 << 40)
    looser = replace(POLICY, file_bytes=1 << 41)
    assert rlimits.apply(looser, counts_processes=False).state is LayerState.ACTIVE
    assert resource.getrlimit(resource.RLIMIT_FSIZE) == (1 << 40, 1 << 40)


def test_namespaces_that_are_the_parents_own_are_not_active():
    same = replace(POLICY, namespaces=namespaces.current())
    layers = {layer.name: layer for layer in namespaces.observe(same)}
    assert {layer.state for layer in layers.values()} == {LayerState.ABSENT}
    assert not namespaces.has_own_user(same)
    claimed = replace(same, no_view="", no_view_state="active")
    layers = {layer.name: layer for layer in namespaces.observe(claimed)}
    assert {layer.state for layer in layers.values()} == {LayerState.REFUSED}
    open_net = {layer.name: layer for layer in namespaces.observe(replace(same, network=True))}
    assert open_net["network_namespace"].state is LayerState.OFF


def test_another_namespace_with_a_hole_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    apart = replace(POLICY, namespaces=dict.fromkeys(("mnt", "pid", "net", "user"), "other"))
    layers = {layer.name: layer for layer in namespaces.observe(apart)}
    assert layers["read_only_view"].state is LayerState.REFUSED
    assert layers["pid_namespace"].state is LayerState.ACTIVE
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "none"))
    layers = {layer.name: layer for layer in namespaces.observe(apart)}
    assert "writing beside the interpreter" in layers["read_only_view"].reason


CONFINE = """
import json, os, sys
from pathlib import Path
from kernel_sandbox import launch
from kernel_sandbox.policy import Policy
print(json.dumps(launch.confine(Policy.read(Path(sys.argv[1]))).to_json()))
"""


def confine_in_child(policy, tmp_path, environ):
    policy.write(tmp_path / "policy.json")
    command = [sys.executable, "-c", CONFINE, str(tmp_path / "policy.json")]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environ
    )


def test_the_launcher_reports_what_it_did(tmp_path):
    environ = {"PATH": os.environ["PATH"], "EXTRA": "1"}
    policy = replace(POLICY, workspace=str(tmp_path), parent_pid=os.getpid(), environment=("PATH",))
    done = confine_in_child(policy, tmp_path, environ)
    layers = Containment.from_json(json.loads(done.stdout))
    assert layers.is_active("private_workspace")
    assert layers.is_active("no_new_privs")
    assert "EXTRA" in layers.get("environment").reason
    assert layers.get("read_only_view").reason == "there is none"
    good = replace(policy, environment=("PATH", "EXTRA"), workspace="/elsewhere")
    layers = Containment.from_json(json.loads(confine_in_child(good, tmp_path, environ).stdout))
    assert layers.is_active("environment")
    assert layers.get("private_workspace").state is LayerState.REFUSED


def test_a_limit_that_the_system_does_not_take_is_refused(monkeypatch):
    def refuse(number, pair):
        raise OSError(1, "not permitted")

    monkeypatch.setattr(resource, "setrlimit", refuse)
    layer = rlimits.apply(POLICY, counts_processes=True)
    assert layer.state is LayerState.REFUSED
    assert "not permitted" in layer.reason


def test_a_limit_that_is_accepted_and_not_kept_is_refused(monkeypatch):
    monkeypatch.setattr(resource, "setrlimit", lambda number, pair: None)
    tight = replace(POLICY, file_bytes=1)
    assert "did not take" in rlimits.apply(tight, counts_processes=False).reason


def test_a_launcher_whose_parent_is_gone_ends_itself(tmp_path):
    orphan = replace(POLICY, parent_pid=1, workspace=str(tmp_path))
    assert confine_in_child(orphan, tmp_path, dict(os.environ)).returncode == -9


def test_confining_in_process_says_where_it_is_not_at_home(monkeypatch, harmless_limits):
    monkeypatch.setattr(privileges, "die_with_parent", lambda pid: True)
    found = launch.confine(POLICY)
    assert found.get("private_workspace").state is LayerState.REFUSED
    assert found.get("environment").state is LayerState.REFUSED
    assert found.is_active("no_new_privs")


def test_the_command_line_shows_the_interpreter_and_not_the_home(tmp_path):
    view = bubblewrap.View(tmp_path, tmp_path / "run", (tmp_path / "in.csv",), network=True)
    line = bubblewrap.arguments("/usr/bin/bwrap", view, ("--disable-userns",))
    assert "--unshare-net" not in line
    assert str(Path.home()) not in line
    assert "/etc/resolv.conf" in line
    assert line.index("/tmp") < line.index(str(tmp_path)) < line.index(str(tmp_path / "in.csv"))
    offline = bubblewrap.arguments("/usr/bin/bwrap", replace(view, network=False))
    assert "--unshare-net" in offline
    assert "/etc/resolv.conf" not in offline


def test_an_older_program_is_used_without_the_newer_options(monkeypatch, tmp_path):
    old = tmp_path / "bwrap"
    old.write_text("#!/bin/sh\ncase $1 in --disable-userns) exit 1;; esac\nexit 0\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    found = bubblewrap.probe()
    assert (found.state, found.options) == (LayerState.ACTIVE, ())


def test_a_program_that_can_not_run_is_refused(monkeypatch, tmp_path):
    broken = tmp_path / "bwrap"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert bubblewrap.probe().state is LayerState.REFUSED
