"""Asks two real questions through the command line and checks the answers: `make demo`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from examples.questions import DEMO, FreeQuestion

FOLDER = Path(__file__).parent


def ask(question: FreeQuestion) -> bool:
    """Asks, prints the answer, returns whether it states the values computed by hand."""
    notebook = FOLDER / f"{question.path.stem}-analysis.ipynb"
    print(f"\n{question.file}: {question.text}")
    command = [
        *(sys.executable, "-c", "from dm_jupyter.cli import main; main()", "ask"),
        *(str(question.path), question.text, "--out", str(notebook), "--json"),
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if not done.stdout.strip():
        print(f"no answer (exit code {done.returncode})")
        return False
    report = json.loads(done.stdout)
    answer = report["answer"] or f"no answer: {report['stop']} {report['stop_detail']}"
    print(f"{answer}\n({report['seconds']} s, {report['turns']} turns, {report['tokens']} tokens)")
    print(f"notebook: {report['notebook']}")
    missing = question.missing(answer)
    print("checked: right" if not missing else f"checked: these values are not stated: {missing}")
    return not missing


def main() -> int:
    """Asks both; returns 0 when both answers are right."""
    answers = [ask(question) for question in DEMO]
    return 0 if all(answers) else 1


if __name__ == "__main__":
    sys.exit(main())
