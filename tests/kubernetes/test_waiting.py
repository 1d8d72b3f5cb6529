"""Waiting ends at its timeout, and a log that breaks off is an error of the cluster, not a bug."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from typing import cast

import pytest
from urllib3.exceptions import ProtocolError

from symphony_charts.backend.status import ExperimentStatus, InstanceStatus, LogQuery
from symphony_charts.errors import ToolFailed
from symphony_charts.kubernetes.client import Kind, KubeApi, changes
from symphony_charts.kubernetes.experiments import POD, KubeExperiments
from symphony_charts.kubernetes.logs import read_lines


class BusyCluster:
    """A stub for a cluster in which something changes all the time."""

    def watch(
        self, path: str, selector: str, timeout_s: float | None, over: threading.Event
    ) -> Iterator[Mapping[str, object] | None]:
        del path, selector, timeout_s
        while not over.wait(0.001):
            yield None

    def interrupt(self) -> None:
        """Do nothing: the watches look at `over` themselves."""


def test_waiting_ends_at_its_timeout_although_the_cluster_keeps_changing() -> None:
    def path_of(kind: Kind) -> str:
        return kind[1]

    deadline = time.monotonic() + 5
    for _ in changes(cast("KubeApi", BusyCluster()), path_of, [(POD, "")], 0.3):
        assert time.monotonic() < deadline, "it goes on after its timeout"
        time.sleep(0.02)  # as long as reading the state takes


class _BrokenLog:
    def stream(self, *, decode_content: bool) -> Iterator[bytes]:
        del decode_content
        yield b"2026-01-01T00:00:00Z first\n"
        raise ProtocolError("Connection broken: IncompleteRead")

    def close(self) -> None:
        """Do nothing."""


class _BrokenLogs:
    def log(self, *_: object, **__: object) -> _BrokenLog:
        return _BrokenLog()


class _Experiments:
    api = _BrokenLogs()


@pytest.mark.parametrize("is_previous", [False, True])
def test_a_log_that_breaks_off_names_its_process(is_previous: bool) -> None:
    experiments = cast("KubeExperiments", _Experiments())
    one = InstanceStatus(name="a", process="a", phase="running", state="running", pod="a-0", restarts=1)
    status = ExperimentStatus(
        name="rl", experiment="rl", backend="kube", phase="running", started=0.0, instances=(one,)
    )
    with pytest.raises(ToolFailed, match="the log of a broke off"):
        list(read_lines(experiments, status, LogQuery(previous=is_previous)))
