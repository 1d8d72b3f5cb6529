"""Kind `argo`: an Argo Workflow creates the Jobs of all groups that end, and waits for them; the twin of ``argo.yaml``.

A WorkflowTemplate holds the experiment. Without a schedule a Workflow runs it once per run, else a CronWorkflow does.
Addresses do not depend on the kind, so two workflows of one release never run at a time (a mutex), and each removes the
Jobs of the one before.

Source: argoproj/argo-workflows v3.7.3, pkg/apis/workflow/v1alpha1/workflow_types.go, workflow/executor/resource.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from symphony_charts.errors import SpecError
from symphony_charts.formats.go_json import dumps
from symphony_charts.kinds.argo.manifest import as_text, manifest, parameter
from symphony_charts.kinds.group import Member, Unit
from symphony_charts.kinds.job import FAILED, SUCCEEDED
from symphony_charts.kinds.table import rows
from symphony_charts.spec.variable_names import is_shell_name

__all__ = ["objects"]

_API = "argoproj.io/v1alpha1"
_OF_A_RELEASE = ("app.kubernetes.io/instance", "app.kubernetes.io/name")
_OF_A_RUN = (*_OF_A_RELEASE, "symph.dev/experiment", "symph.dev/run")


def objects(unit: Unit) -> Iterator[dict[str, object]]:
    """The WorkflowTemplate, what runs it, and the rights to do so where no service account is named.

    Raises SpecError for a parameter that no process declares, or that two declare differently.
    """
    if not unit.members:
        return
    own = _own(unit)
    name = _name(unit)
    spec = _spec(unit)
    if not own.get("serviceAccount"):
        yield from _rights(unit)
    yield {"apiVersion": _API, "kind": "WorkflowTemplate", "metadata": _metadata(unit, name), "spec": spec}
    schedules = _texts(own.get("schedules"))
    if schedules:
        cron: dict[str, object] = {
            "schedules": schedules,
            "concurrencyPolicy": own.get("concurrency") or "Forbid",
            "workflowSpec": {"workflowTemplateRef": {"name": name}},
        }
        if own.get("timezone"):
            cron["timezone"] = own["timezone"]
        yield {"apiVersion": _API, "kind": "CronWorkflow", "metadata": _metadata(unit, name), "spec": cron}
    elif _text(own.get("submit")) != "false":
        # helm would create it before the template that it could refer to.
        yield {"apiVersion": _API, "kind": "Workflow", "metadata": _metadata(unit, unit.name), "spec": spec}


def _spec(unit: Unit) -> dict[str, object]:
    own, name = _own(unit), _name(unit)
    values = _parameters(unit)
    inputs = [{"name": key, "value": value} for key, value in values.items()]
    needs = own.get("needs")
    needs = {key: _texts(after) for key, after in sorted(needs.items())} if isinstance(needs, Mapping) else {}
    main: list[dict[str, object]] = []
    for need, after in needs.items():
        task: dict[str, object] = {"name": need, "templateRef": {"name": need, "template": "experiment"}}
        main.append({**task, **({"dependencies": after} if after else {})})
    itself: dict[str, object] = {"name": name, "template": "experiment"}
    main.append({**itself, **({"dependencies": list(needs)} if needs else {}), **_arguments(values, "workflow")})
    experiment: dict[str, object] = {
        "name": "experiment",
        "synchronization": {"mutexes": [{"name": name}]},
        "dag": {"tasks": list(_tasks(unit, values))},
    }
    retries = unit.whole("argo", "retries")
    if retries:
        experiment["retryStrategy"] = {"limit": str(retries), "retryPolicy": "Always"}
    spec: dict[str, object] = {
        "entrypoint": "main",
        "serviceAccountName": own.get("serviceAccount") or f"{name}-argo",
        "podGC": {"strategy": "OnPodSuccess"},
        "workflowMetadata": {"labels": {key: unit.labels[key] for key in _OF_A_RUN}},
        "templates": [
            {"name": "main", "dag": {"tasks": main}},
            {**experiment, **({"inputs": {"parameters": inputs}} if inputs else {})},
            _deletion(unit, "clear", ""),
            *([_deletion(unit, "rest", _rest(unit))] if _rest(unit) else []),
            *(_creation(unit, member, values) for member in unit.members),
        ],
    }
    return {**spec, **({"arguments": {"parameters": inputs}} if inputs else {})}


def _tasks(unit: Unit, values: Mapping[str, str]) -> Iterator[dict[str, object]]:
    yield {"name": "clear", "template": "clear"}
    for member in unit.members:
        task = {"name": f"run-{member.group.name}", "template": f"run-{member.group.name}", "dependencies": ["clear"]}
        yield {**task, **_arguments(values, "inputs")}
    if _rest(unit):
        done = [f"run-{member.group.name}" for member in unit.done]
        yield {"name": "rest", "template": "rest", "dependencies": done}


def _arguments(values: Mapping[str, str], source: str) -> dict[str, object]:
    passed = [{"name": key, "value": f"{{{{{source}.parameters.{key}}}}}"} for key in values]
    return {"arguments": {"parameters": passed}} if passed else {}


def _creation(unit: Unit, member: Member, values: Mapping[str, str]) -> dict[str, object]:
    """The template that creates the Job of a member; it waits for it unless others end the experiment."""
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": member.name, **member.metadata, "labels": {**unit.labels, **member.labels}},
        "spec": {"template": _with_stand_ins(member, values, _run(unit)), **member.fields},
    }
    text = manifest(job, {parameter(key, _run(unit)): as_text(key) for key in values})
    resource: dict[str, object] = {"action": "create", "manifest": text}
    if not unit.done or member in unit.done:
        resource |= {"successCondition": SUCCEEDED, "failureCondition": FAILED}
    inputs = {"inputs": {"parameters": [{"name": key} for key in values]}} if values else {}
    return {"name": f"run-{member.group.name}", **inputs, "resource": resource}


def _deletion(unit: Unit, name: str, selector: str) -> dict[str, object]:
    """The template that deletes Jobs of the release, and waits until their pods are gone."""
    selected = ",".join([*(f"{key}={unit.labels[key]}" for key in _OF_A_RELEASE), *([selector] if selector else [])])
    flags = ["job", f"--selector={selected}", "--cascade=foreground"]
    return {"name": name, "resource": {"action": "delete", "flags": flags}}


def _rest(unit: Unit) -> str:
    """The groups that run on once the experiment is done, as a selector."""
    rest = [member.group.name for member in unit.members if unit.done and member not in unit.done]
    return f"symph.dev/group in ({','.join(rest)})" if rest else ""


def _rights(unit: Unit) -> Iterator[dict[str, object]]:
    """A service account that may create, watch and delete Jobs, and tell the controller how it went."""
    name = f"{_name(unit)}-argo"
    metadata = _metadata(unit, name)
    group = "rbac.authorization.k8s.io"
    rules = [
        {"apiGroups": ["argoproj.io"], "resources": ["workflowtaskresults"], "verbs": ["create", "patch"]},
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "delete", "get", "list", "watch"]},
    ]
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    yield {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": rules}
    yield {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name}],
    }


# --- parameters -------------------------------------------------------------------------------------------------------


def _parameters(unit: Unit) -> dict[str, str]:
    """The parameters by name with the value that processes declare."""
    found: dict[str, str] = {}
    for key in sorted(_texts(_own(unit).get("parameters"))):
        declared = {entry["value"] for member in unit.members for entry in _entries(member.template, key)}
        if len(declared) == 1 and is_shell_name(key) and "{{" not in str(declared):
            found[key] = str(declared.pop())
            continue
        fault = "unknown" if not declared else "torn"
        if not is_shell_name(key) or "{{" in str(declared):
            fault = "parameter"
        raise SpecError([rows()["argo"].faults[fault].problem(name=key)])
    return found


def _with_stand_ins(member: Member, values: Mapping[str, str], run: str) -> Mapping[str, object]:
    """The pod template with a stand-in for each value that is a parameter."""
    if not values:
        return member.template
    spec = member.template["spec"]
    assert isinstance(spec, Mapping)  # noqa: S101 - a pod template of ours
    made: dict[str, object] = {}
    for key in ("initContainers", "containers"):
        if key in spec:
            made[key] = [_with_stand_in(container, values, run) for container in spec[key]]
    return {**member.template, "spec": {**spec, **made}}


def _with_stand_in(container: Mapping[str, object], values: Mapping[str, str], run: str) -> Mapping[str, object]:
    env = container.get("env")
    if not isinstance(env, list):
        return container
    passed = [
        {**entry, "value": parameter(entry["name"], run)} if "value" in entry and entry["name"] in values else entry
        for entry in env
    ]
    return {**container, "env": passed}


def _entries(template: Mapping[str, object], name: str) -> Iterator[Mapping[str, object]]:
    """The variables called `name` with a value of their own."""
    spec = template["spec"]
    assert isinstance(spec, Mapping)  # noqa: S101 - a pod template of ours
    for container in (*spec.get("initContainers", ()), *spec["containers"]):
        yield from (entry for entry in container.get("env", ()) if entry["name"] == name and "value" in entry)


# --- what the unit says -----------------------------------------------------------------------------------------------


def _own(unit: Unit) -> Mapping[str, object]:
    value = unit.settings.get("argo")
    return value if isinstance(value, Mapping) else {}


def _run(unit: Unit) -> str:
    return unit.labels["symph.dev/run"]


def _name(unit: Unit) -> str:
    """The name of the release's WorkflowTemplate, whatever its run."""
    return unit.name.removesuffix(f"-{_run(unit)}")


def _metadata(unit: Unit, name: str) -> dict[str, object]:
    return {"name": name, "labels": unit.labels}


def _text(value: object) -> str:
    return value if isinstance(value, str) else dumps(value)


def _texts(value: object) -> list[str]:
    if isinstance(value, list):
        return [_text(item) for item in value]
    return [] if value is None else [_text(value)]
