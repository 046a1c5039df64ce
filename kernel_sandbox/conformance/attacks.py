"""Hostile code, each attack run in a fresh restricted runner and judged from outside.

Covered: what an attack prints, how its cell ended, what it did to the range, what survives, and
whether the runner works afterwards. Not covered: code that forges its own outputs, which nothing
can prevent. The attacks here are written to report the truth about themselves.

Survivors are found by a mark that forks and programs inherit. Covered: a forked process keeps the
name of its parent, and a program keeps the environment, whatever sessions, groups and parents they
have. Not covered: code that removes both marks from itself; the attacks here do not.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

import psutil

from kernel_sandbox.confine.layers import Containment
from kernel_sandbox.conformance.attack_file import Attack
from kernel_sandbox.conformance.attack_range import AttackRange, Targets
from kernel_sandbox.types import MIB, CellResult, CellRunner, CellStatus, Limits

__all__ = ["AttackResult", "RunnerFactory", "run_attacks", "survivors"]

RunnerFactory = Callable[[Limits, Mapping[str, Path]], AbstractAsyncContextManager[CellRunner]]
"""Creates a runner, not yet started, without the screen: the layers are under test."""
HUNG_S = 90.0
"""Time beyond that of its cells: more than a failed start and two kills can take."""
_SCREENED = "SCREENED"
_BROKEN = "BROKEN"
_DETAIL_CHARACTERS = 160
_TRIES = 2
_PREAMBLE = """
import ctypes, os, signal, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
globals().update({names!r})
os.environ[{variable!r}] = {mark!r}
libc.prctl(15, {mark!r}.encode(), 0, 0, 0)
def _attack(code):
    me = os.getpid()
    try:
        exec(compile(code, "<attack>", "exec"), globals())
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        broken = isinstance(error, (NameError, SyntaxError, ImportError, AttributeError))
        if os.getpid() == me:
            print("BROKEN" if broken else "BLOCKED", repr(error)[:200])
    finally:
        if os.getpid() != me:
            os._exit(0)
print("READY")
"""
_MARK_VARIABLE = "DM_ATTACK"
"""Carries the mark to programs; the name of the process carries it to forks."""
_GONE_S = 2.0
"""A killed process may take a moment to disappear."""


@dataclass(frozen=True, slots=True)
class AttackResult:
    """The result of one attack."""

    id: str
    name: str
    outcome: str
    """One of `attack_file.OUTCOMES`. Or ESCAPED, SURVIVOR or DAMAGE for an attack that got through;
    BROKEN or SCREENED for one that tested nothing; FAULT or HUNG for a runner that failed."""
    expected: tuple[str, ...]
    contained: bool
    """Whether it ended as expected, and nothing was seen outside that should not be."""
    declared: bool
    """Whether it only ESCAPED or wrote what it should not into its folder, and the runner had
    itself reported the one layer against it as missing."""
    seconds: float
    """Clock time, including start and end of the runner."""
    detail: str = ""
    """What was seen."""


async def run_attacks(
    attacks: Sequence[Attack],
    make_runner: RunnerFactory,
    *,
    jobs: int = 1,
    on_verdict: Callable[[AttackResult], None] = lambda _: None,
) -> tuple[AttackResult, ...]:
    """Run each attack in its own runner and return the verdicts in the order of attacks.

    It changes the environment of this process while it runs: see `AttackRange`.

    Args:
        attacks: what to run.
        make_runner: creates the runners.
        jobs: how many run at the same time.
        on_verdict: called with each verdict as it is reached.

    Raises:
        OSError: the range can't be set up.
    """
    turn = asyncio.Semaphore(jobs)

    async def judge(attack: Attack, ground: AttackRange) -> AttackResult:
        async with turn:
            verdict = await _judge(attack, make_runner, ground)
            on_verdict(verdict)
            return verdict

    with AttackRange() as ground:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(judge(attack, ground)) for attack in attacks]
        return tuple(task.result() for task in tasks)


async def _judge(attack: Attack, make_runner: RunnerFactory, ground: AttackRange) -> AttackResult:
    started = time.perf_counter()
    targets = await asyncio.to_thread(ground.targets)
    results: list[CellResult] = []
    found: list[Containment] = []
    try:
        fault = await _tried(attack, make_runner, targets, results, found)
        alive = await asyncio.to_thread(survivors, targets.mark)
        harm = targets.damage(results) + ground.leftovers()
    finally:
        await asyncio.to_thread(targets.close)
    outcome = _outcome(attack, results)
    for word, is_seen in (("DAMAGE", harm), ("SURVIVOR", alive), (fault[0], fault[1])):
        outcome = word if is_seen and outcome != "ESCAPED" else outcome
    return AttackResult(
        attack.id,
        attack.name,
        outcome,
        attack.expect,
        outcome in attack.expect,
        not alive and not fault[1] and _is_open(outcome, harm) and _lacks_layer(attack, found),
        time.perf_counter() - started,
        "; ".join(filter(None, (*alive, *harm, fault[1], _seen(results)))),
    )


def _is_open(outcome: str, harm: Sequence[str]) -> bool:
    """Return whether an attack got through; if it does not say so, into its folder alone."""
    if outcome == "DAMAGE":
        return all(line.startswith("work/") for line in harm)
    return outcome == "ESCAPED"


def _lacks_layer(attack: Attack, found: Sequence[Containment]) -> bool:
    return any(attack.needs and not layers.is_active(attack.needs) for layers in found)


async def _tried(
    attack: Attack,
    make_runner: RunnerFactory,
    targets: Targets,
    results: list[CellResult],
    found: list[Containment],
) -> tuple[str, str]:
    """Run the cells; return the kind of a fault of the runner, and the fault, empty if none."""
    patience = HUNG_S + 2 * attack.wall_s
    try:
        async with asyncio.timeout(patience) as timer:
            return "FAULT", await _played(attack, make_runner, targets, results, found)
    except Exception as error:  # noqa: BLE001 (a runner that breaks is what is looked for)
        if timer.expired():
            return "HUNG", f"the runner did not come back within {patience:.0f} s"
        return "FAULT", f"the runner failed: {type(error).__name__}: {error}"[:_DETAIL_CHARACTERS]


async def _played(
    attack: Attack,
    make_runner: RunnerFactory,
    targets: Targets,
    results: list[CellResult],
    found: list[Containment],
) -> str:
    limits = Limits(
        memory_bytes=1536 * MIB,
        processes=64,
        file_bytes=64 * MIB,
        disk_bytes=600 * MIB,
        wall_s=attack.wall_s,
        writable_dir=targets.work if attack.given else None,
    )
    async with make_runner(limits, targets.inputs) as runner:
        found.append(getattr(runner, "containment", Containment()))
        for number, code in enumerate(filter(None, (attack.code, attack.then))):
            if number and attack.restart:
                await runner.restart()
            fault = await _prepared(runner, targets)
            if fault:
                return fault
            results.append(await runner.run(f"_attack({code!r})" if attack.wrapped else code))
        await _look_at_files(runner)
        return await _probed(runner)


async def _prepared(runner: CellRunner, targets: Targets) -> str:
    """Describe the range to the code; return why that failed, or an empty string."""
    source = _PREAMBLE.format(names=targets.names, variable=_MARK_VARIABLE, mark=targets.mark)
    for _ in range(_TRIES):  # the first may find that the previous attack has ended the kernel
        result = await runner.run(source)
        if "READY" in result.stdout:
            return ""
    return f"the range could not be set up in the runner: {_seen([result])}"


async def _look_at_files(runner: CellRunner) -> None:
    """List the attack's files, as a caller does to collect the files of an analysis."""
    workspace = getattr(runner, "workspace", None)
    if workspace is not None:
        await asyncio.to_thread(workspace.new_files)


async def _probed(runner: CellRunner) -> str:
    """Return why the runner no longer works: an attack may spoil its own state, not the next."""
    for _ in range(_TRIES):
        result = await runner.run("print(6 * 7)")
        if "42" in result.stdout:
            return ""
        await runner.restart()
    return f"the runner does not answer any more: {_seen([result])}"


def _outcome(attack: Attack, results: Sequence[CellResult]) -> str:
    if any("ESCAPED" in result.stdout for result in results):
        return "ESCAPED"
    if not results:
        return "FAULT"
    words = _words(results[-1])
    return next((word for word in words if word in attack.expect), words[0])


def _words(result: CellResult) -> tuple[str, ...]:
    """Return all words that fit the end of a cell, the most specific first."""
    if result.status is CellStatus.DENIED:
        return (_SCREENED,)
    if _BROKEN in result.stdout:
        return (_BROKEN,)
    words = ["BLOCKED"] if "BLOCKED" in result.stdout else []
    words += _ending(result)
    if result.cut_bytes:
        words.append("TRUNC")
    return (*words, "NOSURVIVOR")


def _ending(result: CellResult) -> list[str]:
    if result.status is CellStatus.KILLED:
        return ["KILLED", "DIED"]
    if result.state_lost:
        return ["KILLED"]
    if result.status in (CellStatus.TIMEOUT, CellStatus.INTERRUPTED):
        return ["INTERRUPTED"]
    # A flood is interrupted, and its status is that of an error, which may be lost in the flood.
    name = result.error.name if result.error else "KeyboardInterrupt"
    if result.status is CellStatus.ERROR and name == "KeyboardInterrupt":
        return ["INTERRUPTED"]
    return [] if result.ok else ["BLOCKED"]


def _seen(results: Sequence[CellResult]) -> str:
    """Return the end of the last cell's output or error, on one line."""
    if not results:
        return ""
    last = results[-1]
    error = f"{last.error.name}: {last.error.message}" if last.error else ""
    text = " ".join((last.stdout[-_DETAIL_CHARACTERS:] or error).split())
    return f"{last.message} {text}".strip()[:_DETAIL_CHARACTERS]


def survivors(mark: str) -> list[str]:
    """Kill the processes of an attack that survived the close of its runner, and return them.

    Args:
        mark: see `Targets.mark`.
    """
    left = psutil.wait_procs(filter(lambda x: _is_marked(x, mark), psutil.process_iter()), _GONE_S)
    for process in left[1]:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(left[1], _GONE_S)
    return [f"process {process.pid} lives on" for process in left[1]]


def _is_marked(process: psutil.Process, mark: str) -> bool:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return process.name() == mark or process.environ().get(_MARK_VARIABLE) == mark
    except (psutil.Error, OSError):
        return False
