"""Every example, from its chart to its end: scheduled by the real scheduler, run as processes, finished."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.charts import EXAMPLES, ExampleCharts
from tests.e2e.release import Release, prove
from tests.waiting import eventually

Releases = Callable[..., Release]


@pytest.mark.rig
def test_integrate_computes_the_integral_from_its_chart(
    release: Releases, charts: ExampleCharts, any_helm: Path
) -> None:
    run = release("integrate", any_helm)
    run.install(charts["integrate"])
    run.wait_finished()
    assert "integral of x^2 over 0..10 = 333.3333" in run.log("master")


@pytest.mark.rig
@pytest.mark.parametrize("example", ["ring", "ring-group"])
def test_a_ring_passes_its_messages_all_the_way_round(
    release: Releases, charts: ExampleCharts, any_helm: Path, example: str
) -> None:
    run = release(example, any_helm)
    run.install(charts[example])
    run.wait_finished()
    log = run.log("p2")
    assert log.count("received hello1") == 50
    assert "done: 50 sent, 50 received" in log


@pytest.mark.rig
def test_rl_learns_from_its_agents_and_ends(release: Releases, charts: ExampleCharts, any_helm: Path) -> None:
    run = release("rl", any_helm)
    run.install(charts["rl"])
    run.wait_finished()
    assert "update 20" in run.log("learner")
    agents = run.log("agent")
    assert {"agent-0 done", "agent-1 done"} <= {" ".join(line.split()[:2]) for line in agents.splitlines()}


@pytest.mark.rig
def test_di_engine_finds_its_peers_by_rank(release: Releases, charts: ExampleCharts, any_helm: Path) -> None:
    run = release("di", any_helm)
    run.install(charts["di-engine"])
    run.wait_finished()
    assert "rank 0 met [1, 2, 3]" in run.log("learner")
    assert {"rank 2 of 4 may train", "rank 3 of 4 may train"} <= set(run.log("collector").splitlines())


@pytest.mark.rig
def test_surreal_comes_up_and_every_service_answers(release: Releases, charts: ExampleCharts, any_helm: Path) -> None:
    run = release("surreal", any_helm)
    run.install(charts["surreal"])
    run.wait_started()
    answers = [f"{service}: {by} heard agent-0" for service, by in _SURREAL_SERVERS.items()]
    eventually(lambda: all(line in run.log("agent-0") for line in answers), 60, lambda: run.log("agent-0"))
    run.uninstall()


_SURREAL_SERVERS = {
    "ps-frontend": "ps",
    "collector-frontend": "replay",
    "tensorplex": "tensorplex",
    "loggerplex": "loggerplex",
}


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_held_example_is_served_tested_and_leaves_nothing(
    release: Releases, charts: ExampleCharts, any_helm: Path, example: str
) -> None:
    run = release("held", any_helm)
    prove(run, charts[example])
    run.uninstall()
    run.wait_gone()
