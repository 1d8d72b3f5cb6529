"""Objects for Flux.

Difficulties: by default it runs in its own cluster with more rights than a release needs, and it stops before pruning
if the folder of an environment is gone.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from symphony_charts.errors import SpecError
from symphony_charts.gitops.flux import flux_url, git_repository, helm_release, needs_secret
from symphony_charts.gitops.pointer import Pointer, parse_pointer, render_pointer
from symphony_charts.settings.project import Destination

POINTER = Pointer(
    name="rl",
    team="ml",
    env="prod",
    version="0.1.0",
    digest="sha256:0",
    chart="charts/ml/rl/0.1.0",
    values={"groups": {"agent": {"replicas": 3}}},
    destination=Destination(namespace="rl"),
)


def release(**destination: str) -> Any:
    place = Destination(namespace="rl", **destination)
    return helm_release(msgspec.structs.replace(POINTER, destination=place))["spec"]


def test_flux_never_waits_for_jobs_nor_uninstalls_them() -> None:
    spec = release()
    for step in (spec["install"], spec["upgrade"]):
        assert (step["disableWait"], step["disableWaitForJobs"], step["remediation"]) == (True, True, {"retries": 0})
    assert spec["values"] == POINTER.values


def test_a_commit_elsewhere_makes_no_new_chart() -> None:
    assert release()["chart"]["spec"]["reconcileStrategy"] == "ChartVersion"


def test_flux_checks_out_no_more_than_it_needs() -> None:
    spec: Any = git_repository("https://git.example.org/x.git", "main")["spec"]
    assert spec["sparseCheckout"] == ["charts", "flux"]


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
    with pytest.raises(SpecError, match="it knows http, https and ssh"):
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
    assert release(**destination)["kubeConfig"] == {"secretRef": {"name": secret}}


def test_flux_s_own_cluster_needs_none() -> None:
    assert "kubeConfig" not in release()


def test_an_address_alone_is_no_way_into_a_cluster() -> None:
    with pytest.raises(SpecError, match="only by a Secret that holds its kubeconfig"):
        release(server="https://10.0.0.1")


def test_a_release_runs_with_the_rights_of_its_service_account() -> None:
    assert release(service_account="runner")["serviceAccountName"] == "runner"
    assert "serviceAccountName" not in release()


@pytest.mark.parametrize("fields", [{}, {"kubeconfig": "ours", "service_account": "runner"}])
def test_a_pointer_holds_what_flux_reads_where_somebody_named_it(fields: dict[str, str]) -> None:
    pointer = msgspec.structs.replace(POINTER, destination=Destination(namespace="rl", **fields))
    text = render_pointer(pointer)
    assert parse_pointer(text, "x") == pointer
    assert (b"kubeconfig" in text) == bool(fields)
