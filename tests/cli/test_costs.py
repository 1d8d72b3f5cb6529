"""What experiments cost: by the plan here, by their nodes on clusters, and never where nobody lists a price."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from symphony_charts.backend.cost import Cost, amount_of, sum_of, to_data
from symphony_charts.backend.status import ExperimentStatus, InstanceStatus
from symphony_charts.cli.main import main
from symphony_charts.cli.node_costs import NodePrice, cost_on, price_of_node
from symphony_charts.placement.machines.prices import default_prices

SPEC = """\
name: e
image: busybox:1.37.0
processes: {p: {cmds: [echo up], requests: {cpu: 1}}, q: {cmds: [echo up], requests: {cpu: 100}}}
"""
POOLS = "pools: [{name: std, machine_type: n1-standard-8, zones: [us-central1-a], max_nodes: 4}]\n"
N1 = default_prices().price("n1-standard-8", "us-central1")
SPOT = default_prices().price("n1-standard-8", "us-central1", spot=True)


def node() -> dict[str, Any]:
    given = {
        "node.kubernetes.io/instance-type": "n1-standard-8",
        "topology.kubernetes.io/region": "us-central1",
    }
    status = {"allocatable": {"cpu": "7910m", "memory": "27Gi", "pods": "110"}}
    return {"metadata": {"name": "a", "labels": given}, "spec": {}, "status": status}


def instance(name: str, place: str, started: float | None, ended: float | None = None) -> InstanceStatus:
    phase: Any = "pending" if started is None else "running" if ended is None else "succeeded"
    return InstanceStatus(name=name, process=name, phase=phase, state=phase, place=place, started=started, ended=ended)


def status(*instances: InstanceStatus) -> ExperimentStatus:
    return ExperimentStatus(name="e", experiment="e", backend="kube", phase="running", started=0.0, instances=instances)


def test_a_run_here_costs_what_its_plan_does_and_every_verb_says_so(
    tmp_path: Path, need_tool: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    need_tool("tmux")
    (tmp_path / "e.yaml").write_text(SPEC)
    (tmp_path / "pools.yaml").write_text(POOLS)
    pools = str(tmp_path / "pools.yaml")
    assert main(["run", str(tmp_path / "e.yaml"), "--pools", pools, "-o", "json"]) == 0
    end = json.loads(capsys.readouterr().out.splitlines()[-1])
    cost = end["cost"]
    assert (cost["perHour"], cost["source"]) == (N1, f"as planned on {pools}")
    assert cost["noPrice"] == ["q, which no pool holds"]
    assert N1
    assert cost["total"] == pytest.approx(N1 * end["seconds"] / 3600, abs=1e-6)
    for verb in (["ls", "-a"], ["status", "e"]):
        assert main([*verb, "-o", "json"]) == 0
        (item,) = json.loads(capsys.readouterr().out)["items"]
        assert item["cost"] == cost
        assert item["seconds"] == pytest.approx(end["seconds"], abs=1e-3)
        assert main(verb) == 0
        title, row = capsys.readouterr().out.splitlines()[:2]
        assert re.match(r"\d+s +<\$0.01\+", row[title.index("TOOK") :])
    for verb in (["describe", "e"], ["wait", "e"]):
        assert main([*verb, "-o", "json"]) == 0
        record = json.loads(capsys.readouterr().out)
        assert (record["cost"], record["seconds"]) == (cost, pytest.approx(end["seconds"], abs=1e-3))
    assert main(["describe", "e"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.match(r"e   succeeded \d+s ", lines[0])
    assert lines[2] == f"cost:    <$0.01+ as planned on {pools}; no price: q, which no pool holds"
    assert main(["collect", "e", "--to", str(tmp_path / "all")]) == 0
    assert json.loads((tmp_path / "all/experiment.json").read_text())["cost"] == cost


def test_without_pools_there_is_a_duration_alone(
    tmp_path: Path, need_tool: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    need_tool("tmux")
    (tmp_path / "e.yaml").write_text(SPEC)
    assert main(["run", str(tmp_path / "e.yaml")]) == 0
    assert "$" not in capsys.readouterr().err
    assert main(["ls", "-a"]) == 0
    assert capsys.readouterr().out.split()[:4] == ["NAME", "PHASE", "AGE", "TOOK"]
    assert main(["describe", "e"]) == 0
    assert "cost:" not in capsys.readouterr().out


def test_a_node_costs_what_its_type_costs_there_and_less_as_spot() -> None:
    assert price_of_node(node()) == NodePrice(per_hour=N1)
    spot = node()
    spot["metadata"]["labels"]["cloud.google.com/gke-spot"] = "true"
    assert price_of_node(spot) == NodePrice(per_hour=SPOT)


@pytest.mark.parametrize(
    ("label", "value", "text"),
    [
        ("node.kubernetes.io/instance-type", "", "1 x a machine of no known type in us-central1 (pool nodes)"),
        ("topology.kubernetes.io/region", "moon1", "1 x n1-standard-8 in moon1, a region without prices"),
        ("cloud.google.com/gke-local-nvme-ssd", "true", "1 x n1-standard-8 in us-central1"),
    ],
)
def test_what_nobody_lists_has_no_price(label: str, value: str, text: str) -> None:
    item = node()
    item["metadata"]["labels"][label] = value
    if not value:
        del item["metadata"]["labels"][label]
    price = price_of_node(item)
    assert price.per_hour is None
    assert text in price.unpriced


def test_a_node_counts_once_from_the_first_start_to_the_last_end_there() -> None:
    nodes = {"a": NodePrice(per_hour=2.0), "b": NodePrice(per_hour=1.0)}
    both = status(instance("p", "a", 0.0, 3600.0), instance("q", "a", 1800.0), instance("r", "b", 3600.0, 5400.0))
    assert cost_on(nodes, both, 7200.0) == Cost(total=4.5, per_hour=3.0, source="for 2 nodes")
    waiting = status(instance("p", "a", 0.0), instance("q", "", None), instance("r", "b", None))
    assert cost_on(nodes, waiting, 3600.0) == Cost(total=2.0, per_hour=2.0, source="for 1 node")


def test_what_is_gone_is_named_and_what_is_known_of_nobody_is_no_cost() -> None:
    nodes = {"a": NodePrice(per_hour=2.0), "odd": NodePrice(per_hour=None, unpriced="1 x toaster")}
    some = status(instance("p", "a", 0.0), instance("q", "gone", 0.0), instance("r", "", 0.0, 9.0))
    cost = cost_on(nodes, some, 3600.0)
    assert cost
    assert cost.unpriced == ("gone, a node that is gone", "r, whose pod is gone")
    assert cost_on(nodes, status(instance("p", "odd", 0.0)), 3600.0) is None


def test_amounts_say_how_certain_they_are() -> None:
    cost = Cost(total=0.412, per_hour=2.0, source="for 1 node")
    assert cost.sentence == "$0.41 for 1 node"
    part = Cost(total=0.001, per_hour=2.0, source="for 1 node", unpriced=("q, which no pool holds",))
    assert part.sentence == "<$0.01+ for 1 node; no price: q, which no pool holds"
    none = Cost(total=0.0, per_hour=0.0, source="", unpriced=("1 x toaster",))
    assert (none.sentence, amount_of(to_data(none))) == ("no price: 1 x toaster", "")
    assert amount_of(sum_of([to_data(cost), None, to_data(part)])) == "$0.41+"
    assert sum_of([None]) is None
