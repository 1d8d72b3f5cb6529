"""The benchmarks that take seconds run, with their smallest sizes."""

from __future__ import annotations

import os

import pytest

from tests.benchmarks import HEAVY, run_benchmark
from tests.e2e.programs import Programs


@pytest.mark.parametrize("name", HEAVY)
def test_a_benchmark_runs(name: str, programs: Programs) -> None:
    run_benchmark(name, {**os.environ, **programs.environment(), "HOME": str(programs.home)})
