"""Objects for Flux: the pointer of an experiment is its HelmRelease.

Difficulties: by default it runs in its own cluster with more rights than a release needs, and it stops before pruning
if the folder of an environment is gone.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from symphony_charts.errors import SpecError
from symphony_charts.gitops.bootstrap import FluxSetup, Setup, setup_files
from symphony_charts.gitops.flux import FluxSource, flux_url, needs_secret
from symphony_charts.gitops.pointer import Deployed, Pointer, parse_pointer, render_pointer
from symphony_charts.settings.project import Destination
from tests.tools import kubectl

SOURCE = FluxSource("ml-x", "flux-system")
POINTER = Pointer(
    name="rl",
    team="ml",
    env="prod",
    version="0.1.0",
    digest="sha256:0",
    chart="charts/ml/rl/0.1.0",
    values={"groups": {"agent": {"replicas": 3}}},
    destination=Destination(namespace="rl"),
    is_release=True,
    history=[Deployed(version="0.0.9", digest="sha256:1")],
    source={"spec": "rl.yaml"},
)


def documents(root: str = "", **destination: str) -> list[Any]:
    place = Destination(namespace="rl", **destination)
    return list(yaml.safe_load_all(render_pointer(msgspec.structs.replace(POINTER, destination=place), SOURCE, root)))


def release(**destination: str) -> Any:
    return documents(**destination)[0]["spec"]


def bootstrap(name: str, **environments: Destination) -> list[Any]:
    setup = Setup(url="https://git.example.org/x.git", name="ml-x", flux=FluxSetup())
    return list(yaml.safe_load_all(setup_files(setup, environments, requirement="")[f"bootstrap/flux-{name}.yaml"]))


def test_flux_never_waits_for_jobs_nor_uninstalls_them() -> None:
    spec = release()
    for step in (spec["install"], spec["upgrade"]):
        assert (step["disableWait"], step["disableWaitForJobs"], step["remediation"]) == (True, True, {"retries": 0})
    assert spec["values"] == POINTER.values


def test_a_commit_elsewhere_makes_no_new_chart() -> None:
    assert release()["chart"]["spec"]["reconcileStrategy"] == "ChartVersion"


def test_flux_checks_out_no_more_than_it_needs() -> None:
    (source,) = bootstrap("source", dev=Destination())
    assert source["spec"]["sparseCheckout"] == ["charts", "envs"]


@pytest.mark.parametrize(
    ("url", "read"),
    [
        ("git@example.org:team/charts.git", "ssh://git@example.org/team/charts.git"),
        ("git@example.org:/srv/charts.git", "ssh://git@example.org/srv/charts.git"),
        ("example.org:charts.git", "ssh://example.org/charts.git"),
        ("ssh://git@example.org:2222/x.git", "ssh://git@example.org:2222/x.git"),
        ("https://git.example.org/x.git", "https://git.example.org/x.git"),
    ],
)
def test_an_address_is_one_that_flux_takes(url: str, read: str) -> None:
    assert flux_url(url) == read
    assert needs_secret(url) == read.startswith("ssh")


@pytest.mark.parametrize("url", ["/srv/charts.git", "./x:y", "file:///srv/charts.git", "git://example.org/x.git"])
def test_an_address_that_flux_cannot_read_is_refused(url: str) -> None:
    with pytest.raises(SpecError, match="it needs http, https or ssh"):
        flux_url(url)


@pytest.mark.parametrize(
    ("destination", "secret"),
    [
        ({"name": "big"}, "big-kubeconfig"),
        ({"name": "big", "kubeconfig": "ours"}, "ours"),
        ({"server": "https://10.0.0.1", "kubeconfig": "ours"}, "ours"),
    ],
)
def test_another_cluster_is_reached_by_its_kubeconfig(destination: dict[str, str], secret: str) -> None:
    spec = release(**destination)
    assert spec["kubeConfig"] == {"secretRef": {"name": secret}}
    assert "serviceAccountName" not in spec


def test_an_address_alone_is_no_way_into_a_cluster() -> None:
    with pytest.raises(SpecError, match="needs a Secret with the kubeconfig of"):
        release(server="https://10.0.0.1")


def test_a_release_runs_with_the_rights_of_its_environment_or_of_a_named_account() -> None:
    assert release()["serviceAccountName"] == "ml-x-prod"
    assert release(service_account="runner")["serviceAccountName"] == "runner"
    applied = {
        item["metadata"]["name"]: item["spec"]["serviceAccountName"]
        for item in bootstrap("releases", prod=Destination())
    }
    assert applied == {"ml-x-prod": "ml-x-prod"}
    made = bootstrap("accounts", prod=Destination(namespace="rl"), far=Destination(name="big", namespace="x"))
    roles = {
        (item["metadata"]["namespace"], item["metadata"]["name"]): {
            name for rule in item["rules"] for name in rule["resources"]
        }
        for item in made
        if item["kind"] == "Role"
    }
    assert roles.keys() == {("flux-system", "ml-x-prod"), ("flux-system", "ml-x-far"), ("rl", "ml-x-prod")}
    assert roles["flux-system", "ml-x-prod"] == {"helmreleases"}
    assert {"jobs", "secrets", "ingresses", "networkpolicies"} <= roles["rl", "ml-x-prod"]
    assert not {"roles", "rolebindings", "serviceaccounts", "*"} & roles["rl", "ml-x-prod"]


@pytest.mark.parametrize("root", ["", "deploy/charts"])
@pytest.mark.parametrize(
    "place",
    [
        {},
        {"kubeconfig": "ours", "service_account": "runner"},
        {"name": "big"},
        {"server": "https://10.0.0.1", "kubeconfig": "ours"},
    ],
)
def test_a_release_is_read_as_the_pointer_that_it_is(place: dict[str, str], root: str) -> None:
    pointer = msgspec.structs.replace(POINTER, destination=Destination(namespace="rl", **place))
    text = render_pointer(pointer, SOURCE, root)
    assert parse_pointer(text, "x") == pointer
    assert render_pointer(parse_pointer(text, "x"), SOURCE, root) == text
    # As a pointer for Argo CD, and back.
    plain = msgspec.structs.replace(pointer, is_release=False)
    assert parse_pointer(render_pointer(pointer), "x") == plain


def test_kustomize_leaves_out_what_symph_alone_reads(tmp_path: Path) -> None:
    release, rest = documents()
    assert not {"values", "version", "chart", "digest"} & rest.keys()
    program = kubectl()
    if program is None:
        pytest.skip("kubectl is not unpacked: python -m tests.tools")
    (tmp_path / "rl.symph-app.yaml").write_bytes(render_pointer(POINTER, SOURCE))
    (tmp_path / "kustomization.yaml").write_text("resources: [rl.symph-app.yaml]\n")
    done = subprocess.run([str(program), "kustomize", str(tmp_path)], capture_output=True, check=True, timeout=60)
    assert list(yaml.safe_load_all(done.stdout)) == [release]


def test_an_edit_of_the_release_by_hand_is_an_edit_of_the_pointer() -> None:
    edited, rest = documents()
    edited["spec"] |= {"values": {"groups": {"agent": {"replicas": 5}}}, "targetNamespace": "other"}
    edited["spec"]["chart"]["spec"]["chart"] = "./charts/ml/rl/0.0.9"
    pointer = parse_pointer(yaml.safe_dump_all([edited, rest]).encode(), "x")
    assert (pointer.version, pointer.chart) == ("0.0.9", "charts/ml/rl/0.0.9")
    assert pointer.values == {"groups": {"agent": {"replicas": 5}}}
    assert pointer.destination.namespace == "other"
    assert pointer.history == POINTER.history
    alone = parse_pointer(yaml.safe_dump(edited).encode(), "x")
    assert (alone.version, alone.history) == ("0.0.9", [])
