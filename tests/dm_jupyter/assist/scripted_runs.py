"""Fixed runs in every form a model is spoken to, and what each of them asks the model."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dm_jupyter.agent.loop import RunSettings, run
from dm_jupyter.core.dialects.tools import call_text
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Completion, DataContext, Trajectory
from dm_jupyter.models.protocols import SampleRequest
from kernel_sandbox.types import CellError, CellResult, CellStatus, Stream
from tests.fakes import ScriptedNotebook, printed, raised

LOAD = 'import pandas as pd\nimport numpy as np\ndf = pd.read_csv("people.csv", sep=";")\n'
PEOPLE = DataContext(
    "people.csv: 891 rows\n- 'Age': float, 177 missing\n- 'Fare Paid': float\n- 'Sex': str male",
    LOAD,
    incomplete=("Age",),
    links="'fare': the column 'Fare Paid'",
)
SHOP = DataContext("shop.db: 2 tables", databases=("shop.db",))
CSV = (Path("people.csv"),)


@dataclass(frozen=True)
class Turn:
    """What the model does in one turn, and what comes of it."""

    kind: str
    """`python`, `sql`, `answer`, `void`, `cut` or `circle`."""
    text: str = ""
    result: CellResult | None = None


@dataclass(frozen=True)
class Script:
    """A run from its question to its end."""

    task: Task
    data_context: DataContext
    turns: Sequence[Turn]
    settings: RunSettings = field(default_factory=RunSettings)


FAILED = raised("KeyError", "'agee'")
FAILED_SQL = CellResult(
    CellStatus.ERROR, (CellError("OperationalError", "no such column: Quantity"),)
)
WARNED = CellResult(
    CellStatus.OK,
    (
        Stream("stdout", "mean 29.7\n"),
        Stream("stderr", "/lib/frame.py:3: FutureWarning: soon gone\n  frame.agg()\n"),
    ),
)

SCRIPTS: Mapping[str, Script] = {
    "free": Script(
        Task("t", "What is the mean age?", CSV),
        PEOPLE,
        (
            Turn("python", "print(df['agee'].mean())", FAILED),
            Turn("python", "print(df['agee'].median())", FAILED),
            Turn("python", "x = 1", CellResult(CellStatus.OK)),
            Turn("void"),
            Turn("python", "print('mean', df['Age'].mean())", WARNED),
            Turn("answer", "The mean age is 31.5 years."),
            Turn("answer", "The mean age is 29.7 years."),
        ),
    ),
    "closed": Script(
        Task(
            "t",
            "Do age and fare correlate?",
            CSV,
            constraints="Use Pearson.",
            answer_format='@p[p_value] where "p_value" is a number between 0 and 1',
        ),
        PEOPLE,
        (
            Turn("python", "print('nothing')", printed("nothing")),
            Turn("python", "print('@p[nan]')", printed("@p[nan]")),
            Turn("python", "print('@p[7]')", printed("@p[7]")),
            Turn("cut", "print(1"),
            Turn("circle", "# again\n" * 3),
            Turn("python", "print('@p[0.5]')", printed("@p[0.5]")),
            Turn("answer", "@p[0.5]"),
        ),
    ),
    "query": Script(
        Task("t", "How many units were sold?", (Path("shop.db"),)),
        SHOP,
        (
            Turn("sql", "SELECT Quantity FROM invoices", FAILED_SQL),
            Turn(
                "sql",
                "SELECT Quantity FROM invoice_items",
                printed("Quantity\n3\n2 rows, saved as result_1.csv"),
            ),
            Turn("python", "print(rows.sum())", printed("5")),
            Turn("answer", "5 units were sold."),
        ),
    ),
    "long": Script(
        Task("t", "What is the mean age?", CSV),
        PEOPLE,
        (
            Turn("python", "print(df.describe())", printed("1.5 2.5 3.5\n" * 150)),
            Turn("python", "print(df.head())", printed("4.5 5.5 6.5\n" * 150)),
            Turn("python", "print(df['Age'].mean())", printed("29.7")),
            Turn("answer", "The mean age is 29.7 years."),
        ),
        RunSettings(context_tokens=1_000, turn_tokens=300),
    ),
}


def spoken(dialect: str, turn: Turn) -> str:
    """The words of a turn in a dialect."""
    form = dialect.removesuffix("-published")
    code = turn.kind in {"python", "sql"}
    fenced = f"```{turn.kind}\n{turn.text}\n```"
    match form:
        case "markdown":
            return f"Look:\n```{turn.kind}\n{turn.text}\n```" if code else _plain(turn)
        case "tools":
            if not code:
                is_answer = turn.kind == "answer"
                return call_text("answer", json.dumps({"text": turn.text})) if is_answer else (
                    _plain(turn)
                )  # fmt: skip
            name, argument = ("run_sql", "query") if turn.kind == "sql" else ("run_python", "code")
            return "Look.\n" + call_text(name, json.dumps({argument: turn.text}))
        case "datamind":
            body = f"<code>\n{fenced if turn.kind == 'sql' else turn.text}\n</code>"
            body = body if code else f"<answer>{turn.text}</answer>"
        case "deepanalyze":
            body = f"<Code>\n{fenced}\n</Code>" if code else f"<Answer>{turn.text}</Answer>"
            body = f"<Analyze>t</Analyze>\n{body}"
        case "react":
            tool = "sql_query" if turn.kind == "sql" else "python_code_sandbox"
            body = f"Action: {tool}\nAction Input:\n{fenced}"
            body = f"Thought: t\n{body}" if code else f"Thought: t\nFinal Answer: {turn.text}"
        case _:
            body = f"Thought: t\nAction: {fenced}"
            body = body if code else f"Thought: t\nFormatted answer: {turn.text}"
    if turn.kind == "void":
        return "Let me think:"
    if turn.kind in {"cut", "circle"}:
        return turn.text
    return f"<think>t</think>\n{body}" if form == "datamind" else body


def _plain(turn: Turn) -> str:
    return {"void": "```\n", "answer": turn.text}.get(turn.kind, turn.text)


@dataclass
class Speaker:
    """A model that says the turns of a script, each as its dialect has it."""

    dialect: str
    turns: Sequence[Turn]
    requests: list[SampleRequest]
    name: str = "scripted"

    async def sample(self, request: SampleRequest, on_text: Callable[[str], None]) -> Completion:
        turn = self.turns[min(len(self.requests), len(self.turns) - 1)]
        self.requests.append(request)
        await asyncio.sleep(0)
        text = spoken(self.dialect, turn)
        if request.prefill and turn.kind in {"python", "sql", "cut"}:
            text = f"{request.prefill}{turn.text}\n" + ("```" if turn.kind != "cut" else "")
        ended = {"cut": "length", "circle": "repetition"}.get(turn.kind, "stop")
        return Completion(text, request.prefill, 0, 20, 0.01, ended)


async def played(
    script: Script, dialect: str, settings: RunSettings | None = None
) -> tuple[Trajectory, list[SampleRequest]]:
    """Returns the run of a script in a dialect, and all that the model was asked."""
    policy = Speaker(dialect, script.turns, [])
    results = [turn.result for turn in script.turns if turn.result is not None]
    start = Trajectory(script.task, dialect, script.data_context)
    given = settings or replace(script.settings, max_turns=len(script.turns))
    done = await run(start, policy, ScriptedNotebook(results), given, lambda _: None)
    return done, policy.requests


def digest_of(request: SampleRequest) -> dict[str, Any]:
    """What identifies a request to the byte, and the part of it that a person reads first."""
    whole = {
        "messages": [message.to_json() for message in request.messages],
        "prefill": request.prefill,
        "stop": request.stop,
        "stop_unopened": request.stop_unopened,
        "tools": [tool.to_json() for tool in request.tools],
        "temperature": request.temperature,
        "seed": request.seed,
    }
    text = json.dumps(whole, ensure_ascii=False, sort_keys=True)
    last = request.messages[-1].content
    return {
        "sha256": hashlib.sha256(text.encode()).hexdigest()[:16],
        "messages": [[one.role, len(one.content)] for one in request.messages],
        "last": last if len(last) < 900 else f"{last[:300]} … {last[-600:]}",
        "prefill": request.prefill,
        "temperature": request.temperature,
    }
