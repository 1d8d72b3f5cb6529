"""`symph export dijob` writes a file that `symph import dijob` reads as the same experiment."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Symph
from tests.importers.samples import EXAMPLES


@pytest.mark.parametrize("version", ["v0", "v1.0", "v1.1.0", "v1.1"])
def test_an_example_of_each_operator_comes_back(version: str, tmp_path: Path, symph: Symph) -> None:
    first, job, again = (str(tmp_path / name) for name in ("first.yaml", "job.yaml", "again.yaml"))
    symph("import", "dijob", str(EXAMPLES / f"dijob-{version}.yaml"), "--to", first)
    symph("export", "dijob", first, "--to", job)
    symph("import", "dijob", job, "--to", again)
    assert yaml.safe_load(Path(again).read_text()) == yaml.safe_load(Path(first).read_text())


@pytest.mark.usefixtures("spec")
def test_another_operator_is_another_shape(tmp_path: Path, symph: Symph) -> None:
    text = "name: x\nimage: i\nprocesses: {worker: {cmds: [run], replicas: 3}}\n"
    (tmp_path / "one.yaml").write_text(text)
    said = {
        operator: yaml.safe_load(symph("export", "dijob", str(tmp_path / "one.yaml"), "--operator", operator).stdout)
        for operator in ("v1.0", "v1.1")
    }
    assert said["v1.0"]["spec"]["minReplicas"] == 3
    assert said["v1.1"]["spec"]["tasks"][0]["replicas"] == 3
