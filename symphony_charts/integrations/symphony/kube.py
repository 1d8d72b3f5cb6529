"""Symphony's `symphony.kube` launches experiments on Kubernetes as charts."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from symphony_charts.cli import output
from symphony_charts.clusters.base import AddressBook, Addresses, Launched
from symphony_charts.clusters.gke_dispatcher import GKEDispatcher as OurDispatcher
from symphony_charts.clusters.kubernetes import KubeCluster as OurCluster
from symphony_charts.clusters.kubernetes import addresses_in_chart
from symphony_charts.formats.data import sub
from symphony_charts.formats.yaml_write import dump_all
from symphony_charts.importers.hardening import of_our_defaults
from symphony_charts.importers.report import Report
from symphony_charts.integrations.symphony.errors import symphonys
from symphony_charts.integrations.symphony.spec import CLUSTER, ExperimentSpec, ProcessGroupSpec, ProcessSpec, speaks
from symphony_charts.prepare import prepare_experiment
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import processes_of

__all__ = [
    "GKEDispatcher",
    "KubeCluster",
    "KubeExperimentSpec",
    "KubeProcessGroupSpec",
    "KubeProcessSpec",
]

_NO_IMAGE = "image-is-missing"
# How the states of a process begin that has nothing to say yet.
_NOT_YET = ("pending", "queued", "waiting", "unknown")

KubeProcessSpec = ProcessSpec
KubeProcessGroupSpec = ProcessGroupSpec


@speaks({"__init__": {"tf_json": "source"}, "get_node_pool": {"name": "node_pool_name"}})
class GKEDispatcher(OurDispatcher):
    """Symphony's dispatcher."""

    def infer_node_pool_name(
        self,
        memory_m: float | None = None,
        cpu: float | None = None,
        gpu_type: str | None = None,
        gpu_count: int | None = None,
    ) -> str:
        """The pool that these resources would be claimed on; raises SpecError (a ValueError) where there is none."""
        process = ProcessSpec("asked", container_image="asked")
        wanted: dict[str, Any] = {"memory_m": memory_m, "cpu": cpu, "gpu_type": gpu_type, "gpu_count": gpu_count}
        pool = OurDispatcher(self.pools, formula=self.formula).assign_to(process, assign_to="resource", **wanted).pool
        return str(pool)


class KubeExperimentSpec(ExperimentSpec):
    """An experiment for Kubernetes."""

    def compile(self) -> str:
        """The YAML documents of all objects that the experiment's chart makes; the same however often it is called.

        From then on the address book is known, as after a launch.
        """
        self.address_book = AddressBook(_addresses(self.finish(), {}))
        return dump_all(self._compile().values())

    def _compile(self) -> dict[str, dict[str, Any]]:
        """The objects by ``Kind/name``; Symphony had its own keys."""
        objects = prepare_experiment(with_images(self.finish())).objects
        return {f"{item['kind']}/{sub(item, 'metadata')['name']}": item for item in objects}


def _addresses(experiment: Experiment, pins: Mapping[str, int]) -> Addresses:
    return addresses_in_chart(msgspec.structs.replace(experiment, image=experiment.image or _NO_IMAGE), pins)


def with_images(experiment: Experiment) -> Experiment:
    """`experiment` as it can be shown: processes without an image, which cannot be launched, are named on stderr."""
    without = [str(ref) for ref, process in processes_of(experiment) if process.image is None]
    if not without or experiment.image is not None:
        return experiment
    sys.stderr.write(f"warning: no image is named for {', '.join(without)}; a launch needs one\n")
    return msgspec.structs.replace(experiment, image=_NO_IMAGE)


@speaks(CLUSTER)
class KubeBackend(OurCluster):
    """Kubernetes under Symphony's names. Experiments are charts, not bare pods, and are ours only by their labels."""

    def new_experiment(self, name: str, **fields: Any) -> KubeExperimentSpec:
        """A new experiment; `preamble_cmds` of the cluster hold for it unless it has its own."""
        if self._preamble_cmds is not None:
            fields.setdefault("preamble_cmds", self._preamble_cmds)
        return KubeExperimentSpec(name, **fields)

    def launch(self, exp: Any, force: bool = False, dry_run: bool = False, **options: Any) -> object:
        """Start an experiment; with `dry_run` print its objects. Raises ResourceExistsError where it is there."""
        with symphonys():
            if isinstance(exp, ExperimentSpec):
                # Defaults that a script written for Symphony's pods does not expect.
                output.print_report(Report(notes=of_our_defaults(exp.finish())))
            return super().launch(exp, force=force, dry_run=dry_run, **options)

    def start(
        self,
        experiment: Experiment,
        *,
        folder: Path,
        pins: Mapping[str, int],
        force: bool = False,
        dry_run: bool = False,
    ) -> object:
        """Start it; a dry run shows processes without an image, too."""
        shown = with_images(experiment) if dry_run else experiment
        return super().start(shown, folder=folder, pins=pins, force=force, dry_run=dry_run)

    def addresses(self, launched: Launched, /) -> Addresses:
        """Each service at its name in the cluster; images do not matter."""
        return _addresses(launched.experiment, launched.pins)

    def describe_headers(self) -> list[str]:
        """Return the columns of `describe_experiment` for a process."""
        return ["Ready", "Restarts", "State"]

    def get_log_when_alive(
        self,
        experiment_name: str,
        process_name: str,
        process_group: str | None = None,
        follow: bool = False,
        since: float = 0,
        tail: int = -1,
        print_logs: bool = False,
        sleep_interval: float = 10,
    ) -> str:
        """Return what a process has printed, once it runs or has ended; it is asked every `sleep_interval` seconds."""
        while self.describe_process(experiment_name, process_name, process_group)["State"].startswith(_NOT_YET):
            time.sleep(sleep_interval)
        return self.get_log(experiment_name, process_name, process_group, follow, since, tail, print_logs)

    def delete(self, experiment_name: str, **options: Any) -> Any:
        """End an experiment of ours; raises ValueError for any other."""
        with symphonys():
            return super().delete(experiment_name, **options)


KubeCluster = KubeBackend
