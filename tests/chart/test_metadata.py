"""Metadata of objects and charts: annotations and labels of every object, and the facts in Chart.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from symphony_charts.errors import SpecError
from symphony_charts.kinds.base import is_conductor
from symphony_charts.package import template
from symphony_charts.prepare import prepare_experiment
from tests.chart.harness import assert_same, chart_of, experiment_of, native_objects, run_helm, write_chart
from tests.tools import HELM_VERSIONS

ABOUT = {
    "app_version": "2.1.0+cu12",
    "home": "https://example.org/rl",
    "icon": "https://example.org/rl.svg",
    "sources": ["https://git.example.org/rl"],
    "maintainers": [{"name": "Ann", "email": "ann@example.org"}],
    "license": "Apache-2.0",
    "changes": ["larger: batches", "no more warm-up"],
}


@pytest.mark.parametrize(
    ("values", "made", "used"),
    [
        ({"create": True, "annotations": {"iam/role": "r"}}, "usual", "usual"),
        ({"create": True, "name": "own"}, "own", "own"),
        ({}, None, "usual"),
    ],
)
def test_pods_run_as_the_service_account_of_the_release(
    values: dict[str, Any], made: str | None, used: str, tmp_path: Path
) -> None:
    chart = chart_of(experiment_of(processes={"a": {}, "b": {"service_account": "runner"}}, service_account="usual"))
    said = {"serviceAccount": values}
    assert_same(chart, tmp_path, (), said)
    objects = native_objects(chart, (), said)
    accounts = [name for kind, name in objects if kind == "ServiceAccount" and not name.endswith("-conductor")]
    assert accounts == ([made] if made else [])
    pods: Any = {name: item for (kind, name), item in objects.items() if kind == "Job" and not is_conductor(item)}
    used_by = {
        item["metadata"]["labels"]["symph.dev/group"]: item["spec"]["template"]["spec"] for item in pods.values()
    }
    assert used_by["a"].get("serviceAccountName") == used
    assert used_by["b"]["serviceAccountName"] == "runner"


def test_objects_say_which_version_they_are_of_and_what_they_belong_to(tmp_path: Path) -> None:
    for said, version, whole in (
        ({}, None, "exp"),
        ({"chart": {"app_version": "1.0+a"}}, "1.0_a", "exp"),
        ({"labels": {"app.kubernetes.io/version": "7", "app.kubernetes.io/part-of": "robots"}}, "7", "robots"),
    ):
        chart = chart_of(experiment_of(processes={"a": {}}, **said))
        assert_same(chart, tmp_path / whole / str(version))
        for item in native_objects(chart).values():
            labels: Any = item["metadata"]["labels"]  # type: ignore[index]  # JSON
            assert (labels.get("app.kubernetes.io/version"), labels["app.kubernetes.io/part-of"]) == (version, whole)


def test_a_chart_says_what_the_experiment_says_of_it_and_nothing_that_is_invented(tmp_path: Path) -> None:
    plain = experiment_of(processes={"a": {}})
    bare = yaml.safe_load(prepare_experiment(plain).chart(template()).files["Chart.yaml"])
    assert not {"appVersion", "home", "icon", "maintainers", "sources"} & set(bare)
    assert set(bare["annotations"]) == {"symph.dev/spec-digest", "artifacthub.io/images"}
    chart = prepare_experiment(experiment_of(processes={"a": {}, "b": {"image": "own:1"}}, chart=ABOUT)).chart(
        template()
    )
    said = yaml.safe_load(chart.files["Chart.yaml"])
    assert said["appVersion"] == ABOUT["app_version"]
    assert all(said[key] == ABOUT[key] for key in ("home", "icon", "sources", "maintainers"))
    annotations = said["annotations"]
    assert annotations["artifacthub.io/license"] == "Apache-2.0"
    assert yaml.safe_load(annotations["artifacthub.io/changes"]) == ABOUT["changes"]
    assert yaml.safe_load(annotations["artifacthub.io/images"]) == [
        {"name": "a-a", "image": "busybox:1.37.0"},
        {"name": "b-b", "image": "own:1"},
    ]
    for version in HELM_VERSIONS:
        run_helm(version, "lint", "--strict", write_chart(chart, tmp_path / version))


@pytest.mark.parametrize(
    ("about", "path"),
    [
        ({"app_version": "two words"}, "chart.app_version"),
        ({"home": "example.org"}, "chart.home"),
        ({"sources": ["https://a.b", "ftp://a.b"]}, "chart.sources[1]"),
        ({"icon": "https://ann:word@example.org/x.svg"}, "chart.icon"),
        ({"maintainers": [{"name": " "}]}, "chart.maintainers[0].name"),
        ({"maintainers": [{"name": "Ann", "email": "ann"}]}, "chart.maintainers[0].email"),
        ({"maintainers": [{"name": "Ann", "url": "ann"}]}, "chart.maintainers[0].url"),
    ],
)
def test_what_a_registry_would_refuse_of_a_chart_is_refused_in_the_spec(about: dict[str, Any], path: str) -> None:
    with pytest.raises(SpecError) as refused:
        experiment_of(processes={"a": {}}, chart=about)
    assert [problem.path for problem in refused.value.problems] == [path]
