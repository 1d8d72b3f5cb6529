"""Objects for Argo CD and Flux, checked field by field by a real API server that knows their definitions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

import msgspec
import pytest
import yaml

from symphony_charts.chart.build.chart import Release
from symphony_charts.formats.data import sub
from symphony_charts.formats.yaml_write import dump_all
from symphony_charts.gitops.bootstrap import FluxSetup, Setup, setup_files
from symphony_charts.gitops.flux import FluxSource
from symphony_charts.gitops.pointer import Pointer, render_pointer
from symphony_charts.settings.project import Destination
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
URL = "https://git.example.org/charts.git"
PLACES = {"dev": Destination(namespace="rl"), "prod": Destination(name="big", namespace="rl")}
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


def bootstrap(setup: Setup) -> list[Mapping[str, object]]:
    """Return the objects of bootstrap/."""
    files = setup_files(setup, PLACES, requirement="")
    texts = [content for path, content in files.items() if path.startswith("bootstrap/")]
    return [item for text in texts for item in yaml.safe_load_all(text) if item]


def application(setup: Setup) -> dict[str, object]:
    """Return an Application as Argo CD makes it: the template with every placeholder filled in."""
    found = next(item for item in bootstrap(setup) if item["kind"] == "ApplicationSet")
    made: dict[str, object] = json.loads(re.sub(r"\{\{.*?\}\}", "x", json.dumps(sub(found, "spec", "template"))))
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", **made}


def given_to_argo_cd(**settings: bool) -> list[Mapping[str, object]]:
    setup = Setup(url=URL, name="ml-charts", **settings)  # type: ignore[arg-type]  # by name
    return [*bootstrap(setup), application(setup)]


def given_to_flux(url: str) -> list[Mapping[str, object]]:
    secrets = FluxSetup(git_secret="deploy-key", sops_secret="keys")  # noqa: S106 - names of Secrets
    objects = bootstrap(Setup(url=url, name="ml-charts", flux=secrets))
    for place in (PLACES["dev"], Destination(name="big", namespace="rl", service_account="runner")):
        content = render_pointer(msgspec.structs.replace(POINTER, destination=place), FluxSource("ml-charts", "x"))
        objects.append(next(yaml.safe_load_all(content)))
    return objects


def sealed_secret(scope: str) -> list[Mapping[str, object]]:
    source = {"source": "sealed", "scope": scope}
    chart = built_of(experiment_of(name="rl", processes={"p": {}}, secrets=["key"], secret_source=source))
    return [item for item in chart.objects(chart.values, Release(name="rl")) if item["kind"] == "SealedSecret"]


OBJECTS: dict[str, Callable[[], list[Mapping[str, object]]]] = {
    "Argo CD": given_to_argo_cd,
    "Argo CD, protected": lambda: given_to_argo_cd(protects=True),
    "Flux, https": lambda: given_to_flux(URL),
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
    wrong = application(Setup(url=URL, name="ml-charts"))
    assert isinstance(wrong["spec"], dict)
    with pytest.raises(AssertionError, match="selfHeel: field not declared"):
        accept(programs, namespace, {**wrong, "spec": {**wrong["spec"], "selfHeel": True}})
