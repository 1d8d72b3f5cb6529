"""One Argo Workflow runs a sweep: a task for each trial creates the trial's objects and waits for its workloads.

Templates contain the common parts of trials; differences are inputs, each the JSON of its place. So a trial costs its
settings and names, whatever the size of its objects. hera builds the Workflow; the extra `argo` installs it.

Source: argoproj/argo-workflows v3.7.3, workflow/executor/resource.go; the states are defined by each project's API.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from symphony_charts.errors import SpecError, ToolMissing
from symphony_charts.integrations.argo.kind import as_json, manifest, parameter
from symphony_charts.kinds.base import TrialObjects, is_conductor
from symphony_charts.kinds.registry import deciding_objects, end_conditions, kind_for

try:
    from hera.workflows import DAG, Parameter, Resource, Task, Workflow, models
except ImportError as error:
    raise ToolMissing("hera is not installed", extra="argo") from error

_MAX_BYTES = 1_000_000
"""Size limit of a Workflow, with room for the status that Argo adds; etcd takes 1.5 MiB."""

_GROUP = "symph.dev/group"
_INSTANCE = "app.kubernetes.io/instance"
_LONGEST = 48

Object: TypeAlias = Mapping[str, object]


def sweep_objects(
    name: str, trials: Sequence[TrialObjects], *, parallel: int | None = None, service_account: str | None = None
) -> list[dict[str, object]]:
    """Return the Workflow of a sweep called `name`, after its RBAC objects if no service account is set.

    At most `parallel` trials run at a time. The Workflow's name ends in a hash of its spec. Raises SpecError if it is
    too large.
    """
    # The Workflow itself deletes what runs on after a trial.
    trials = [replace(trial, objects=[item for item in trial.objects if not is_conductor(item)]) for trial in trials]
    templates: list[DAG | Resource] = []
    tasks: dict[str, Task] = {}
    for number, alike in enumerate(_alike(trials)):
        objects, called = _of_alike(f"trial-{number}", alike)
        templates += objects
        tasks |= called
    sweep = DAG(name="sweep", fail_fast=False, tasks=[tasks[trial.name] for trial in trials], parallelism=parallel)
    base = _short(name)
    workflow = Workflow(
        entrypoint="sweep",
        labels={"symph.dev/sweep": base},
        service_account_name=service_account or f"{base}-argo",
        pod_gc=models.PodGC(strategy="OnPodSuccess"),
        templates=[sweep, *templates],
    ).to_dict()
    text = json.dumps(workflow["spec"], sort_keys=True)
    if len(text) > _MAX_BYTES:
        what = f"the Workflow of {len(trials)} trials has {len(text)} bytes; Argo and Kubernetes allow {_MAX_BYTES}"
        raise SpecError.one(what, next="split the sweep, or use --on kube")
    workflow["metadata"]["name"] = f"{base}-{_digest(text)}"
    rights = () if service_account else _rights(base, trials)
    return [*rights, workflow]


def _alike(trials: Sequence[TrialObjects]) -> list[list[TrialObjects]]:
    """Return the trials grouped by the kinds of their objects, in the order of first appearance."""
    groups: dict[str, list[TrialObjects]] = {}
    for trial in trials:
        shape = repr([(item["apiVersion"], item["kind"]) for item in trial.objects])
        groups.setdefault(shape, []).append(trial)
    return list(groups.values())


def _of_alike(title: str, trials: Sequence[TrialObjects]) -> tuple[list[DAG | Resource], dict[str, Task]]:
    """Return the templates of trials with the same kinds of objects, and a task for each trial."""
    holes: dict[tuple[str, ...], str] = {}
    salt = _digest(repr([trial.objects for trial in trials]))
    common = [
        _common([trial.objects[index] for trial in trials], holes, salt) for index in range(len(trials[0].objects))
    ]
    placeholders = {parameter(name, salt): as_json(name) for name in holes.values()}
    names = ["trial", *holes.values()]
    inputs = [Parameter(name=name) for name in names]
    templates: list[DAG | Resource] = [_trial(title, trials[0].objects, names)]
    for index, item in enumerate(trials[0].objects):
        success, failure = _end(item, trials[0])
        resource = Resource(
            name=_part(title, index, item),
            inputs=inputs,
            action="create",
            manifest=manifest(_object(common[index]), placeholders),
            success_condition=success,
            failure_condition=failure,
        )
        templates.append(resource)
    left = _left(trials[0])
    if left:
        templates.append(Resource(name=f"{title}-end", inputs=inputs[:1], action="delete", flags=left))
    tasks = {}
    for index, trial in enumerate(trials):
        values = {"trial": trial.name, **{name: vector[index] for vector, name in holes.items()}}
        task = Task(name=trial.name, template=title, arguments=values)
        if left:
            given = models.Arguments(parameters=[models.Parameter(name="trial", value=trial.name)])
            task.hooks = {"exit": models.LifecycleHook(template=f"{title}-end", arguments=given)}
        tasks[trial.name] = task
    return templates, tasks


def _common(values: Sequence[object], holes: dict[tuple[str, ...], str], salt: str) -> object:
    """Return the common part of `values` with placeholders for differences; `holes` maps differing values to inputs."""
    first, texts = values[0], tuple(map(_json, values))
    if len(set(texts)) == 1:
        return first
    if isinstance(first, Mapping) and all(isinstance(value, Mapping) and set(value) == set(first) for value in values):
        return {key: _common([_object(value)[key] for value in values], holes, salt) for key in first}
    if isinstance(first, list) and all(isinstance(value, list) and len(value) == len(first) for value in values):
        lists = [value for value in values if isinstance(value, list)]
        return [_common(column, holes, salt) for column in zip(*lists, strict=True)]
    return parameter(holes.setdefault(texts, f"p{len(holes)}"), salt)


def _json(value: object) -> str:
    """Return JSON that survives Argo's substitutions and Go's quoting unchanged."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).replace("{{", "{\\u007b")


def _trial(title: str, objects: Sequence[Object], names: Sequence[str]) -> DAG:
    """Return the template of a trial; its workloads depend on all other objects."""
    passed = {name: as_json(name) for name in names}
    parts = [_part(title, index, item) for index, item in enumerate(objects)]
    first = [part for part, item in zip(parts, objects, strict=True) if end_conditions(item) is None]
    tasks: list[Task | models.DAGTask] = [
        Task(
            name=part,
            template=part,
            arguments=passed,
            dependencies=first if first and end_conditions(item) is not None else None,
        )
        for part, item in zip(parts, objects, strict=True)
    ]
    return DAG(name=title, inputs=[Parameter(name=name) for name in names], tasks=tasks)


def _end(item: Object, trial: TrialObjects) -> tuple[str | None, str | None]:
    """Return the success and failure conditions of a workload; None if the trial does not wait for it."""
    end = end_conditions(item)
    if end is None or item not in deciding_objects(trial.objects):
        return None, None
    return end


def _left(trial: TrialObjects) -> list[str]:
    """Return kubectl's flags that select what still runs after a trial: services, and groups that decide no end."""
    deciding = deciding_objects(trial.objects)
    kinds: dict[str, None] = {}
    groups: list[str] = []
    for item in trial.objects:
        kind = kind_for(item)
        if kind and not kind.holds_groups and (not kind.is_finite or item not in deciding):
            kinds[str(item["kind"]).lower()] = None
            groups.append(str(_labels(item).get(_GROUP)))
    if not kinds:
        return []
    return [",".join(kinds), f"--selector={_INSTANCE}={as_json('trial')},{_GROUP} in ({','.join(groups)})"]


def _group_of(item: Object) -> str:
    return str(item["apiVersion"]).rpartition("/")[0]


def _rights(base: str, trials: Sequence[TrialObjects]) -> Iterator[dict[str, object]]:
    """Yield a service account that may create the objects of trials, and delete leftovers."""
    metadata = {"name": f"{base}-argo", "labels": {"symph.dev/sweep": base}}
    group = "rbac.authorization.k8s.io"
    kinds = sorted({(_group_of(item), _plural(str(item["kind"]))) for trial in trials for item in trial.objects})
    verbs = ("create", "delete", "get", "list", "watch")
    rules: list[dict[str, object]] = [
        {"apiGroups": ["argoproj.io"], "resources": ["workflowtaskresults"], "verbs": ["create", "patch"]},
    ]
    for api, plural in kinds:
        rules.append({"apiGroups": [api], "resources": [plural], "verbs": [*verbs]})
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    yield {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": rules}
    yield {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": "Role", "name": metadata["name"]},
        "subjects": [{"kind": "ServiceAccount", "name": metadata["name"]}],
    }


def _plural(kind: str) -> str:
    lower = kind.lower()
    if lower.endswith("y"):
        return f"{lower[:-1]}ies"
    return f"{lower}es" if lower.endswith("s") else f"{lower}s"


def _part(title: str, index: int, item: Object) -> str:
    return f"{title}-{index}-{str(item['kind']).lower()}"


def _labels(item: Object) -> Object:
    return _object(_object(item["metadata"]).get("labels") or {})


def _object(value: object) -> Object:
    if not isinstance(value, Mapping):
        raise TypeError(f"not an object: {value!r:.80}")
    return value


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _short(name: str) -> str:
    """Return the name, cut so that names derived from it fit a label."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 9].rstrip('-')}-{_digest(name)}"
