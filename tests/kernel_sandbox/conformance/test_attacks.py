"""The hostile suite on real kernels, and whether its verdicts can be believed."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio

from kernel_sandbox.confine.layers import LayerState
from kernel_sandbox.confine.probe import probe
from kernel_sandbox.conformance import attacks as suite
from kernel_sandbox.conformance import bombs, selfcheck
from kernel_sandbox.conformance.attack_file import Attack, load_attacks
from kernel_sandbox.conformance.attack_range import AttackRange
from kernel_sandbox.conformance.attacks import run_attacks, survivors
from kernel_sandbox.files.folders import PrivateFolder
from kernel_sandbox.forkserver.zygote_client import Zygote
from kernel_sandbox.runners.session import KernelSession
from kernel_sandbox.runners.worker import CellWorker
from kernel_sandbox.types import CellError, CellResult, CellStatus, Display, Stream

ROOT = Path(__file__).parents[3]
OWN = ROOT / "tests" / "data" / "hostile" / "attacks.jsonl"
BOMBS = OWN.with_name("bombs.jsonl")
SHARED = ROOT.parent / "shared" / "data" / "hostile" / "attacks.jsonl"


EACH = 4
"""Of our own quick attacks each goes to a forked worker, and one of so many to a kernel too."""


def _cases(each):
    """Those of our own that are quick; all others are in `WAYS`."""
    quick = [attack for attack in load_attacks(OWN) if attack.fast]
    return [pytest.param(attack, id=f"{attack.id}-{attack.name}") for attack in quick[::each]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def zygote():
    async with Zygote(()) as warm:
        yield warm


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.skipif(not probe().has_view, reason="namespaces do not work here")
@pytest.mark.parametrize("attack", _cases(1))
async def test_an_attack_is_contained(attack, zygote):
    verdict = await judged(attack, partial(CellWorker, zygote, screened=False))
    assert verdict.contained, f"{verdict.outcome}: {verdict.detail}"


@pytest.mark.skipif(not probe().has_view, reason="namespaces do not work here")
@pytest.mark.parametrize("attack", _cases(EACH))
async def test_an_attack_on_a_kernel_is_contained(attack):
    verdict = await judged(attack, session)
    assert verdict.contained, f"{verdict.outcome}: {verdict.detail}"


WAYS = [
    [],
    ["--no-namespaces"],
    ["--user", "nobody"],
    ["--profile", "rollout"],
    ["--profile", "rollout", "--no-namespaces"],
    ["--profile", "rollout", "--user", "nobody"],
    ["--profile", "rollout", "--user", "nobody", "--no-namespaces"],
]
WITHOUT_NAMESPACES = {"80", "82", "82b", "83", "84", "85", "138", "139", "140", "141", "142", "152"}
"""What is not claimed there: files that are planted, and what changes no file's content."""


@pytest.mark.slow
@pytest.mark.skipif(not probe().has_view, reason="namespaces do not work here")
@pytest.mark.parametrize("file", [OWN, SHARED], ids=["own", "shared"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: " ".join(way) or "usual")
def test_the_attacks_are_contained_in_every_way_to_run(file, way, capfd):
    if not file.exists():
        pytest.skip("no ../shared")
    if "--user" in way and os.geteuid() != 0:
        pytest.skip("only root can become another user")
    status = selfcheck.main(["--attacks", str(file), "--jobs", "2", *way])
    printed = capfd.readouterr().out
    # Without namespaces some are not claimed; they may be no others, and end no other way.
    assert status in ((0, 3) if "--no-namespaces" in way else (0,)), printed
    named = {line.split()[1] for line in printed.splitlines() if line.startswith("declared")}
    assert named <= WITHOUT_NAMESPACES, printed


def session(limits, inputs):
    return KernelSession(limits, inputs, screened=False)


async def judged(attack, make_runner):
    (verdict,) = await run_attacks([attack], make_runner)
    return verdict


def hostile(code, *expect, **changes):
    fields = {"id": "x", "name": "x", "code": code, "wrapped": True, "wall_s": 5.0}
    return Attack(**{**fields, "expect": expect or ("BLOCKED",), **changes})


class Bare:
    """A runner with no layer at all: every cell replays the ones before in a plain process."""

    def __init__(self, limits, inputs):
        self._folder = limits.writable_dir or Path(tempfile.gettempdir())
        self._cells = []

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        return None

    async def run(self, source):
        program = "\n".join([*self._cells, "print('--cell--')", source])
        self._cells.append(source)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", program),
            cwd=self._folder,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            printed, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        text = printed.decode().partition("--cell--\n")[2]
        status = CellStatus.OK if process.returncode == 0 else CellStatus.ERROR
        return CellResult(status, (Stream("stdout", text),))

    async def interrupt(self):
        return None

    async def restart(self):
        self._cells.clear()

    async def close(self):
        return None


LEAVE = """
import subprocess
null = subprocess.DEVNULL
subprocess.Popen(['sleep', '777'], start_new_session=True, stdout=null, stderr=null)
if os.fork() == 0:
    os.closerange(0, 3)
    os.setsid()
    time.sleep(777)
"""
REACH = """
for kind, port in ((1, TP), (2, UP)):
    s = socket.socket(2, kind)
    s.connect(('127.0.0.1', port))
    s.send(b'x')
for address in (UX, AB):
    socket.socket(1).connect(address)
print('BLOCKED')
"""
KEY = "open(HOME_ + '/.sbxfake/.ssh/id_rsa').read()"


@pytest.mark.parametrize(
    ("code", "outcome", "detail"),
    [
        ("print('ESCAPED')", "ESCAPED", "ESCAPED"),
        (f"print('ESCAPED', {KEY})", "ESCAPED", "a secret is in the output"),
        (f"print('BLOCKED', {KEY})", "DAMAGE", "a secret is in the output"),
        ("os.kill(VP, 9); print('BLOCKED')", "DAMAGE", "the victim is dead"),
        ("open(HOME_ + '/planted', 'w'); print('BLOCKED')", "DAMAGE", "home/planted was changed"),
        ("os.remove(HOME_ + '/.sbxfake/.ssh/id_rsa'); 1 / 0", "DAMAGE", "id_rsa was changed"),
        (REACH, "DAMAGE", "TP was reached; UP was reached; UX was reached; AB was reached"),
        (LEAVE, "SURVIVOR", "lives on"),
        ("print(no_such_name)", "BROKEN", "no_such_name"),
        ("print('neither')", "NOSURVIVOR", "neither"),
    ],
)
async def test_an_attack_that_gets_through_is_not_called_contained(
    code, outcome, detail, monkeypatch
):
    marks = []
    monkeypatch.setattr(suite, "survivors", lambda mark: marks.append(mark) or survivors(mark))
    verdict = await judged(hostile(code), Bare)
    assert (verdict.outcome, verdict.contained) == (outcome, False)
    assert detail in verdict.detail
    (mark,) = marks  # other attacks on this machine have marks of their own
    assert survivors(mark) == []


async def test_an_attack_that_fails_is_contained_and_nothing_of_the_range_stays(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # other ranges may come and go
    before = dict(os.environ), tempfile.gettempdir()
    code = "assert SRV and RUN_ and 'API_KEY' in str(os.environ)\nopen('/no/such/file')"
    verdict = await judged(hostile(code), Bare)
    assert (verdict.outcome, verdict.contained) == ("BLOCKED", True)
    assert "FileNotFoundError" in verdict.detail
    assert (dict(os.environ), tempfile.gettempdir()) == before
    assert list(tmp_path.iterdir()) == []


async def test_a_given_folder_is_watched_for_trusted_files_and_for_rights():
    hook = await judged(hostile("open('.git/hooks/x', 'w'); 1 / 0", given=True), Bare)
    tool = await judged(hostile("open('t', 'w'); os.chmod('t', 0o4755); 1 / 0", given=True), Bare)
    fine = await judged(hostile("open('new.txt', 'w'); 1 / 0", given=True), Bare)
    assert [x.outcome for x in (hook, tool, fine)] == ["DAMAGE", "DAMAGE", "BLOCKED"]
    assert "work/.git/hooks/x was changed" in hook.detail


@pytest.mark.parametrize("attack", [x for x in load_attacks(OWN) if x.needs == "workspace_layer"])
async def test_a_planted_name_is_seen_and_declared_where_no_layer_holds_it(attack):
    verdict = await judged(attack, Bare)
    assert (verdict.outcome, verdict.contained, verdict.declared) == ("DAMAGE", False, True)
    worse = replace(attack, code=f"{attack.code}\nos.kill(VP, 9)")
    assert not (await judged(worse, Bare)).declared


async def test_the_second_cell_is_the_one_that_is_expected():
    code, then = "mine = 1", "print('BLOCKED' if mine else 0)"
    assert (await judged(hostile(code, then=then), Bare)).contained
    assert (await judged(hostile(code, then=then, restart=True), Bare)).outcome == "BROKEN"
    early = await judged(hostile("print('ESCAPED')", then="1 / 0"), Bare)
    assert early.outcome == "ESCAPED"


async def test_verdicts_come_as_they_are_reached_and_in_order():
    seen = []
    attacks = [hostile("1 / 0", id=str(number)) for number in range(3)]
    verdicts = await run_attacks(attacks, Bare, jobs=2, on_verdict=seen.append)
    assert [verdict.id for verdict in verdicts] == ["0", "1", "2"]
    assert sorted(seen, key=lambda verdict: verdict.id) == list(verdicts)


class Raising(Bare):
    async def run(self, source):
        raise RuntimeError("the reply was no JSON")


class Mute(Bare):
    async def run(self, source):
        return CellResult(CellStatus.OK)


class Forgetful(Bare):
    async def run(self, source):
        return await super().run(source.replace("6 * 7", "''"))


@pytest.mark.parametrize(
    ("runner", "detail"),
    [
        (Raising, "RuntimeError: the reply was no JSON"),
        (Mute, "the range could not be set up"),
        (Forgetful, "does not answer any more"),
    ],
)
async def test_a_runner_that_does_not_stand_it_is_at_fault(runner, detail):
    verdict = await judged(hostile("1 / 0"), runner)
    assert (verdict.outcome, verdict.contained) == ("FAULT", False)
    assert detail in verdict.detail


async def test_a_runner_that_does_not_come_back_is_hung(monkeypatch):
    monkeypatch.setattr(suite, "HUNG_S", 1.0)
    verdict = await judged(hostile("time.sleep(60)", wall_s=0.1), Bare)
    assert (verdict.outcome, verdict.contained) == ("HUNG", False)


async def test_the_screen_is_no_containment():
    verdict = await judged(hostile("1 / 0"), KernelSession)
    assert verdict.outcome == "FAULT"  # it refuses what sets up the range
    verdict = await judged(hostile("import os; os._exit(3)", wrapped=False), Screened)
    assert (verdict.outcome, verdict.contained) == ("SCREENED", False)


class Screened(Bare):
    async def run(self, source):
        if "_exit(3)" in source:
            return CellResult(CellStatus.DENIED, message="no")
        return await super().run(source)


async def test_a_session_without_the_screen_says_so(open_session):
    kernel = await open_session(screened=False)
    assert (await kernel.run("import ctypes; ctypes.CDLL(None); print(1)")).stdout == "1\n"
    assert kernel.containment.get("screen").state is LayerState.OFF
    assert (await (await open_session()).run("!ls")).status is CellStatus.DENIED


INTERRUPT = CellError("KeyboardInterrupt", "")


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (CellResult(CellStatus.KILLED), ["KILLED", "DIED", "NOSURVIVOR"]),
        (CellResult(CellStatus.MEMORY, state_lost=True), ["KILLED", "NOSURVIVOR"]),
        (CellResult(CellStatus.MEMORY), ["BLOCKED", "NOSURVIVOR"]),
        (CellResult(CellStatus.TIMEOUT), ["INTERRUPTED", "NOSURVIVOR"]),
        (CellResult(CellStatus.ERROR, (INTERRUPT,)), ["INTERRUPTED", "NOSURVIVOR"]),
        (CellResult(CellStatus.ERROR, cut_bytes=1), ["INTERRUPTED", "TRUNC", "NOSURVIVOR"]),
        (CellResult(CellStatus.ERROR, (CellError("OSError", ""),)), ["BLOCKED", "NOSURVIVOR"]),
        (CellResult(CellStatus.OK, (Stream("stdout", "BLOCKED"),)), ["BLOCKED", "NOSURVIVOR"]),
        (CellResult(CellStatus.OK, (Display({}),)), ["NOSURVIVOR"]),
    ],
)
def test_the_end_of_a_cell_in_words(result, words):
    assert list(suite._words(result)) == words


def test_folders_that_nobody_owns_are_found_and_removed():
    with AttackRange() as ground:
        owned = PrivateFolder(ground.run_dir, "dmj-")
        (ground.run_dir / "left").mkdir()
        Path(tempfile.gettempdir(), "link").symlink_to("/nowhere")
        assert sorted(ground.leftovers()) == ["left", "link"]
        assert ground.leftovers() == []
        owned.remove()


def test_no_process_is_a_survivor_of_an_attack_that_was_never_run():
    assert survivors("atknone") == []


GOOD = {"id": "1", "name": "n", "code": "x", "wrapped": True, "expect": ["BLOCKED"], "wall_s": 2}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "Expecting property name"),
        ("[]", "not a JSON object"),
        (json.dumps({"id": "2"}), "name, code, wrapped, expect, wall_s missing"),
        (json.dumps({**GOOD, "colour": 1}), "unknown key 'colour'"),
        (json.dumps({**GOOD, "wrapped": 1}), "wrapped is of the wrong type: 1"),
        (json.dumps({**GOOD, "wall_s": True}), "wall_s is of the wrong type: True"),
        (json.dumps({**GOOD, "wall_s": 0}), "wall_s must be positive"),
        (json.dumps({**GOOD, "expect": ["GONE"]}), "expect must list some of BLOCKED"),
        (json.dumps({**GOOD, "expect": []}), "expect must list some of BLOCKED"),
        (json.dumps({**GOOD, "code": "if"}), "code is not valid Python"),
        (json.dumps({**GOOD, "then": "if"}), "then is not valid Python"),
        (json.dumps(GOOD), "duplicate id '1'"),
    ],
)
def test_a_malformed_line_is_named(tmp_path, line, reason):
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps(GOOD) + "\n\n" + line + "\n")
    with pytest.raises(ValueError, match=reason) as raised:
        load_attacks(path)
    assert str(raised.value).startswith(f"{path}, line 3: ")


def test_a_file_may_say_which_attacks_are_fast(tmp_path):
    path = tmp_path / "some.jsonl"
    path.write_text("\n")
    with pytest.raises(ValueError, match="contains no attacks"):
        load_attacks(path)
    slow = {**GOOD, "id": "2", "expect": ["KILLED"]}
    told = {**GOOD, "id": "3", "fast": False, "given": True, "why": "w"}
    path.write_text("\n".join(map(json.dumps, (GOOD, slow, told))))
    attacks = load_attacks(path)
    assert [attack.fast for attack in attacks] == [True, False, False]
    assert attacks[2].given


def test_the_own_attacks_are_many():
    attacks = load_attacks(OWN)
    assert len(attacks) >= 100
    assert sum(attack.fast for attack in attacks) >= 45


@pytest.fixture
def a_file(tmp_path):
    lines = [
        {**GOOD, "id": "good", "code": "1 / 0"},
        {**GOOD, "id": "bad", "code": "print('ESCAPED')"},
    ]
    lines.append({**GOOD, "id": "slow", "code": "1 / 0", "fast": False})
    path = tmp_path / "attacks.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return str(path)


@pytest.mark.parametrize("profile", ["interactive", "rollout"])
def test_the_command_line_runs_attacks(a_file, capsys, profile):
    assert selfcheck.main(["--attacks", a_file, "--only", "good", "--profile", profile]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("contained  good n  BLOCKED (expected BLOCKED)")
    assert printed.endswith("1 of 1 attacks contained\n")


def test_one_escape_fails_the_command(a_file, capsys):
    command = ["--attacks", a_file, "--fast", "--no-namespaces", "--jobs", "2"]
    assert selfcheck.main(command) == 1
    printed = capsys.readouterr().out
    assert "ESCAPED    bad  n  ESCAPED (expected BLOCKED)" in printed
    assert "1 of 2 attacks contained\n" in printed
    assert "slow" not in printed


async def test_only_an_escape_is_declared_where_its_layer_is_missing():
    escaped = hostile("print('ESCAPED')", needs="read_only_view")
    verdict = await judged(escaped, Bare)
    assert (verdict.outcome, verdict.declared) == ("ESCAPED", True)
    for code in (LEAVE, f"{LEAVE}print('ESCAPED')", "print(no_such_name)"):
        assert not (await judged(hostile(code, needs="read_only_view"), Bare)).declared
    assert not (await judged(replace(escaped, needs=""), Bare)).declared
    for runner in (Raising, Forgetful):
        assert not (await judged(escaped, runner)).declared
    assert not (await judged(hostile("1 / 0", needs="read_only_view"), Bare)).declared


@pytest.mark.parametrize(("others", "status"), [([], 3), (["bad"], 1)])
def test_what_is_not_claimed_has_a_status_of_its_own(tmp_path, capsys, others, status):
    fields = {**GOOD, "code": "print('ESCAPED')"}
    attacks = [{**fields, "id": "weak", "needs": "read_only_view"}]
    attacks += [{**fields, "id": name} for name in others]
    path = tmp_path / "attacks.jsonl"
    path.write_text("\n".join(map(json.dumps, attacks)))
    assert selfcheck.main(["--attacks", str(path), "--no-namespaces"]) == status
    printed = capsys.readouterr().out
    assert "declared   weak" in printed
    assert "1 not claimed: the layer against them is reported missing" in printed


def test_no_bomb_is_set_off_without_an_outer_limit(capsys, monkeypatch):
    monkeypatch.setattr(bombs, "_group", lambda: Path("/no/such/group"))
    assert selfcheck.main(["--bombs", str(BOMBS)]) == 2
    assert "only inside a limit of its own" in capsys.readouterr().err


async def test_a_bomb_is_measured_from_outside(monkeypatch, tmp_path):
    """With a handful of processes, so that no outer limit is needed."""
    (tmp_path / "pids.max").write_text("900\n")
    (tmp_path / "cgroup.procs").write_text("1\n")
    (tmp_path / "cgroup.threads").write_text("1\n2\n")
    monkeypatch.setattr(bombs, "_group", lambda: tmp_path)
    few = bombs.Bomb("few", "subprocess.Popen(['sleep', '777'])", "idle")
    monkeypatch.setattr(bombs, "_IDLE_S", 0.2)
    blast = await bombs.set_off(few, session)
    assert (blast.processes, blast.tasks) == (0, 0)  # the stand-in for the group shows none
    assert 0 < blast.neighbour_s < 30
    assert blast.is_held == (blast.neighbour_s <= 1 and blast.gone_s <= 2)


def test_the_own_bombs_go_off_at_every_moment(tmp_path):
    found = bombs.load_bombs(BOMBS)
    assert len(found) >= 12
    assert {bomb.when for bomb in found} == {"cell", "restart", "branch", "end", "idle"}
    for line, reason in (
        ("{", "line 1"),
        ('{"name": "x", "code": "if", "when": "cell"}', "line 1"),
        ('{"name": "x", "code": "1", "when": "never"}', "when must be one of"),
    ):
        (tmp_path / "bad.jsonl").write_text(line)
        with pytest.raises(ValueError, match=reason):
            bombs.load_bombs(tmp_path / "bad.jsonl")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--attacks", "/no/such/file"], "No such file"),
        (["--attacks", "FILE", "--only", "good,x,y"], "has no attack x, y"),
        (["--attacks", "FILE", "--jobs", "0"], "--jobs must be at least 1"),
    ],
)
def test_a_command_that_can_not_be_done_says_why(a_file, capsys, arguments, reason):
    given = [a_file if word == "FILE" else word for word in arguments]
    assert selfcheck.main(given) == 2
    assert reason in capsys.readouterr().err
