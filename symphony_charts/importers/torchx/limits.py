"""The variable with the hosts of an application's replicas can be too long for the environment of a program."""

from __future__ import annotations

from collections.abc import Iterator

from symphony_charts.chart.build.chart import Release, build
from symphony_charts.chart.lint.workload_rules import MAX_ENV_BYTES
from symphony_charts.errors import SpecError
from symphony_charts.spec.checks.finish import finish
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.services import allocate

__all__ = ["long_host_lists"]

# A host has the names of experiment and process in both of its labels, and beside them run, index and port. No host is
# longer than two DNS labels and a port.
_BESIDE_NAMES = len("--01234567-99999--pods.:65535,")
_LONGEST_HOST = len(f"{'a' * 63}.{'a' * 63}:65535,")


def long_host_lists(experiment: Experiment) -> Iterator[tuple[str, int]]:
    """Yield the processes whose replicas could not start, with the bytes of the variable with their hosts."""
    if all(
        process.replicas * min(2 * len(experiment.name + name) + _BESIDE_NAMES, _LONGEST_HOST) < MAX_ENV_BYTES
        for name, process in experiment.processes.items()
    ):
        return
    try:
        settled = finish(experiment, for_cluster=True)
        chart = build(settled, allocate(settled))
    except SpecError:
        return  # a chart of it is reported when it is made
    for service in chart.draft.services.values():
        group = chart.draft.groups[service.listener.pod]
        host = chart.text(chart.draft.host(group).replace("{$i}", "INDEX"), chart.values, Release(name=chart.name))
        indexes = range(group.pod.settings.replicas)
        size = len(",".join(f"{host.replace('INDEX', str(index))}:{service.port}" for index in indexes))
        if size >= MAX_ENV_BYTES:
            yield service.listener.process, size
