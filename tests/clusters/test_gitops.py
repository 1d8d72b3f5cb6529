"""`Cluster.new('gitops')` on a real repository: launching publishes, deleting retires."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from symphony_charts.clusters.base import Cluster
from symphony_charts.errors import NotFound, PlacementError, UsageError
from symphony_charts.gitops.store.store import PushResult
from symphony_charts.spec.data import from_data
from symphony_charts.spec.model import Experiment
from tests.gitops.servers import files_at, git, history, make_bare

SETTINGS = """\
team: ml
repository: {url: REPO, author: Ann <ann@example.org>}
environments:
  dev: {namespace: rl-dev}
  prod: {namespace: rl-prod}
"""


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    bare = make_bare(tmp_path / "charts.git")
    (tmp_path / ".symph.yaml").write_text(SETTINGS.replace("REPO", str(bare)))
    monkeypatch.chdir(tmp_path)
    return bare


def experiment(name: str = "rl", **fields: Any) -> Experiment:
    return from_data({"name": name, "image": "busybox:1.37.0", "processes": {"work": {"command": ["work"], **fields}}})


def test_launching_publishes_to_the_environment_and_the_same_again_makes_no_commit(bare: Path) -> None:
    cluster = Cluster.new("gitops", env="dev")
    receipt = cluster.launch(experiment())
    assert isinstance(receipt, PushResult)
    assert history(bare) == ["first", "publish ml/rl 0.1.0 -> dev"]
    assert receipt.commit == git(bare, "rev-parse", "main").strip()
    assert "namespace: rl-dev" in git(bare, "show", "main:envs/dev/ml/rl.symph-app.yaml")
    cluster.launch(experiment())
    assert len(history(bare)) == 2


def test_a_dry_run_prints_the_paths_and_pushes_nothing(bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Cluster.new("gitops", env="dev").launch(experiment(), dry_run=True)
    assert "envs/dev/ml/rl.symph-app.yaml\n" in capsys.readouterr().out
    assert history(bare) == ["first"]


@pytest.mark.usefixtures("bare")
def test_each_environment_lists_its_own() -> None:
    dev, prod = Cluster.new("gitops", env="dev"), Cluster.new("gitops", env="prod")
    dev.launch_batch([experiment("b"), experiment("a")])
    prod.launch(experiment("c"))
    assert dev.list_experiments() == ["a", "b"]
    assert [(one.name, one.run, one.namespace) for one in prod.list()] == [("c", "0.1.0", "rl-prod")]


@pytest.mark.usefixtures("bare")
def test_describing_says_which_version_shall_run_and_where_that_is_written() -> None:
    cluster = Cluster.new("gitops", env="dev")
    cluster.launch(experiment())
    status = cluster.describe("rl")
    assert status is not None
    assert (status.backend, status.run) == ("gitops", "0.1.0")
    assert status.held_by[0].startswith("dev of ")
    assert cluster.describe("other") is None


def test_deleting_removes_the_pointer_and_keeps_the_chart(bare: Path) -> None:
    cluster = Cluster.new("gitops", env="dev")
    cluster.launch(experiment())
    cluster.delete("rl")
    paths = files_at(bare)
    assert not any(path.startswith("envs/") for path in paths)
    assert "charts/ml/rl/0.1.0/Chart.yaml" in paths
    with pytest.raises(NotFound, match="dev runs no rl"):
        cluster.delete("rl")


@pytest.mark.usefixtures("bare")
def test_one_name_of_two_teams_is_deleted_only_by_team() -> None:
    for team in ("ml", "robots"):
        Cluster.new("gitops", env="dev", team=team).launch(experiment())
    with pytest.raises(UsageError, match="ml, robots"):
        Cluster.new("gitops", env="dev").delete("rl")
    Cluster.new("gitops", env="dev", team="robots").delete("rl")
    assert [one.held_by[0].split()[-2] for one in Cluster.new("gitops", env="dev").list()] == ["ml/rl"]


def test_what_no_pool_can_hold_is_not_published(bare: Path) -> None:
    (bare.parent / "pools.yaml").write_text("pools: [{name: small, machine_type: n1-standard-8, nodes: 2}]\n")
    with (bare.parent / ".symph.yaml").open("a") as settings:
        settings.write("pools: pools.yaml\n")
    big = experiment(requests={"cpu": "100", "memory": "1Gi"})
    with pytest.raises(PlacementError):
        Cluster.new("gitops", env="dev").launch(big)
    assert history(bare) == ["first"]


def test_without_a_repository_the_way_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="which repository") as caught:
        Cluster.new("gitops", env="dev")
    assert "repo=" in caught.value.next
