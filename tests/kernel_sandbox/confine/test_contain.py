"""The layers: their states tell the truth, and each one holds against a cell that tries."""

import json
import os
import resource
import subprocess
import sys
import types
import venv
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from kernel_sandbox import environment
from kernel_sandbox.confine import (
    confine,
    namespaces,
    rlimits,
    run_folder,
    system,
    system_paths,
    view,
)
from kernel_sandbox.confine.layers import LAYER_NAMES, Containment, Layer, LayerState
from kernel_sandbox.confine.plan import KernelPaths, plan
from kernel_sandbox.confine.probe import layers_without_view, probe
from kernel_sandbox.confine.spec import ConfinementSpec, Report
from kernel_sandbox.confine.strictness import Strictness, shortcomings
from kernel_sandbox.errors import KernelStartError
from kernel_sandbox.files.layer_entries import protected_paths
from kernel_sandbox.files.workspace_layer import WorkspaceLayer
from kernel_sandbox.types import MIB, Limits

POLICY = ConfinementSpec(
    memory_bytes=1 << 40,
    cpu_s=10**6,
    processes=64,
    file_bytes=1 << 40,
    network=False,
    workspace="/nowhere",
    is_shared=False,
    layer="",
    run_dir="/nowhere/run",
    readable={},
    packages=(),
    overlay="",
    protected=(),
    confined=True,
    parent_pid=os.getppid(),
    is_root=False,
    user_number=0,
    tasks_before=0,
    shares_users=False,
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


def test_policy_and_report_survive_their_texts():
    assert ConfinementSpec.from_text(POLICY.to_text()) == POLICY
    report = Report(7, Containment((Layer("screen", LayerState.OFF, "x"),)))
    assert Report.from_text(report.to_text()) == report


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


def test_a_private_folder_that_can_not_be_emptied_is_named(monkeypatch, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "left.csv").write_text("x")
    monkeypatch.setattr(run_folder, "remove_tree", lambda _: None)
    with pytest.raises(KernelStartError, match=r"can't be filled: .*home.* start a new one"):
        run_folder.furnish(tmp_path)


def test_a_persons_own_chart_style_comes_before_ours(monkeypatch, tmp_path):
    monkeypatch.delenv("MPLCONFIGDIR", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert "cycler" in environment.chart_style().read_text()
    (tmp_path / "matplotlib").mkdir()
    own = tmp_path / "matplotlib" / "matplotlibrc"
    own.write_text("lines.linewidth: 7")
    assert environment.chart_style() == own
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path))
    assert environment.chart_style() != own


def test_limits_are_what_the_policy_says():
    tight = replace(POLICY, memory_bytes=MIB, cpu_s=3)
    assert rlimits.wanted(tight, counts_processes=False)[resource.RLIMIT_CPU] == (3, 8)
    assert resource.RLIMIT_NPROC not in rlimits.wanted(tight, counts_processes=False)
    assert (
        rlimits.wanted(tight, counts_processes=True)[resource.RLIMIT_NPROC]
        == (64 + rlimits.THREADS,) * 2
    )


@pytest.fixture
def harmless_limits(monkeypatch):
    """Limits that this process can take for good: higher than any test needs."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    monkeypatch.setattr(rlimits, "OPEN_FILES", hard)


def test_limits_are_set_and_never_loosened(harmless_limits):
    layer = rlimits.apply_rlimits(POLICY, counts_processes=False)
    assert layer.state is LayerState.ACTIVE
    assert "processes" not in layer.reason
    assert resource.getrlimit(resource.RLIMIT_FSIZE) == (1 << 40, 1 << 40)
    looser = replace(POLICY, file_bytes=1 << 41)
    assert rlimits.apply_rlimits(looser, counts_processes=False).state is LayerState.ACTIVE
    assert resource.getrlimit(resource.RLIMIT_FSIZE) == (1 << 40, 1 << 40)


def test_namespaces_that_are_the_parents_own_are_not_active():
    same = replace(POLICY, namespaces=namespaces.current_namespaces())
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
import json, sys
from kernel_sandbox.confine.confine import confine_late, contained
from kernel_sandbox.confine.spec import ConfinementSpec
policy = ConfinementSpec.from_text(sys.stdin.read())
def tell(containment):
    print(json.dumps(confine_late(policy, containment).to_json()))
    if len(sys.argv) > 1:
        exec(sys.argv[1], {})
    return 7
sys.exit(contained(policy, tell))
"""


def confine_in_child(policy, tmp_path, environ, *code, python=sys.executable):
    command = [python, "-c", CONFINE, *code]
    return subprocess.run(
        command,
        input=policy.to_text(),
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environ,
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
    layer = rlimits.apply_rlimits(POLICY, counts_processes=True)
    assert layer.state is LayerState.REFUSED
    assert "not permitted" in layer.reason


def test_a_limit_that_is_accepted_and_not_kept_is_refused(monkeypatch):
    monkeypatch.setattr(resource, "setrlimit", lambda number, pair: None)
    tight = replace(POLICY, file_bytes=1)
    assert "did not take" in rlimits.apply_rlimits(tight, counts_processes=False).reason


def test_a_launcher_whose_parent_is_gone_ends_itself(tmp_path):
    orphan = replace(POLICY, parent_pid=1, workspace=str(tmp_path))
    assert confine_in_child(orphan, tmp_path, dict(os.environ)).returncode == -9


_FORKS_FOR_S = 60
_LEAVES_FORKING = f"""
import os, resource, time
from kernel_sandbox.confine import confine, counting, privileges
privileges.become_subreaper()
end = time.monotonic() + {_FORKS_FOR_S}
if os.fork() == 0:
    if number := counting.unused_user():
        os.setresuid(number, number, number)
    most = counting.tasks_of_user() + 150
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
    while time.monotonic() < end:
        try:
            if os.fork() == 0:
                os.setsid()
                if os.fork():
                    os._exit(0)
        except OSError:
            pass
    os._exit(0)
time.sleep(0.5)
confine._end_descendants()
print(time.monotonic() < end)
"""


def test_a_monitor_ends_what_forks_as_fast_as_it_is_reaped():
    """Each process of it lets go of its parent; with time it would end by itself."""
    done = subprocess.run(
        [sys.executable, "-c", _LEAVES_FORKING],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "True\n", done.stderr


@pytest.fixture
def places(tmp_path):
    for name in ("work", "run", "run/home", "run/tmp"):
        (tmp_path / name).mkdir()
    (tmp_path / "in.csv").write_text("a\n1\n")
    return KernelPaths(tmp_path / "work", tmp_path / "run", (tmp_path / "in.csv",))


def run_contained(places, code="", limits=None, **kwargs):
    policy = plan(limits or Limits(), places, tuple(os.environ), **kwargs)
    done = confine_in_child(policy, places.workspace, dict(os.environ), code)
    assert done.returncode == 7, done.stderr
    first, *rest = done.stdout.splitlines()
    return Containment.from_json(json.loads(first)), rest


def test_every_layer_of_this_machine_holds_and_the_exit_status_comes_through(places):
    layers, _ = run_contained(places)
    assert [layer for layer in layers.layers if layer.state is not LayerState.ACTIVE] == []
    assert {"read_only_view", "landlock", "seccomp", "capabilities"} <= {
        x.name for x in layers.layers
    }
    assert probe().containment.missing(("read_only_view", "seccomp", "landlock")) == ()


def test_without_namespaces_the_others_hold_the_network(places):
    layers, _ = run_contained(places, isolate=False)
    assert layers.get("read_only_view").state is LayerState.OFF
    assert layers.missing(("landlock", "seccomp", "late_seccomp", "rlimits")) == ()
    assert shortcomings(Strictness.INTERACTIVE, layers) == ()
    lacking = shortcomings(Strictness.ROLLOUT, layers)
    assert [text.partition(" (")[0] for text in lacking] == ["memory"]
    counted = "by a user of its own" if os.geteuid() == 0 else "with all that its user runs"
    assert counted in layers.get("pid_limit").reason


def test_unconfined_is_off_in_every_layer(places):
    layers, _ = run_contained(places, confined=False)
    assert {layer.state for layer in layers.layers} == {LayerState.OFF}
    assert len(shortcomings(Strictness.ROLLOUT, layers)) == 6


@pytest.mark.parametrize("isolate", [True, False], ids=["namespaces", "none"])
def test_only_its_own_folders_can_be_written(places, isolate):
    secret = places.workspace.parent / "secret.txt"
    secret.write_text("x")
    code = """
import os
def attempt(path, mode):
    try:
        open(path, mode).close()
        return "yes"
    except OSError as error:
        return type(error).__name__
for path, mode in PATHS:
    print(attempt(path, mode))
"""
    paths = [
        (str(places.workspace / "new"), "w"),
        (str(places.run_dir / "home" / "new"), "w"),
        (str(places.readable[0]), "r"),
        (str(places.run_dir / "new"), "w"),
        (str(places.readable[0]), "a"),
        (str(secret), "r"),
        ("/etc/passwd", "r"),
        ("/usr/new", "w"),
    ]
    _, lines = run_contained(places, f"PATHS = {paths!r}\n{code}", isolate=isolate)
    assert lines[:3] == ["yes"] * 3
    assert "yes" not in lines[3:]


def test_notebooks_and_version_control_in_the_folder_stay_as_they_are(places):
    work = places.workspace
    (work / "deep" / "deeper").mkdir(parents=True)
    (work / ".git" / "hooks").mkdir(parents=True)
    kept = [work / "a.ipynb", work / "deep" / "deeper" / "b.ipynb", work / ".git" / "config"]
    for path in kept:
        path.write_text("{}")
    (work / "link.ipynb").symlink_to("/etc")
    found = {path.relative_to(work).as_posix() for path in protected_paths(work)}
    assert found == {"a.ipynb", "deep/deeper/b.ipynb", ".git"}
    code = f"""
import os
for act in (
    lambda: open({str(kept[0])!r}, "w"), lambda: os.unlink({str(kept[1])!r}),
    lambda: os.rename({str(kept[0])!r}, "x"), lambda: open(".git/hooks/pre-commit", "w"),
    lambda: os.rename(".git", "git"), lambda: open("deep/deeper/c.txt", "w"),
):
    try:
        act()
        print("yes")
    except OSError as error:
        print("no")
"""
    _, lines = run_contained(places, code)
    assert lines == ["no"] * 5 + ["yes"]
    assert {path.read_text() for path in kept} == {"{}"}


ATTEMPTS = """
import errno, os
for act in ACTS:
    try:
        exec(act)
        print("yes")
    except OSError as error:
        print(errno.errorcode[error.errno])
"""


def attempted(places, *acts):
    return run_contained(places, f"ACTS = {acts!r}\n{ATTEMPTS}")[1]


SETTINGS = ("pip.conf", "etc/odbc.ini", "etc/jupyter/config.d/a.json", "etc/fonts/fonts.conf")


def environment_in(folder):
    """Makes a Python environment with settings and returns its interpreter."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "ours.pth").write_text("\n".join(path for path in sys.path if path))
    for name in SETTINGS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("password")
    return folder / "bin" / "python"


@pytest.mark.parametrize("has_layer", [True, False], ids=["layer", "direct"])
def test_an_environment_in_the_folder_stays_as_it_is(places, tmp_path, has_layer):
    environment_inside = environment_in(places.workspace / "proj" / ".venv")
    (place,) = environment_inside.parents[1].glob("lib/python*/site-packages")
    site = place.relative_to(places.workspace)
    acts = (
        f"open('{site}/sitecustomize.py', 'w')",
        f"open('{site}/ours.pth', 'a')",
        "os.unlink('proj/.venv/bin/python')",
        "os.rename('proj/.venv', 'proj/old')",
        "os.rename('proj', 'old')",
        "os.mkdir('proj/.venv/new')",
        "open('proj/new.csv', 'w')",
        "assert __import__('sys').prefix == os.path.abspath('proj/.venv')",
        "assert open('proj/.venv/pip.conf').read() == ''",
    )
    layer = WorkspaceLayer(places.workspace, tmp_path, MIB) if has_layer else None
    given = replace(places, is_shared=True, layer=layer.path) if layer else places
    policy = plan(Limits(), given, tuple(os.environ))
    code = f"ACTS = {acts!r}\n{ATTEMPTS}"
    done = confine_in_child(
        policy, places.workspace, dict(os.environ), code, python=environment_inside
    )
    if layer is not None:
        layer.remove()
    assert done.returncode == 7, done.stderr
    lines = done.stdout.splitlines()[1:]
    assert lines == ["EROFS", "EROFS", "EROFS", "EBUSY", "EBUSY", "EROFS", *["yes"] * 3]


@pytest.mark.parametrize("isolate", [True, False], ids=["namespaces", "none"])
def test_settings_beside_the_interpreter_are_hidden_and_so_are_private_keys(
    places, tmp_path, isolate
):
    python = environment_in(tmp_path / "venv")
    paths = [str(tmp_path / "venv" / name) for name in (*SETTINGS, "pyvenv.cfg")]
    code = f"""
import os, ssl, sys
def attempt(act):
    try:
        return bool(act())
    except OSError:
        return False
for path in {paths!r}:
    print(attempt(lambda: open(path).read()))
print(attempt(lambda: [os.listdir("/etc/ssl/private")]))
print(len(os.listdir("/etc/ssl/certs")) > 0, "bin" in os.listdir(sys.prefix))
"""
    policy = plan(Limits(), places, tuple(os.environ), isolate=isolate)
    done = confine_in_child(policy, places.workspace, dict(os.environ), code, python=python)
    assert done.returncode == 7, done.stderr
    lines = done.stdout.splitlines()[1:]
    assert lines == [*["False"] * 3, "True", "True", "False", "True True"]
    trees, around = system_paths.base_rules(network=True)
    private = Path("/etc/ssl/private/key.pem")
    assert not {*private.parents, private}.intersection((*trees, *around))


def test_a_folder_with_what_must_stay_unwritable_is_unfit(monkeypatch, tmp_path):
    project, run_dir = tmp_path / "project", tmp_path / "run"
    (project / ".venv").mkdir(parents=True)
    (project / "link").symlink_to(project / ".venv")
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    unfit = partial(system_paths.unfit, run_dir=run_dir)
    monkeypatch.setattr(system_paths, "interpreter_folders", lambda: (project / ".venv",))
    assert unfit(project, has_view=True) == ""
    assert "can't be kept read-only" in unfit(project, has_view=False)
    assert "can't be kept read-only" in unfit(project / ".venv", has_view=True)
    assert unfit(tmp_path, has_view=True) == f"it contains {tmp_path / 'home'}"
    assert unfit(run_dir, has_view=True) == f"it contains {run_dir}"
    assert unfit(Path("/usr"), has_view=True) == "it contains /usr"
    monkeypatch.setattr(system_paths, "interpreter_folders", lambda: (project / "link",))
    assert "can't be kept read-only" in unfit(project, has_view=True)
    (tmp_path / "home").symlink_to(tmp_path / "disk" / "me")
    assert unfit(tmp_path / "disk", has_view=True) == f"it contains {tmp_path / 'disk' / 'me'}"


def test_the_folders_above_protected_files_stay_where_they_are(places):
    work = places.workspace
    (work / "proj" / "sub" / ".git").mkdir(parents=True)
    (work / "proj" / "in.csv").write_text("a")
    (work / "free").mkdir()
    inside = replace(places, readable=(work / "proj" / "in.csv",))
    lines = attempted(
        inside,
        "os.rename('proj', 'p2')",
        "os.rename('proj/sub', 'proj/p2')",
        "os.rename('free', 'proj/sub/free')",
        "open('proj/in.csv', 'w')",
        "open('proj/sub/.git/x', 'w')",
        "open('proj/sub/a', 'w')",
        "os.rename('proj/sub/a', 'proj/sub/b')",
        "__import__('shutil').move('proj/sub/b', 'c')",
        "os.mkdir('proj/new'); os.rmdir('proj/new')",
        "os.rename('free', 'freed')",
    )
    assert lines == ["EBUSY", "EBUSY", "EXDEV", "EROFS", "EROFS", *["yes"] * 5]
    assert {"c", "freed", "proj/sub/.git"} <= {str(x.relative_to(work)) for x in work.rglob("*")}


def test_what_takes_the_place_of_a_protected_path_before_the_start_is_not_followed(places):
    work, planted = places.workspace, places.workspace.parent / "planted"
    secret = places.workspace.parent / "secrets"
    secret.mkdir()
    (secret / "b.ipynb").write_text("secret")
    (work / "proj").mkdir()
    for path in (work / "a.ipynb", work / "gone.ipynb", work / "proj" / "b.ipynb"):
        path.write_text("{}")
    policy = plan(Limits(), places, tuple(os.environ))
    (work / "gone.ipynb").unlink()
    (work / "a.ipynb").unlink()
    (work / "a.ipynb").symlink_to(planted)
    (work / "proj").rename(work / "moved")
    (work / "proj").symlink_to(secret)
    code = "import os; print(os.path.exists('proj/b.ipynb'), os.path.exists('gone.ipynb'))"
    done = confine_in_child(policy, work, dict(os.environ), code)
    assert done.returncode == 7, done.stderr
    assert done.stdout.splitlines()[1:] == ["False False"]
    assert not planted.exists()
    assert not (work / "gone.ipynb").exists()


def test_an_input_in_the_folder_that_a_link_has_replaced_ends_the_start(places):
    own = places.workspace / "own.csv"
    own.write_text("a")
    policy = plan(Limits(), replace(places, readable=(own,)), tuple(os.environ))
    own.unlink()
    own.symlink_to(places.readable[0])
    done = confine_in_child(policy, places.workspace, dict(os.environ))
    assert done.returncode == confine.START_FAILED
    assert "own.csv" in done.stderr


@pytest.mark.parametrize("name", ["work", "inputs", "inputs/in.csv"])
def test_what_a_link_has_replaced_before_the_start_is_neither_read_nor_written(places, name):
    base, secret = places.workspace.parent, places.workspace.parent / "secrets"
    for folder in (base / "inputs", secret, secret / "in.csv"):
        folder.mkdir()
    given = base / "inputs" / "in.csv"
    given.write_text("a")
    policy = plan(Limits(), replace(places, readable=(given,)), tuple(os.environ))
    (base / name).rename(base / "moved")
    (base / name).symlink_to(secret)
    done = confine_in_child(policy, base, dict(os.environ))
    assert done.returncode == confine.START_FAILED
    assert f"was replaced by a link: '{base / name}" in done.stderr


@pytest.mark.parametrize("isolate", [True, False], ids=["namespaces", "none"])
def test_a_name_that_was_a_link_shows_what_it_led_to_when_it_was_asked_for(places, isolate):
    base = places.workspace.parent
    for number in range(2):
        (base / f"data{number}").mkdir()
        (base / f"data{number}" / "in.csv").write_text(str(number))
    name = base / "data"
    name.symlink_to(base / "data0")
    policy = plan(Limits(), replace(places, readable=(name,)), tuple(os.environ), isolate=isolate)
    name.unlink()
    name.symlink_to(base / "data1")
    code = f"""
for folder in ("data", "data0", "data1"):
    try:
        print(open({str(base)!r} + "/" + folder + "/in.csv").read())
    except OSError:
        print("no")
"""
    done = confine_in_child(policy, places.workspace, dict(os.environ), code)
    assert done.stdout.splitlines()[1:] == (["0", "no", "no"] if isolate else ["no", "0", "no"])


def test_a_folder_around_the_own_ones_may_be_read(places):
    base = places.workspace.parent
    (base / "other").mkdir()
    code = f"""
import os
print(os.path.isdir({str(base)!r} + "/other"))
open("new", "w").close()
open(os.environ["RUN"] + "/tmp/new", "w").close()
try:
    open({str(base)!r} + "/other/new", "w")
except OSError as error:
    print(error.strerror)
"""
    lines = run_contained(
        replace(places, readable=(base,)),
        f"import os; os.environ['RUN'] = {str(places.run_dir)!r}{code}",
    )[1]
    assert lines == ["True", "Read-only file system"]


def test_a_link_in_the_folder_leads_to_what_may_be_read(places):
    link = places.workspace / "link.csv"
    link.symlink_to(places.readable[0])
    lines = run_contained(replace(places, readable=(link,)), "print(open('link.csv').read())")[1]
    assert lines[:2] == ["a", "1"]


def test_the_network_is_there_only_when_allowed_and_so_are_its_settings(places):
    code = (
        "import os, socket; print(len(socket.if_nameindex()), os.path.exists('/etc/resolv.conf'))"
    )
    _, lines = run_contained(places, code)
    assert lines == ["1 False"]
    layers, lines = run_contained(places, code, limits=Limits(network=True))
    assert lines[0].endswith(str(Path("/etc/resolv.conf").exists()))
    assert layers.get("network_namespace").state is LayerState.OFF


def test_the_processes_are_numbered_up_to_a_limit(places):
    code = """
import os
count = 0
try:
    while count < 3000:
        if os.fork() == 0:
            import signal
            signal.pause()
        count += 1
except OSError:
    pass
print(count)
"""
    _, lines = run_contained(places, code, limits=Limits(processes=8))
    assert int(lines[0]) < 8 + 256 + 300


@pytest.mark.parametrize(
    ("release", "is_own"), [("6.12.3+deb13-arm64", False), ("6.14.0", True), ("7.0-rc1", True)]
)
def test_the_machines_own_limit_is_left_alone_before_linux_6_14(
    tmp_path, monkeypatch, release, is_own
):
    """Root can write it from within a namespace, too: all of the machine would meet it."""
    limit = tmp_path / "proc/sys/kernel/pid_max"

    def mount(source, target, kind, flags):
        limit.parent.mkdir(parents=True)
        limit.write_text("4194304")

    monkeypatch.setattr(system, "mount", mount)
    monkeypatch.setattr(system, "make_read_only", lambda target, recursive: None)
    monkeypatch.setattr(os, "uname", lambda: types.SimpleNamespace(release=release))
    view._make_proc(tmp_path, 436)
    assert limit.read_text() == ("436" if is_own else "4194304")


def test_layers_without_namespaces_are_those_that_need_none():
    found = layers_without_view()
    assert found.missing(("seccomp", "landlock", "late_seccomp")) == ()
    assert not found.is_active("network_namespace")


def test_a_machine_without_namespaces_is_told_from_one_with(places, monkeypatch):
    monkeypatch.setattr("kernel_sandbox.confine.probe._TRY", "raise SystemExit('not here')")
    probe.cache_clear()
    try:
        found = probe()
    finally:
        probe.cache_clear()
    assert (found.has_view, found.state) == (False, LayerState.REFUSED)
    assert "not here" in found.reason
    assert found.containment.layers == ()


def test_a_view_that_can_not_be_built_ends_the_process_with_its_words(places):
    policy = plan(Limits(), places, tuple(os.environ))
    broken = replace(policy, readable={"/no/such/input": "/no/such/input"})
    done = confine_in_child(broken, places.workspace, dict(os.environ))
    assert done.returncode == confine.START_FAILED
    assert "could not create the view of the files" in done.stderr
    assert "/no/such/input" in done.stderr
