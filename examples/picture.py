"""Draws the README's terminal picture from a real run: `make picture`.

The command's own screen is recorded while the local model answers; nothing is drawn by hand.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path

from rich.console import Console

from dm_jupyter.agent.analysis import AnalysisSettings, analyze
from dm_jupyter.agent.models import open_policy
from dm_jupyter.cli.show import Screen
from dm_jupyter.config import ModelChoice
from dm_jupyter.core.task import Task
from examples.questions import DEMO

PICTURE = Path("docs/img/ask.svg")
FOLDER = Path("demo").resolve()


async def record(console: Console) -> str:
    """Answers the demo's first question on the console; returns the answer."""
    question = DEMO[0]
    data = Path(shutil.copy(question.path, FOLDER))
    task = Task(data.stem, question.text, (data,))
    settings = AnalysisSettings(notebook=FOLDER / "penguins-analysis.ipynb")
    screen = Screen(console, is_live=False)
    with screen:
        async with open_policy(ModelChoice(), screen.progress) as policy:
            analysis = await analyze(task, policy, settings, screen.show)
    return analysis.trajectory.answer or ""


def main() -> int:
    """Writes the picture; returns 1 when the model gave no right answer to show."""
    FOLDER.mkdir(exist_ok=True)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    console = Console(record=True, width=100, highlight=False, force_terminal=True)
    command = f'dm-jupyter ask {DEMO[0].file} "{DEMO[0].text}"'
    console.print(f"[green]$[/] {command}")
    answer = asyncio.run(record(console))
    console.print(answer)
    console.print("notebook: penguins-analysis.ipynb")
    if DEMO[0].missing(answer):
        return 1
    PICTURE.write_text(console.export_svg(title="dm-jupyter ask"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
