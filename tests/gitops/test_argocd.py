"""Objects for Argo CD and Flux, rule by rule: each of these fields keeps finished work from running again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from symphony_charts.chart.lint.security import refused_kinds
from symphony_charts.errors import SpecError
from symphony_charts.gitops.argocd import ArgoSetup, app_name, app_project, application_set, parse_version
from symphony_charts.kinds.registry import KINDS
from symphony_charts.settings.project import Destination
from tests.gitops.samples import example_objects

SETUP = ArgoSetup(url="https://git.example.org/x.git")


def app() -> Any:
    spec: Any = application_set(SETUP)["spec"]
    return spec["template"]


def test_finished_work_is_never_healed_and_gone_work_is_pruned() -> None:
    assert app()["spec"]["syncPolicy"]["automated"] == {"prune": True, "selfHeal": False}


def test_only_what_changed_is_applied_and_nothing_is_taken_from_others() -> None:
    options = set(app()["spec"]["syncPolicy"]["syncOptions"])
    assert {"ApplyOutOfSyncOnly=true", "FailOnSharedResource=true", "RespectIgnoreDifferences=true"} <= options


def test_what_kueue_writes_is_no_drift() -> None:
    ignored = app()["spec"]["ignoreDifferences"]
    assert {one["kind"] for one in ignored} == {"Job", "JobSet", "AppWrapper"}
    assert {pointer for one in ignored for pointer in one["jsonPointers"]} == {"/spec/suspend"}
    assert [one["jqPathExpressions"] for one in ignored if "jqPathExpressions" in one] == [
        [".spec.components[].podSetInfos"]
    ]


def test_values_are_data_and_end_in_a_newline() -> None:
    assert app()["spec"]["source"]["helm"]["values"] == "{{ .values | toJson }}\n"


@pytest.mark.parametrize(
    ("place", "target"),
    [
        (Destination(namespace="n"), {"server": "https://kubernetes.default.svc", "namespace": "n"}),
        (Destination(name="big", namespace="n"), {"name": "big", "namespace": "n"}),
    ],
)
def test_a_destination_has_a_server_or_a_name(place: Destination, target: dict[str, str]) -> None:
    spec: Any = app_project(SETUP, "dev", [place])["spec"]
    assert spec["destinations"] == [target]


def test_an_application_is_named_by_the_place_of_its_pointer_and_not_by_what_that_says() -> None:
    text = json.dumps(app())
    in_path = {"index .path.segments 1": "dev", "index .path.segments 2": "ml"}
    in_path['trimSuffix \\".symph-app.yaml\\" .path.filename'] = "rl"
    for name, value in {**in_path, ".chart": "charts/ml/rl/1.0.0"}.items():
        assert f"{{{{ {name} }}}}" in text
        text = text.replace(f"{{{{ {name} }}}}", value)
    assert all(f"{{{{ .{name} }}}}" not in text for name in ("env", "team", "name"))
    made = json.loads(text)
    assert made["metadata"]["name"] == app_name("dev", "ml", "rl")
    assert made["spec"]["source"]["path"] == "charts/ml/rl/1.0.0"
    assert made["spec"]["project"] == "symph-dev"


def test_files_are_found_by_a_suffix_that_nothing_else_has() -> None:
    spec: Any = application_set(SETUP)["spec"]
    assert spec["generators"][0]["git"]["files"] == [{"path": "envs/*/*/*.symph-app.yaml"}]


def test_protection_keeps_what_runs_when_a_pointer_vanishes() -> None:
    spec: Any = application_set(ArgoSetup(url="u", protects=True))["spec"]
    assert spec["syncPolicy"] == {"preserveResourcesOnDeletion": True, "applicationsSync": "create-update"}


def test_the_project_allows_our_repository_namespaces_and_kinds_alone() -> None:
    spec: Any = app_project(SETUP, "dev", [Destination(namespace="a")])["spec"]
    assert spec["sourceRepos"] == [SETUP.url]
    assert [place["namespace"] for place in spec["destinations"]] == ["a"]
    assert spec["clusterResourceWhitelist"] == []
    kinds = [(each["group"], each["kind"]) for each in spec["namespaceResourceWhitelist"]]
    assert len(kinds) == len(set(kinds))
    assert {"group": "batch", "kind": "Job"} in spec["namespaceResourceWhitelist"]
    assert {"group": "", "kind": "Secret"} not in spec["namespaceResourceWhitelist"]


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


@pytest.mark.parametrize(
    ("version", "field"), [((3, 4), "signatureKeys"), ((3, 5), "sourceIntegrity"), ((3, 6), "sourceIntegrity")]
)
def test_signatures_are_asked_for_in_the_words_of_the_version(version: tuple[int, int], field: str) -> None:
    spec = app_project(ArgoSetup(url="u", version=version, gpg_keys=("AB",)), "dev", [])["spec"]
    assert isinstance(spec, dict)
    assert {"signatureKeys", "sourceIntegrity"} & set(spec) == {field}


@pytest.mark.parametrize("text", ["2.14", "4.0", "x", "3"])
def test_an_unknown_argo_cd_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match="no objects for Argo CD"):
        parse_version(text)
