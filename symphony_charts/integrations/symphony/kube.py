"""Symphony's `symphony.kube`: launch experiments on Kubernetes as charts."""

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
from symphony_charts.integrations.symphony.addons import LocalFileManager
from symphony_charts.integrations.symphony.errors import symphonys
from symphony_charts.integrations.symphony.spec import CLUSTER, ExperimentSpec, ProcessGroupSpec, ProcessSpec, speaks
from symphony_charts.prepare import prepare_experiment
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import processes_of
from symphony_charts.spec.python_files import is_reading

__all__ = [
    "GKEDispatcher",
    "KubeCluster",
    "KubeExperimentSpec",
    "KubeProcessGroupSpec",
    "KubeProcessSpec",
]

_NO_IMAGE = "image-is-missing"
# Prefixes of the states of a process without output.
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
        """Return the pool for these resources. Raises SpecError (a ValueError) if no pool fits."""
        process = ProcessSpec("asked", container_image="asked")
        wanted: dict[str, Any] = {"memory_m": memory_m, "cpu": cpu, "gpu_type": gpu_type, "gpu_count": gpu_count}
        pool = OurDispatcher(self.pools, formula=self.formula).assign_to(process, assign_to="resource", **wanted).pool
        return str(pool)


class KubeExperimentSpec(ExperimentSpec):
    """An experiment for Kubernetes."""

    def compile(self) -> str:
        """Return the YAML documents of all objects in the experiment's chart; repeated calls give the same text.

        Sets the address book, as a launch does.
        """
        self.address_book = AddressBook(_addresses(self.finish(), {}))
        return dump_all(self._compile().values())

    def _compile(self) -> dict[str, dict[str, Any]]:
        """Return the objects by `Kind/name`; Symphony had its own keys."""
        objects = prepare_experiment(with_images(self.finish())).objects
        return {f"{item['kind']}/{sub(item, 'metadata')['name']}": item for item in objects}


def _addresses(experiment: Experiment, pins: Mapping[str, int]) -> Addresses:
    return addresses_in_chart(msgspec.structs.replace(experiment, image=experiment.image or _NO_IMAGE), pins)


def with_images(experiment: Experiment) -> Experiment:
    """Return `experiment` with placeholder images, for display; print a warning that lists processes without image."""
    without = [str(ref) for ref, process in processes_of(experiment) if process.image is None]
    if not without or experiment.image is not None:
        return experiment
    sys.stderr.write(f"warning: {', '.join(without)} has no image; a launch needs one\n")
    return msgspec.structs.replace(experiment, image=_NO_IMAGE)


@speaks(CLUSTER)
class KubeBackend(OurCluster):
    """Kubernetes under Symphony's names. Experiments are charts, not bare pods, and are identified by our labels."""

    @property
    def fs(self) -> LocalFileManager:
        """The folder of saved experiments."""
        return LocalFileManager()

    def new_experiment(self, name: str, **fields: Any) -> KubeExperimentSpec:
        """Return a new experiment; `preamble_cmds` of the cluster apply unless it has its own."""
        if self._preamble_cmds is not None:
            fields.setdefault("preamble_cmds", self._preamble_cmds)
        return KubeExperimentSpec(name, **fields)

    def launch(self, exp: Any, force: bool = False, dry_run: bool = False, **options: Any) -> object:
        """Start an experiment; with `dry_run` print its objects. Raises ResourceExistsError if it exists."""
        with symphonys():
            if isinstance(exp, ExperimentSpec) and not is_reading():
                _report_defaults(exp)
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
        """Start it; a dry run accepts processes without an image, too."""
        shown = with_images(experiment) if dry_run else experiment
        return super().start(shown, folder=folder, pins=pins, force=force, dry_run=dry_run)

    def addresses(self, launched: Launched, /) -> Addresses:
        """Return the address of each service in the cluster; images do not matter."""
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
        """Return the output of a process once it runs or has ended; poll every `sleep_interval` seconds."""
        while self.describe_process(experiment_name, process_name, process_group)["State"].startswith(_NOT_YET):
            time.sleep(sleep_interval)
        return self.get_log(experiment_name, process_name, process_group, follow, since, tail, print_logs)

    def delete(self, experiment_name: str, **options: Any) -> Any:
        """End an experiment of this package. Raises ValueError for any other."""
        with symphonys():
            return super().delete(experiment_name, **options)


# The notes that were printed in this run of a script.
REPORTED: set[tuple[str, str]] = set()


def _report_defaults(exp: ExperimentSpec) -> None:
    """Report, once in a script, defaults that a script written for Symphony's pods does not expect."""
    notes = [note for note in of_our_defaults(exp.finish()) if (note.what, note.next) not in REPORTED]
    REPORTED.update((note.what, note.next) for note in notes)
    if notes:
        output.print_report(Report(notes=tuple(notes)))


KubeCluster = KubeBackend
