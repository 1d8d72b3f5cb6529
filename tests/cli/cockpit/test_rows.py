"""Text of the cockpit's head and rows."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from symphony_charts.backend.status import ExperimentStatus, InstanceStatus, Usage
from symphony_charts.cli.cockpit_rows import TITLES, Row, head_of, layout, rows_of, size, titles_of


def instance(name: str, process: str, **fields: Any) -> InstanceStatus:
    return InstanceStatus(name=name, process=process, **{"phase": "running", **fields})


def experiment(*instances: InstanceStatus) -> ExperimentStatus:
    return ExperimentStatus(
        name="rl", experiment="rl", backend="tmux", phase="running", started=0.0, instances=instances
    )


def test_rows_and_head_say_who_runs_who_is_ready_and_what_they_use() -> None:
    agents = [instance(f"agent-{index}", "agent", state="running 9s", ready=index > 0) for index in range(2)]
    times = {"started": 10.0, "ended": 12.0}
    failed = instance("learner", "learner", phase="failed", state="failed 3 after 2s", restarts=1, **times)
    status = experiment(*agents, failed)
    usage = {"agent-0": Usage(cpu=0.5, memory=2_252_341_248), "agent-1": Usage(cpu=1.0, memory=None)}
    assert head_of(status, usage, 192.0) == "rl  running 3m   agent 1/2  learner 0/1   cpu 1.5  mem 2.1G"
    rows = rows_of(status, usage, {"agent-0": "\x1b[2Jstep\x07"}, 192.0)
    assert [row.cells for row in rows] == [
        ("agent-0", "running", "no", "0", "-", "0.50", "2.1G", "step\ufffd"),
        ("agent-1", "running", "yes", "0", "-", "1.00", "-", ""),
        ("learner", "failed 3 after 2s", "no", "1", "2s", "-", "-", ""),
    ]


def test_gpus_have_a_cell_where_somebody_measures_them() -> None:
    status = experiment(*(instance(name, name, state="running") for name in ("a", "b")))
    usage = {"a": Usage(cpu=0.5, memory=0, gpu=0.74, gpu_memory=12 << 30), "b": Usage(cpu=0.5, memory=0)}
    rows = rows_of(status, usage, {}, 9.0)
    assert [row.cells[7] for row in rows] == ["74% 12G", "-"]
    assert titles_of(rows)[7] == "GPU"
    assert head_of(status, usage, 9.0).endswith("cpu 1.0  mem 0  gpu 74%")
    assert len(layout(rows, 80)) == len(titles_of(rows)) == 9


@given(
    st.lists(st.lists(st.text(max_size=60), min_size=len(TITLES), max_size=len(TITLES)), max_size=5),
    st.integers(80, 300),
)
@example([["n" * 30, "s" * 40, "1/1", "10", "59m", "12.50", "100.5M", "x"]], 80)
def test_a_table_fits_its_screen(cells: list[list[str]], width: int) -> None:
    rows = [Row(path=str(place), phase="running", cells=tuple(row)) for place, row in enumerate(cells)]
    widths = layout([row for row in rows if all(len(cell) < 10 for cell in row.cells[2:7])], width)
    assert sum(widths) + 2 * (len(widths) - 1) <= width


def test_sizes_are_short() -> None:
    assert [size(number) for number in (0, 999, 1000, 1 << 20, 35 << 20, 999 << 20, 1 << 40)] == [
        "0", "999", "1.0K", "1.0M", "35M", "999M", "1.0T"
    ]  # fmt: skip
