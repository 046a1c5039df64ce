"""Prepares the test files for `make test`: `python -m tests.rewritten`.

pytest rewrites each `assert` and keeps the result beside the file. The workers of pytest-xdist
begin together, so in a new checkout each of them would do so for all files, and under coverage.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from _pytest.assertion import install_importhook, rewrite
from _pytest.config import Config, _prepareconfig

_TESTS = Path(__file__).parent
_PROCESSES = 2


def main() -> int:
    """Rewrites the files that have changed."""
    files = sorted((*_TESTS.rglob("test_*.py"), *_TESTS.rglob("conftest.py")))
    with ProcessPoolExecutor(_PROCESSES) as pool:
        written = pool.map(_rewrite, (files[first::_PROCESSES] for first in range(_PROCESSES)))
    print(f"{sum(written)} of {len(files)} test files were prepared")
    return 0


def _rewrite(files: Sequence[Path]) -> int:
    config = _prepareconfig(["--noconftest", "-p", "no:cacheprovider"])
    install_importhook(config)
    return sum(_is_rewritten(file, config) for file in files)


def _is_rewritten(file: Path, config: Config) -> bool:
    kept = rewrite.get_cache_dir(file) / (file.name[:-3] + rewrite.PYC_TAIL)
    if rewrite._read_pyc(file, kept) is not None:
        return False
    state = config.stash[rewrite.assertstate_key]
    about, code = rewrite._rewrite_test(file, config)
    return rewrite.try_makedirs(kept.parent) and rewrite._write_pyc(state, code, about, kept)


if __name__ == "__main__":
    sys.exit(main())
