"""Missing packages: what a cell wants, what may be installed, what an installation leaves."""

import asyncio
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
from importlib.metadata import version
from pathlib import Path

import psutil
import pytest

from kernel_sandbox.environment import pip_environment
from kernel_sandbox.errors import PackageError
from kernel_sandbox.packages.overlay import LockFile, Overlay, OverlayState
from kernel_sandbox.packages.packages import (
    AllowList,
    PackageInstaller,
    WithPackages,
    missing_imports,
)
from kernel_sandbox.packages.pip_process import check_requirement
from kernel_sandbox.runners.session import KernelSession
from kernel_sandbox.types import CellResult, CellStatus
from tests.wheels import index_variables, make_wheel

INSTALL = """
import asyncio, sys
from pathlib import Path
from kernel_sandbox.packages.overlay import Overlay
say = lambda line: print(line, flush=True)
print(len(asyncio.run(Overlay(Path(sys.argv[1])).install(sys.argv[2:], say))))
"""


def make_source_archive(path, name, proof):
    """A source distribution that leaves a file behind when its code runs."""
    setup = f"open({str(proof)!r}, 'w').close()\nfrom setuptools import setup\nsetup(name={name!r})"
    with tarfile.open(path, "w:gz") as archive:
        for file, text in {"setup.py": setup, "PKG-INFO": f"Name: {name}\nVersion: 1\n"}.items():
            member = tarfile.TarInfo(f"{name}-1/{file}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def index(tmp_path, monkeypatch):
    folder = tmp_path / "index"
    folder.mkdir()
    for name, value in index_variables(folder).items():
        monkeypatch.setenv(name, value)
    return folder


@pytest.fixture
def overlay(index, tmp_path):
    made = Overlay(tmp_path / "overlays")
    made.site.mkdir(parents=True)
    return made


def entries(overlay):
    return sorted(path.name for path in overlay.site.iterdir())


def leftovers(overlay):
    return sorted(path.name for path in overlay.site.parent.glob("staging-*"))


async def reach(event, task):
    """Waits for an event on the way of a task; the task's own error comes first."""
    waiting = asyncio.create_task(event.wait())
    await asyncio.wait((waiting, task), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    assert not task.done(), task.result()


async def run_python(overlay, code):
    """Runs code as a kernel would: the overlay at the end of the path."""
    start = f"import sys; sys.dont_write_bytecode = True; sys.path.append({str(overlay.site)!r})\n"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-c", start + code, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    return output.decode().strip()


# What a cell wants


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("import aaa, bbb.ccc as d\nfrom eee.f import g\nimport aaa", ("aaa", "bbb", "eee")),
        ("import os, json\nfrom . import x\nfrom .y import z\nimport known", ()),
        ("def f():\n  import aaa\nasync def g():\n  import bbb\nh = lambda: 1", ()),
        ("if 1:\n  import aaa\nelif 2:\n  import bbb\nelse:\n  import ccc", ("aaa", "bbb", "ccc")),
        ("class A:\n  import aaa\nwith x:\n  for i in y:\n    import bbb", ("aaa", "bbb")),
        ("match x:\n  case 1:\n    import aaa", ("aaa",)),
        ("try:\n  import aaa\nexcept ImportError:\n  import bbb\nelse:\n  import ccc", ("ccc",)),
        ("try:\n  import aaa\nexcept (KeyError, ModuleNotFoundError):\n  pass", ()),
        ("try:\n  import aaa\nexcept:\n  pass\nfinally:\n  import bbb", ("bbb",)),
        ("try:\n  import aaa\nexcept Exception as e:\n  pass\nimport bbb", ("bbb",)),
        ("try:\n  import aaa\nexcept KeyError:\n  import bbb", ("aaa", "bbb")),
        ("try:\n  if x:\n    import aaa\nexcept ImportError:\n  pass", ()),
        ("%matplotlib inline\nimport aaa\n!ls", ("aaa",)),
        ("%%time\nimport aaa", ("aaa",)),
        ("%time import aaa", ("aaa",)),
        ("%%bash\nimport aaa", ()),
        ("%%time\n" * 9 + "import aaa", ()),
        ("import aaa\nthis is no python", ()),
        ("", ()),
    ],
)
def test_a_cell_wants_what_it_imports_as_it_runs(source, wanted):
    assert missing_imports(source, lambda name: name == "known") == wanted


# What may be installed


def test_the_list_that_comes_with_the_package_knows_modules_by_their_import_names():
    allow = AllowList.load()
    assert (allow["sklearn"], allow["yaml"], allow["PIL"]) == ("scikit-learn", "PyYAML", "pillow")
    assert (allow["bs4"], allow["Bio"]) == ("beautifulsoup4", "biopython")
    assert 60 <= len(allow) <= 90
    assert list(allow) == list(dict.fromkeys(allow))


def test_a_refusal_names_what_is_close_or_nothing():
    allow = AllowList({"tabulate": "tabulate", "PIL": "pillow"})
    start = "is not among the packages that may be installed; "
    assert allow.refusal("tabulatte") == f"`tabulatte` {start}use one of `tabulate`"
    assert allow.refusal("pill") == f"`pill` {start}use one of `PIL`"
    assert allow.refusal("xyz") == f"`xyz` {start}do it with the packages that are there"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[imports]\na = 'a'\n[extra]\nb = 1", "unknown keys: extra"),
        ("", "no table `imports`"),
        ("imports = 1", "no table `imports`"),
        ("[imports]\na = 1", "invalid entry: 'a'"),
        ("[imports]\n'a-b' = 'ab'", "invalid entry: 'a-b'"),
        ("[imports]\na = 'a @ https://x/a.whl'", "not a package name"),
        ("not toml", "can't be read"),
    ],
)
def test_a_list_with_anything_odd_is_refused(tmp_path, text, says):
    path = tmp_path / "own.toml"
    path.write_text(text)
    with pytest.raises(PackageError, match=says):
        AllowList.load(path)


@pytest.mark.parametrize("text", ["--pre", "-r x", "./a", "a @ file:///x", "a; os_name", "a b", ""])
def test_a_requirement_is_a_name_with_versions_and_nothing_else(text):
    assert check_requirement("a-b.c[d, e] >=1.0, <2") == "a-b.c[d, e] >=1.0, <2"
    with pytest.raises(PackageError, match="not a package name"):
        check_requirement(text)


def test_pip_gets_its_own_settings_and_no_secret(monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.example/simple")
    variables = pip_environment(tmp_path)
    assert variables["PIP_INDEX_URL"] == "https://index.example/simple"
    assert variables["TMPDIR"] == str(tmp_path)
    assert not {"OPENAI_API_KEY", "PYTHONPATH"} & set(variables)


# Installing


async def test_a_package_comes_with_what_it_needs_and_a_process_imports_it(index, overlay):
    first = make_wheel(index, "dm_alpha", requires=["dm-beta>=2"])
    make_wheel(index, "dm_beta", "1.0")
    make_wheel(index, "dm_beta", "2.0")
    lines = []
    added = await overlay.install(["dm-alpha"], lines.append)
    assert {(one.name, one.version) for one in added} == {("dm_alpha", "1.0"), ("dm_beta", "2.0")}
    code = "import dm_alpha, dm_beta; print(dm_alpha.version, dm_beta.version)"
    assert await run_python(overlay, code) == "1.0 2.0"
    assert overlay.packages == added
    record = json.loads((overlay.site.parent / "installed.json").read_text())
    assert sha256(first) in [package["sha256"] for package in record["packages"]]
    assert lines[0] == "Looking for dm-alpha"
    assert lines[1].startswith("Installing dm_")
    assert await overlay.importable(["dm_alpha", "json", "nowhere"]) == {"dm_alpha", "json"}
    assert await overlay.install(["dm-alpha"]) == ()
    assert leftovers(overlay) == []


async def test_what_the_environment_has_is_neither_installed_nor_hidden(index, overlay):
    make_wheel(index, "numpy", "99.0")
    make_wheel(index, "dm_alpha", requires=["numpy>=1"])
    make_wheel(index, "dm_newer", requires=["numpy>=90"])
    added = await overlay.install(["dm-alpha", "numpy"])
    assert [one.name for one in added] == ["dm_alpha"]
    assert await run_python(overlay, "import numpy; print(numpy.__version__)") == version("numpy")
    with pytest.raises(PackageError, match="needs other versions than those installed"):
        await overlay.install(["dm-newer"])
    assert "numpy" not in entries(overlay)


@pytest.mark.slow
async def test_a_package_of_the_overlay_stays_and_folders_are_shared(index, overlay):
    make_wheel(index, "dm_one", files={"shared/one.py": "", "shared/both.py": "first = 1\n"})
    make_wheel(index, "dm_base", "1.0")
    await overlay.install(["dm-one", "dm-base==1.0"])
    make_wheel(index, "dm_base", "2.0")
    files = {"shared/two.py": "", "shared/both.py": "second = 1\n", "bin/tool": "x"}
    make_wheel(index, "dm_two", files=files, requires=["dm-base"])
    assert [one.name for one in await overlay.install(["dm-two"])] == ["dm_two"]
    assert "bin" not in entries(overlay)
    code = "import shared.one, shared.two, shared.both, dm_base\n"
    code += "print(shared.both.first, dm_base.version)"
    assert await run_python(overlay, code) == "1 1.0"


@pytest.mark.slow
async def test_a_source_archive_is_refused_and_never_run(index, overlay, tmp_path):
    proof = tmp_path / "ran"
    make_source_archive(index / "dm_source-1.tar.gz", "dm_source", proof)
    with pytest.raises(PackageError, match="there is no wheel of it"):
        await overlay.install(["dm-source"])
    hidden = make_source_archive(tmp_path / "dm_hidden-1.tar.gz", "dm_hidden", proof)
    make_wheel(index, "dm_alpha", requires=[f"dm_hidden @ file://{hidden}"])
    with pytest.raises(PackageError, match="needs a source archive"):
        await overlay.install(["dm-alpha"])
    other = make_wheel(tmp_path, "dm_other")
    make_wheel(index, "dm_beta", requires=[f"dm_other @ file://{other}"])
    with pytest.raises(PackageError, match="comes from an address"):
        await overlay.install(["dm-beta"])
    assert not proof.exists()
    assert entries(overlay) == leftovers(overlay) == []


@pytest.mark.slow
async def test_a_lock_file_names_what_may_come_and_its_hashes(index, tmp_path):
    alpha, beta = make_wheel(index, "dm_alpha", requires=["dm-beta"]), make_wheel(index, "dm_beta")
    make_wheel(index, "dm_alpha", "2.0")
    make_wheel(index, "dm_gamma")
    lock = tmp_path / "lock.txt"
    lock.write_text(
        f"# made by hand\ndm-alpha==1.0 ; python_version > '3' \\\n  --hash=sha256:{'0' * 64} \\\n"
        f"  --hash=sha256:{sha256(alpha)}  # two\ndm-beta==1.0\n"
    )
    overlay = Overlay(tmp_path / "overlays", lock=lock)
    with pytest.raises(PackageError, match="dm_beta has no hash in the lock file"):
        await overlay.install(["dm-alpha"])
    with pytest.raises(PackageError, match="dm_gamma has no hash"):
        await overlay.install(["dm-gamma"])
    wrong = lock.read_text() + f"dm_beta==1.0 --hash=sha256:{'0' * 64}\n"
    lock.write_text(wrong)
    with pytest.raises(PackageError, match=r"dm_beta 1\.0 has the hash .* not in the lock file"):
        await Overlay(tmp_path / "overlays", lock=lock).install(["dm-alpha"])
    lock.write_text(wrong.replace("0" * 64, sha256(beta)))
    added = await Overlay(tmp_path / "overlays", lock=lock).install(["dm-alpha"])
    assert {one.version for one in added} == {"1.0"}


@pytest.mark.parametrize("text", ["--index-url x", "a>=1", "a==1\na==2", "-e ."])
def test_a_lock_file_with_any_other_line_is_refused(tmp_path, text):
    path = tmp_path / "lock.txt"
    path.write_text(text)
    with pytest.raises(PackageError, match=r"lock\.txt: "):
        LockFile(path)
    with pytest.raises(PackageError, match="can't be read"):
        LockFile(tmp_path / "none.txt")


async def test_a_file_that_changed_since_it_was_resolved_is_refused(index, overlay):
    make_wheel(index, "dm_alpha")

    def swap(line):
        if line.startswith("Installing"):
            make_wheel(index, "dm_alpha", files={"dm_alpha/__init__.py": "evil = 1\n"})

    with pytest.raises(PackageError, match="hash of a downloaded file is not the expected one"):
        await overlay.install(["dm-alpha"], swap)
    assert entries(overlay) == leftovers(overlay) == []


async def test_a_missing_package_and_a_broken_interpreter_are_named(index, overlay, tmp_path):
    with pytest.raises(PackageError, match="dm-nowhere was not installed: there is no wheel"):
        await overlay.install(["dm-nowhere"])
    with pytest.raises(PackageError, match="can't be asked"):
        Overlay(tmp_path / "x", python=tmp_path / "none")
    with pytest.raises(PackageError, match="can't be made"):
        await Overlay(Path(os.devnull)).install(["dm-alpha"])


def test_an_environment_has_one_folder_whoever_asks_and_nothing_is_made(tmp_path):
    root, other = tmp_path / "overlays", tmp_path / "other"
    venv.create(other, symlinks=True)
    own = Overlay(root)
    assert own.site == Overlay(root, python=Path(sys.executable)).site
    assert own.site.is_relative_to(root)
    assert own.site != Overlay(root, python=other / "bin" / "python").site
    assert own.packages == ()
    assert list(tmp_path.iterdir()) == [other]


async def test_many_tasks_and_processes_install_once(index, overlay):
    make_wheel(index, "dm_alpha", requires=["dm-beta"])
    make_wheel(index, "dm_beta")
    command = (sys.executable, "-c", INSTALL, str(overlay.site.parent.parent), "dm-alpha")
    others = [
        await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        for _ in range(2)
    ]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(overlay.install(["dm-alpha"])) for _ in range(20)]
    counts = [len(task.result()) for task in tasks]
    for other in others:
        output, _ = await other.communicate()
        counts.append(int(output.split()[-1]))
    assert sorted(counts) == [0] * 21 + [2]
    assert sorted(one.name for one in overlay.packages) == ["dm_alpha", "dm_beta"]


# An end in the middle


@pytest.mark.slow
async def test_a_killed_installation_leaves_the_overlay_as_it_was(index, overlay):
    make_wheel(index, "dm_alpha")
    command = (sys.executable, "-c", INSTALL, str(overlay.site.parent.parent), "dm-alpha")
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    async for line in process.stdout:
        if line.startswith(b"Installing"):
            break
    children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    await process.communicate()
    _, alive = await asyncio.to_thread(psutil.wait_procs, children, 20)
    assert alive == []
    assert entries(overlay) == []
    assert overlay.packages == ()
    assert len(leftovers(overlay)) == 1
    assert len(await overlay.install(["dm-alpha"])) == 1
    assert leftovers(overlay) == []


@pytest.mark.slow
async def test_a_death_between_two_renames_is_undone_by_the_next_installation(index, overlay):
    make_wheel(index, "dm_alpha")
    dying = "import os\nfrom pathlib import Path\nreal = Path.rename\n"
    dying += "Path.rename = lambda *a: (real(*a), os.kill(os.getpid(), 9))\n"
    arguments = (str(overlay.site.parent.parent), "dm-alpha")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", dying + INSTALL, *arguments, stdout=asyncio.subprocess.DEVNULL
    )
    assert await process.wait() == -9
    assert entries(overlay) == ["dm_alpha"]
    assert overlay.packages == ()
    make_wheel(index, "dm_beta", files={"dm_beta.py": "x = 1\n"})
    await overlay.install(["dm-beta"])
    assert "dm_alpha" not in entries(overlay)
    assert await run_python(overlay, "import dm_beta; print(dm_beta.x)") == "1"


async def test_a_cancelled_installation_leaves_nothing(index, overlay):
    make_wheel(index, "dm_alpha")
    began, before = asyncio.Event(), psutil.Process().children()
    say = lambda line: began.set() if line.startswith("Installing") else None  # noqa: E731
    task = asyncio.create_task(overlay.install(["dm-alpha"], say))
    await reach(began, task)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert psutil.Process().children() == before
    assert entries(overlay) == leftovers(overlay) == []
    assert len(await overlay.install(["dm-alpha"])) == 1


async def test_an_installation_that_takes_too_long_is_stopped(index, tmp_path):
    make_wheel(index, "dm_alpha")
    overlay = Overlay(tmp_path / "overlays", timeout_s=0.05)
    with pytest.raises(PackageError, match=r"dm-alpha: .* longer than 0\.05 s and was stopped"):
        await overlay.install(["dm-alpha"])
    assert entries(overlay) == leftovers(overlay) == []


async def test_a_full_disk_is_called_by_its_name(index, tmp_path):
    make_wheel(index, "dm_alpha", files={"dm_alpha/__init__.py": "#" + "x" * 300_000})
    script = tmp_path / "install.py"
    script.write_text(INSTALL)
    small = tmp_path / "small"
    small.mkdir()
    mount = 'mount -t tmpfs -o size=200k none "$1" && exec "$2" "$3" "$1" dm-alpha'
    if shutil.which("unshare") is None:
        pytest.skip("no unshare here")
    arguments = ("unshare", "-rm", "sh", "-c", mount, "sh", str(small), sys.executable, str(script))
    done = await asyncio.to_thread(subprocess.run, arguments, capture_output=True, text=True)
    if "Looking for" not in done.stdout:
        pytest.skip(f"no mounts here: {done.stderr}")
    assert "the disk is full: make room and try again" in done.stderr


def test_a_record_that_points_outside_of_the_overlay_is_not_followed(tmp_path):
    path = tmp_path / "installed.json"
    for pending in ("../x", "/etc", ""):
        path.write_text(json.dumps({"packages": [], "requirements": [], "pending": [pending]}))
        with pytest.raises(PackageError, match="Remove the folder"):
            OverlayState.read(path)
    path.write_text("{}")
    with pytest.raises(PackageError, match="is not a valid package record"):
        OverlayState.read(path)


# Before a cell


class Recorder:
    """A runner that keeps what it was asked for."""

    def __init__(self):
        self.calls = []

    async def run(self, source):
        self.calls.append(source)
        return CellResult(CellStatus.OK, message="The end.")

    async def interrupt(self):
        self.calls.append("interrupt")

    async def restart(self):
        self.calls.append("restart")

    async def close(self):
        self.calls.append("close")


def installer(overlay, answer=True, asked=None, say=lambda _: None):
    async def decide(names):
        (asked if asked is not None else []).append(tuple(names))
        return answer

    allow = AllowList({"dm_alpha": "dm-alpha", "dm_gone": "dm-gone"})
    return PackageInstaller(overlay, allow, decide, say)


async def test_a_cell_gets_what_it_lacks_and_hears_of_it(index, overlay, tmp_path):
    make_wheel(index, "dm_alpha")
    (tmp_path / "own.py").touch()
    (tmp_path / "folder").mkdir()
    asked, inner = [], Recorder()
    runner = WithPackages(inner, installer(overlay, asked=asked), tmp_path)
    cell = "import os, pandas, own, folder, dm_alpha, dm_alfa, dm_gone"
    result = await runner.run(cell)
    assert asked == [("dm-alpha", "dm-gone")]
    assert result.message.startswith("Installed dm_alpha 1.0. `dm_alfa` is not among the packages ")
    assert "use one of `dm_alpha`. dm-gone was not installed: there is no wheel" in result.message
    assert result.message.endswith(" The end.")
    assert (await runner.run("import dm_alpha, os")).message == "The end."
    await runner.interrupt()
    await runner.restart()
    await runner.close()
    assert inner.calls == [cell, "import dm_alpha, os", "interrupt", "restart", "close"]


async def test_a_person_who_declines_is_asked_once(overlay):
    asked = []
    wanting = installer(overlay, answer=False, asked=asked)
    for _ in range(2):
        prepared = await wanting.prepare("import dm_alpha")
        assert (
            prepared.message == "`dm_alpha` was not installed, as it was declined: do without it."
        )
    assert asked == [("dm-alpha",)]


async def test_without_anybody_to_ask_nothing_is_prepared_and_install_obeys(index, overlay):
    make_wheel(index, "dm_alpha")
    lines = []
    wanting = PackageInstaller(overlay, AllowList({"dm_alpha": "dm-alpha"}))
    assert "as it was declined" in (await wanting.prepare("import dm_alpha")).message
    missing = await wanting.missing("import dm_beta, dm_alpha")
    assert missing.allowed == {"dm_alpha": "dm-alpha"}
    assert [name for name, _ in missing.refused] == ["dm_beta"]
    without = missing.without(["dm_alpha", "json"], "is left out")
    assert without.allowed == {}
    assert without.refused[1:] == (("dm_alpha", "`dm_alpha` is left out"),)
    assert (await wanting.install(without)).installed == ()
    assert [one.name for one in (await wanting.install(missing, lines.append)).installed] == [
        "dm_alpha"
    ]
    assert lines[0] == "Looking for dm-alpha"
    assert wanting.site == overlay.site


async def test_a_cell_that_will_not_run_gets_nothing(overlay):
    asked = []
    wanting = installer(overlay, asked=asked)
    prepared = await wanting.prepare("import dm_alpha, os\nos.system('x')")
    assert (prepared.installed, prepared.refused, asked) == ((), (), [])


@pytest.mark.parametrize("way", ["interrupt", "cancel"])
async def test_an_installation_before_a_cell_can_be_stopped(index, overlay, way):
    make_wheel(index, "dm_alpha")
    began, inner = asyncio.Event(), Recorder()
    runner = WithPackages(inner, installer(overlay, say=lambda _: began.set()))
    task = asyncio.create_task(runner.run("import dm_alpha"))
    await reach(began, task)
    if way == "interrupt":
        await runner.interrupt()
        result = await task
        assert result.status is CellStatus.INTERRUPTED
        assert "did not run" in result.message
    else:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert inner.calls == []
    assert entries(overlay) == leftovers(overlay) == []


# In a kernel


async def test_a_running_kernel_imports_what_is_installed_meanwhile(index, tmp_path):
    make_wheel(index, "dm_alpha")
    overlay = Overlay(tmp_path / "overlays")
    async with KernelSession(overlay=overlay.site) as session:
        runner = WithPackages(session, installer(overlay), session.workspace.path)
        alone = await session.run("import dm_alpha")
        assert alone.error.name == "ModuleNotFoundError"
        with_packages = await runner.run("import dm_alpha\nprint(dm_alpha.version)")
        assert (with_packages.stdout, with_packages.message) == ("1.0\n", "Installed dm_alpha 1.0.")
        written = await session.run(f"open({str(overlay.site / 'evil.py')!r}, 'w')")
        if session.containment.is_active("read_only_view"):
            assert written.error.name == "OSError"
    async with KernelSession(overlay=overlay.site) as session:
        assert (await session.run("import dm_alpha\nprint(dm_alpha.version)")).stdout == "1.0\n"


async def test_a_kernel_starts_where_the_folder_of_packages_can_not_be_made(caplog):
    async with KernelSession(overlay=Path(os.devnull) / "site") as session:
        assert (await session.run("print(1)")).stdout == "1\n"
    assert "without the packages in /dev/null/site" in caplog.text
