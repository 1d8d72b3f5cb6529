"""The benchmarks run: the cheap ones here, the others in `tests/e2e/test_benchmarks.py`."""

from __future__ import annotations

import os

import pytest

from tests.benchmarks import CHEAP, FOLDER, HEAVY, run_benchmark


def test_each_benchmark_is_run_by_a_test() -> None:
    assert {*CHEAP, *HEAVY} == {path.name for path in FOLDER.glob("*.py")}


@pytest.mark.parametrize("name", CHEAP)
def test_a_benchmark_runs(name: str) -> None:
    run_benchmark(name, os.environ)
