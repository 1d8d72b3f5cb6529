"""The gate: real helm prints the objects that `assemble` makes, for examples, overrides and generated experiments.

If this holds, everything that is computed natively (lint, plan, diff, fit) speaks of what helm really installs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chart.harness import EXAMPLE_NAMES, assert_same, example_chart


@pytest.mark.parametrize("name", EXAMPLE_NAMES)
def test_helm_prints_what_assemble_makes(name: str, tmp_path: Path) -> None:
    assert_same(example_chart(name), tmp_path)
