"""The values of a chart: settings that people change per release or environment. The rest belongs to the spec."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from symphony_charts.chart.build import conductor, pods
from symphony_charts.chart.build.containers import container_security, env_of, env_value
from symphony_charts.chart.build.draft import Draft, Group
from symphony_charts.chart.build.pods import pod_security
from symphony_charts.chart.build.services import exposure, exposure_values
from symphony_charts.chart.evaluate import short_sha256
from symphony_charts.formats import yaml_write
from symphony_charts.formats.data import merge_overlay, sub
from symphony_charts.spec.environment import entry_point
from symphony_charts.spec.model import Experiment, Process, Step
from symphony_charts.spec.pods import resources_of, retries_of, selector_of
from symphony_charts.spec.sources import Toleration
from symphony_charts.spec.workload import GANGS_OF_PODS

_TEST_IMAGE = "busybox:1.37.0"
_EMPTY_IMAGE = {"registry": "", "repository": "", "tag": "", "digest": ""}
# These maps are left out if they are empty.
_OPTIONAL = ("groups", "services", "workload", "secrets", "serviceAccount", "networkPolicy", "conductor")
# Enough for the scheduler to count a process, but too little to displace others.
_DEFAULT_REQUESTS = {"cpu": "100m", "memory": "128Mi"}
# A registry contains a dot or a port, or is localhost. Source: distribution/reference, normalize.go.
_IMAGE = re.compile(
    r"(?:(?P<registry>[^/]*[.:][^/]*|localhost)/)?(?P<repository>[^:@]+)(?::(?P<tag>[^@]+))?(?:@(?P<digest>.+))?"
)


def image_values(name: str | None, policy: str | None = None) -> dict[str, Any]:
    """Return an image as a map. Explicit empty keys override those of the chart's image."""
    match = _IMAGE.fullmatch(name) if name else None
    parts = {key: match[key] or "" for key in _EMPTY_IMAGE} if match else {}
    return {**parts, "pullPolicy": policy} if policy else parts


def chart_values(draft: Draft) -> dict[str, Any]:
    """Return the values of a draft's chart, without nulls. They contain every path that its trees read."""
    experiment = draft.experiment
    security, account = experiment.security, experiment.service_account
    # Labels allow no plus sign.
    version = (experiment.chart.app_version or "").replace("+", "_")
    values: dict[str, Any] = {
        "image": {**_EMPTY_IMAGE, "pullPolicy": "", **image_values(experiment.image)},
        "imagePullSecrets": [{"name": name} for name in experiment.image_pull_secrets],
        "groups": {name: _group_values(draft, group) for name, group in draft.groups.items()},
        "services": {
            name: {"port": service.port} | (exposure_values(exposure(draft, service)) if service.is_exposed else {})
            for name, service in draft.services.items()
        },
        "workload": pods.queue_values(draft) | draft.kind.values(draft),
        "runKey": experiment.workload.run_key,
        "secrets": _secret_values(experiment),
        "serviceAccount": {"create": False, "name": account, "annotations": {}} if account else {},
        "networkPolicy": {"enabled": True, "egress": False, "egressRules": []} if security.network_policy else {},
        "podSecurityContext": pod_security(security),
        "securityContext": container_security(security),
        "priorityClassName": experiment.workload.priority_class or "",
        "podLabels": {},
        "podAnnotations": {},
        "commonLabels": ({"app.kubernetes.io/version": version} if version else {}) | experiment.labels,
        "commonAnnotations": dict(experiment.annotations),
        "nameOverride": "",
        "fullnameOverride": "",
        "conductor": conductor.values(draft),
        "tests": {"image": image_values(_TEST_IMAGE), "hold": False},
        "extraObjects": [],
        "global": {},
    }
    return with_digest({key: value for key, value in values.items() if value or key not in _OPTIONAL})


def with_digest(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return `values` with the `specDigest` that identifies them.

    The templates refuse another digest, so `helm upgrade --reuse-values` cannot run an old experiment.
    """
    rest = {key: value for key, value in values.items() if key != "specDigest"}
    return {**rest, "specDigest": short_sha256(yaml_write.dumps(rest))}


def _secret_values(experiment: Experiment) -> dict[str, Any]:
    if not experiment.secrets:
        return {}
    source = experiment.secret_source
    if source.source == "sealed":
        return {"name": "", "encryptedData": {}, "sealedFor": ""}
    if source.source == "external":
        kind = "ClusterSecretStore" if source.is_cluster_store else "SecretStore"
        return {"name": "", "store": {"kind": kind, "name": source.store or ""}, "refreshInterval": source.refresh}
    return {"name": ""}


def _group_values(draft: Draft, group: Group) -> dict[str, Any]:
    settings = group.pod.settings
    values: dict[str, Any] = {"replicas": settings.replicas}
    is_gang = draft.kind.reads_minimum() or draft.experiment.workload.gang in GANGS_OF_PODS
    if settings.min_replicas is not None and is_gang:
        values["minReplicas"] = settings.min_replicas
    if group.pod.is_finite and draft.kind.has_group_retries:
        values["retries"] = retries_of(draft.experiment, group.pod)
    if group.steps:
        values["initContainers"] = {name: _program_values(draft, step) for name, step in group.steps.items()}
    spec = sub(settings.pod_overlay, "spec")
    return {
        **values,
        "containers": {name: _program_values(draft, process) for name, process in group.pod.processes.items()},
        "nodeSelector": selector_of(settings),
        "tolerations": spec.get("tolerations", [_toleration(toleration) for toleration in settings.tolerations]),
        "affinity": spec.get("affinity", {}),
        "topologySpreadConstraints": spec.get("topologySpreadConstraints", []),
        "priorityClassName": settings.priority_class or "",
    }


def _program_values(draft: Draft, program: Process | Step) -> dict[str, Any]:
    command, args = entry_point(program)
    env = {name: env_value(value) for name, value in program.env.items() if name not in draft.kind.variables(program)}
    policy = program.image_pull_policy if isinstance(program, Process) else None
    requests, limits = resources_of(program) if isinstance(program, Process) else (program.requests, program.limits)
    limits = dict(limits)
    if isinstance(program, Process) and program.gpus:
        limits.setdefault("nvidia.com/gpu", str(program.gpus))
    overlay: Mapping[str, Any] = program.container_overlay
    over = sub(overlay, "resources")
    asked = merge_overlay(
        {key: dict(value) for key, value in (("requests", requests), ("limits", limits)) if value}, over
    )
    return {
        "image": image_values(overlay.get("image") or program.image, policy),
        "command": list(overlay.get("command", command) or []),
        "args": list(overlay.get("args", args) or []),
        "env": env | env_of(overlay),
        "resources": _with_defaults(asked)
        | {key: item for key, item in over.items() if key not in ("requests", "limits")},
    }


def _toleration(toleration: Toleration) -> dict[str, Any]:
    fields = {
        "key": toleration.key,
        "operator": toleration.operator,
        "value": toleration.value,
        "effect": toleration.effect,
        "tolerationSeconds": toleration.seconds,
    }
    return {key: value for key, value in fields.items() if value is not None}


def _with_defaults(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return requests and limits of a container. Limits of memory and devices default to the requests."""
    requests, limits = dict(asked.get("requests", {})), dict(asked.get("limits", {}))
    own = {key: value for key, value in requests.items() if key == "memory" or "/" in key} | limits
    # Kubernetes defaults requests to the limits.
    usual = {key: value for key, value in _DEFAULT_REQUESTS.items() if key not in own}
    return {key: value for key, value in (("requests", usual | requests), ("limits", own)) if value}
