"""Kind `argo`: an Argo Workflow creates the Jobs of all finite groups, and waits for them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from symphony_charts.errors import Problem
from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.field_reader import Fields
from symphony_charts.formats.yaml_write import dumps
from symphony_charts.kinds.base import Kind, Object, TrialObjects, described_job
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import processes_of
from symphony_charts.spec.shorthand import words
from symphony_charts.spec.sources import Record
from symphony_charts.spec.variable_names import is_shell_name
from symphony_charts.spec.workload import Workload

_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_PATH = "workload.argo"
_WORDS = [{"type": "string"}, {"type": "array", "items": {"type": ["string", "number", "boolean"]}}]

SHORT_FORMS: Mapping[str, Sequence[dict[str, Any]]] = {
    "schedules": ({"anyOf": _WORDS},),
    "parameters": ({"anyOf": _WORDS},),
    "needs": ({"anyOf": _WORDS}, {"type": "object", "additionalProperties": {"anyOf": [*_WORDS, {"type": "null"}]}}),
}
"""JSON Schemas of the short forms of settings."""


class ArgoSettings(Record, frozen=True, kw_only=True):
    """Settings of an Argo Workflow.

    Without a schedule the experiment runs at once; with `submit: false`, only when it is submitted or needed.

    Attributes:
        schedules: Cron lines of its schedule.
        timezone: The time zone of `schedules`.
        concurrency: If a run is due while another is running: skip it (`Forbid`), or replace the other (`Replace`).
        submit: Run it at once.
        needs: Releases of this kind that run first, each with the releases that it waits for.
        retries: Number of retries of the whole run.
        parameters: Variables that processes declare and that a submission may set.
        service_account: The account that creates the Jobs; by default the chart creates one.
    """

    schedules: list[str] = []
    timezone: str | None = None
    concurrency: Literal["Forbid", "Replace"] = "Forbid"
    submit: bool = True
    needs: dict[str, list[str]] = {}
    retries: int = 0
    parameters: list[str] = []
    service_account: str | None = None


def settings_of(workload: Workload) -> ArgoSettings:
    return workload.settings("argo", ArgoSettings)


def expanded(settings: dict[str, object]) -> dict[str, object]:
    """Return the settings with single words as lists, and a list of needs as a map without dependencies."""
    result = {key: words(item) if key in ("schedules", "parameters") else item for key, item in settings.items()}
    needs = settings.get("needs")
    listed = words(needs)
    if isinstance(listed, list):
        result["needs"] = {str(need): [] for need in listed}
    elif isinstance(needs, dict):
        result["needs"] = {need: [] if after is None else words(after) for need, after in needs.items()}
    return result


def argo_faults(experiment: Experiment) -> Iterator[Problem]:
    argo = settings_of(experiment.workload)
    if argo.retries < 0:
        yield Problem(what="retries is negative", path=f"{_PATH}.retries", next="use 0 for no retries")
    for index, line in enumerate(argo.schedules):
        if len(line.split()) != 5 and not line.startswith("@"):
            hint = 'a cron line has five fields, such as "0 3 * * *"'
            yield Problem(what=f'"{line}" is not a schedule', path=f"{_PATH}.schedules[{index}]", next=hint)
    for index, name in enumerate(argo.parameters):
        yield from _parameter(experiment, name, f"{_PATH}.parameters[{index}]")
    yield from _needs(argo.needs)


def _parameter(experiment: Experiment, name: str, path: str) -> Iterator[Problem]:
    values = {process.env[name] for _, process in processes_of(experiment) if name in process.env}
    texts = [value for value in values if isinstance(value, str)]
    if not is_shell_name(name) or any("{{" in text for text in texts):
        what = f'"{name}" is a parameter, and Argo would change its name or value'
        yield Problem(what=what, path=path, next="use letters, digits and _ in the name, and no {{ in the value")
    elif not texts:
        yield Problem(what=f'no process declares the variable "{name}"', path=path, next="add it to a process's env")
    elif len(values) > 1:
        what = f'processes give "{name}" different values'
        yield Problem(what=what, path=path, next="use one value, or a variable per process")


def _needs(needs: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    for name, after in needs.items():
        path = f"{_PATH}.needs.{name}"
        if not _LABEL.fullmatch(name):
            yield Problem(
                what=f'"{name}" is not a valid name of a release',
                path=path,
                next="give the release name of the other chart",
            )
        for other in after:
            if other not in needs:
                yield Problem(
                    what=f'"{name}" waits for "{other}", which is not in `needs`', path=path, next="add it to `needs`"
                )
    left = dict(needs)
    while ready := [name for name, after in left.items() if not set(after) & set(left)]:
        for name in ready:
            del left[name]
    if left:
        what = f"{', '.join(left)} wait for each other"
        yield Problem(what=what, path=f"{_PATH}.needs", next="remove one of these waits")


# Argo replaces ``{{...}}`` anywhere in a template before its executor reads the manifest as YAML. So the manifest is
# JSON, in which an escape hides the braces of users until the executor parses it.
#
# Source: argoproj/argo-workflows v3.7.3, util/template, workflow/controller/workflowpod.go (substitutePodParams) and
# operator.go: `setOwnerReference` reads and writes the manifest, which undoes the escapes before a last substitution.
# So the manifest itself names its owner.

_OWNER = (
    '"ownerReferences":[{"apiVersion":"argoproj.io/v1alpha1","controller":true,"kind":"Workflow",'
    '"name":"{{workflow.name}}","uid":"{{workflow.uid}}"}]'
)

# An input that replaces a whole value, not a part of a text; captures its name if the value is a text.
_EXPRESSION = re.compile(r"(?:(?<=[:,\[])|(?<=[^\\]\": ))\{\{(?:=toJson\(inputs\.parameters\.([^{}()]+)\)|[^{}]+)\}\}")


def manifest(item: Mapping[str, object], inputs: Mapping[str, str]) -> str:
    """Return the manifest of an object with labels. `inputs` maps placeholders of `parameter` to Argo expressions."""
    head = {key: value for key, value in item.items() if key < "metadata"}
    tail = {key: value for key, value in item.items() if key > "metadata"}
    text = f'{dumps(head)[:-1]},"metadata":{dumps(item["metadata"])}{"," if tail else ""}{dumps(tail)[1:]}'
    text = text.replace("{{", "{\\u007b")
    for stand_in, said in inputs.items():
        text = text.replace(f'"{stand_in}"', said)
    return text.replace('"metadata":{', f'"metadata":{{{_OWNER},', 1)


def as_json(name: str) -> str:
    """Return the expression that Argo replaces with the JSON of an input; the JSON must be ASCII without two braces."""
    return f"{{{{inputs.parameters.{name}}}}}"


def parameter(name: str, run: str) -> str:
    """Return the placeholder for the input `name`. `run` is a hash of the object, so users cannot write it."""
    return f"symph.dev/parameter/{name}/{run}"


def manifests_of(item: Mapping[str, object]) -> Iterator[dict[str, object]]:
    """Yield the objects that a Workflow, WorkflowTemplate or CronWorkflow creates, with its arguments.

    Inputs without an argument, and inputs that are not texts, become empty texts.
    """
    spec = item.get("spec")
    if item.get("kind") == "CronWorkflow" and isinstance(spec, Mapping):
        spec = spec.get("workflowSpec")
    templates = spec.get("templates") if isinstance(spec, Mapping) else None
    arguments = {str(one.get("name")): one.get("value") for one in maps(sub(spec, "arguments"), "parameters")}
    for template in templates if isinstance(templates, list) else ():
        resource = template.get("resource") if isinstance(template, Mapping) else None
        text = resource.get("manifest") if isinstance(resource, Mapping) else None
        found = _read(text, arguments) if isinstance(text, str) else None
        if found is not None:
            yield found


def _read(text: str, arguments: Mapping[str, object]) -> dict[str, object] | None:
    """Return the object in a generated manifest; None for a foreign one, which may be YAML with Argo variables."""

    def value(found: re.Match[str]) -> str:
        said = arguments.get(found[1])
        return json.dumps(said if isinstance(said, str) else "")

    try:
        found = json.loads(_EXPRESSION.sub(value, text))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


_API = "argoproj.io/v1alpha1"


class ArgoWorkflow(Kind):
    """A Workflow that runs once or on a schedule, and the WorkflowTemplate that holds the experiment."""

    name = "argo"
    runs_as = "Job of a Workflow"
    controller = "Argo Workflows"
    gvks = ((_API, "Workflow"),)
    further = ((_API, "CronWorkflow"), (_API, "WorkflowTemplate"))
    is_repeated = True
    is_workflow = True
    settings = ArgoSettings
    short_forms = SHORT_FORMS
    builder = "symphony_charts.integrations.argo.chart:Argo"

    def expanded(self, settings: dict[str, object]) -> dict[str, object]:
        return expanded(settings)

    def cluster_faults(self, experiment: Experiment) -> Iterator[Problem]:
        return argo_faults(experiment)

    def sweep_objects(
        self,
        experiment: Experiment,
        trials: Sequence[TrialObjects],
        *,
        parallel: int | None = None,
    ) -> list[dict[str, object]]:
        """Return a Workflow with a task for each trial, after its RBAC objects unless a service account is set."""
        # Late import: that module needs the registry of kinds, which loads this one.
        from symphony_charts.integrations.argo.sweep import sweep_objects

        account = settings_of(experiment.workload).service_account
        return sweep_objects(f"{experiment.name}-sweep", trials, parallel=parallel, service_account=account)

    def lost_in_task(self, workload: Workload) -> Iterator[str]:
        """Yield the settings that apply only to a whole Workflow."""
        settings = settings_of(workload)
        for field in ("schedules", "needs", "retries", "parameters"):
            if getattr(settings, field):
                yield f"workload.argo.{field}"

    def ends_services(self, experiment: Experiment) -> bool:
        """Return True: the workflow creates their Jobs, and deletes them at the end."""
        return True

    def stops_the_rest(self, workload: Workload, done: int) -> bool:
        """Return True: the last task stops the rest."""
        return True

    def children(
        self, item: Mapping[str, object], beside: Sequence[Mapping[str, object]] = ()
    ) -> Iterator[dict[str, object]]:
        """Yield the objects that a WorkflowTemplate creates. Workflows that reference it create nothing else."""
        return manifests_of(item) if item.get("kind") == "WorkflowTemplate" else iter(())

    def parts(self, item: Fields) -> Iterator[Fields]:
        return (Fields.of(created, item.path, item.faults) for created in self.children(item.data))

    def jobs(self, item: Object) -> list[Object]:
        """Return the Jobs that a Workflow creates, from its own spec or the stored spec of its template."""
        if item["kind"] != "Workflow":
            return []
        taken = (item.get("status") or {}).get("storedWorkflowTemplateSpec") or {}
        created: Iterator[Object] = manifests_of({**item, "spec": {**taken, **item["spec"]}})
        jobs = [made for made in created if made.get("kind") == "Job"]
        return [described_job(item, self.outcome(item), str(job["metadata"]["name"]), job) for job in jobs]


ARGO = ArgoWorkflow()
