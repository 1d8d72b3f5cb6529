"""Every example, from its chart to its end: scheduled by the real scheduler, run as processes, finished."""

from __future__ import annotations

import pytest

from tests.e2e.charts import EXAMPLES, ExampleCharts
from tests.e2e.release import Releases, prove
from tests.tools import HELM_VERSIONS, helm
from tests.waiting import eventually

# The groups' final output, by example.
RESULTS = {
    "integrate": {"master": ["integral of x^2 over 0..10 = 333.3333"]},
    "ring": {"p2": ["done: 50 sent, 50 received"]},
    "ring-group": {"p2": ["done: 50 sent, 50 received"]},
    "parameter-server": {"server": ["y = 2.00 x -1.00 after 300 gradients"]},
    "ppo": {"learner": ["the greedy policy reaches the goal in 6 steps"]},
    "rl": {"learner": ["update 20"], "agent": ["agent-0 done", "agent-1 done"]},
    "di-engine": {"learner": ["rank 0 met [1, 2, 3]"], "collector": ["rank 2 of 4 may train", "rank 3 of 4 may train"]},
}


@pytest.mark.parametrize("example", RESULTS)
def test_an_example_runs_from_its_chart_to_its_result(release: Releases, charts: ExampleCharts, example: str) -> None:
    run = release("result")
    run.install(charts[example])
    run.wait_finished()
    missing = {line for group, lines in RESULTS[example].items() for line in lines if line not in run.log(group)}
    assert not missing


def test_surreal_comes_up_and_every_service_answers(release: Releases, charts: ExampleCharts) -> None:
    run = release("surreal")
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


@pytest.mark.parametrize(("example", "version"), [*((name, HELM_VERSIONS[-1]) for name in EXAMPLES), ("ring", "3.19")])
def test_a_held_example_is_served_tested_and_leaves_nothing(
    release: Releases, charts: ExampleCharts, example: str, version: str
) -> None:
    run = release("held", helm(version))
    prove(run, charts[example])
    run.uninstall()
    run.wait_gone()
