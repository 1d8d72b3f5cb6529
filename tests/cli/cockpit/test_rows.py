"""Text of the cockpit's head and rows."""

from __future__ import annotations

import re
from typing import Any

from symphony_charts.backend.status import ExperimentStatus, InstanceStatus, Usage
from symphony_charts.cli.cockpit_rows import SORTS, arranged, columns_of, head_of, items_of


def instance(name: str, process: str, **fields: Any) -> InstanceStatus:
    return InstanceStatus(name=name, process=process, **{"phase": "running", **fields})


def experiment(*instances: InstanceStatus) -> ExperimentStatus:
    return ExperimentStatus(
        name="rl", experiment="rl", backend="tmux", phase="running", started=0.0, instances=instances
    )


def table(status: ExperimentStatus, usage: dict[str, Usage], last: dict[str, str], now: float) -> list[list[str]]:
    items = items_of(status, usage, last, now)
    return [[column.cell(item) for column in columns_of(items)] for item in items]


def test_rows_and_head_say_who_runs_who_is_ready_and_what_they_use() -> None:
    agents = [instance(f"agent-{index}", "agent", state="running 9s", ready=index > 0) for index in range(2)]
    times = {"started": 10.0, "ended": 12.0}
    failed = instance("learner", "learner", phase="failed", state="failed 3 after 2s", restarts=1, **times)
    status = experiment(*agents, failed)
    usage = {"agent-0": Usage(cpu=0.5, memory=2_252_341_248), "agent-1": Usage(cpu=1.0, memory=None)}
    assert head_of(status, usage, 192.0) == (
        "rl  running (1 failed) 3m   failed: learner   agent 1/2  learner 0/1   cpu 1.5  mem 2.1 GiB"
    )
    assert table(status, usage, {"agent-0": "\x1b[2Jstep\x07"}, 192.0) == [
        ["agent-0", "running", "no", "0", "-", "0.50", "2.1 GiB", "step\ufffd"],
        ["agent-1", "running", "yes", "0", "-", "1.00", "-", "-"],
        ["learner", "failed 3 after 2s", "no", "1", "2s", "-", "-", "-"],
    ]


def test_gpus_have_a_cell_where_somebody_measures_them() -> None:
    status = experiment(*(instance(name, name, state="running", gpus=("0", "3")[: name == "a"]) for name in "ab"))
    usage = {"a": Usage(cpu=0.5, memory=0, gpu=0.74, gpu_memory=12 << 30), "b": Usage(cpu=0.5, memory=0)}
    assert [row[7] for row in table(status, usage, {}, 9.0)] == ["0  74% 12.0 GiB", "-"]
    assert head_of(status, usage, 9.0).endswith("cpu 1.0  mem 0 B  gpu 74%")


def test_rows_come_failed_first_or_by_a_column_and_only_those_with_a_text() -> None:
    failed = instance("bad", "bad", phase="failed", state="failed 3", restarts=2)
    status = experiment(*(instance(name, name, state="running") for name in ("a", "b", "c")), failed)
    items = items_of(status, {"b": Usage(cpu=1.0, memory=1), "c": Usage(cpu=0.5, memory=9)}, {}, 9.0)

    def names(sort: str, pattern: str = "") -> str:
        return " ".join(item["name"] for item in arranged(items, sort, re.compile(pattern)))

    assert [names(sort) for sort in SORTS[:3]] == ["bad a b c", "b c a bad", "c b a bad"]
    assert names("restarts").startswith("bad ")
    assert (names("", "failed"), names("", "^[bc]$")) == ("bad", "b c")
