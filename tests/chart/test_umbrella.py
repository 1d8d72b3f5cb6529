"""Charts are dependencies of one chart: of several experiments, of several versions of the templates, under aliases."""

from __future__ import annotations

from pathlib import Path

import pytest

from symphony_charts.chart.files.chart import Chart, ChartTemplate, make_chart
from symphony_charts.chart.render.assemble import Release, assemble
from symphony_charts.system import package_data
from tests.chart.harness import Objects, example_chart, helm_objects, index, run_helm, write_chart
from tests.tools import HELM_VERSIONS

_HELPERS = "[[ cookiecutter.name ]]/charts/symph/templates/_names.tpl"


def newer(chart: Chart) -> Chart:
    """The chart as later templates make it, which know the release by another name."""
    files = package_data.folder("chart-template")
    changed = files[_HELPERS].replace(b'"%s-%s" .Release.Name $name', b'"%s-later-%s" .Release.Name $name')
    assert changed != files[_HELPERS]
    return make_chart(chart.name, chart.values, chart.version, ChartTemplate({**files, _HELPERS: changed}))


def umbrella(folder: Path, *charts: tuple[Chart, str]) -> Path:
    """A chart whose dependencies are `charts` under these names."""
    lines = ["apiVersion: v2", "name: umbrella", "version: 0.1.0", "dependencies:"]
    for chart, alias in charts:
        lines += [f'  - name: "{chart.name}"', f"    version: {chart.version}"]
        lines += [f'    alias: "{alias}"'] if alias != chart.name else []
        write_chart(chart, folder / "charts")
    folder.mkdir(exist_ok=True)
    (folder / "Chart.yaml").write_text("\n".join(lines) + "\n")
    return folder


def objects_of(chart: Chart, alias: str, **values: object) -> Objects:
    """What the chart gives alone, under the name that it has in the umbrella."""
    release = Release(name="all", chart_name=alias, chart_version=chart.version)
    return index(assemble({**chart.values, **values}, release))


@pytest.mark.parametrize("version", HELM_VERSIONS)
def test_two_experiments_are_dependencies_of_one_chart(version: str, tmp_path: Path) -> None:
    rl, ring = example_chart("rl"), example_chart("ring")
    whole = umbrella(tmp_path / "umbrella", (rl, "rl"), (ring, "ring"))
    wanted = {**objects_of(rl, "rl"), **objects_of(ring, "ring")}
    assert helm_objects(version, whole, release="all") == wanted


@pytest.mark.parametrize("version", HELM_VERSIONS)
def test_aliases_and_other_versions_of_the_templates_do_not_meet(version: str, tmp_path: Path) -> None:
    rl, ring = example_chart("rl"), newer(example_chart("ring"))
    whole = umbrella(tmp_path / "umbrella", (rl, "rl"), (rl, "second"), (ring, "ring"))
    wanted = {
        **objects_of(rl, "rl"),
        **objects_of(rl, "second", runKey="2"),
        **objects_of(ring, "ring", fullnameOverride="all-later-ring"),
    }
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
    assert "another version of experiment ring" in ended.stderr
