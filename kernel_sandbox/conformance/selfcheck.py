"""Self-check of this machine, which starts real restricted kernels and tries to escape from them.

`python -m kernel_sandbox.conformance.selfcheck` prints the layers and the checks. It ends with
status 1 if a check failed. What only a namespace can stop fails on a machine without one.
With `--attacks FILE` it runs a file of attacks instead (see `attack_file`) and prints a line for
each. It then ends with status 0 only if all were contained; `--help` lists the others.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from textwrap import indent

from kernel_sandbox.confine.layers import Containment
from kernel_sandbox.conformance import other_user
from kernel_sandbox.conformance.attack_file import Attack, load_attacks
from kernel_sandbox.conformance.attacks import AttackResult, RunnerFactory, run_attacks
from kernel_sandbox.conformance.bombs import Bomb, load_bombs, set_off
from kernel_sandbox.errors import SandboxError
from kernel_sandbox.runners.session import KernelSession
from kernel_sandbox.types import MIB, CellResult, CellRunner, CellStatus, Limits

__all__ = ["Check", "check_machine", "main", "selfcheck"]

_LIMITS = Limits(memory_bytes=512 * MIB, wall_s=20.0, output_bytes=64 * 1024)
_REFUSED = "refused"
_NOT_CLAIMED = 3
_STATUSES = f"""\
exit status: 0 all checks passed, or every attack was contained; 1 one was not; 2 it could not be
done; {_NOT_CLAIMED} attacks got through, but only those whose layer is reported missing
"""
_SETTING = "/proc/sys/kernel/hostname"
_ATTEMPT = """
try:
{attempt}
except OSError as error:
    print("refused", error)
else:
    print("went through")
"""


@dataclass(frozen=True, slots=True)
class Check:
    """One attempt from inside a restricted kernel."""

    name: str
    passed: bool
    detail: str
    """What was seen."""
    is_needed: bool = False
    """Whether a kernel that fails it can do no work; else it tried to get out."""


@dataclass(frozen=True, slots=True)
class _Places:
    """Files on this machine that a kernel may see, or must not reach."""

    data: Path
    secret: Path
    port: int
    """The port of a listener on the machine itself."""


async def selfcheck() -> tuple[Check, ...]:
    """Return the checks of this machine, each made by a cell in a real kernel.

    Raises:
        SandboxError: no restricted kernel could be started at all.
    """
    return (await check_machine())[1]


async def check_machine(*, isolate: bool = True) -> tuple[Containment, tuple[Check, ...]]:
    """Return the layers of a session on this machine, and the checks made in it.

    Args:
        isolate: whether to use namespaces if the machine has them.

    Raises:
        SandboxError: no restricted kernel could be started at all.
    """
    with (
        tempfile.TemporaryDirectory(prefix="dm-check-") as folder,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        port = listener.getsockname()[1]
        places = _Places(Path(folder) / "data.csv", Path(folder) / "secret.txt", port)
        places.data.write_text("a,b\n1,2\n", encoding="utf-8")
        places.secret.write_text("not for the kernel", encoding="utf-8")
        async with KernelSession(_LIMITS, {"data.csv": places.data}, isolate=isolate) as session:
            checks = [*await _honest(session), *await _hostile(session, places)]
            checks.append(await _memory(session))
            return session.containment, tuple(checks)


async def _honest(session: KernelSession) -> list[Check]:
    table = await session.run("import pandas as pd\nprint(pd.read_csv('data.csv').b.sum())")
    made = await session.run("open('made.txt', 'w').write('x')\nprint(open('made.txt').read())")
    reads, writes = table.stdout.strip() == "2", made.stdout.strip() == "x"
    return [
        Check("an input can be read with pandas", reads, _seen(table), is_needed=True),
        Check("a file can be written", writes, _seen(made), is_needed=True),
    ]


def _attempts(places: _Places) -> dict[str, str]:
    """Return code that must not get through, by its check. None changes anything if it does."""
    package = find_spec("ipykernel")
    assert package is not None  # noqa: S101
    assert package.origin is not None  # noqa: S101
    return {
        "the network is out of reach": (
            f"import socket\nsocket.create_connection(('127.0.0.1', {places.port}), 2).close()"
        ),
        "a file beside the input is hidden": f"open({str(places.secret)!r}).close()",
        "an input can't be changed": _opened_to_write("data.csv"),
        "the interpreter can't be changed": _opened_to_write(package.origin),
        "the system's settings can't be changed": _opened_to_write(_SETTING),
    }


def _opened_to_write(path: str) -> str:
    """Return code that opens a file to write, but neither creates, empties nor writes it."""
    return f"import os\nos.close(os.open({path!r}, os.O_WRONLY))"


async def _hostile(session: KernelSession, places: _Places) -> list[Check]:
    checks = []
    for name, attempt in _attempts(places).items():
        result = await session.run(_ATTEMPT.format(attempt=indent(attempt, "    ")))
        checks.append(Check(name, result.stdout.startswith(_REFUSED), _seen(result)))
    result = await session.run(
        "import os\nprint([n for n in os.environ if 'KEY' in n or 'TOKEN' in n])"
    )
    checks.append(Check("no key or token is in sight", result.stdout == "[]\n", _seen(result)))
    return checks


async def _memory(session: KernelSession) -> Check:
    result = await session.run("hoard = [bytearray(64 << 20) for _ in range(64)]")
    name = "memory above the limit ends the cell"
    return Check(name, result.status is CellStatus.MEMORY, result.message or _seen(result))


def _seen(result: CellResult) -> str:
    error = result.error
    return f"{error.name}: {error.message}" if error else result.stdout.strip() or result.status


def main(arguments: Sequence[str] = ()) -> int:
    """Print what was asked for; return the exit status.

    Args:
        arguments: the command line, without the program's name.
    """
    options = _parser().parse_args(arguments)
    try:
        if options.user:
            return _as_user(options)
        if options.bombs:
            return asyncio.run(_bomb(options, _chosen_bombs(options)))
        if options.attacks:
            return asyncio.run(_attack(options, _chosen(options)))
        return _check(isolate=not options.no_namespaces)
    except (OSError, ValueError, SandboxError) as error:
        sys.stderr.write(f"{error}\n")
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m kernel_sandbox.conformance.selfcheck", allow_abbrev=False, epilog=_STATUSES
    )
    parser.add_argument("--attacks", metavar="FILE", type=Path, help="attacks to run, JSON lines")
    parser.add_argument("--bombs", metavar="FILE", type=Path, help="bombs to set off, JSON lines")
    parser.add_argument(
        "--profile",
        choices=("interactive", "rollout"),
        default="interactive",
        help="what is attacked: a Jupyter kernel, or a worker of a zygote",
    )
    parser.add_argument(
        "--no-namespaces", action="store_true", help="do as on a machine that has no namespaces"
    )
    parser.add_argument("--user", metavar="NAME", help="run all of it as this user (root only)")
    parser.add_argument("--fast", action="store_true", help="only the attacks that are fast")
    parser.add_argument("--only", metavar="ID,...", help="only these attacks")
    parser.add_argument("--jobs", metavar="N", type=int, default=1, help="attacks at the same time")
    return parser


def _as_user(options: argparse.Namespace) -> int:
    arguments = ["--profile", options.profile, "--jobs", str(options.jobs)]
    arguments += ["--no-namespaces"] if options.no_namespaces else []
    arguments += ["--fast"] if options.fast else []
    arguments += ["--only", options.only] if options.only else []
    files = []
    for option, path in (("--attacks", options.attacks), ("--bombs", options.bombs)):
        if path:
            files.append(path.absolute())
            arguments += [option, str(path.absolute())]
    return other_user.run_as(options.user, "kernel_sandbox.conformance.selfcheck", arguments, files)


def _check(*, isolate: bool) -> int:
    containment, checks = asyncio.run(check_machine(isolate=isolate))
    lines = [containment.summary()]
    lines += [f"  {x.state:<8} {x.name}: {x.reason}" for x in containment.layers]
    lines += [f"{'pass' if x.passed else 'FAIL'}  {x.name} ({x.detail})" for x in checks]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0 if all(check.passed for check in checks) else 1


def _chosen(options: argparse.Namespace) -> tuple[Attack, ...]:
    attacks = load_attacks(options.attacks)
    if options.only:
        wanted = options.only.split(",")
        unknown = sorted(set(wanted) - {attack.id for attack in attacks})
        if unknown:
            raise ValueError(f"{options.attacks} has no attack {', '.join(unknown)}")
        attacks = tuple(attack for attack in attacks if attack.id in wanted)
    if options.jobs < 1:
        raise ValueError(f"--jobs must be at least 1, got {options.jobs}")
    return tuple(attack for attack in attacks if attack.fast or not options.fast)


def _chosen_bombs(options: argparse.Namespace) -> tuple[Bomb, ...]:
    bombs = load_bombs(options.bombs)
    wanted = options.only.split(",") if options.only else [bomb.name for bomb in bombs]
    return tuple(bomb for bomb in bombs if bomb.name in wanted)


async def _attack(options: argparse.Namespace, attacks: Sequence[Attack]) -> int:
    async with _factory(options.profile, isolate=not options.no_namespaces) as make_runner:
        verdicts = await run_attacks(
            attacks, make_runner, jobs=options.jobs, on_verdict=_print_verdict
        )
    contained = sum(verdict.contained for verdict in verdicts)
    declared = sum(verdict.declared for verdict in verdicts)
    text = f"{contained} of {len(verdicts)} attacks contained"
    text += f", {declared} not claimed: the layer against them is reported missing" * bool(declared)
    sys.stdout.write(text + "\n")
    if contained + declared < len(verdicts):
        return 1
    return _NOT_CLAIMED if declared else 0


async def _bomb(options: argparse.Namespace, bombs: Sequence[Bomb]) -> int:
    blasts = []
    isolate = not options.no_namespaces
    async with (
        _factory(options.profile, isolate=isolate) as make_runner,
        _branches(isolate=isolate) as make_branch,
    ):
        for bomb in bombs:
            maker = make_branch if bomb.when == "branch" else make_runner
            blasts.append(blast := await set_off(bomb, maker, make_runner))
            sys.stdout.write(
                f"{'held' if blast.is_held else 'NOT HELD':<8}  {blast.name}  "
                f"{blast.processes} processes, {blast.tasks} with threads; "
                f"the neighbour answered in {blast.neighbour_s:.2f} s; "
                f"gone after {blast.gone_s:.2f} s\n"
            )
            sys.stdout.flush()
    held = sum(blast.is_held for blast in blasts)
    sys.stdout.write(f"{held} of {len(blasts)} bombs held\n")
    return 0 if held == len(blasts) else 1


@asynccontextmanager
async def _factory(profile: str, *, isolate: bool) -> AsyncIterator[RunnerFactory]:
    """Yield a factory for runners of a profile, without the screen, which would refuse attacks."""
    if profile == "interactive":
        yield lambda limits, inputs: KernelSession(limits, inputs, isolate=isolate, screened=False)
        return
    # Only here: a kernel needs none of it.
    from kernel_sandbox.forkserver.zygote_client import Zygote  # noqa: PLC0415
    from kernel_sandbox.runners.worker import CellWorker  # noqa: PLC0415

    async with Zygote(isolate=isolate) as zygote:
        yield lambda limits, inputs: CellWorker(
            zygote, limits, inputs, isolate=isolate, screened=False
        )


@asynccontextmanager
async def _branches(*, isolate: bool) -> AsyncIterator[RunnerFactory]:
    """Yield a factory for branches of a state, as a search creates them."""
    from kernel_sandbox.forkserver.worker_process import WorkerOptions  # noqa: PLC0415
    from kernel_sandbox.forkserver.zygote_client import Zygote  # noqa: PLC0415
    from kernel_sandbox.runners.snapshots import SnapshotTree  # noqa: PLC0415
    from kernel_sandbox.runners.state_backends import SnapshotRunner  # noqa: PLC0415

    async with Zygote(isolate=isolate) as zygote:

        @asynccontextmanager
        async def branch(limits: Limits, inputs: Mapping[str, Path]) -> AsyncIterator[CellRunner]:
            options = WorkerOptions(isolate=isolate)
            async with SnapshotTree(zygote, limits, inputs, options=options) as tree:
                runner = SnapshotRunner(tree)
                await runner.run("before = 1")
                yield runner.branch()

        yield branch


def _print_verdict(verdict: AttackResult) -> None:
    word = "contained" if verdict.contained else "declared" if verdict.declared else "ESCAPED"
    expected = ", ".join(verdict.expected)
    line = f"{word:<9}  {verdict.id:<4} {verdict.name}  {verdict.outcome} (expected {expected})"
    line += f"  {verdict.seconds:.1f} s"
    if not verdict.contained and verdict.detail:
        line += f"  [{verdict.detail}]"
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":  # pragma: no cover
    sys.exit(main(sys.argv[1:]))
