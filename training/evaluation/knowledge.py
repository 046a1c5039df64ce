"""Knowledge-augmented sampling, as in DataMind (arXiv 2509.25084).

A small model seldom finds a method that it does not know, so it draws no correct run to learn
from. With `--knowledge`, each question comes with the workflows of its kind while runs are drawn.
The dataset contains the question without them, so the model learns to find the method by itself.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dm_jupyter.core.errors import UsageError
from dm_jupyter.core.task import Task
from dm_jupyter.core.trajectory import Trajectory
from training.suites.suite import Sample

__all__ = ["Knowledge", "read_knowledge", "without_knowledge"]

_TOLD = "knowledge"
"""Name in a task's metadata: the text that was added to its constraints."""


@dataclass(frozen=True, slots=True)
class _Workflow:
    """How questions of one kind are answered."""

    text: str
    categories: tuple[str, ...]
    """Of questions; empty for all."""
    when: re.Pattern[str]
    """Found in the question, its constraints or a file name."""

    def fits(self, sample: Sample) -> bool:
        """Return whether it applies to a question."""
        task = sample.task
        if self.categories and sample.category not in self.categories:
            return False
        words = [task.question, task.constraints, *(file.name for file in task.files)]
        return self.when.search("\n".join(words)) is not None


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Workflows for many kinds of questions."""

    workflows: tuple[_Workflow, ...]
    sha256: str
    """Of the file, hex digits."""

    def told(self, sample: Sample) -> Task:
        """Return a question's task with the workflows that apply to it, below its constraints."""
        task = sample.task
        text = " ".join(one.text for one in self.workflows if one.fits(sample))
        if not text:
            return task
        constraints = "\n".join(filter(None, (task.constraints, text)))
        return replace(task, constraints=constraints, metadata={**task.metadata, _TOLD: text})


def read_knowledge(file: Path) -> Knowledge:
    """Return the workflows of a file.

    The file is TOML with a list of tables `workflow`, each with a `text`. It may also have
    `categories`, a list of names, and `when`, a regular expression that ignores case.

    Args:
        file: the path of the file.

    Raises:
        UsageError: the file can't be read, or a workflow is not in this form.
    """
    try:
        content = file.read_bytes()
        entries = tomllib.loads(content.decode("utf-8"))["workflow"]
        workflows = tuple(_workflow(entry, at) for at, entry in enumerate(entries, 1))
    except KeyError as error:
        raise UsageError(f"{file}: there is no [[workflow]]") from error
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"{file}: {error}") from error
    return Knowledge(workflows, hashlib.sha256(content).hexdigest())


def _workflow(entry: Mapping[str, Any], number: int) -> _Workflow:
    unknown = sorted(set(entry) - {"text", "categories", "when"})
    if unknown:
        raise ValueError(f"workflow {number} has an unknown field: {unknown[0]}")
    text, when = entry.get("text", ""), entry.get("when", "")
    categories = entry.get("categories", [])
    if not (isinstance(text, str) and text.strip() and isinstance(when, str)):
        raise ValueError(f"workflow {number} needs a text; `when` is a text, too")
    if not (isinstance(categories, list) and all(isinstance(one, str) for one in categories)):
        raise ValueError(f"workflow {number}: `categories` must be a list of names")
    try:
        pattern = re.compile(when, re.IGNORECASE)
    except re.error as error:
        raise ValueError(f"workflow {number}: `when` is no regular expression: {error}") from error
    return _Workflow(" ".join(text.split()), tuple(categories), pattern)


def without_knowledge(trajectory: Trajectory) -> Trajectory:
    """Return a run as if its question had come without workflows.

    Args:
        trajectory: a run, drawn with or without them.
    """
    task = trajectory.task
    told = task.metadata.get(_TOLD)
    if not told:
        return trajectory
    plain = task.constraints.removesuffix(str(told)).removesuffix("\n")
    metadata = {name: value for name, value in task.metadata.items() if name != _TOLD}
    return replace(trajectory, task=replace(task, constraints=plain, metadata=metadata))
