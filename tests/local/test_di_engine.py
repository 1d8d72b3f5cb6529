"""`ditask` without its operator: a program that reads DI_RANK and DI_NODES as it does finds its peers in tmux.

DI-engine itself needs torch. The stub takes its address and its peers from the variables as
ding/entry/cli_parsers/k8s_parser.py does (topology star, port 50515), listens there, and dials.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from symphony_charts.local.machine.machine import plan_here
from symphony_charts.spec.data import from_data
from symphony_charts.spec.pods import allocate
from tests.local.runs import log_of, python, start, until

DITASK = """
import os, socket, time
rank, nodes = int(os.environ["DI_RANK"]), os.environ["DI_NODES"].split(",")
server = socket.create_server((nodes[rank], 50515))
if rank == 0:
    met = sorted(int(server.accept()[0].recv(9)) for _ in nodes[1:])
    print("met", met)
else:
    for _ in range(200):
        try:
            peer = socket.create_connection((nodes[0], 50515), 1)
            break
        except OSError:
            time.sleep(0.05)
    peer.sendall(str(rank).encode())
    print("rank", rank, "of", len(nodes), os.environ["DI_COLLECTOR_NODES"] == ",".join(nodes[1:3]))
"""


@pytest.mark.usefixtures("here")
def test_every_process_finds_its_rank_and_its_peers(tmp_path: Path) -> None:
    processes = {"learner": python(DITASK), "collector": python(DITASK, replicas=2)}
    run = start(tmp_path, processes=processes, compat="di-engine")
    until(lambda: run.state().phase == "finished")
    assert log_of(run, "learner").strip() == "met [1, 2]"
    assert log_of(run, "collector-1").strip() == "rank 2 of 3 True"


def test_a_plan_has_the_arguments_of_operator_v1_0(tmp_path: Path) -> None:
    workload = {"kind": "dijob", "dijob": {"operator": "v1.0", "topology": "star"}}
    worker = {"command": ["x"], "replicas": 2}
    experiment = from_data({"name": "job", "processes": {"worker": worker}, "workload": workload})
    first, second = plan_here(experiment, allocate(experiment), tmp_path, "r").processes
    assert [one.env["DI_NODE_IDS_ARG"] for one in (first, second)] == ["--node-ids=0", "--node-ids=1"]
    assert second.env["DI_ATTACHED_NODES_ARG"] == f"--attach-to=tcp://{first.address}:22270"
