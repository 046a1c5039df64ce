"""Generation of an entire data set in memory, and its atomic writing."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from string import Template as Text
from typing import Any

from training.suites.generated import data
from training.suites.generated.programs.steps import UnfitError
from training.suites.generated.questions.questions import (
    DisagreementError,
    Question,
    QuestionMaker,
)
from training.suites.generated.questions.templates import (
    LEVELS,
    Template,
    categories,
    templates,
)
from training.suites.generated.tables.chance import Chance
from training.suites.generated.tables.dirt import Format, soil
from training.suites.generated.tables.domains import SPLITS, domains
from training.suites.generated.tables.files import DataFile, data_file
from training.suites.generated.tables.tables import draw_table
from training.suites.generated.tally import Made, Tally

__all__ = ["Dataset", "Entry", "Plan", "generate", "refuse_unusable", "write_dataset"]

LICENCE = "Apache-2.0"
SHARES = {1: 0.4, 2: 0.35, 3: 0.25}
"""Share of questions of each level."""
ATTEMPTS = 120
"""Maximum number of drafts for one question, which then counts as not made."""
PATIENCE = 3
"""Number of drafts that do not fit a file after which their template is dropped for the file."""
_FORMATS: tuple[Format, ...] = ("csv", "xlsx", "sqlite", "csv")


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan of a generation."""

    tables: int
    """Number of files, at least one for each split."""
    per_table: int
    """Number of questions about each file."""
    seed: int

    def __post_init__(self) -> None:
        if self.tables < len(SPLITS):
            raise ValueError(
                f"{self.tables} tables leave a split without one: "
                f"ask for --tables {len(SPLITS)} or more"
            )
        if self.per_table < 1:
            raise ValueError("every table needs a question: ask for --per-table 1 or more")


@dataclass(slots=True)
class Entry:
    """A question with the data for its record; its text may be replaced by a paraphrase."""

    id: str
    question: Question
    file: DataFile
    text: str

    def record(self) -> dict[str, Any]:
        """Return the record of `questions.jsonl`."""
        question, domain = self.question, self.file.dirty.table.domain
        category = next(one for one in categories() if one.name == question.template.category)
        record: dict[str, Any] = {
            "id": self.id,
            "question": self.text,
            "constraints": question.constraints,
            "format": question.format,
            "file": f"tables/{self.file.name}",
            "level": LEVELS[question.level - 1],
            "concepts": [category.title],
            "category": category.name,
            "template": question.template.full_name,
            "steps": question.depth,
            "domain": domain.name,
            "split": domain.split,
            "licence": LICENCE,
        }
        if question.table:
            return record | {
                "columns": list(question.table.columns),
                "rows": [list(row) for row in question.table.rows],
                "order_matters": question.table.is_ordered,
            }
        return record | {"label_pairs": [list(pair) for pair in question.label]}


@dataclass(slots=True)
class Dataset:
    """Result of a generation: files, questions and counts."""

    plan: Plan
    tally: Tally = field(default_factory=Tally)
    files: list[DataFile] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)


def generate(plan: Plan, on_table: Callable[[int], None] = lambda _: None) -> Dataset:
    """Return the data set of a plan.

    Args:
        plan: what to generate.
        on_table: called with the number of tables done, after each of them.

    Raises:
        ModuleNotFoundError: SciPy is not installed.
    """
    dataset = Dataset(plan)
    known = domains()
    for number in range(1, plan.tables + 1):
        place = (number - 1) % len(known)
        chance = Chance("file", plan.seed, number)
        table = draw_table(known[place], plan.seed, number)
        file_format = _FORMATS[(place + (number - 1) // len(known)) % len(_FORMATS)]
        file = data_file(soil(table, file_format, chance), chance)
        dataset.files.append(file)
        dataset.entries += _FileQuestions(file, dataset).ask()
        on_table(number)
    return dataset


class _FileQuestions:
    """The questions about one file."""

    def __init__(self, file: DataFile, dataset: Dataset) -> None:
        self._file = file
        self._plan = dataset.plan
        self._tally = dataset.tally
        self._split = file.dirty.table.domain.split
        self._maker = QuestionMaker(file)
        self._failed: Counter[tuple[str, int]] = Counter()
        self._asked: set[str] = set()

    def ask(self) -> Iterator[Entry]:
        """Yield the questions."""
        name = self._file.dirty.table.name
        for number in range(1, self._plan.per_table + 1):
            question = self._question(number)
            if question is None:
                self._tally.missing += 1
                continue
            self._asked.add(question.text)
            self._tally.add(Made(question, self._split, self._file.dirty.format))
            name_of_it = f"generated-{self._plan.seed}-{name}-{number:03d}"
            yield Entry(name_of_it, question, self._file, question.text)

    def _question(self, number: int) -> Question | None:
        key = ("question", self._plan.seed, self._file.name, number)
        candidates = self._candidates(Chance(*key))
        for attempt, (template, level) in zip(range(ATTEMPTS), candidates, strict=False):
            try:
                question = self._maker.make(template, level, Chance(*key, attempt))
            except UnfitError as unfit:
                self._tally.refused[unfit.reason] += 1
                self._failed[template.full_name, level] += 1
                continue
            except DisagreementError as differing:
                self._tally.disagreements.append(f"{self._file.name}: {differing}")
                continue
            if question.text in self._asked:
                self._tally.refused["asked already"] += 1
            elif self._tally.is_constant(question, self._split):
                self._tally.refused["too frequent an answer"] += 1
            else:
                return question
        return None

    def _candidates(self, chance: Chance) -> Iterator[tuple[Template, int]]:
        """Yield templates to try: rare categories first, then rare levels, then rare templates."""
        of_category, of_template, of_level = self._tally.used(self._split)
        total = of_level.total() + 1
        names = chance.shuffled([category.name for category in categories()])
        names.sort(key=lambda name: of_category[name])
        levels = sorted(SHARES, key=lambda level: of_level[level] - SHARES[level] * total)
        while True:
            for name in names:
                for level in levels:
                    fitting = self._fitting(name, level)
                    if fitting:
                        few = min(of_template[one.full_name] for one in fitting)
                        rare = [one for one in fitting if of_template[one.full_name] == few]
                        chosen = chance.choose(rare)
                        of_template[chosen.full_name] += 1
                        yield chosen, level
            if not any(self._fitting(name, level) for name in names for level in levels):
                return

    def _fitting(self, category: str, level: int) -> list[Template]:
        return [
            one
            for one in templates()
            if one.category == category
            and one.level <= level
            and one.format in ("", self._file.dirty.format)
            and self._failed[one.full_name, level] < PATIENCE
        ]


def refuse_unusable(out: Path) -> None:
    """Raise an error if a folder can't be used for a data set.

    Raises:
        FileExistsError: the path is a folder that is not empty, or not a folder.
    """
    if out.is_dir() and not any(out.iterdir()):
        return
    if out.is_symlink() or out.exists():
        what = "is not empty" if out.is_dir() else "is not a folder"
        raise FileExistsError(
            f"{out} {what}. A data set is written into a new or an empty folder only, so that no "
            "two of them mix. Name another one with --out"
        )


def write_dataset(dataset: Dataset, out: Path) -> None:
    """Write a data set atomically: the folder contains all of it, or is unchanged.

    Raises:
        FileExistsError: the path is a folder that is not empty, or not a folder.
        OSError: the folder can't be written.
    """
    refuse_unusable(out)
    out = out.absolute()
    out.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    try:
        part.chmod(0o755)
        for split in SPLITS:
            _write_split(dataset, split, part / split)
        report = json.dumps(dataset.tally.report(), indent=2, ensure_ascii=False)
        (part / "report.json").write_text(f"{report}\n", encoding="utf-8", newline="\n")
        (part / "README.md").write_text(_readme(dataset), encoding="utf-8", newline="\n")
        refuse_unusable(out)  # another process may have filled it in the meantime
        if out.is_dir():
            out.rmdir()
        part.rename(out)
    except BaseException:
        with suppress(OSError):
            shutil.rmtree(part)
        raise


def _write_split(dataset: Dataset, split: str, folder: Path) -> None:
    (folder / "tables").mkdir(parents=True)
    for file in dataset.files:
        if file.dirty.table.domain.split == split:
            (folder / "tables" / file.name).write_bytes(file.content)
    records = [entry.record() for entry in _of_split(dataset.entries, split)]
    lines = "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records)
    (folder / "questions.jsonl").write_text(lines, encoding="utf-8", newline="\n")


def _of_split(entries: Sequence[Entry], split: str) -> list[Entry]:
    return [entry for entry in entries if entry.file.dirty.table.domain.split == split]


def _readme(dataset: Dataset) -> str:
    rows = []
    for split in SPLITS:
        names = [file.dirty.table.domain for file in dataset.files]
        found = sorted({domain.name for domain in names if domain.split == split})
        count = len(_of_split(dataset.entries, split))
        rows.append(f"| `{split}` | {count} | {', '.join(found)} |")
    text = files(data).joinpath("readme.md").read_text("utf-8")
    plan = dataset.plan
    fields: Mapping[str, object] = {
        "tables": plan.tables,
        "per_table": plan.per_table,
        "seed": plan.seed,
        "rows": "\n".join(rows),
    }
    return Text(text).substitute(fields)
