"""Defaults hold for every pod and container of an experiment unless its own values say otherwise."""

from __future__ import annotations

from symphony_charts.chart.render.values import Values
from symphony_charts.spec.model import Experiment, SecuritySettings

__all__ = ["compile_defaults"]

# Stated where a process asks for nothing: enough for the scheduler to count it, too little to keep others out.
_DEFAULT_REQUESTS = {"cpu": "100m", "memory": "128Mi"}


def compile_defaults(experiment: Experiment) -> Values:
    """The `defaults` of the values: resources, security, pull secrets, and what belongs to every pod."""
    security = experiment.security
    optional: Values = {
        "serviceAccountName": experiment.service_account,
        "priorityClassName": experiment.workload.priority_class,
        "schedulerName": experiment.workload.scheduler_name,
    }
    return {
        **({"image": experiment.image} if experiment.image else {}),
        "imagePullPolicy": "",
        "imagePullSecrets": list(experiment.image_pull_secrets),
        "resources": {"requests": dict(_DEFAULT_REQUESTS)},
        "env": {},
        "nodeSelector": {},
        "tolerations": [],
        "terminationGracePeriodSeconds": 30,
        "automountServiceAccountToken": security.service_account_token,
        "securityContext": container_security(security),
        "podSecurityContext": _pod_security(security),
        **{key: value for key, value in optional.items() if value},
    }


def container_security(security: SecuritySettings, *, device: bool = False) -> Values:
    """The security context of a container; one that mounts a device of its node has to be privileged."""
    context: Values = {}
    if device:
        context["privileged"] = True
    elif security.level != "privileged":
        context = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    if security.level == "restricted":
        context["runAsNonRoot"] = True
    if security.read_only_root:
        context["readOnlyRootFilesystem"] = True
    return context


def _pod_security(security: SecuritySettings) -> Values:
    context: Values = {"seccompProfile": {"type": "RuntimeDefault"}}
    if security.level == "restricted":
        context["runAsNonRoot"] = True
    numbers = {"runAsUser": security.run_as_user, "runAsGroup": security.run_as_group, "fsGroup": security.fs_group}
    return {**context, **{key: value for key, value in numbers.items() if value is not None}}
