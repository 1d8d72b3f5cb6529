"""`symph secrets push --dry-run` prints the Secret; without a cluster, push fails with a message."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import SPEC, Symph


@pytest.fixture(autouse=True)
def secret(spec: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(b"\x00hunter2")
    spec.write_text(SPEC + "secrets: [token]\n")


def test_the_secret_is_printed(symph: Symph) -> None:
    made = yaml.safe_load(symph("secrets", "push", "exp.yaml", "--dry-run", "-n", "lab").stdout)
    assert made["metadata"]["name"] == "exp-secrets"
    assert made["metadata"]["namespace"] == "lab"
    assert base64.b64decode(made["data"]["token"]) == b"\x00hunter2"


def test_values_can_be_hidden(symph: Symph) -> None:
    made = json.loads(symph("secrets", "push", "exp.yaml", "--dry-run", "--hide-values", "-o", "json").stdout)
    assert made["data"] == {"token": "<8 bytes>"}


def test_the_name_is_the_one_that_the_chart_mounts(symph: Symph) -> None:
    made = yaml.safe_load(symph("secrets", "push", "exp.yaml", "--dry-run", "--release", "blue").stdout)
    assert f"secretName: {made['metadata']['name']}" in symph("render", "exp.yaml", "--release", "blue").stdout


def test_a_secret_with_a_name_of_its_own_belongs_to_no_release(symph: Symph) -> None:
    push = ("secrets", "push", "exp.yaml", "--dry-run", "--release", "blue")
    owners = [yaml.safe_load(symph(*push, *name).stdout)["metadata"]["labels"] for name in ((), ("--name", "shared"))]
    assert [owner.get("app.kubernetes.io/instance") for owner in owners] == ["blue", None]


def test_without_a_cluster_nothing_is_pushed(symph: Symph) -> None:
    assert symph("secrets", "push", "exp.yaml", status=6).stdout == ""


def test_an_unreadable_file_is_named(symph: Symph, spec: Path) -> None:
    spec.write_text(SPEC + "secrets: [gone]\n")
    assert "gone" in symph("secrets", "push", "exp.yaml", "--dry-run", status=3).stderr
