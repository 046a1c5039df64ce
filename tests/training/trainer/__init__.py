"""Tests of the trainer; skipped as a whole where its libraries are not installed."""

import pytest

pytest.importorskip(
    "torch", reason="the trainer's libraries are missing: pip install -e '.[train]'"
)
