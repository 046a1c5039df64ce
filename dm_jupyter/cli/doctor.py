"""`dm-jupyter doctor`: what this machine can enforce, what would answer, what is missing."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.table import Table

from dm_jupyter.cli.exits import Exit, reporting
from dm_jupyter.config import ModelChoice, model_choice
from dm_jupyter.core.addresses import shown_address
from kernel_sandbox.containment import Containment, LayerState
from kernel_sandbox.selfcheck import Check, check_machine

__all__ = ["print_checkup"]

_OPTIONAL = {
    "pyarrow": ("parquet files", "pip install 'dm-jupyter[formats]'"),
    "xlrd": (".xls files", "pip install 'dm-jupyter[formats]'"),
    "odf": (".ods files", "pip install 'dm-jupyter[formats]'"),
    "scipy": ("statistical tests", "pip install 'dm-jupyter[analysis]'"),
    "sklearn": ("models", "pip install 'dm-jupyter[analysis]'"),
    "matplotlib": ("figures", "pip install 'dm-jupyter[analysis]'"),
}
_MARKS = {"ok": "[green]ok[/]", "missing": "[yellow]missing[/]", "failed": "[red]failed[/]"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    part: str
    name: str
    state: str
    """`ok`, `missing` or `failed`."""
    detail: str
    """What was seen; for what is not ok, the remedy."""


def print_checkup(
    model: str | None, base_url: str | None, api_key_file: Path | None, *, as_json: bool
) -> int:
    """Prints the report; returns 0 when nothing failed, 1 when something did."""
    with reporting() as outcome:
        choice = model_choice(model, base_url, api_key_file)
        containment, checks = asyncio.run(check_machine())
        findings = [
            *_layers(containment),
            *map(_check, checks),
            asyncio.run(_model(choice)),
            *_packages(),
        ]
        if as_json:
            print(json.dumps([asdict(finding) for finding in findings], indent=2))
        else:
            _print_table(findings)
        if any(finding.state == "failed" for finding in findings):
            outcome.code = Exit.NO_ANSWER
    return outcome.code


def _layers(containment: Containment) -> list[Finding]:
    return [
        Finding(
            "kernel",
            layer.name,
            "ok" if layer.state is LayerState.ACTIVE else "missing",
            layer.reason,
        )
        for layer in containment.layers
    ]


def _check(check: Check) -> Finding:
    return Finding("tried", check.name, "ok" if check.passed else "failed", check.detail)


async def _model(choice: ModelChoice) -> Finding:
    """Whether the model that would be asked is there."""
    if choice.is_local:
        from dm_jupyter.agent.local_model.cache import is_present  # noqa: PLC0415
        from dm_jupyter.agent.local_model.catalogue import resolve  # noqa: PLC0415

        local = resolve(choice.model)
        if find_spec("xllamacpp") is None:
            remedy = "pip install 'dm-jupyter[local]', or use --base-url"
            return Finding("model", local.name, "missing", remedy)
        if not is_present(local):
            return Finding("model", local.name, "missing", "dm-jupyter model pull")
        return Finding("model", local.name, "ok", "on this machine; nothing leaves it")
    return await _remote(choice)


async def _remote(choice: ModelChoice) -> Finding:
    import openai  # noqa: PLC0415

    address = shown_address(choice.base_url)
    async with openai.AsyncOpenAI(
        base_url=choice.base_url, api_key=choice.api_key or "none", max_retries=0, timeout=10
    ) as client:
        try:
            names = [entry.id async for entry in client.models.list()]
        except openai.OpenAIError as error:
            remedy = f"{address} gives no list of models ({error}); check --base-url"
            return Finding("model", choice.model, "failed", remedy)
    if choice.model in names:
        return Finding("model", choice.model, "ok", f"at {address}")
    return Finding("model", choice.model, "failed", f"{address} has {', '.join(names)}")


def _packages() -> list[Finding]:
    return [
        Finding("package", name, "ok", use)
        if find_spec(name)
        else Finding("package", name, "missing", f"{use}: {remedy}")
        for name, (use, remedy) in _OPTIONAL.items()
    ]


def _print_table(findings: list[Finding]) -> None:
    table = Table("part", "what", "state", "seen, or what to do")
    for finding in findings:
        table.add_row(finding.part, finding.name, _MARKS[finding.state], finding.detail)
    Console().print(table)
