"""Detect the features of a cluster: kinds of workload, gangs and queues, in the served versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from symphony_charts.backend.status import Capability
from symphony_charts.errors import NotFound, ToolFailed
from symphony_charts.formats.data import sub
from symphony_charts.kubernetes.client import KubeApi, Object

# name, API group, kind, versions that the charts write (newest first), setting of the spec, software to install
_KINDS = (
    ("kind jobset", "jobset.x-k8s.io", "JobSet", ("v1alpha2",), "workload.kind: jobset", "the JobSet controller"),
    (
        "kind appwrapper",
        "workload.codeflare.dev",
        "AppWrapper",
        ("v1beta2", "v1beta1"),
        "workload: {{kind: appwrapper, appwrapper: {{version: {version}}}}}",
        "the AppWrapper controller, or MCAD for v1beta1",
    ),
    ("kind volcano", "batch.volcano.sh", "Job", ("v1alpha1",), "workload.kind: volcano", "Volcano"),
    ("kind argo", "argoproj.io", "WorkflowTemplate", ("v1alpha1",), "workload.kind: argo", "Argo Workflows"),
    ("gang kueue", "kueue.x-k8s.io", "LocalQueue", ("v1beta2", "v1beta1"), "workload.gang: kueue", "Kueue"),
    (
        "gang native",
        "scheduling.k8s.io",
        "PodGroup",
        ("v1beta1", "v1alpha2"),
        "workload: {{gang: native, gang_version: {version}}}",
        "feature gates GenericWorkload and GangScheduling, and the API's runtime config",
    ),
    (
        "gang coscheduling",
        "scheduling.x-k8s.io",
        "PodGroup",
        ("v1alpha1",),
        "workload: {{gang: coscheduling, scheduler_name: …}}",
        "scheduler-plugins",
    ),
    ("gang volcano", "scheduling.volcano.sh", "PodGroup", ("v1beta1",), "workload.gang: volcano", "Volcano"),
)
# The shapes of a DIJob share an apiVersion: a property that only one has distinguishes them, newest first.
_DIJOB_SHAPES = (("v1.1", "tasks", "volumes"), ("v1.1.0", "tasks", ""), ("v1.0", "template", ""))
_DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/dijobs.diengine.opendilab.org"


def capabilities_of(api: KubeApi, namespace: str) -> list[Capability]:
    """Return the server, then each served or missing kind of workload, gang and queue, with its setting.

    Raises ToolFailed if the cluster does not answer.
    """
    version = api.get("/version")
    served = {group["name"]: [each["version"] for each in group["versions"]] for group in api.get("/apis")["groups"]}
    return [
        Capability(name="cluster", status="ok", detail=f"{version['gitVersion']}, context {api.context}"),
        Capability(name="kind jobs", status="ok", detail="batch/v1: workload.kind: jobs"),
        *_kinds(api, served),
        _dijob(api),
        *_queues(api, served, namespace),
    ]


def _kinds(api: KubeApi, served: Mapping[str, list[str]]) -> Iterator[Capability]:
    for name, group, kind, versions, setting, source in _KINDS:
        there = (version for version in versions if version in served.get(group, []))
        version = next((version for version in there if api.serves(f"{group}/{version}", kind)), None)
        if version is None:
            yield Capability(name=name, status="missing", detail=f"no {group} {kind}", next=f"install {source}")
        else:
            yield Capability(name=name, status="ok", detail=f"{group}/{version}: {setting.format(version=version)}")


def _dijob(api: KubeApi) -> Capability:
    try:
        definition = api.find(_DEFINITION)
    except ToolFailed:
        detail = "you may not read the definition of DIJobs"
        return Capability(name="kind dijob", status="warning", detail=detail, next="ask the cluster's administrator")
    if definition is None:
        return Capability(name="kind dijob", status="missing", detail="no DIJob", next="install DI-orchestrator")
    detail = f"workload: {{kind: dijob, dijob: {{operator: {dijob_shape(definition)}}}}}"
    return Capability(name="kind dijob", status="ok", detail=detail)


def dijob_shape(definition: Object) -> str:
    """Return the `dijob.operator` that reads the fields of a DIJob definition, the newest if several do."""
    served = [version for version in definition["spec"]["versions"] if version["served"]]
    fields = [sub(version, "schema", "openAPIV3Schema", "properties", "spec", "properties") for version in served]
    for names in fields:
        for shape, needed, further in _DIJOB_SHAPES:
            if needed in names and (not further or further in names):
                return shape
    # Operators since v1.0 also install a definition without fields.
    is_minimal = any(version["name"] == "v2alpha1" for version in served) and not any(fields)
    return "v1.1" if is_minimal else "v0"


def _queues(api: KubeApi, served: Mapping[str, list[str]], namespace: str) -> Iterator[Capability]:
    for name, group, kind, space in (
        ("queues of Kueue", "kueue.x-k8s.io", "LocalQueue", namespace),
        ("queues of Volcano", "scheduling.volcano.sh", "Queue", None),
    ):
        for version in served.get(group, [])[:1]:
            try:
                queues = api.listed(api.collection(f"{group}/{version}", kind, space), metadata_only=True)
            except NotFound:
                continue
            except ToolFailed as error:
                yield Capability(name=name, status="warning", detail=error.what, next="ask the cluster's administrator")
                continue
            names = ", ".join(item["metadata"]["name"] for item in queues)
            where = f" in namespace {namespace}" if space else ""
            if names:
                yield Capability(name=name, status="ok", detail=f"{names}{where}: workload.queue")
            else:
                yield Capability(name=name, status="missing", detail=f"none{where}", next=f"create a {kind}")
