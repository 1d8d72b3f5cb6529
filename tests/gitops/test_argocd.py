"""Objects for Argo CD, rule by rule: each of these fields keeps finished work from running again."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from symphony_charts.chart.lint.security import CHART_KINDS, refused_kinds
from symphony_charts.gitops.bootstrap import Setup, setup_files, usual_name
from symphony_charts.kinds.registry import KINDS
from symphony_charts.settings.project import Destination
from tests.gitops.samples import example_objects

PLACES = {"dev": Destination(namespace="a"), "prod": Destination(name="big", namespace="b")}


def objects(name: str, **settings: Any) -> list[Any]:
    """Return the objects of a file of bootstrap/, by default with one of each environment."""
    setup = Setup(**{"url": "https://git.example.org/x.git", "name": "ml-x", **settings})
    return list(yaml.safe_load_all(setup_files(setup, PLACES, requirement="")[f"bootstrap/{name}.yaml"]))


def app() -> Any:
    return objects("applicationset")[0]["spec"]["template"]


def test_finished_work_is_never_healed_and_gone_work_is_pruned() -> None:
    assert app()["spec"]["syncPolicy"]["automated"] == {"prune": True, "selfHeal": False}


def test_only_what_changed_is_applied_and_nothing_is_taken_from_others() -> None:
    options = set(app()["spec"]["syncPolicy"]["syncOptions"])
    assert {"ApplyOutOfSyncOnly=true", "FailOnSharedResource=true", "RespectIgnoreDifferences=true"} <= options


def test_what_kueue_writes_is_no_drift() -> None:
    ignored = app()["spec"]["ignoreDifferences"]
    assert [one["kind"] for one in ignored] == ["Job", "JobSet", "AppWrapper"]
    assert {pointer for one in ignored for pointer in one["jsonPointers"]} == {"/spec/suspend"}
    assert [one["jqPathExpressions"] for one in ignored if "jqPathExpressions" in one] == [
        [".spec.components[].podSetInfos"]
    ]


def test_values_are_data_and_end_in_a_newline() -> None:
    assert app()["spec"]["source"]["helm"]["values"] == "{{ .values | toJson }}\n"


@pytest.mark.parametrize("root", ["", "deploy/charts"])
def test_an_application_is_named_by_the_place_of_its_pointer_and_not_by_what_that_says(root: str) -> None:
    for found, env in zip(objects("applicationset", root=root), PLACES, strict=True):
        text = json.dumps(found["spec"]["template"])
        in_path = {f"index .path.segments {2 + 2 * bool(root)}": "team", ".chart": "charts/team/rl/1.0.0"}
        in_path['trimSuffix \\".symph-app.yaml\\" .path.filename'] = "rl"
        for name, value in in_path.items():
            assert f"{{{{ {name} }}}}" in text
            text = text.replace(f"{{{{ {name} }}}}", value)
        assert all(f"{{{{ .{name} }}}}" not in text for name in ("env", "team", "name", "project"))
        made = json.loads(text)
        assert made["metadata"]["name"] == f"ml-x-{env}-team-rl"
        assert made["spec"]["source"]["path"] == f"{root}/charts/team/rl/1.0.0".lstrip("/")
        assert made["spec"]["project"] == f"ml-x-{env}"


def test_each_environment_has_a_generator_of_its_own() -> None:
    """A pointer that cannot be read stops the Applications of its own environment alone."""
    found = {
        item["metadata"]["name"]: item["spec"]["generators"][0]["git"]["files"] for item in objects("applicationset")
    }
    assert found == {
        "ml-x-dev": [{"path": "envs/dev/*/*.symph-app.yaml"}],
        "ml-x-prod": [{"path": "envs/prod/*/*.symph-app.yaml"}],
    }


def test_protection_keeps_what_runs_when_a_pointer_vanishes() -> None:
    (policy, _) = (item["spec"]["syncPolicy"] for item in objects("applicationset", protects=True))
    assert policy == {"preserveResourcesOnDeletion": True, "applicationsSync": "create-update"}


def test_a_project_allows_our_repository_its_place_and_our_kinds_alone() -> None:
    dev, prod = (item["spec"] for item in objects("project"))
    assert dev["sourceRepos"] == ["https://git.example.org/x.git"]
    assert dev["destinations"] == [{"server": "https://kubernetes.default.svc", "namespace": "a"}]
    assert prod["destinations"] == [{"name": "big", "namespace": "b"}]
    assert dev["clusterResourceWhitelist"] == []
    kinds = [(each["group"], each["kind"]) for each in dev["namespaceResourceWhitelist"]]
    assert len(kinds) == len(set(kinds))
    assert ("batch", "Job") in kinds
    assert ("", "Secret") not in kinds


def test_a_project_and_a_namespace_of_the_platform_replace_ours() -> None:
    settings = {"project": "research", "namespace": "gitops"}
    with pytest.raises(KeyError):
        objects("project", **settings)
    for item in objects("applicationset", **settings):
        assert (item["spec"]["template"]["spec"]["project"], item["metadata"]["namespace"]) == ("research", "gitops")


def test_health_checks_are_of_kinds_that_the_project_admits() -> None:
    names = set(objects("argocd-cm")[0]["data"])
    admitted = {f"resource.customizations.health.{group}_{kind}" for group, kind in CHART_KINDS}
    assert names <= admitted
    assert "resource.customizations.health.batch_Job" in names


@pytest.mark.parametrize(
    ("team", "url", "name"),
    [
        ("ml", "git@example.org:rl/charts.git", "ml-charts"),
        ("ml", "https://example.org/ml.git/", "ml"),
        ("", "/srv/My Charts", "my-charts"),
        ("ml", "example.org:charts", "ml-charts"),
    ],
)
def test_names_in_the_cluster_come_from_team_and_repository(team: str, url: str, name: str) -> None:
    assert usual_name(team, url) == name


@pytest.mark.parametrize("kind", KINDS)
def test_the_project_allows_all_that_a_chart_renders(kind: str) -> None:
    # A DIJob has no room for a service inside a finite pod.
    example = "rl" if kind == "dijob" else "surreal"
    for gang in ["none"] if kind in ("dijob", "volcano") else ["none", "native", "coscheduling", "volcano"]:
        sets = [f"kind={kind}", f"gang={gang}", "gang_version=v1alpha2", "scheduler_name=co"]
        sets += ["argo.service_account=mine"] if kind == "argo" else []
        assert refused_kinds(example_objects(example, *sets)) == [], (kind, gang)


def test_nobody_gives_rights_by_way_of_git() -> None:
    assert refused_kinds(example_objects("surreal", "kind=argo")) == ["Role", "RoleBinding", "ServiceAccount"]


def test_each_environment_has_an_account_that_may_end_jobs_and_charts_are_told_of_it() -> None:
    rights = objects("run-end")
    assert {item["metadata"]["namespace"] for item in rights} == {"a"}, "prod is in another cluster"
    assert [item["kind"] for item in rights] == ["ServiceAccount", "Role", "RoleBinding"]
    assert rights[1]["rules"][0] == {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "patch"]}
    assert all(rule["verbs"] == ["get"] for rule in rights[1]["rules"][1:])
    [parameter] = app()["spec"]["source"]["helm"]["parameters"]
    assert parameter == {"name": "global.conductorAccount", "value": rights[0]["metadata"]["name"]}
