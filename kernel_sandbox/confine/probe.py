"""What this machine grants a kernel, found by confining a process that ends at once."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from kernel_sandbox.confine.layers import Containment, LayerState
from kernel_sandbox.confine.spec import WRITABLE, ConfinementSpec

__all__ = ["Probe", "layers_without_view", "probe"]

_TIMEOUT_S = 20.0
_HINT = (
    "this system does not allow unprivileged namespaces "
    "(user.max_user_namespaces, AppArmor, or the seccomp profile of a container)"
)
_TRY = """
import json, sys
from kernel_sandbox.confine.confine import confine_late, contained
from kernel_sandbox.confine.spec import ConfinementSpec
policy = ConfinementSpec.from_text(sys.stdin.read())
def tell(containment):
    print(json.dumps(confine_late(policy, containment).to_json()))
    return 0
sys.exit(contained(policy, tell))
"""


@dataclass(frozen=True, slots=True)
class Probe:
    """Confinement that a kernel gets on this machine."""

    has_view: bool
    """Whether namespaces with a view of the files work."""
    state: LayerState
    reason: str = ""
    """Why they do not work; empty if they do."""
    containment: Containment = field(default_factory=Containment)
    """The layers that were observed, without those that run in the parent."""


@functools.cache
def probe() -> Probe:
    """Return what this machine grants, probed once in the life of a process."""
    tried = _tried()
    if isinstance(tried, Containment):
        return Probe(True, LayerState.ACTIVE, containment=tried)
    reason = f"{tried}; {_HINT}"
    return Probe(False, LayerState.REFUSED, reason, layers_without_view(reason))


@functools.cache
def layers_without_view(reason: str = "namespaces are switched off") -> Containment:
    """Return the layers without namespaces, probed once for each reason.

    Args:
        reason: why there are no namespaces.
    """
    found = _tried(no_view=reason)
    return found if isinstance(found, Containment) else Containment()


def _tried(no_view: str = "") -> Containment | str:
    """Return the layers of a process confined in an empty folder, or why confining failed."""
    from kernel_sandbox.confine.plan import trial_policy  # noqa: PLC0415 (plans by a probe)

    with tempfile.TemporaryDirectory(prefix="dm-probe-") as folder:
        for name in ("work", *WRITABLE):
            Path(folder, name).mkdir()
        return _try(trial_policy(folder, no_view))


def _try(policy: ConfinementSpec) -> Containment | str:
    """Return the layers of a process under the specification, or why confining failed."""
    command = [sys.executable, "-I", "-c", _TRY]
    try:
        done = subprocess.run(
            command,
            input=policy.to_text(),
            cwd=policy.workspace,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
            text=True,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode != 0:
        return done.stderr.strip() or f"status {done.returncode}"
    return Containment.from_json(json.loads(done.stdout))
