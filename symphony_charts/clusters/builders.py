"""The builders that users hold: those of `symphony_charts.spec.builder.experiment`, owned by the configured user.

One class each serves every backend; the names that Symphony had for each backend are theirs.
"""

from __future__ import annotations

from symphony_charts.clusters.address_book import AddressBook
from symphony_charts.settings.user import SymphonyConfig
from symphony_charts.spec.builder import experiment as builder
from symphony_charts.spec.builder.experiment import ProcessGroupSpec, ProcessSpec
from symphony_charts.spec.builder.keywords import ExperimentKeywords, Unpack
from symphony_charts.spec.model import Experiment

__all__ = ["ExperimentSpec", "ProcessGroupSpec", "ProcessSpec"]


def _render(experiment: Experiment, pod: str) -> dict[str, object]:
    # What makes charts takes 130 ms to load, which only those spend who look at pod_yml; tmux does without it.
    from symphony_charts.clusters.render import render_pod

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
