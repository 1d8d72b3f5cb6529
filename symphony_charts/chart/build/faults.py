"""Faults of an experiment that no chart can run, and the checks that fail an unworkable release."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from symphony_charts.chart.build.draft import Draft
from symphony_charts.chart.build.registry import KINDS
from symphony_charts.chart.helpers import NAME, NO_NAME
from symphony_charts.chart.tree import Helper, function_of, quoted
from symphony_charts.errors import Problem, SpecError
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.sources import key_of, topology_of
from symphony_charts.spec.workload import Workload

_OTHER = "the values are those of another experiment: use --reset-then-reuse-values instead of --reuse-values"
_OTHER_TARGET = "secrets.sealedFor: the values were sealed for %s, and this is %s"
_SEAL = "symph secrets seal SPEC -n NAMESPACE --cert cluster > sealed.yaml, then -f sealed.yaml"


def check_helper(draft: Draft, digest: str, secret_name: Helper | None) -> Helper:
    """Return the helper that fails an unworkable release; `digest` is the `specDigest` of the chart's values."""
    go = [
        f'{{{{- if ne .Values.specDigest "{digest}" }}}}',
        f'{{{{- fail "{_OTHER}" }}}}',
        f'{{{{- else if not (regexMatch "{NAME}" (include "CHART.fullname" .)) }}}}',
        f'{{{{- fail (printf "%q {NO_NAME}" (include "CHART.fullname" .)) }}}}',
        "{{- end }}",
    ]
    source, scope = draft.experiment.secret_source.source, draft.experiment.secret_source.scope
    keys = sorted(key_of(file) for file in draft.experiment.secrets) if source == "sealed" else []
    if keys:
        go += _sealed_go(keys, scope)

    def check(root: Mapping[str, Any]) -> str:
        if root["Values"].get("specDigest") != digest:
            raise SpecError.one(_OTHER, "specDigest")
        if keys and secret_name is not None:
            _check_sealed(root, keys, scope, function_of(secret_name)(root))
        return ""

    return Helper(name="check", go="\n".join(go), py=check)


def sealed_for(scope: str, namespace: str, name: str) -> str:
    """Return the scope of sealed values: ``namespace/name``, the namespace, or an empty text."""
    return {"strict": f"{namespace}/{name}", "namespace-wide": namespace}.get(scope, "")


def unsealed(secrets: Mapping[str, Any], keys: Iterable[str]) -> list[str]:
    """Return the keys without sealed values; none if the values name a Secret from outside the chart."""
    sealed = secrets.get("encryptedData") or {}
    return [key for key in keys if not sealed.get(key)] if sealed or not secrets.get("name") else []


def _check_sealed(root: Mapping[str, Any], keys: list[str], scope: str, name: str) -> None:
    secrets = root["Values"]["secrets"]
    missing = unsealed(secrets, keys)
    if missing:
        what = f"secrets.encryptedData has no sealed value for {', '.join(missing)}"
        raise SpecError.one(what, "secrets.encryptedData", next=_SEAL)
    target = sealed_for(scope, root["Release"]["Namespace"], name)
    if target and secrets["sealedFor"] not in ("", target):
        what = _OTHER_TARGET % (secrets["sealedFor"], target)
        raise SpecError.one(what, "secrets.sealedFor", next=_SEAL)


def _sealed_go(keys: list[str], scope: str) -> list[str]:
    names = " ".join(quoted(key) for key in keys)
    lines = [
        "{{- if or .Values.secrets.encryptedData (not .Values.secrets.name) }}",
        f"{{{{- range $key := list {names} }}}}",
        "{{- if not (index $.Values.secrets.encryptedData $key) }}",
        f'{{{{- fail (printf "secrets.encryptedData has no sealed value for %s: {_SEAL}" $key) }}}}',
        "{{- end }}",
        "{{- end }}",
        "{{- end }}",
    ]
    target = sealed_for(scope, "%s", "%s")
    if not target:
        return lines
    arguments = '.Release.Namespace (include "CHART.secretName" .)' if scope == "strict" else ".Release.Namespace"
    return [
        *lines,
        f'{{{{- $target := printf "{target}" {arguments} }}}}',
        '{{- if not (has .Values.secrets.sealedFor (list "" $target)) }}',
        f"{{{{- fail (printf {quoted(_OTHER_TARGET)} .Values.secrets.sealedFor $target) }}}}",
        "{{- end }}",
    ]


def experiment_faults(experiment: Experiment) -> Iterator[Problem]:
    """Yield settings that the kind of workload, its gang or an exposure does not support, and unread files."""
    workload = experiment.workload
    if workload.kind not in KINDS:
        kinds = ", ".join(f"`{name}`" for name in KINDS)
        yield Problem(what=f'no chart for workload kind "{workload.kind}"', path="workload.kind", next=f"use {kinds}")
        return
    yield from _gang_faults(workload, experiment.placement.topology)
    if workload.jobset.max_restarts < 0:
        what = f"a JobSet cannot restart {workload.jobset.max_restarts} times"
        yield Problem(what=what, path="workload.jobset.max_restarts", next="0 means never")
    for name, settings in experiment.expose.items():
        if settings.source_ranges and settings.type not in ("LoadBalancer", "ClusterIP"):
            what = f"only a LoadBalancer keeps others out; with {settings.type} everyone can connect"
            step = "expose the service as LoadBalancer, or leave it out"
            yield Problem(what=what, path=f"expose.{name}.source_ranges", next=step)
    for name, file in experiment.configs.items():
        if file.text is None and file.base64 is None:
            what = f'config "{name}" still names the file {file.file}'
            yield Problem(what=what, path=f"configs.{name}", next="read it first")


def container_faults(draft: Draft) -> Iterator[Problem]:
    """Yield processes named like a step (container names in a pod are unique), and invalid overlays."""
    for group in draft.groups.values():
        own = f"{group.pod.path}.processes." if group.pod.path.startswith("groups.") else "processes."
        programs = [(f"{own}{name}", process.container_overlay) for name, process in group.pod.processes.items()]
        programs += [(f"prepare.{name}", step.container_overlay) for name, step in group.steps.items()]
        for path, overlay in programs:
            for key in ("command", "args"):
                words = overlay.get(key, [])
                if not (isinstance(words, list) and all(isinstance(word, str) for word in words)):
                    what = f"{key} is a list of texts"
                    yield Problem(what=what, path=f"{path}.container_overlay.{key}", next="write it as [a, b]")
        for name in sorted(group.steps.keys() & group.pod.processes.keys()):
            what = f'the step "{name}" has the name of a process of "{group.name}", and both are containers of one pod'
            yield Problem(what=what, path=f"prepare.{name}", next="rename the step")


def _gang_faults(workload: Workload, topology: str | None) -> Iterator[Problem]:
    gang, queue = workload.gang, workload.queue
    if gang == "kueue" and not queue:
        yield Problem(what="gang kueue needs the name of a queue", path="workload.queue", next="set `queue`")
    if queue and gang not in ("kueue", "volcano") and not KINDS[workload.kind].reads_queue:
        what = f"gang {gang} does not read a queue"
        yield Problem(what=what, path="workload.queue", next="use gang kueue or volcano, or leave the queue out")
    if workload.queue_priority and gang != "kueue":
        what = "only gang kueue reads a priority class of the queue"
        yield Problem(what=what, path="workload.queue_priority", next="set `gang: kueue`, or leave it out")
    if gang == "native" and not workload.gang_version:
        step = "set `gang_version` to v1alpha2 (Kubernetes 1.36) or v1beta1 (1.37)"
        yield Problem(what="gang native needs a version", path="workload.gang_version", next=step)
    if gang == "coscheduling" and not workload.scheduler_name:
        what = "gang coscheduling needs the name of its scheduler"
        yield Problem(what=what, path="workload.scheduler_name", next="set `scheduler_name`")
    if gang == "native" and topology and topology_of(topology)[0] != "required":
        what = "Kubernetes' own gangs require a topology or ignore it"
        yield Problem(what=what, path="placement.topology", next="say `required:`, or use gang kueue")
