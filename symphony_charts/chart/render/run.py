"""One run of a release: its hash, its gangs and what its workloads are made from; the twin of ``symph.run``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from symphony_charts.chart.render import names
from symphony_charts.chart.render.model import Model
from symphony_charts.chart.render.pods import pod_template
from symphony_charts.chart.render.values import Values, integer, scalar, texts
from symphony_charts.formats import go_json
from symphony_charts.formats.data import sub
from symphony_charts.formats.overlay import merge_overlay
from symphony_charts.kinds import gang
from symphony_charts.kinds import job as jobs
from symphony_charts.kinds.gang import Gang
from symphony_charts.kinds.group import Group, Member, Unit
from symphony_charts.spec.variable_names import REPLICAS, RUN, service_variable

__all__ = ["Run", "has_pod_groups", "run_of", "unit_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a release: eight hex digits, the pod template and Job fields of each group, and the gangs."""

    hash: str
    templates: dict[str, Values]
    fields: dict[str, dict[str, object]]
    gangs: tuple[Gang, ...]

    def workload(self, group: Group) -> str:
        """The name of the Job or StatefulSet of `group`."""
        return group.workload(self.hash)


def run_of(model: Model) -> Run:
    """The run that `model` describes.

    Its hash covers what Kubernetes does not let change in the objects of the kind, of all groups that do not outlive a
    run, its own settings, and `runKey`; of gangs how many pods they need.
    """
    templates = {name: pod_template(model, group) for name, group in model.groups.items()}
    fields = {name: _job_fields(group, templates[name]) for name, group in model.groups.items() if group.in_unit}
    covered, moving = {}, _moving(model)
    for name, group in model.groups.items():
        if group.keep:
            continue
        covered[name] = {"isFinite": group.is_finite, "template": _fixed(group, templates[name], moving)}
        if group.in_unit:
            fixed = model.row.fixed
            covered[name]["job"] = {k: v for k, v in fields[name].items() if fixed is None or k in fixed}
    key = model.values.get("runKey")
    whole: Values = {"groups": covered, "runKey": "" if key is None else scalar(key)}
    settings = sub(model.values, "workload")
    if model.row.is_one_object:
        whole["done"] = _done_groups(model)
        # Pods of one kind must not be taken for those of the next while they go.
        whole["kind"] = scalar(settings["kind"])
    if model.row.settings:
        whole["settings"] = {key: settings[key] for key in model.row.settings if key in settings}
    members = _gang_members(model)
    if members:
        whole["gang"] = {
            "settings": {key: settings[key] for key in gang.SETTINGS if key in settings},
            "minimum": {group.name: least for group, least in members},
        }
    digest = names.sha256(go_json.dumps(whole))[:8]
    made = gang.gangs(scalar(settings.get("gangScope") or "experiment"), _gang_name(model), digest, members)
    return Run(
        hash=digest,
        templates={name: _of_run(model.groups[name], templates[name], digest, settings, made) for name in templates},
        fields=fields,
        gangs=tuple(made),
    )


def unit_of(model: Model, run: Run) -> Unit:
    """What the kind of workload makes its objects from."""
    done = _done_groups(model)
    members = {name: _member(model, run, name, done) for name, group in model.groups.items() if group.in_unit}
    return Unit(
        name=f"{model.unit}-{run.hash}",
        labels={**model.labels, "symph.dev/run": run.hash, **_queue_labels(model)},
        members=tuple(members.values()),
        done=tuple(members[name] for name in done),
        settings=sub(model.values, "workload"),
    )


def _queue_labels(model: Model) -> dict[str, str]:
    """The labels by which Kueue queues an object."""
    workload = sub(model.values, "workload")
    if workload.get("gang") != "kueue":
        return {}
    labels = {"queue-name": workload.get("queue"), "priority-class": workload.get("queuePriority")}
    return {f"kueue.x-k8s.io/{key}": scalar(value) for key, value in labels.items() if value}


def _member(model: Model, run: Run, name: str, done: list[str]) -> Member:
    group = model.groups[name]
    labels = {"symph.dev/experiment": model.labels["symph.dev/experiment"], "symph.dev/group": name}
    return Member(
        group=group,
        name=run.workload(group),
        labels={**model.identity, **labels, "symph.dev/run": run.hash},
        annotations={"symph.dev/done-when": "true"} if name in done else {},
        template=run.templates[name],
        fields=run.fields[name],
    )


def _done_groups(model: Model) -> list[str]:
    named = {entry.partition("/")[0] for entry in texts(model.values.get("doneWhen"))}
    return [name for name, group in model.groups.items() if group.is_finite and name in named]


def _job_fields(group: Group, template: Values) -> dict[str, object]:
    said = group.values.get("activeDeadlineSeconds")
    deadline = None if said is None else integer(said, None, f"groups.{group.name}.activeDeadlineSeconds")
    return jobs.job_fields(group, template, deadline=deadline)


def _gang_name(model: Model) -> str:
    return names.join(model.fullname, "gang", 43)


def has_pod_groups(model: Model) -> bool:
    """Whether the chart makes PodGroups, by which the pods of a run start together."""
    return sub(model.values, "workload").get("gang") in gang.GANGS_OF_PODS and model.row.has_pod_groups


def _gang_members(model: Model) -> list[tuple[Group, int]]:
    """The groups of a new run with how many of their pods must start together; none where nothing needs a PodGroup."""
    return [(group, group.least) for group in model.groups.values() if not group.keep] if has_pod_groups(model) else []


def _of_run(group: Group, template: Values, run: str, settings: Values, made: list[Gang]) -> Values:
    """A pod template with the label of its run, and the place in its gang."""
    if group.keep:
        return template
    if group.selector_patterns:
        return _without(template, {RUN: run})
    template = merge_overlay(template, {"metadata": {"labels": {"symph.dev/run": run}}})
    for name in _gangs_of(group, made):
        scheduler = sub(template, "spec").get("schedulerName")
        template = merge_overlay(template, gang.pod_fields(scalar(settings.get("gang")), name, scheduler))
    return template


def _moving(model: Model) -> list[str]:
    """The variables that follow from the replicas of groups that are scaled live."""
    live = {name for name, group in model.groups.items() if group.is_scaled_live}
    return [service_variable(service.name, "HOSTS") for service in model.services.values() if service.group in live]


def _fixed(group: Group, template: Values, moving: list[str]) -> Values:
    """What cannot change of a pod template in a run: all but `moving` and the group's own replicas if scaled live."""
    dropped = [*moving, *([REPLICAS] if group.is_scaled_live else [])]
    if not dropped and not group.selector_patterns:
        return template
    fixed = _without(template, dict.fromkeys(dropped, None))
    return fixed if group.selector_patterns else {**fixed, "metadata": template["metadata"]}


def _without(template: Values, env: Mapping[str, str | None]) -> Values:
    """A pod template without metadata, and with these variables of its containers left out (None) or filled in."""
    spec = dict(sub(template, "spec"))
    for key in ("initContainers", "containers"):
        containers = spec.get(key)
        if isinstance(containers, list):
            spec[key] = [{**container, "env": list(_filled(container, env))} for container in containers]
    return {"spec": spec}


def _filled(container: Values, env: Mapping[str, str | None]) -> Iterator[Values]:
    entries = container.get("env")
    for entry in entries if isinstance(entries, list) else []:
        name = entry["name"]
        if name not in env:
            yield entry
        elif env[name] is not None:
            yield {**entry, "value": env[name]} if entry.get("value") == "" else entry


def _gangs_of(group: Group, made: list[Gang]) -> Iterator[str]:
    return (one.name for one in made if group.name in one.groups)
