"""Objects for Argo CD and Flux, checked field by field by a real API server that knows their definitions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

import msgspec
import pytest

from symphony_charts.chart.build.chart import Release
from symphony_charts.formats.data import sub
from symphony_charts.formats.yaml_write import dump_all
from symphony_charts.gitops.argocd import ArgoSetup, app_project, application_set, health_config
from symphony_charts.gitops.bootstrap import health_checks
from symphony_charts.gitops.flux import git_repository, helm_release, release_kustomization
from symphony_charts.gitops.pointer import Pointer
from symphony_charts.settings.project import Destination
from symphony_charts.system import package_data
from tests.chart.harness import built_of, experiment_of
from tests.e2e.programs import Programs
from tests.e2e.tools.modules import ARGO_CD, HELM_CONTROLLER, KUSTOMIZE_CONTROLLER, SEALED_SECRETS, SOURCE_CONTROLLER

CRDS = {
    ARGO_CD: "manifests/crds/*-crd.yaml",
    HELM_CONTROLLER: "config/crd/bases/*.yaml",
    KUSTOMIZE_CONTROLLER: "config/crd/bases/*.yaml",
    SOURCE_CONTROLLER: "config/crd/bases/*gitrepositories.yaml",
    SEALED_SECRETS: "helm/sealed-secrets/crds/*.yaml",
}
SETUP = ArgoSetup(
    url="https://git.example.org/charts.git", version=(3, 5), protects=True, gpg_keys=("0123456789ABCDEF",)
)
POINTER = Pointer(
    name="rl",
    team="ml",
    env="dev",
    version="0.1.0",
    digest="sha256:0",
    chart="charts/ml/rl/0.1.0",
    values={"groups": {"agent": {"replicas": 3}}},
    destination=Destination(namespace="rl"),
)


@pytest.fixture(scope="module")
def definitions(programs: Programs) -> None:
    for module, pattern in CRDS.items():
        programs.define(module, pattern)


def accept(programs: Programs, namespace: str, *objects: Mapping[str, object]) -> None:
    """Check that the API server accepts all objects and knows every field of them."""
    placed = [{**item, "metadata": {**_metadata(item), "namespace": namespace}} for item in objects]
    argv = ("apply", "--server-side", "--validate=strict", "--dry-run=server", "-f", "-")
    programs.kubectl(*argv, stdin=dump_all(placed))


def _metadata(item: Mapping[str, object]) -> dict[str, object]:
    metadata = item["metadata"]
    assert isinstance(metadata, dict)
    return metadata


def application(setup: ArgoSetup) -> dict[str, object]:
    """Return an Application as Argo CD makes it: the template with every placeholder filled in."""
    template = json.dumps(sub(application_set(setup), "spec", "template"))
    made: dict[str, object] = json.loads(re.sub(r"\{\{.*?\}\}", "x", template))
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", **made}


def given_to_argo_cd(minor: int) -> list[Mapping[str, object]]:
    setup = ArgoSetup(url=SETUP.url, version=(3, minor), protects=True)
    places = [Destination(namespace="rl"), Destination(name="big", namespace="rl")]
    return [app_project(setup, "dev", places), application_set(setup), application(setup)]


def given_to_flux(url: str) -> list[Mapping[str, object]]:
    source = git_repository(url, "main", secret="deploy-key")  # noqa: S106 - the name of a Secret
    place = Destination(name="big", namespace="rl", service_account="runner")
    there = msgspec.structs.replace(POINTER, destination=place)
    applied = release_kustomization("dev", sops_secret="keys")  # noqa: S106 - the name of a Secret
    return [source, applied, helm_release(POINTER), helm_release(there)]


def sealed_secret(scope: str) -> list[Mapping[str, object]]:
    source = {"source": "sealed", "scope": scope}
    chart = built_of(experiment_of(name="rl", processes={"p": {}}, secrets=["key"], secret_source=source))
    return [item for item in chart.objects(chart.values, Release(name="rl")) if item["kind"] == "SealedSecret"]


OBJECTS: dict[str, Callable[[], list[Mapping[str, object]]]] = {
    "Argo CD 3.4": lambda: given_to_argo_cd(4),
    "Argo CD 3.5": lambda: given_to_argo_cd(5),
    "signatures of Argo CD 3.5": lambda: [app_project(SETUP, "dev", [Destination(namespace="rl")])],
    "health checks": lambda: [health_config(health_checks(package_data.folder("gitops")))],
    "Flux, https": lambda: given_to_flux(SETUP.url),
    "Flux, scp": lambda: given_to_flux("git@git.example.org:team/charts.git"),
    "Flux, ssh": lambda: given_to_flux("ssh://git@h:2222/charts.git"),
    "sealed, strict": lambda: sealed_secret("strict"),
    "sealed, cluster-wide": lambda: sealed_secret("cluster-wide"),
}


@pytest.mark.usefixtures("definitions")
@pytest.mark.parametrize("case", OBJECTS)
def test_the_api_server_takes_the_objects(case: str, programs: Programs, namespace: str) -> None:
    objects = OBJECTS[case]()
    assert objects
    accept(programs, namespace, *objects)


@pytest.mark.usefixtures("definitions")
def test_a_field_that_argo_cd_does_not_know_is_refused(programs: Programs, namespace: str) -> None:
    wrong = application(SETUP)
    assert isinstance(wrong["spec"], dict)
    with pytest.raises(AssertionError, match="selfHeel: field not declared"):
        accept(programs, namespace, {**wrong, "spec": {**wrong["spec"], "selfHeel": True}})
