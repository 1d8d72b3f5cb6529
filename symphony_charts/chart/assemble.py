"""The objects of a release from its values, without helm: the twin of the templates, object by object.

For every experiment and every override of its values the real `helm template` yields the same objects; the tests hold
that for helm 3.19 and 4.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from symphony_charts.chart import gojson, names
from symphony_charts.chart.exposure import exposure_objects, service_objects
from symphony_charts.chart.names import Release
from symphony_charts.chart.pods import pod_template
from symphony_charts.chart.policies import network_policies
from symphony_charts.chart.release_model import Model, build_model
from symphony_charts.chart.secret_objects import secret_objects
from symphony_charts.chart.test_pod import dial_pod
from symphony_charts.chart.values import Values, integer, overlay, scalar, sub, texts
from symphony_charts.workloads import jobs, jobset
from symphony_charts.workloads.group import Group

__all__ = ["Release", "Run", "assemble", "run_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a release: eight hex digits, and the pod template and Job fields of each group."""

    hash: str
    templates: dict[str, Values]
    fields: dict[str, dict[str, object]]

    def workload(self, group: Group) -> str:
        """The name of the Job or StatefulSet of `group`."""
        return group.workload(self.hash)


def assemble(values: Mapping[str, object], release: Release) -> list[dict[str, object]]:
    """All objects that the chart gives for merged `values`, the test pod included.

    Raises SpecError where the templates fail.
    """
    model = build_model(values, release)
    run = run_of(model)
    return [
        *_config_maps(model),
        *secret_objects(model),
        *service_objects(model, run.hash),
        *exposure_objects(model),
        *network_policies(model),
        *_workloads(model, run),
        *dial_pod(model),
    ]


def run_of(model: Model) -> Run:
    """The run that `model` describes.

    Its hash covers what Kubernetes does not let change in a Job, of all groups that do not outlive a run, and `runKey`;
    of a JobSet all fields of its Jobs and when it is done.
    """
    templates = {name: pod_template(model, group) for name, group in model.groups.items()}
    fields = {name: _job_fields(group) for name, group in model.groups.items() if group.is_finite}
    is_set = any(group.set for group in model.groups.values())
    covered = {}
    for name, group in model.groups.items():
        if group.keep:
            continue
        covered[name] = {"isFinite": group.is_finite, "template": templates[name]}
        if group.is_finite:
            fixed = {k: v for k, v in fields[name].items() if is_set or k in jobs.IMMUTABLE_JOB_FIELDS}
            covered[name]["job"] = fixed
    key = model.values.get("runKey")
    whole: Values = {"groups": covered, "runKey": "" if key is None else scalar(key)}
    if sub(model.values, "workload").get("kind") == "jobset":
        whole["done"] = _done_groups(model)
    text = gojson.dumps(whole)
    digest = names.sha256(text)[:8]
    labelled = {
        name: template if model.groups[name].keep else overlay(template, _run_label(digest))
        for name, template in templates.items()
    }
    return Run(hash=digest, templates=labelled, fields=fields)


def _run_label(digest: str) -> Values:
    return {"metadata": {"labels": {"symph.dev/run": digest}}}


def _job_fields(group: Group) -> dict[str, object]:
    path = f"groups.{group.name}"
    deadline = group.values.get("activeDeadlineSeconds")
    return jobs.job_fields(
        group,
        retries=integer(group.values.get("backoffLimit"), 0, f"{path}.backoffLimit"),
        deadline=None if deadline is None else integer(deadline, None, f"{path}.activeDeadlineSeconds"),
    )


def _done_groups(model: Model) -> list[str]:
    named = {entry.partition("/")[0] for entry in texts(model.values.get("doneWhen"))}
    return [name for name, group in model.groups.items() if group.is_finite and name in named]


def _job_sets(model: Model, run: Run) -> Iterator[dict[str, object]]:
    members = []
    names_of_sets = {group.set for group in model.groups.values() if group.set}
    done = _done_groups(model)
    for name, group in model.groups.items():
        if not group.set:
            continue
        labels = {**model.identity, "symph.dev/experiment": model.labels["symph.dev/experiment"]}
        metadata: Values = {"labels": {**labels, "symph.dev/group": name, "symph.dev/run": run.hash}}
        if name in done:
            metadata["annotations"] = {"symph.dev/done-when": "true"}
        members.append(jobset.member(group, metadata, run.templates[name], run.fields[name]))
    for base in names_of_sets:
        of_set = {**model.labels, "symph.dev/run": run.hash, **_queue_label(model)}
        metadata = {"name": f"{base}-{run.hash}", "labels": of_set}
        yield jobset.job_set(metadata, members, [model.groups[name].member for name in done])


def _workloads(model: Model, run: Run) -> Iterator[dict[str, object]]:
    yield from _job_sets(model, run)
    for name, group in model.groups.items():
        if group.set:
            continue
        metadata: Values = {"name": run.workload(group), "labels": _labels(model, group, run.hash)}
        if not group.is_finite:
            selector = {**model.identity, "symph.dev/group": name}
            yield jobs.stateful_set(group, metadata, run.templates[name], selector)
            continue
        if name in [entry.partition("/")[0] for entry in texts(model.values.get("doneWhen"))]:
            metadata["annotations"] = {"symph.dev/done-when": "true"}
        yield jobs.job(metadata, run.templates[name], run.fields[name])


def _labels(model: Model, group: Group, run: str) -> dict[str, str]:
    labels = {**model.labels, "symph.dev/group": group.name}
    if not group.keep:
        labels["symph.dev/run"] = run
    return {**labels, **_queue_label(model)} if group.is_finite else labels


def _queue_label(model: Model) -> dict[str, str]:
    workload = sub(model.values, "workload")
    if workload.get("gang") == "kueue" and workload.get("queue"):
        return {"kueue.x-k8s.io/queue-name": scalar(workload["queue"])}
    return {}


def _config_maps(model: Model) -> Iterator[dict[str, object]]:
    if model.addresses:
        yield _config_map(model, model.addresses_name, {"data": model.addresses})
    if model.configs is not None:
        content = {"data": model.configs.data, "binaryData": model.configs.binary}
        yield _config_map(model, model.configs.name, {key: value for key, value in content.items() if value})


def _config_map(model: Model, name: str, content: Mapping[str, object]) -> dict[str, object]:
    metadata = {"name": name, "labels": model.labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **content, "immutable": True}
