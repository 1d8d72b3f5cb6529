"""The size limit of a log is that of its process, else of the experiment, else a documented default."""

from __future__ import annotations

from pathlib import Path

from symphony_charts.local.machine.machine import plan_here
from symphony_charts.spec.data import from_data
from symphony_charts.spec.pods import allocate


def sizes(folder: Path, **local: object) -> list[int]:
    """Return the planned sizes for a process without a limit, one with 10Mi, and one with `unlimited`."""
    own = {"a": {}, "b": {"local": {"log_size": "10Mi"}}, "c": {"local": {"log_size": "unlimited"}}}
    processes = {name: {"command": ["true"], **more} for name, more in own.items()}
    experiment = from_data({"name": "x", "processes": processes, "local": local})
    return [process.log_bytes for process in plan_here(experiment, allocate(experiment), folder, "r").processes]


def test_a_process_comes_before_the_experiment_and_that_before_1_gib(tmp_path: Path) -> None:
    assert sizes(tmp_path) == [1 << 30, 10 << 20, 0]
    assert sizes(tmp_path, log_size="100Mi") == [100 << 20, 10 << 20, 0]
    assert sizes(tmp_path, log_size="unlimited") == [0, 10 << 20, 0]
