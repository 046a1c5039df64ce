"""`dm-jupyter doctor`: what keeps you from asking, and what this machine can enforce."""

from __future__ import annotations

import asyncio
import difflib
import http
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from dm_jupyter.cli.exits import Exit, reporting
from dm_jupyter.config import ModelChoice, model_choice
from dm_jupyter.core.errors import EndpointBlockedError, EndpointRefusedError, PolicyError
from dm_jupyter.core.plain_text import harmless_text, shown_address
from kernel_sandbox.confine.layers import Containment, LayerState
from kernel_sandbox.confine.strictness import Strictness, Weakness, shortcomings, weaknesses
from kernel_sandbox.conformance.selfcheck import Check, check_machine
from kernel_sandbox.errors import SandboxError
from kernel_sandbox.packages.commands import install_extra, own_command

__all__ = ["print_checkup"]

_OPTIONAL = {
    "pyarrow": ("parquet and Arrow files", "formats"),
    "xlrd": (".xls files", "formats"),
    "odf": (".ods files", "formats"),
    "python_calamine": (".xlsb files", "formats"),
    "pyreadstat": ("SPSS files", "formats"),
    "duckdb": ("DuckDB databases", "formats"),
    "lxml": ("tables of web pages", "formats"),
    "zstandard": ("files compressed with zstd", "formats"),
    "scipy": ("statistical tests", "analysis"),
    "sklearn": ("models", "analysis"),
    "matplotlib": ("figures", "analysis"),
}
"""Packages that a question may need, each with its use and the extra that installs it."""
_STYLES = {"ok": "green", "missing": "yellow", "unknown": "yellow", "failed": "red"}
_WITHOUT_LIST = {http.HTTPStatus.NOT_FOUND, http.HTTPStatus.METHOD_NOT_ALLOWED}
_REFUSES_KEY = {http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN}
_ENTER_KEY = "read -rs DM_JUPYTER_API_KEY && export DM_JUPYTER_API_KEY"


@dataclass(frozen=True, slots=True)
class PartFound:
    """One line of the report."""

    part: str
    name: str
    state: str
    """`ok`, `missing`, `unknown` or `failed`."""
    detail: str
    """What was seen, or what the part is for."""
    command: str = ""
    """Command that helps; empty if nothing needs to be done, or no single command does it."""
    is_blocker: bool = False
    """Whether it keeps you from asking any question."""


def print_checkup(
    model: str | None,
    base_url: str | None,
    api_key_file: Path | None,
    profile: Strictness,
    *,
    as_json: bool,
    adapter: Path | None = None,
) -> int:
    """Print the report and return the exit code.

    Args:
        model: as given to `ask`.
        base_url: as given to `ask`.
        api_key_file: as given to `ask`.
        profile: the strictness that kernels on this machine must meet.
        as_json: whether to print JSON.
        adapter: as given to `ask`.
    """
    with reporting() as outcome:
        choice = model_choice(model, base_url, api_key_file, adapter)
        findings, unmet, weak = _kernel(profile)
        findings += [*asyncio.run(_model(choice)), *_packages()]
        if as_json:
            report = {
                "profile": profile,
                "unmet": unmet,
                "weaknesses": [weakness.text for weakness in weak],
                "findings": [asdict(finding) for finding in findings],
            }
            print(json.dumps(report, indent=2))
        else:
            _print_report(findings, profile, unmet, weak)
        if any(finding.is_blocker for finding in findings):
            outcome.code = Exit.NO_ANSWER
        elif unmet:
            outcome.code = Exit.SANDBOX
    return outcome.code


def _kernel(profile: Strictness) -> tuple[list[PartFound], list[str], Sequence[Weakness]]:
    """Return the findings on a restricted kernel, unmet demands of the profile, and weaknesses."""
    try:
        containment, checks = asyncio.run(check_machine())
    except SandboxError as error:
        start = PartFound("kernel", "start", "failed", str(error), is_blocker=True)
        return [start], ["no restricted kernel starts"], ()
    escapes = [f"{x.name}: {x.detail}" for x in checks if not x.passed and not x.is_needed]
    findings = [*_layers(containment), *map(_check, checks)]
    unmet = [*shortcomings(profile, containment), *escapes]
    return findings, unmet, weaknesses(containment)


def _layers(containment: Containment) -> Iterable[PartFound]:
    for layer in containment.layers:
        state = "ok" if layer.state is LayerState.ACTIVE else "missing"
        yield PartFound("kernel", layer.name, state, layer.reason)


def _check(check: Check) -> PartFound:
    if check.passed:
        return PartFound("tried", check.name, "ok", check.detail)
    if not check.is_needed:
        return PartFound("tried", check.name, "failed", check.detail)
    detail = f"A restricted kernel can't work here: {check.detail}."
    return PartFound("tried", check.name, "failed", detail, is_blocker=True)


async def _model(choice: ModelChoice) -> list[PartFound]:
    """Return findings on whether the chosen model can answer."""
    if not choice.is_local:
        found = await _remote(choice)
        return [found] if found.is_blocker else [found, *await _abilities(choice)]
    from dm_jupyter.models.local.catalogue import DEFAULT_MODEL  # noqa: PLC0415
    from dm_jupyter.models.local.engine import obstacles  # noqa: PLC0415

    name = DEFAULT_MODEL if choice.model == "local" else choice.model
    missing = [
        PartFound("model", name, "missing", x.text, x.command, is_blocker=True)
        for x in obstacles(name)
    ]
    return missing or [PartFound("model", name, "ok", "On this machine; nothing leaves it.")]


async def _remote(choice: ModelChoice) -> PartFound:
    from dm_jupyter.models.endpoint_client import Endpoint, EndpointClient  # noqa: PLC0415

    address = shown_address(choice.base_url)
    again = ("doctor", "--base-url", address, "--model")

    def failed(detail: str, command: str) -> PartFound:
        return PartFound("model", choice.model, "failed", detail, command, is_blocker=True)

    endpoint = Endpoint(choice.base_url, choice.model, choice.api_key)
    try:
        async with EndpointClient(endpoint) as client:
            entries = await client.list_of_models()
    except EndpointRefusedError as error:
        if error.status in _REFUSES_KEY:
            return failed(f"{address} refuses the key. Enter one, and look again.", _ENTER_KEY)
        if error.status not in _WITHOUT_LIST:
            answered = f"{address} answers {error.status}. Look again when it works."
            return failed(answered, own_command(*again, choice.model))
        untold = f"{address} lists no models. Ask, to see whether it has this one."
        return PartFound("model", choice.model, "missing", untold)
    except EndpointBlockedError as error:
        return failed(f"{error}.", own_command(*again, choice.model))
    except PolicyError:
        silent = f"Nothing answers at {address}. Start the server there, and look again."
        return failed(silent, own_command(*again, choice.model))
    return _looked_up(choice, entries)


def _looked_up(choice: ModelChoice, entries: list[Any] | None) -> PartFound:
    """Return the finding on whether the endpoint lists the model; None is no list."""
    address = shown_address(choice.base_url)
    listed = [one for one in entries or () if isinstance(one, dict) and "id" in one]
    names = [str(one["id"]) for one in listed]
    if entries is None:
        detail = (
            f"{address} answers, but not as a model's endpoint, whose address usually ends in /v1. "
            "Correct the address, and look again."
        )
        right = address if address.endswith("/v1") else f"{address.rstrip('/')}/v1"
        command = own_command("doctor", "--base-url", right, "--model", choice.model)
    elif choice.model in names:
        return PartFound("model", choice.model, "ok", f"At {address}.")
    else:
        others = f", but {', '.join(names)}." if names else ". It lists no models."
        detail = f"{address} has no model {choice.model}{others}"
        nearest = difflib.get_close_matches(choice.model, names, 1, 0.0)
        command = own_command("doctor", "--base-url", address, "--model", *nearest)
        command = command if nearest else ""
    return PartFound("model", choice.model, "failed", detail, command, is_blocker=True)


async def _abilities(choice: ModelChoice) -> list[PartFound]:
    """Return the endpoint's capabilities; asks two tiny questions if they are not known yet."""
    from dm_jupyter.models.opening import open_policy  # noqa: PLC0415

    try:
        async with open_policy(choice) as policy:
            rows = (await policy.describe()).described()
    except PolicyError as error:
        again = own_command("doctor", "--base-url", shown_address(choice.base_url), "--model")
        return [PartFound("model", choice.model, "failed", str(error), again, is_blocker=True)]
    states = {True: "ok", False: "missing", None: "unknown"}
    return [PartFound("endpoint", name, states[is_there], how) for name, is_there, how in rows]


def _packages() -> Iterable[PartFound]:
    for name, (use, extra) in _OPTIONAL.items():
        if find_spec(name):
            yield PartFound("package", name, "ok", use)
        else:
            yield PartFound("package", name, "missing", use, install_extra(extra))


def _print_report(
    findings: Sequence[PartFound],
    profile: Strictness,
    unmet: Sequence[str],
    weak: Sequence[Weakness],
) -> None:
    """Print what to do first, each command on its own line, which no table may break."""
    blockers = [finding for finding in findings if finding.is_blocker]
    lines = ["You can't ask yet:" if blockers else "You can ask."]
    for number, finding in enumerate(blockers, 1):
        lines.append(f"{number}. {finding.detail}")
        lines += [f"   {finding.command}"] * bool(finding.command)
    lines += ["", f"This machine {'does not meet' if unmet else 'meets'} the profile {profile}."]
    lines += [f"- {what}" for what in unmet]
    lines += [""] * bool(weak) + [f"{one.text} {one.remedy}" for one in weak]
    print(harmless_text("\n".join(lines)))
    table = Table("part", "what", "state", Column("seen, or what it is for", overflow="fold"))
    for finding in findings:
        part, name, detail = map(harmless_text, (finding.part, finding.name, finding.detail))
        state = Text(finding.state, style=_STYLES[finding.state])
        table.add_row(Text(part), Text(name), state, Text(detail))
    Console().print(table)
    for command in dict.fromkeys(x.command for x in findings if x.command and not x.is_blocker):
        uses = ", ".join(finding.detail for finding in findings if finding.command == command)
        print(f"For {uses}:\n   {command}")
