"""The labels of the example questions, worked out again without pandas and without scipy."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from pathlib import Path
from statistics import correlation, fmean, variance

from training.suites.dabench import DABench

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def _rows(name: str) -> list[dict[str, str]]:
    with (EXAMPLES / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _means(pairs: list[tuple[str, float]]) -> dict[str, float]:
    groups = defaultdict(list)
    for name, value in pairs:
        groups[name].append(value)
    return {name: fmean(values) for name, values in groups.items()}


def _penguins() -> dict[str, tuple[tuple[str, str], ...]]:
    rows = _rows("penguins.csv")
    known = {"", "NA"}
    sexes = [row["sex"] for row in rows]
    masses = [
        float(row["body_mass_g"])
        for row in rows
        if row["species"] == "Gentoo" and row["body_mass_g"] not in known
    ]
    bills = [
        (float(row["bill_length_mm"]), float(row["bill_depth_mm"]))
        for row in rows
        if not {row["bill_length_mm"], row["bill_depth_mm"]} & known
    ]
    flippers = _means(
        [
            (row["species"], float(row["flipper_length_mm"]))
            for row in rows
            if row["flipper_length_mm"] not in known
        ]
    )
    longest = max(flippers, key=lambda name: flippers[name])
    r = correlation(*zip(*bills, strict=True))
    return {
        "penguins-1": (
            ("males", str(sexes.count("male"))),
            ("females", str(sexes.count("female"))),
        ),
        "penguins-2": (("mean_mass", f"{fmean(masses):.1f}"),),
        "penguins-3": (("r", f"{r:.3f}"),),
        "penguins-4": (("species", longest), ("flipper", f"{flippers[longest]:.2f}")),
    }


def _weather() -> dict[str, tuple[tuple[str, str], ...]]:
    rows = _rows("seattle-weather.csv")
    wet = sum(float(row["precipitation"]) > 20 for row in rows)
    months: dict[int, float] = defaultdict(float)
    for row in rows:
        year, month, _ = row["date"].split("/")
        months[int(month)] += float(row["precipitation"]) if year == "2014" else 0.0
    most = max(months, key=lambda month: months[month])
    ranges = _means(
        [(row["weather"], float(row["temp_max"]) - float(row["temp_min"])) for row in rows]
    )
    widest = max(ranges, key=lambda kind: ranges[kind])
    summers = {
        year: [
            float(row["temp_max"])
            for row in rows
            if row["date"].startswith(year) and row["date"].split("/")[1] in {"06", "07", "08"}
        ]
        for year in ("2012", "2015")
    }
    first, last = summers.values()
    spread = math.sqrt(variance(first) / len(first) + variance(last) / len(last))
    t = (fmean(first) - fmean(last)) / spread
    return {
        "weather-1": (("days", str(wet)),),
        "weather-2": (("month", str(most)), ("total", f"{months[most]:.1f}")),
        "weather-3": (("weather", widest), ("difference", f"{ranges[widest]:.2f}")),
        # |t| far above 1.97, the 5 % bound with some 180 degrees of freedom
        "weather-4": (("t", f"{t:.2f}"), ("different", "yes" if abs(t) > 1.97 else "no")),
    }


def test_the_labels_are_what_the_files_say() -> None:
    items = DABench().load(EXAMPLES)
    assert {item.task.id: tuple(item.label) for item in items} == {**_penguins(), **_weather()}
