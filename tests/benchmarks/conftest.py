"""Material shared by the tests of benchmarks."""

from tests.training.conftest import read_without_workers

__all__ = ["read_without_workers"]
