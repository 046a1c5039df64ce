"""Run the benchmarks of `make bench`, one after another."""

from __future__ import annotations

import runpy

for name in (
    "structure", "profile_speed", "help_speed", "server_start", "ledger", "sandbox", "mutants",
):  # fmt: skip
    print(f"\n== {name}")
    runpy.run_module(f"benchmarks.{name}", run_name="__main__")
