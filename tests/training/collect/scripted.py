"""A split of six questions, and a model whose eighteen runs at them have one flaw each."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.endpoint import ScriptedEndpoint, answer_to_probe
from training.evaluation.run import SEEDS_A_TRIAL

ROWS = {"t1": 3, "t2": 4, "t3": 5}
TABLES = ("t1", "t1", "t2", "t2", "t3", "t3")
CATEGORIES = ("a", "a", "b", "b", "c", "c")
_NUMBER = re.compile(r"question number (\d)")


def write_split(folder: Path) -> Path:
    """Writes the questions; the licence of number 4 forbids to learn from it."""
    (folder / "tables").mkdir(parents=True)
    for name, rows in ROWS.items():
        lines = "".join(f"{row}\n" for row in range(rows))
        (folder / "tables" / f"{name}.csv").write_text(f"a\n{lines}")
    records = [
        {
            "id": f"q{number}", "question": f"How many rows? This is question number {number}.",
            "constraints": "", "format": "@n[value]", "file": f"tables/{table}.csv",
            "level": "easy", "concepts": ["Counts"], "category": CATEGORIES[number],
            "template": "t", "steps": 1, "domain": "d", "licence": "Apache-2.0",
            "split": "held" if number == 4 else "train",
            "label_pairs": [["n", str(ROWS[table])]],
        }
        for number, table in enumerate(TABLES)
    ]  # fmt: skip
    lines = "".join(f"{json.dumps(record)}\n" for record in records)
    (folder / "questions.jsonl").write_text(lines)
    return folder


def cell(source: str) -> str:
    """A turn of `datamind`, up to where sampling stops."""
    return f"<think>go on</think>\n<code>\n{source}\n"


def answer(number: int) -> str:
    """The turn that answers."""
    return f"<think>so</think>\n<answer>\n@n[{number}]\n"


def _count(table: str) -> str:
    return f"n = len(open('{table}.csv').read().split()) - 1\nprint(f'@n[{{n}}]')"


def _by_csv(table: str) -> str:
    return f"import csv\nn = len(list(csv.DictReader(open('{table}.csv'))))\nprint(f'@n[{{n}}]')"


SAME_AGAIN = cell(f"# count them\n\n{_count('t1')}")
RUNS: Mapping[tuple[int, int], Sequence[str]] = {
    (0, 0): (cell(_count("t1")), answer(3)),
    (0, 1): (cell("1 / 0"), SAME_AGAIN, answer(3)),  # longer, with the same program
    (0, 2): (cell(_by_csv("t1")), answer(3)),
    (1, 0): (cell(_count("t1")), answer(4)),  # wrong
    (1, 1): ("I wonder.", cell(_count("t1")), answer(3)),  # void
    (1, 2): (cell("print('done')"), answer(3)),  # not grounded
    (2, 0): (
        cell("import time\nprint(time.time_ns())\nprint('@n[4]')"),
        answer(4),
    ),  # not replayable
    (2, 1): (cell("print(1)"),),  # without end
    (2, 2): (cell(_count("t2")), answer(4)),
    (3, 0): (cell(_count("t2")), answer(4)),
    (3, 1): (cell(_by_csv("t2")), answer(4)),
    (3, 2): (cell("x = 4"), cell("print(f'@n[{x}]')"), answer(4)),  # the third right one
    (4, 0): (cell(_count("t3")), answer(5)),  # not licensed
    (4, 1): (cell(_count("t3")), answer(5)),  # not licensed
    (4, 2): (cell(_by_csv("t3")), answer(5)),  # not licensed
    (5, 0): (cell("print(5)"), answer(5)),  # markdown would ask for a cell that prints @n
    (5, 1): (cell("x = 5"), cell("print(f'@n[{x}]')"), answer(5)),
    (5, 2): (cell("print(2 + 3)"), answer(5)),  # as the first
}
SENTENCES: Mapping[int, Sequence[str]] = {
    0: ("<answer>3</answer>", "<answer>There are 3 rows there.</answer>"),  # no sentence at first
    2: ("There are 4 rows.", "<answer>There are\n4 rows there.</answer>"),  # without tags at first
    3: ("<answer>There are 4 rows, and 5 with the header.</answer>",),  # another number
    5: ("<answer>There are many rows.</answer>", "<answer>There are 5 rows there.</answer>"),
}
"""The answers in words to each question, the second one after a reminder."""
FUNNEL = {
    "drawn": 18, "ended": 17, "correct": 16, "licensed": 13, "grounded": 12, "no void turn": 11,
    "writable": 9, "replayed": 8, "shortest": 7, "per question": 6, "balanced": 6,
}  # fmt: skip


class ScriptedRuns(ScriptedEndpoint):
    """The model; it may kill a process at one of its requests, before that is answered."""

    def __init__(self) -> None:
        super().__init__([""])
        self.kills: subprocess.Popen[bytes] | None = None
        self.kills_at = 0

    def next_answer(self, body: dict[str, Any], headers: Mapping[str, str]) -> Any:
        if not answer_to_probe(body):
            messages = body["messages"]
            at = sum(message["role"] == "assistant" for message in messages)
            asks_for_words = messages[0]["role"] == "user"
            number = int(_NUMBER.findall(messages[not asks_for_words]["content"])[-1])
            trial = body["seed"] // SEEDS_A_TRIAL
            turns = SENTENCES[number] if asks_for_words else RUNS[number, trial]
            self.texts = [turns[min(at, len(turns) - 1)]]
        reply = super().next_answer(body, headers)
        if self.kills is not None and len(self.bodies) == self.kills_at:
            self.kills.kill()
            self.kills.wait()
        return reply

    def asked(self) -> list[str]:
        """Each request, as text."""
        return [json.dumps(body, sort_keys=True) for body in self.bodies]
