"""The builders that users hold: those of `symphony_charts.spec.builder.experiment`, owned by the configured user.

One class each serves every backend; the names that Symphony had for each backend are theirs.
"""

from __future__ import annotations

from collections.abc import Mapping

from symphony_charts.settings.user import SymphonyConfig
from symphony_charts.spec.builder import experiment as builder
from symphony_charts.spec.builder.experiment import ProcessGroupSpec, ProcessSpec
from symphony_charts.spec.builder.keywords import ExperimentKeywords, Unpack
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.variable_names import service_prefix, service_variable

__all__ = ["AddressBook", "ExperimentSpec", "ProcessGroupSpec", "ProcessSpec"]


class AddressBook:
    """`entries`, which Symphony called `di`, maps a service to its ``host`` and ``port``."""

    def __init__(self, di: Mapping[str, Mapping[str, object]] | None = None) -> None:
        self.entries: dict[str, dict[str, object]] = {name: dict(entry) for name, entry in (di or {}).items()}

    def add_entry(self, name: str, host: str, port: int | str) -> None:
        """Say where a service is."""
        self.entries[name] = {"host": host, "port": port}

    def format_name(self, name: str) -> str:
        """``replay-server`` -> ``REPLAY_SERVER``."""
        return service_prefix(name).removeprefix("SYMPH_")

    def dump(self) -> dict[str, str]:
        """``SYMPH_<NAME>_HOST``, ``_PORT`` and ``_ADDR`` of every service."""
        environment: dict[str, str] = {}
        for name, entry in self.entries.items():
            environment[service_variable(name, "HOST")] = str(entry["host"])
            environment[service_variable(name, "PORT")] = str(entry["port"])
            environment[service_variable(name, "ADDR")] = f"{entry['host']}:{entry['port']}"
        return environment


def _render(experiment: Experiment, pod: str) -> dict[str, object]:
    # What makes charts takes 130 ms to load, which only those spend who look at pod_yml; tmux does without it.
    from symphony_charts.clusters.kubernetes import render_pod

    return render_pod(experiment, pod)


class ExperimentSpec(builder.ExperimentSpec):
    """An experiment while it is described; `SymphonyConfig().username` owns it unless `owner` says otherwise.

    `address_book` says where its services are, as its processes are told; it is empty before the launch.
    """

    renderer = staticmethod(_render)

    def __init__(self, name: str, **fields: Unpack[ExperimentKeywords]) -> None:
        if fields.get("owner") is None:
            fields["owner"] = SymphonyConfig().username
        super().__init__(name, **fields)
        # Nobody knows where services are before they are somewhere: `Cluster.launch` fills it in.
        self.address_book = AddressBook()
