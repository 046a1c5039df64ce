"""What holds on this machine: starts a real restricted kernel and tries to get out of it.

`python -m kernel_sandbox.selfcheck` prints the layers and the checks; it ends with status 1 when
a check failed. What only a namespace can stop fails on a machine without one: that is the truth.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from kernel_sandbox.containment import Containment
from kernel_sandbox.session import KernelSession
from kernel_sandbox.types import MIB, CellResult, CellStatus, Limits

__all__ = ["Check", "check_machine", "selfcheck"]

_LIMITS = Limits(memory_bytes=512 * MIB, wall_s=20.0, output_bytes=64 * 1024)
_REFUSED = "refused"
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
    """One thing that was tried from inside a restricted kernel."""

    name: str
    passed: bool
    detail: str
    """What was seen."""


@dataclass(frozen=True, slots=True)
class _Places:
    """Files on this machine that a kernel is shown, or must not reach."""

    data: Path
    secret: Path
    port: int
    """Something listens there, on the machine itself."""


async def selfcheck() -> tuple[Check, ...]:
    """Returns the checks of this machine, each made by a cell in a real kernel.

    Raises:
        SandboxError: no restricted kernel could be started at all.
    """
    return (await check_machine())[1]


async def check_machine(*, isolate: bool = True) -> tuple[Containment, tuple[Check, ...]]:
    """Returns the layers of a session on this machine, and the checks made in it.

    Args:
        isolate: whether to use namespaces where the machine has them.

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
    return [
        Check("an input can be read with pandas", table.stdout.strip() == "2", _seen(table)),
        Check("a file can be written", made.stdout.strip() == "x", _seen(made)),
    ]


async def _hostile(session: KernelSession, places: _Places) -> list[Check]:
    prefix = Path(sys.prefix) / "dm-check"
    attempts = {
        "the network is out of reach": (
            "    import socket\n"
            f"    socket.create_connection(('127.0.0.1', {places.port}), 2).close()"
        ),
        "a file beside the input is hidden": f"    open({str(places.secret)!r}).close()",
        "an input can't be changed": "    open('data.csv', 'a').write('3,4')",
        "the interpreter can't be changed": f"    open({str(prefix)!r}, 'x').close()",
        "the system's settings can't be changed": f"    open({_SETTING!r}, 'a').close()",
    }
    checks = []
    for name, attempt in attempts.items():
        result = await session.run(_ATTEMPT.format(attempt=attempt))
        checks.append(Check(name, result.stdout.startswith(_REFUSED), _seen(result)))
    prefix.unlink(missing_ok=True)
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


def main() -> int:
    """Prints the layers and the checks; returns the exit status."""
    containment, checks = asyncio.run(check_machine())
    lines = [containment.summary()]
    lines += [f"  {x.state:<8} {x.name}: {x.reason}" for x in containment.layers]
    lines += [f"{'pass' if x.passed else 'FAIL'}  {x.name} ({x.detail})" for x in checks]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0 if all(check.passed for check in checks) else 1


if __name__ == "__main__":  # pragma: no cover
    sys.exit(main())
