"""`symph package` decides the placement of processes and refuses those that no scheduler can place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from symphony_charts.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
POOLS = str(ROOT / "examples/pools/pools.yaml")
GPU = str(ROOT / "examples/gpu/experiment.yaml")


def test_a_wish_for_a_machine_becomes_requests_and_a_selector(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["package", GPU, "--dry-run", "-d", str(tmp_path), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["items"][0]["fit"].startswith("PROVEN")


def test_the_decisions_stand_in_the_chart(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", GPU, "-o", "json"]) == 0
    assert "symphony-charts/assigned-to" in capsys.readouterr().out
