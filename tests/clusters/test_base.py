"""The user API: one interface to both backends, and Symphony's names for everything."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import symphony_charts
from symphony_charts.clusters.base import AddressBook, Cluster, ExperimentSpec
from symphony_charts.clusters.kubernetes import KubeCluster
from symphony_charts.clusters.tmux import TmuxCluster
from symphony_charts.errors import Conflict, SpecError, SymphError, ToolFailed, UsageError
from symphony_charts.settings.user import SymphonyConfig
from symphony_charts.spec.model import Experiment


class ListingCluster(Cluster):
    """A third-party backend with three experiments."""

    started: Experiment

    def start(
        self,
        experiment: Experiment,
        *,
        folder: Path,
        pins: Mapping[str, int],
        force: bool = False,
        dry_run: bool = False,
    ) -> object:
        self.started = experiment
        return "started"

    def list_experiments(self) -> list[str]:
        return ["sarah-rl", "rl-old", "other"]

    def describe_experiment(self, experiment_name: str) -> Mapping[str | None, Mapping[str, Mapping[str, str]]]:
        return {"g": {"agent": {}, "agent-1": {}}, None: {"agent": {}, "eval": {}}}


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    yield
    SymphonyConfig.reset()


def small(cluster: Cluster, name: str = "rl", **fields: Any) -> ExperimentSpec:
    exp = cluster.new_experiment(name, **fields)
    exp.new_process("learner", container_image="u:1", command="l").binds("replay")
    exp.new_process("agent", container_image="u:1", command="a").connects("replay")
    return exp


@pytest.mark.parametrize("backend", ["kube", "kubernetes", "Kubernetes", "k8s"])
def test_kubernetes_has_several_names(backend: str) -> None:
    assert isinstance(Cluster.new(backend), KubeCluster)


def test_tmux_takes_a_preamble_for_all_its_experiments() -> None:
    cluster = Cluster.new("tmux", preamble_cmds=["source venv"])
    assert isinstance(cluster, TmuxCluster)
    assert small(cluster).finish().local.preamble == ["source venv"]
    assert small(cluster, "x", preamble_cmds="other").finish().local.preamble == ["other"]


def test_a_subclass_is_a_backend() -> None:
    cluster = Cluster.new("listing")
    assert cluster.launch(small(cluster)) == "started"


def test_an_unknown_backend_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match='did you mean "tmux"'):
        Cluster.new("tmuxx")


def test_the_username_is_put_before_names_of_experiments() -> None:
    SymphonyConfig().set_username("Sarah")
    exp = small(Cluster.new("tmux"))
    assert (exp.name, exp.finish().owner) == ("sarah-rl", "sarah")


def test_the_same_code_builds_the_same_experiment_for_both_backends() -> None:
    assert small(Cluster.new("tmux")).finish() == small(Cluster.new("kube")).finish()


def test_a_launch_without_a_cluster_says_how_to_name_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The developer may have a real cluster, which the test must not use.
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    SymphonyConfig().set_experiment_folder(tmp_path)
    cluster = Cluster.new("kube")
    with pytest.raises(ToolFailed, match="no cluster is configured"):
        cluster.launch(small(cluster))
    assert list(tmp_path.iterdir()) == []


def test_kubernetes_needs_images() -> None:
    exp = Cluster.new("kube").new_experiment("rl")
    exp.new_process("a", command="x")
    with pytest.raises(SpecError, match="has no image"):
        KubeCluster().launch(exp, dry_run=True)


def test_a_dry_run_in_tmux_starts_and_saves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    SymphonyConfig().set_experiment_folder(tmp_path)
    cluster = Cluster.new("tmux")
    cluster.launch(small(cluster), dry_run=True)
    assert "learner" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
    assert cluster.list_experiments() == []


def test_a_server_name_is_answered_with_where_the_experiment_is(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = TmuxCluster(server_name="mine")
    cluster.launch(small(cluster), dry_run=True)
    assert "tmux server 'mine' does not exist" in capsys.readouterr().err


def test_an_experiment_is_saved_where_a_folder_is_set_and_replaced_only_by_force(tmp_path: Path) -> None:
    from symphony_charts.settings.user import save_experiment

    experiment = small(Cluster.new("tmux")).finish()
    assert save_experiment(experiment) is None
    SymphonyConfig().set_experiment_folder(tmp_path / "deep")
    path = save_experiment(experiment)
    assert path == tmp_path / "deep" / "rl" / "experiment.yaml"
    with pytest.raises(Conflict, match="force=True"):
        save_experiment(experiment)
    save_experiment(experiment, force=True)


@pytest.mark.parametrize(
    ("name", "matches", "is_exact"),
    [
        ("rl", ["sarah-rl"], True),
        ("other", ["other"], True),
        ("r", ["sarah-rl", "rl-old", "other"], False),
        ("old", ["rl-old"], False),
        ("ghost", [], False),
    ],
)
def test_experiments_are_matched_in_symphonys_order(name: str, matches: list[str], is_exact: bool) -> None:
    SymphonyConfig().set_username("sarah")
    assert ListingCluster().fuzzy_match_experiment(name) == (matches, is_exact)


@pytest.mark.parametrize(
    ("name", "matches", "is_exact"),
    [
        ("agent", [(None, "agent"), ("g", "agent")], True),
        ("g/agent", [("g", "agent")], True),
        ("ag", [(None, "agent"), ("g", "agent"), ("g", "agent-1")], False),
        ("1", [("g", "agent-1")], False),
    ],
)
def test_processes_are_matched_in_symphonys_order(
    name: str, matches: list[tuple[str | None, str]], is_exact: bool
) -> None:
    assert ListingCluster().fuzzy_match_process(name, "rl") == (matches, is_exact)


def test_what_is_no_experiment_is_not_launched() -> None:
    with pytest.raises(SpecError, match="is not an experiment"):
        Cluster.new("tmux").launch("rl")  # type: ignore[arg-type]  # the mistake


def test_an_operation_that_a_backend_lacks_says_so() -> None:
    with pytest.raises(SymphError, match="ListingCluster cannot say what runs there"):
        ListingCluster().get_log("rl", "agent")


def test_addresses_are_dumped_as_variables() -> None:
    book = AddressBook()
    book.add_entry("replay-server", "fd00::1", 7000)
    assert book.format_name("replay-server") == "REPLAY_SERVER"
    assert book.dump() == {
        "SYMPH_REPLAY_SERVER_HOST": "fd00::1",
        "SYMPH_REPLAY_SERVER_PORT": "7000",
        "SYMPH_REPLAY_SERVER_ADDR": "[fd00::1]:7000",
    }


def test_the_documented_names_are_there() -> None:
    from symphony_charts import commandline, engine, kube, tmux

    assert engine.Cluster is symphony_charts.Cluster
    assert commandline.SymphonyParser is symphony_charts.SymphonyParser
    assert isinstance(small(Cluster.new("kube")), kube.KubeExperimentSpec)
    assert isinstance(small(Cluster.new("tmux")), tmux.TmuxExperimentSpec)
    assert issubclass(kube.Process, symphony_charts.TmuxProcessSpec)
    assert issubclass(kube.ProcessGroup, tmux.TmuxProcessGroupSpec)


def test_an_unknown_name_of_the_package_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        symphony_charts.nonsense  # noqa: B018 - the access is the test


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, symphony_charts; print([m for m in ('yaml', 'msgspec', 'libtmux') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
