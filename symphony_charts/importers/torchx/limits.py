"""An application can have more replicas than a program's environment has room for their hosts."""

from __future__ import annotations

from collections.abc import Iterator

from symphony_charts.chart.compile.experiment import compile_values
from symphony_charts.chart.lint.workload_rules import MAX_ENV_BYTES
from symphony_charts.chart.render.model import build_model
from symphony_charts.chart.render.names import Release
from symphony_charts.errors import SpecError
from symphony_charts.spec.checks.finish import finish
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.services import allocate

__all__ = ["long_host_lists"]

# What a host has beside the names of experiment and process, each of which stands in both of its labels: the run, the
# number of the replica, the port and what is between them. No host is longer than two DNS labels and a port.
_BESIDE_NAMES = len("--01234567-99999--pods.:65535,")
_LONGEST_HOST = len(f"{'a' * 63}.{'a' * 63}:65535,")


def long_host_lists(experiment: Experiment) -> Iterator[tuple[str, int]]:
    """The processes whose replicas could not start, since the variable with their hosts has so many bytes."""
    if all(
        process.replicas * min(2 * len(experiment.name + name) + _BESIDE_NAMES, _LONGEST_HOST) < MAX_ENV_BYTES
        for name, process in experiment.processes.items()
    ):
        return
    try:
        settled = finish(experiment, for_cluster=True)
        values = compile_values(settled, allocate(settled))
        model = build_model(values, Release(name=settled.name, chart_name=settled.name))
    except SpecError:
        return  # what keeps it off a cluster is said where it is going there
    for service in model.services.values():
        size = len(service.address.text("HOSTS"))
        if size >= MAX_ENV_BYTES:
            yield service.process, size
