"""Throws text at what reads cells before they run; needs atheris, and runs until it is stopped.

    python tests/fuzz/fuzz_screen.py -max_total_time=300

Whatever a cell holds, the screen answers and the search for imports ends: neither ever raises.
"""

from __future__ import annotations

import sys
import warnings

import atheris

with atheris.instrument_imports(include=["kernel_sandbox"]):
    from kernel_sandbox.cells.screen import Refusal, screen
    from kernel_sandbox.packages.packages import missing_imports

_PIECES = (
    "import os\n",
    "os.system('",
    "get_ipython().",
    "%%time\n",
    "!",
    "%pip ",
    "exec(",
    "eval(",
)
_PIECES += (
    "\\",
    "'''",
    "(",
    ")",
    "\n",
    "    ",
    "lambda: ",
    "f'{",
    "}'",
    "\x00",
    "\ud800",
    "[" * 99,
)


def one(data: bytes) -> None:
    """Tries one input: pieces of cells with the input's text between them.

    Args:
        data: what the fuzzer thought of.
    """
    given = atheris.FuzzedDataProvider(data)
    parts = []
    while given.remaining_bytes() and len(parts) < 40:
        parts.append(given.PickValueInList(list(_PIECES)))
        parts.append(given.ConsumeUnicode(given.ConsumeIntInRange(0, 20)))
    source = "".join(parts)
    answer = screen(source)
    assert answer is None or isinstance(answer, Refusal)
    assert isinstance(missing_imports(source, lambda _: False), tuple)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
