"""The pods that Kubernetes' controllers would make of rendered objects, derived here independently on purpose.

It uses none of the package's own code, so that the oracle finds differences between the package and the controllers.
Sources: kubernetes, pkg/controller/{job,statefulset,replicaset}; kubernetes-sigs/jobset; volcano-sh/volcano.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.e2e.oracle.nodes import MARK
from tests.e2e.rig.api import Object

GROUP = "oracle.example/group"
"""The label by which the oracle finds the pods of a group again."""


@dataclass(frozen=True)
class PodOf:
    """One pod, before it is put into a case: its group, metadata and spec."""

    group: str
    metadata: Mapping[str, Any]
    spec: Mapping[str, Any]


def pods_of_objects(objects: Iterable[Mapping[str, Any]]) -> list[PodOf]:
    return [pod for item in objects for pod in _pods(item)]


def _pods(item: Mapping[str, Any]) -> Iterator[PodOf]:
    kind, name = item["kind"], item.get("metadata", {}).get("name", "")
    spec = item.get("spec") or {}
    if kind == "Job" and item["apiVersion"].startswith("batch.volcano.sh"):
        for task in spec["tasks"]:
            yield from _copies(task["template"], task.get("replicas", 1), {"volcano.sh/job-name": name}, "")
    elif kind == "Job":
        yield from _of_job(spec, name)
    elif kind == "StatefulSet":
        own = {"controller-revision-hash": f"{name}-{_hash(name)}"}
        yield from _copies(spec["template"], spec.get("replicas", 1), own, "apps.kubernetes.io/pod-index")
    elif kind == "Deployment":
        yield from _copies(spec["template"], spec.get("replicas", 1), {"pod-template-hash": _hash(name)}, "")
    elif kind == "JobSet":
        for job in spec["replicatedJobs"]:
            for number in range(job.get("replicas", 1)):
                yield from _of_job(job["template"]["spec"], f"{name}-{job['name']}-{number}")
    elif kind == "AppWrapper":
        for part in spec.get("components", []):
            yield from _pods(part["template"])
        for part in spec.get("resources", {}).get("GenericItems", []):
            yield from _pods(part["generictemplate"])
    elif kind in ("DaemonSet", "CronJob", "ReplicaSet", "DIJob", "WorkflowTemplate", "Workflow"):
        raise ValueError(f"the oracle does not know which pods a {kind} makes")


def _of_job(spec: Mapping[str, Any], name: str) -> Iterator[PodOf]:
    parallelism = spec.get("parallelism", 1)
    count = min(parallelism, spec["completions"]) if "completions" in spec else parallelism
    own = {"job-name": name, "controller-uid": _hash(name)}
    own |= {f"batch.kubernetes.io/{key}": value for key, value in own.items()}
    is_indexed = spec.get("completionMode") == "Indexed"
    yield from _copies(spec["template"], count, own, "batch.kubernetes.io/job-completion-index" if is_indexed else "")


def _copies(template: Mapping[str, Any], count: int, own: Mapping[str, str], index: str) -> Iterator[PodOf]:
    """Yield `count` pods of a template, with the labels that their controller adds."""
    metadata = template.get("metadata") or {}
    labels = metadata.get("labels") or {}
    for number in range(count):
        more = {**own, **({index: str(number)} if index else {})}
        yield PodOf(labels["symph.dev/group"], {**metadata, "labels": {**labels, **more}}, template["spec"])


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:10]


def put_into(case: str, pod: PodOf, name: str, *, is_gang: bool) -> Object:
    """Return the object of `pod`, restricted to the nodes of `case`.

    The scheduler of a gang is another program, which is not here: kube-scheduler takes its place.
    """
    spec: Object = copy.deepcopy(dict(pod.spec))
    spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), MARK: case}
    mark = {"key": MARK, "operator": "Equal", "value": case, "effect": "NoSchedule"}
    spec["tolerations"] = [*(spec.get("tolerations") or []), mark]
    if is_gang:
        spec.pop("schedulerName", None)
    metadata = {**pod.metadata, "name": name}
    metadata["labels"] = {**pod.metadata["labels"], MARK: case, GROUP: pod.group}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def is_looked_at(pod: Mapping[str, Any]) -> bool:
    spec = pod["spec"]
    is_ours = spec.get("schedulerName", "default-scheduler") == "default-scheduler"
    return is_ours and not spec.get("schedulingGates") and not spec.get("resourceClaims")
