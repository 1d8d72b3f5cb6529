"""`symph catalog`, as users run it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Symph = Callable[..., subprocess.CompletedProcess[str]]
POOLS = Path(__file__).parents[2] / "examples/pools"


@pytest.fixture
def symph(tmp_path: Path) -> Symph:
    """Run the command with its own state folder."""

    def run(*args: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "SYMPH_STATE_DIR": str(tmp_path / "state")}
        argv = [sys.executable, "-m", "symphony_charts", "catalog", *args]
        ended = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert ended.returncode == status, ended.stderr
        return ended

    return run


def test_import_prints_pools_with_labels_and_taints(symph: Symph) -> None:
    wide = symph("import", str(POOLS / "cloudwise.tf.json"), "-o", "wide").stdout
    assert "exclusive_workload=exclusive:NoExecute" in wide
    assert "memory_m=30720" in wide


def test_import_as_json_holds_allocatable_and_source(symph: Symph) -> None:
    pools = json.loads(symph("import", str(POOLS / "gcloud-node-pools.json"), "-o", "json").stdout)["items"]
    assert pools[0]["allocatable"]["memory"] == 27790605824
    assert pools[0]["source"].endswith("gcloud-node-pools.json, [0]")


@pytest.mark.parametrize("name", sorted(path.name for path in POOLS.iterdir() if path.suffix != ".md"))
def test_every_sample_can_be_imported(symph: Symph, name: str) -> None:
    symph("import", str(POOLS / name))


def test_show_computes_custom_machines(symph: Symph) -> None:
    text = symph("show", "n1-standard-8", "n2-custom-6-20480").stdout
    assert "n1-standard-8      8     30 GiB  amd64" in text
    assert "n2-custom-6-20480  6     20 GiB  amd64" in text


def test_an_unknown_machine_is_corrected(symph: Symph) -> None:
    assert 'did you mean "n1-standard-8"?' in symph("show", "n1-standrd-8", status=8).stderr


def test_search_finds_gpus(symph: Symph) -> None:
    names = symph("search", "a100", "-o", "name").stdout.split()
    assert {"a2-highgpu-1g", "a2-ultragpu-8g"} <= set(names)


def test_refresh_keeps_what_gcloud_lists(symph: Symph, tmp_path: Path) -> None:
    listed = [{"name": "n9-standard-4", "guestCpus": 4, "memoryMb": 16384, "architecture": "ARM64"}]
    (tmp_path / "types.json").write_text(json.dumps(listed))
    assert "would keep 1" in symph("refresh", "types.json", "--dry-run").stdout
    symph("show", "n9-standard-4", status=8)
    symph("refresh", "types.json")
    assert "arm64" in symph("show", "n9-standard-4").stdout


def test_refresh_from_a_file_without_machines_is_refused(symph: Symph) -> None:
    assert "lists no machine types" in symph("refresh", str(POOLS / "pools.yaml"), status=3).stderr
