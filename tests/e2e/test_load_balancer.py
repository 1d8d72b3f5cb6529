"""Exposed services where nobody hands out addresses, as on a cluster without a load balancer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.charts import ExampleCharts
from tests.e2e.programs import Programs
from tests.e2e.release import Release
from tests.e2e.rig.cluster import Cluster

pytestmark = pytest.mark.rig


@pytest.fixture
def bare(tmp_path: Path, programs: Programs, any_helm: Path) -> Iterator[Release]:
    """A release on a cluster of its own, whose LoadBalancers wait for ever."""
    cluster = Cluster(folder=tmp_path / "cluster")
    cluster.up(has_load_balancers=False, dies_with_us=True)
    home = Programs(kubeconfig=cluster.kubeconfig, home=programs.home, kubectl_path=programs.kubectl_path)
    with cluster.api() as api:
        yield Release(name="rl", namespace="default", helm_path=any_helm, programs=home, api=api)
    cluster.down()


def test_an_experiment_ends_though_its_load_balancer_never_comes(bare: Release, charts: ExampleCharts) -> None:
    exposed_to_all = ("--set", "services.tensorboard.type=LoadBalancer")
    bare.install(charts["rl"], *exposed_to_all)
    bare.wait_finished()
    (exposed,) = [s for s in bare.objects("services") if s["spec"]["type"] == "LoadBalancer"]
    assert exposed["status"]["loadBalancer"] == {}
    assert "learner done" in bare.log("learner")
    bare.upgrade(charts["rl"], *exposed_to_all, "--set", "groups.learner.containers.learner.env.NOTE=again")
    bare.wait_finished()
    bare.uninstall()
    bare.wait_gone()
