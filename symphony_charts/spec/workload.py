"""The workload: the Kubernetes kind that runs an experiment, and the settings of each kind."""

from __future__ import annotations

import inspect
from typing import Any, Literal, TypeVar

import msgspec

from symphony_charts.spec.sources import Record
from symphony_charts.system.launching import entry_points
from symphony_charts.system.records import convert

GANGS_OF_PODS = ("native", "coscheduling", "volcano")
"""The gangs that need a PodGroup. Kueue reads labels of a workload instead."""

# Integrations and other packages add kinds with the entry point group `symph.kinds`.
_CORE = ("jobs", "jobset", "appwrapper", "volcano")
ADDED_KINDS = tuple(name for name in entry_points("symph.kinds") if name not in _CORE)
"""Names of the kinds that integrations and other packages add. `spec.json_schema.added_kind` returns the kinds."""

_KINDS = (*_CORE, *ADDED_KINDS)
_KindName: Any = Literal[_KINDS]
_Settings = TypeVar("_Settings", bound=Record)


class AppwrapperSettings(Record, frozen=True, kw_only=True):
    """Settings of an AppWrapper.

    Attributes:
        version: That of workload.codeflare.dev, of which a cluster serves one: `v1beta2` (AppWrapper controller) or
            `v1beta1` (MCAD).
        annotations: Stand over ours: the fault tolerance of v1beta2.
    """

    version: Literal["v1beta2", "v1beta1"] = "v1beta2"
    annotations: dict[str, str] = {}


class JobsetSettings(Record, frozen=True, kw_only=True):
    """Settings of a JobSet.

    Attributes:
        max_restarts: Number of restarts of the whole set after a failure.
    """

    max_restarts: int = 0


class VolcanoSettings(Record, frozen=True, kw_only=True):
    """Settings of a Volcano Job.

    Attributes:
        plugins: Plugins by name with their arguments, in addition to `env` and `svc`, which every Job has.
    """

    plugins: dict[str, list[str]] = {}


class Workload(Record, frozen=True, kw_only=True):
    """The Kubernetes kind that runs the processes, and the queue of the whole job.

    `jobset`, `appwrapper`, `volcano` and settings of added kinds apply only to the kind of that name.

    Attributes:
        kind: The kind of object that runs the pods.
        gang: The gang scheduler, which starts all pods together or none.
        gang_scope: The pods that start together: all of the experiment (default), or each group.
        gang_version: The version of scheduling.k8s.io for the gang `native`.
        queue: The name of its queue of Kueue or Volcano.
        queue_priority: Its priority class in Kueue.
        priority: The priority of the job in MCAD; higher first.
        priority_class: The priority class of the pods.
        scheduler_name: The scheduler that places the pods.
        retries: Default number of retries of a failed pod.
        run_key: A change of this text starts a new run.
        jobset: Settings of kind jobset.
        appwrapper: Settings of kind appwrapper.
        volcano: Settings of kind volcano.
    """

    kind: _KindName = "jobs"
    gang: Literal["none", "kueue", "native", "coscheduling", "volcano"] = "none"
    gang_scope: Literal["experiment", "group"] | None = None
    gang_version: Literal["v1alpha2", "v1beta1"] | None = None
    queue: str | None = None
    queue_priority: str | None = None
    priority: int | None = None
    priority_class: str | None = None
    scheduler_name: str | None = None
    retries: int = 0
    run_key: str = ""
    jobset: JobsetSettings = JobsetSettings()
    appwrapper: AppwrapperSettings = AppwrapperSettings()
    volcano: VolcanoSettings = VolcanoSettings()

    def written(self, kind: str) -> dict[str, object]:
        settings: dict[str, object] = getattr(self, _attribute(kind))
        return settings

    def settings(self, kind: str, record: type[_Settings]) -> _Settings:
        """Return the settings of an added kind as its own, already checked record."""
        return convert(self.written(kind), record)

    def with_settings(self, kind: str, settings: Record) -> Workload:
        return msgspec.structs.replace(self, **{_attribute(kind): msgspec.to_builtins(settings)})


def _attribute(kind: str) -> str:
    return kind.replace("-", "_")


_TEXTS = [f"{kind}: Settings of kind {kind}." for kind in ADDED_KINDS]

# `workload.<kind>` is plain data here: the core does not know the records of added kinds.
Workload = msgspec.defstruct(  # type: ignore[misc, assignment]
    "Workload",
    [(_attribute(kind), dict[str, Any], msgspec.field(default_factory=dict, name=kind)) for kind in ADDED_KINDS],
    bases=(Workload,),
    module=__name__,
    # Python 3.13 removes the indentation of docstrings.
    namespace={"__doc__": "\n    ".join([inspect.cleandoc(f"{Workload.__doc__}"), *_TEXTS])},
    frozen=True,
    kw_only=True,
)
