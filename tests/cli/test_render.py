"""`symph render` prints the same objects natively and by helm."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.chart.harness import index
from tests.cli.conftest import Symph
from tests.tools import helm

pytestmark = pytest.mark.usefixtures("spec")


def test_objects_are_printed_as_yaml_json_and_names(symph: Symph) -> None:
    from_yaml = list(yaml.safe_load_all(symph("render", "exp.yaml").stdout))
    from_json = json.loads(symph("render", "exp.yaml", "-o", "json").stdout)["items"]
    assert from_yaml == from_json
    names = symph("render", "exp.yaml", "-o", "name").stdout.split()
    assert "service/exp-data" in names
    assert len(names) == len(from_json)


def test_values_and_release_are_taken(symph: Symph, tmp_path: Path) -> None:
    (tmp_path / "over.yaml").write_text("groups: {client: {replicas: 5}}\n")
    args = ["-f", "over.yaml", "--set", "services.data.port=7777", "--release", "blue", "--no-tests", "-o", "json"]
    text = symph("render", "exp.yaml", *args).stdout
    objects = index(json.loads(text)["items"])
    assert ("Service", "blue-exp-data") in objects
    assert '"completions": 5' in text
    assert "7777" in text
    assert not [key for key in objects if key[0] == "Pod"]


def test_helm_prints_the_same(symph: Symph, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = helm("4.3")
    if program is None:
        pytest.skip("helm 4.3 is not unpacked: python -m tests.tools")
    monkeypatch.setenv("HELM_BIN", str(program))
    monkeypatch.chdir(tmp_path)
    from symphony_charts.kubernetes.releases.helm_client import lint_chart, template_chart
    from tests.chart.harness import example_chart, native_objects

    chart = example_chart("ring")
    assert index(template_chart(chart.name, chart.files, "r1")) == native_objects(chart)
    assert lint_chart(chart.name, chart.files).status == 0
    assert lint_chart(chart.name, {**chart.files, "Chart.yaml": b"name: x\n"}).status != 0


def test_without_helm_its_absence_is_said(symph: Symph) -> None:
    assert "helm is not installed" in symph("render", "exp.yaml", "--helm", status=5).stderr
