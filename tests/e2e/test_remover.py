"""The remover on trees too deep for recursion, and against a process that swaps folders and links meanwhile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.namespace import run_alone

pytestmark = pytest.mark.slow


def test_deep_trees_are_removed_and_a_swapper_does_not_lead_out(tmp_path: Path) -> None:
    told = json.loads(run_alone("tests.e2e.remover_storm", str(tmp_path)))
    assert (told["deep"], told["many"], told["canary"]) == ([], [], 2)
    assert told["removals"] > 100
