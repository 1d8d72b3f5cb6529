"""Charts of several experiments are dependencies of one chart, also under aliases."""

from __future__ import annotations

from pathlib import Path

import pytest

from symphony_charts.chart.build.chart import Release
from symphony_charts.chart.files import Chart
from symphony_charts.chart.release import open_chart
from tests.chart.harness import Objects, example_chart, helm_objects, index, run_helm, write_chart
from tests.tools import HELM_VERSIONS


def umbrella(folder: Path, *charts: tuple[Chart, str]) -> Path:
    """Write a chart whose dependencies are `charts` under these names."""
    lines = ["apiVersion: v2", "name: umbrella", "version: 0.1.0", "dependencies:"]
    for chart, alias in charts:
        lines += [f'  - name: "{chart.name}"', f"    version: {chart.version}"]
        lines += [f'    alias: "{alias}"'] if alias != chart.name else []
        write_chart(chart, folder / "charts")
    folder.mkdir(exist_ok=True)
    (folder / "Chart.yaml").write_text("\n".join(lines) + "\n")
    return folder


def objects_of(chart: Chart, alias: str, **values: object) -> Objects:
    """Return the objects of the chart alone, under the name that it has in the umbrella."""
    built = open_chart(chart.files, chart.name)
    return index(built.objects({**built.values, **values}, Release(name="all", version=chart.version, alias=alias)))


@pytest.mark.parametrize("version", HELM_VERSIONS)
def test_two_experiments_are_dependencies_of_one_chart(version: str, tmp_path: Path) -> None:
    rl, ring = example_chart("rl"), example_chart("ring")
    whole = umbrella(tmp_path / "umbrella", (rl, "rl"), (ring, "ring"))
    wanted = {**objects_of(rl, "rl"), **objects_of(ring, "ring")}
    assert helm_objects(version, whole, release="all") == wanted


@pytest.mark.parametrize("version", HELM_VERSIONS)
def test_two_aliases_of_one_chart_do_not_meet(version: str, tmp_path: Path) -> None:
    rl = example_chart("rl")
    whole = umbrella(tmp_path / "umbrella", (rl, "rl"), (rl, "second"))
    wanted = {**objects_of(rl, "rl"), **objects_of(rl, "second", runKey="2")}
    assert helm_objects(version, whole, "--set-string", "second.runKey=2", release="all") == wanted


@pytest.mark.parametrize("version", HELM_VERSIONS)
def test_experiments_of_a_release_that_bears_their_names_do_not_meet(version: str, tmp_path: Path) -> None:
    whole = umbrella(tmp_path / "umbrella", (example_chart("rl"), "rl"), (example_chart("ring"), "ring"))
    names = {name for kind, name in helm_objects(version, whole, release="rl-ring") if kind == "Job"}
    assert {name.rpartition("-")[0] for name in names} >= {"rl-ring-rl-learner"}
    assert all(name.startswith(("rl-ring-rl-", "rl-ring-ring-")) for name in names)


@pytest.mark.parametrize("version", HELM_VERSIONS)
def test_old_values_in_an_umbrella_are_refused_with_the_right_experiment(version: str, tmp_path: Path) -> None:
    whole = umbrella(tmp_path / "umbrella", (example_chart("rl"), "rl"), (example_chart("ring"), "ring"))
    ended = run_helm(version, "template", "all", whole, "--set", "ring.specDigest=old", check=False)
    assert "values are those of another experiment" in ended.stderr


@pytest.mark.parametrize("version", HELM_VERSIONS)
def test_a_condition_switches_an_experiment_off(version: str, tmp_path: Path) -> None:
    whole = umbrella(tmp_path / "umbrella", (example_chart("rl"), "rl"))
    file = whole / "Chart.yaml"
    file.write_text(file.read_text() + "    condition: rl.enabled\n")
    assert helm_objects(version, whole, "--set", "rl.enabled=true", release="all")
    assert not helm_objects(version, whole, "--set", "rl.enabled=false", release="all")
