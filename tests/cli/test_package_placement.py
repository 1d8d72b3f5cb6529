"""`symph package` decides the placement of processes and refuses those that no scheduler can place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from symphony_charts.cli.main import main
from symphony_charts.formats.yaml_read import load

ROOT = Path(__file__).resolve().parents[2]
POOLS = str(ROOT / "examples/pools/pools.yaml")
GPU = str(ROOT / "examples/gpu/experiment.yaml")


def spec(folder: Path, memory: str) -> str:
    path = folder / "exp.yaml"
    path.write_text(
        f"name: exp\nimage: busybox:1\nprocesses: {{a: {{command: [x], requests: {{memory: {memory}}}}}}}\n"
    )
    return str(path)


def test_a_wish_for_a_machine_becomes_requests_and_a_selector(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["package", GPU, "--dry-run", "-d", str(tmp_path), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["items"][0]["fit"].startswith("PROVEN")


def test_the_decisions_stand_in_the_chart(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", GPU, "-o", "json"]) == 0
    assert "symphony-charts/assigned-to" in capsys.readouterr().out


def test_what_fits_nowhere_is_refused_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["package", spec(tmp_path, "9000Gi"), "-d", str(tmp_path / "out"), "--pools", POOLS]) == 4
    assert "cannot be scheduled" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["exp.yaml"]


def test_force_packages_it_all_the_same(tmp_path: Path) -> None:
    words = ["package", spec(tmp_path, "9000Gi"), "-d", str(tmp_path / "out"), "--pools", POOLS]
    assert main([*words, "--force-unschedulable"]) == 0
    assert load((tmp_path / "out" / "exp" / "Chart.yaml").read_text())


def test_pools_named_by_the_spec_are_found_beside_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pools.yaml").write_text(Path(POOLS).read_text())
    path = Path(spec(tmp_path, "1Gi"))
    path.write_text(path.read_text() + "placement: {pools: pools.yaml}\n")
    assert main(["package", str(path), "-d", str(tmp_path / "out")]) == 0
    assert "fit      PROVEN" in capsys.readouterr().out
