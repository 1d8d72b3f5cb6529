"""Kind `argo`: an Argo Workflow creates the Job of each finite group, and waits for it.

A WorkflowTemplate holds the experiment. Without a schedule a Workflow runs it once per run, else a CronWorkflow does.
Addresses do not depend on the kind, so a mutex keeps two workflows of a release apart, and each workflow first deletes
the Jobs of the previous one.

Argo replaces ``{{...}}`` anywhere in a template, before its executor reads the manifest of a Job as YAML. So manifests
are JSON, in which an escape hides the braces of users from Argo. `setOwnerReference` would undo the escape too early,
so the manifest itself names its owner.

Source: argoproj/argo-workflows v3.7.3, pkg/apis/workflow/v1alpha1/workflow_types.go, util/template,
workflow/executor/resource.go and workflow/controller/operator.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from symphony_charts.chart.build import pods
from symphony_charts.chart.build.data import account_with_rights, metadata
from symphony_charts.chart.build.draft import Draft, Group, Kind, with_names
from symphony_charts.chart.build.pods import job_spec, marks, runs, selector, when_any
from symphony_charts.chart.tree import Call, Either, Entries, Helper, Include, Let, Merged, Not, Text, Tree, Value, When
from symphony_charts.errors import Problem
from symphony_charts.formats import yaml_write
from symphony_charts.integrations.argo.kind import ArgoSettings, settings_of
from symphony_charts.kinds.job import FAILED, SUCCEEDED
from symphony_charts.spec.model import Process, Step
from symphony_charts.spec.pods import processes_of
from symphony_charts.spec.workload import Workload

_API = "argoproj.io/v1alpha1"
_RULES = [
    {"apiGroups": ["argoproj.io"], "resources": ["workflowtaskresults"], "verbs": ["create", "patch"]},
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "delete", "get", "list", "watch"]},
]
# Characters that a literal block of YAML cannot contain.
_NOT_IN_BLOCK = re.compile("[\x7f-\x9f\ufeff\ufffe\uffff]")


class Argo(Kind):
    """A WorkflowTemplate that creates Jobs, and the Workflow or CronWorkflow that runs it."""

    name = "argo"
    file = "argo.yaml"

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self.settings = settings_of(workload)

    def variables(self, program: Process | Step) -> Mapping[str, Tree]:
        """Return placeholders for the Argo parameters among a program's variables."""
        names = self.settings.parameters
        return {name: _argo_variable(f"inputs.parameters.{name}") for name in sorted({*names} & {*program.env})}

    def values(self, draft: Draft) -> dict[str, Any]:
        """Return the parameters with the values that processes declare."""
        declared = {name: text for _, process in processes_of(draft.experiment) for name, text in process.env.items()}
        parameters = {name: declared[name] for name in sorted(self.settings.parameters) if name in declared}
        return {"parameters": parameters} if parameters else {}

    def helpers(self, draft: Draft) -> Iterable[Helper]:
        return [_MANIFEST]

    def local_helpers(self, draft: Draft) -> Iterable[Helper]:
        """Return the Job of each group, and the spec of the Workflow if two objects share it."""
        yield from (Helper(name=_job_name(group), tree=with_names(_job(draft, group))) for group in draft.finite)
        if self._is_submitted:
            yield Helper(name="workflow", tree=with_names(self._spec(draft)))

    def objects(self, draft: Draft) -> list[Tree]:
        """Return the WorkflowTemplate, its runner, and the RBAC objects unless a service account is set."""
        spec = Include("workflow") if self._is_submitted else self._spec(draft)
        made: list[Tree] = [] if self.settings.service_account else _rights()
        made.append(_object("WorkflowTemplate", Text("{$fullname}"), spec))
        if self.settings.schedules:
            made.append(_object("CronWorkflow", Text("{$fullname}"), self._schedule()))
        elif self._is_submitted:
            # Helm creates a Workflow before its template, so it cannot refer to the template.
            made.append(_object("Workflow", Text("{$fullname}-{$run}"), spec))
        return [when_any(draft.finite, made)]

    def fixed(self, draft: Draft, group: Group) -> Mapping[str, Tree]:
        """Return the whole Job spec: the running workflow contains it."""
        return job_spec(draft, group)

    def fixed_settings(self, draft: Draft) -> list[Tree]:
        """Return the spec of the Workflow without its Jobs, its schedule, and the labels of Jobs."""
        return [self._spec(draft, with_jobs=False), self._schedule(), pods.queue_labels(draft)]

    def findings(
        self, draft: Draft, groups: Sequence[Group], values: Mapping[str, Any]
    ) -> Iterator[tuple[Literal["warning", "info"], str, Problem]]:
        """Yield a note on RBAC objects, which Argo CD does not take from Git."""
        if groups and not self.settings.service_account:
            what = "the chart creates a service account with a Role, which projects of symph gitops init do not allow"
            step = "create one by hand in the namespace, and set its name (docs/argo.md)"
            yield "info", "argo-rights", Problem(what=what, path="workload.argo.service_account", next=step)

    def unread(self) -> Iterator[Problem]:
        """Yield schedule settings that have no effect because there is no schedule."""
        usual = ArgoSettings()
        for field in ("timezone", "concurrency"):
            if not self.settings.schedules and getattr(self.settings, field) != getattr(usual, field):
                step = "add `schedules`, or remove it"
                yield Problem(what="it has no effect without schedules", path=f"workload.argo.{field}", next=step)

    @property
    def _is_submitted(self) -> bool:
        return self.settings.submit and not self.settings.schedules

    def _schedule(self) -> dict[str, Tree]:
        argo = self.settings
        return {
            "schedules": list(argo.schedules),
            **({"timezone": argo.timezone} if argo.timezone else {}),
            "concurrencyPolicy": argo.concurrency,
            "workflowSpec": {"workflowTemplateRef": {"name": Text("{$fullname}")}},
        }

    def _spec(self, draft: Draft, *, with_jobs: bool = True) -> dict[str, Tree]:
        account = self.settings.service_account
        labels = {"symph.dev/experiment": draft.experiment.name, "symph.dev/run": Text("{$run}")}
        templates: list[Tree] = [
            {"name": "main", "dag": {"tasks": self._needed()}},
            self._experiment(draft),
            _deletion("clear"),
        ]
        if rest := _rest(draft):
            templates.append(_deletion("rest", f",symph.dev/group in ({','.join(group.name for group in rest)})"))
        if draft.ended:
            tasks = Merged(self._tasks(draft, []), is_sure=True)
            templates.append({"name": "groups", **self._parameters("inputs"), "dag": {"tasks": tasks}})
        if with_jobs:
            templates += [When(runs(group), self._creation(draft, group)) for group in draft.finite]
        return {
            "entrypoint": "main",
            "serviceAccountName": account or Text("{$fullname}-argo"),
            **self._parameters("arguments"),
            "podGC": {"strategy": "OnPodSuccess"},
            "workflowMetadata": {"labels": Merged(Include("selectorLabels"), labels)},
            "templates": templates,
        }

    def _parameters(self, key: str) -> dict[str, Tree]:
        """Return the parameters with their defaults, as `arguments` of a workflow or `inputs` of a template."""
        names = sorted(self.settings.parameters)
        defaults = [
            {"name": name, "value": Value(f".Values.workload.parameters.{name}", is_text=True)} for name in names
        ]
        return {key: {"parameters": defaults}} if names else {}

    def _read_by(self, group: Group) -> list[str]:
        programs: list[Process | Step] = [*group.steps.values(), *group.pod.processes.values()]
        return sorted({name for program in programs for name in self.variables(program)})

    def _needed(self) -> list[Tree]:
        """Return the tasks of the workflow: the experiments that this one needs, then itself."""
        needs = self.settings.needs
        tasks: list[Tree] = [
            {
                "name": need,
                "templateRef": {"name": need, "template": "experiment"},
                **({"dependencies": list(needs[need])} if needs[need] else {}),
            }
            for need in sorted(needs)
        ]
        own: dict[str, Tree] = {"name": Text("{$fullname}"), "template": "experiment"}
        own |= {"dependencies": sorted(needs)} if needs else {}
        return [*tasks, {**own, **_passed("workflow", sorted(self.settings.parameters))}]

    def _experiment(self, draft: Draft) -> dict[str, Tree]:
        """Return the template of the experiment, which other workflows may reference."""
        retries = self.settings.retries
        tasks: list[Tree] = [{"name": "clear", "template": "clear"}]
        done = list(draft.done.values())
        if draft.ended:
            # The hook also runs after a failure, and in workflows that reference this template.
            hooks = when_any(done, {"exit": {"template": "rest"}})
            task = {"name": "run", "template": "groups", "dependencies": ["clear"], "hooks": hooks}
            tasks.append({**task, **_passed("inputs", sorted(self.settings.parameters))})
        else:
            tasks += self._tasks(draft, ["clear"])
        if _rest(draft) and not draft.ended:
            after: Tree = [f"run-{group.name}" for group in done]
            if len(done) > 1:
                steps = zip(done, after, strict=True)
                after = Merged([When(runs(group), step) for group, step in steps], is_sure=True)
            rest = {"name": "rest", "template": "rest", "dependencies": after}
            tasks.append(when_any(done, rest))
        return {
            "name": "experiment",
            **self._parameters("inputs"),
            "synchronization": {"mutexes": [{"name": Text("{$fullname}")}]},
            **({"retryStrategy": {"limit": str(retries), "retryPolicy": "Always"}} if retries else {}),
            "dag": {"tasks": tasks},
        }

    def _tasks(self, draft: Draft, after: list[str]) -> list[Tree]:
        """Return the tasks that create the Jobs, `after` other tasks."""
        tasks: list[Tree] = []
        for group in draft.finite:
            step = f"run-{group.name}"
            task = {"name": step, "template": step, **({"dependencies": after} if after else {})}
            tasks.append(When(runs(group), task | _passed("inputs", self._read_by(group))))
        return tasks

    def _creation(self, draft: Draft, group: Group) -> dict[str, Tree]:
        """Return the template that creates a Job, and waits for it unless other groups end the experiment."""
        names = self._read_by(group)
        conditions: dict[str, Tree] = {"successCondition": SUCCEEDED, "failureCondition": FAILED}
        if group.is_ended:
            conditions = {}
        elif draft.done and group.name not in draft.done:
            none_runs = Not(Either(tuple(map(runs, draft.done.values()))))
            conditions = {key: When(none_runs, text) for key, text in conditions.items()}
        manifest = Call("manifest", {"job": Entries(_job_name(group)), "run": "$run"}, is_block=True)
        return {
            "name": f"run-{group.name}",
            **({"inputs": {"parameters": [{"name": name} for name in names]}} if names else {}),
            "resource": {"action": "create", **conditions, "manifest": manifest},
        }


def _passed(source: str, names: list[str]) -> dict[str, Tree]:
    passed = [{"name": name, "value": f"{{{{{source}.parameters.{name}}}}}"} for name in names]
    return {"arguments": {"parameters": passed}} if names else {}


def _rest(draft: Draft) -> list[Group]:
    """Return the groups that the workflow stops at the end: services, and what `done_when` does not name."""
    return [group for group in draft.finite if group.name not in draft.done] if draft.done else []


def _job_name(group: Group) -> str:
    return f"job.{group.name}"


def _job(draft: Draft, group: Group) -> Tree:
    """Return the Job of a group. It has only the labels of its pods, so that its text changes only with the run."""
    owner = {
        "apiVersion": _API,
        "controller": True,
        "kind": "Workflow",
        "name": _argo_variable("workflow.name"),
        "uid": _argo_variable("workflow.uid"),
    }
    queue = {} if group.is_ended else pods.queue_labels(draft)
    labels = {"symph.dev/experiment": draft.experiment.name, **queue}
    annotations = marks(draft, group)
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": Text(draft.workload(group)),
            "labels": Merged(selector(draft, group), labels),
            **({"annotations": annotations} if annotations else {}),
            "ownerReferences": [owner],
        },
        "spec": job_spec(draft, group),
    }
    return Let("$group", group.path, job)


def _argo_variable(name: str) -> Text:
    """Return the placeholder in a Job for an Argo variable. It contains the run, so users cannot write it."""
    return Text(f"argo/{{$run}}/{name}")


def _manifest(dot: Mapping[str, Any]) -> str:
    text = yaml_write.indented(dot["job"]).replace("{{", "{\\u007b")
    text = re.sub(rf'"argo/{dot["run"]}/([^"]+)"', r"{{=toJson(\1)}}", text)
    return _NOT_IN_BLOCK.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


_MANIFEST = Helper(
    name="manifest",
    comment="A Job as Argo reads it. Braces of users are escaped; argo/RUN/NAME becomes a variable of Argo.",
    py=_manifest,
    go=r"""
{{- $text := fromYaml .job | toPrettyJson | replace "{{" "{\\u007b" -}}
{{- $text = regexReplaceAll (printf "\"argo/%s/([^\"]+)\"" .run) $text "{{=toJson(${1})}}" -}}
{{- range $code := concat (untilStep 127 160 1) (list 65279 65534 65535) -}}
{{- $text = replace (printf "%c" $code) (printf "\\u%04x" $code) $text -}}
{{- end -}}
{{- $text -}}
""",
)


def _deletion(name: str, more: str = "") -> dict[str, Tree]:
    """Return the template that deletes Jobs of the release, and waits until their pods are gone."""
    labels = "app.kubernetes.io/instance={.Release.Name},app.kubernetes.io/name={.Chart.Name}"
    flags = ["job", Text(f"--selector={labels}{more}"), "--cascade=foreground"]
    return {"name": name, "resource": {"action": "delete", "flags": flags}}


def _object(kind: str, name: Text, spec: Tree) -> dict[str, Tree]:
    return {"apiVersion": _API, "kind": kind, "metadata": metadata(name, run="$run"), "spec": spec}


def _rights() -> list[Tree]:
    """Return a service account that may create, watch and delete Jobs, and report results to the controller."""
    name = Text("{$fullname}-argo")
    return account_with_rights(metadata(name, run="$run"), name, _RULES)
