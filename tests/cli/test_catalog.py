"""`symph catalog`, as users run it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.symph import symph

POOLS = Path(__file__).parents[2] / "examples/pools"


def catalog(*args: str, status: int = 0) -> str:
    """Run the verb; return its whole output."""
    ended = symph("catalog", *args)
    assert ended.returncode == status, ended.stderr
    return ended.stdout + ended.stderr


def test_import_prints_pools_with_labels_and_taints() -> None:
    wide = catalog("import", str(POOLS / "cloudwise.tf.json"), "-o", "wide")
    assert "exclusive_workload=exclusive:NoExecute" in wide
    assert "memory_m=30720" in wide


def test_import_as_json_holds_allocatable_and_source() -> None:
    pools = json.loads(catalog("import", str(POOLS / "gcloud-node-pools.json"), "-o", "json"))["items"]
    assert pools[0]["allocatable"]["memory"] == 27790605824
    assert pools[0]["source"].endswith("gcloud-node-pools.json, [0]")


@pytest.mark.parametrize("name", sorted(path.name for path in POOLS.iterdir() if path.suffix != ".md"))
def test_every_sample_can_be_imported(name: str) -> None:
    catalog("import", str(POOLS / name))


def test_show_computes_custom_machines() -> None:
    text = catalog("show", "n1-standard-8", "n2-custom-6-20480")
    assert "n1-standard-8      8     30 GiB  amd64" in text
    assert "n2-custom-6-20480  6     20 GiB  amd64" in text


def test_an_unknown_machine_is_corrected() -> None:
    assert 'did you mean "n1-standard-8"?' in catalog("show", "n1-standrd-8", status=8)


def test_search_finds_gpus() -> None:
    names = catalog("search", "a100", "-o", "name").split()
    assert {"a2-highgpu-1g", "a2-ultragpu-8g"} <= set(names)


def test_refresh_keeps_what_gcloud_lists(tmp_path: Path) -> None:
    listed = [{"name": "n9-standard-4", "guestCpus": 4, "memoryMb": 16384, "architecture": "ARM64"}]
    file = tmp_path / "types.json"
    file.write_text(json.dumps(listed))
    assert "would keep 1" in catalog("refresh", str(file), "--dry-run")
    catalog("show", "n9-standard-4", status=8)
    catalog("refresh", str(file))
    assert "arm64" in catalog("show", "n9-standard-4")


def test_refresh_from_a_file_without_machines_is_refused() -> None:
    assert "lists no machine types" in catalog("refresh", str(POOLS / "pools.yaml"), status=3)
