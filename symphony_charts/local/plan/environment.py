"""The environment of one process on one machine, in the order and with the expansion of a pod."""

from __future__ import annotations

from collections.abc import Mapping

from symphony_charts.environment.expansion import expand
from symphony_charts.errors import Problem, SpecError
from symphony_charts.local.plan.records import Machine
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import ProcessRef
from symphony_charts.spec.sources import EnvSource, EnvValue

__all__ = ["caller_environment", "merge_environment", "pod_fields"]

# Of the person's own environment only these pass unasked; a pod has them from its image.
_FROM_CALLER = ("PATH", "HOME", "LANG")


def caller_environment(experiment: Experiment, machine: Machine, pod: str, tty: bool) -> dict[str, str]:
    """What a pod would have from its image and kubelet, and the variables of `local.pass_env`."""
    names = [*_FROM_CALLER, *(["TERM"] if tty else []), *experiment.local.pass_env]
    found = {name: machine.caller_env[name] for name in names if name in machine.caller_env}
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", **found, "HOSTNAME": pod}


def merge_environment(
    base: Mapping[str, str], declared: Mapping[str, EnvValue], fields: Mapping[str, str], overrides: Mapping[str, str]
) -> dict[str, str]:
    """`declared` over `base`, `overrides` over both, with ``$(VAR)`` expanded in the order of the pod.

    Values without ``$(`` come first, then the others, each by name, and a value sees only what is before it. `fields`
    answers pod fields (``status.podIP``). Raises SpecError for a value that only a cluster knows.
    """
    values = {**base, **{name: _resolve(name, value, fields) for name, value in declared.items()}, **overrides}
    ordered = sorted(sorted(name for name in values if values[name] is not None), key=lambda n: "$(" in str(values[n]))
    result: dict[str, str] = {}
    for name in ordered:
        result[name] = expand(values[name] or "", result)
    return result


def pod_fields(experiment: Experiment, ref: ProcessRef, pod: str, address: str, machine: Machine) -> dict[str, str]:
    """What the downward API answers for this pod."""
    return {
        "metadata.name": pod,
        "metadata.namespace": experiment.namespace or "default",
        "metadata.labels['symph.dev/run']": machine.run_id,
        "metadata.labels['symph.dev/experiment']": experiment.name,
        "metadata.labels['symph.dev/group']": ref.pod,
        "spec.nodeName": machine.hostname,
        "spec.serviceAccountName": experiment.service_account or "default",
        "status.hostIP": "127.0.0.1",
        "status.podIP": address,
        "status.podIPs": address,
    }


def _resolve(name: str, value: EnvValue, fields: Mapping[str, str]) -> str | None:
    if not isinstance(value, EnvSource):
        return value
    if value.field is not None and value.field in fields:
        return fields[value.field]
    if value.optional:
        return None
    what = f"the value of {name} comes from the cluster, which is not here"
    raise SpecError([Problem(what=what, path=f"env.{name}", next=f"set `local: {{env: {{{name}: ...}}}}`")])
