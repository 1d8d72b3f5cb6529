"""A DI-orchestrator job becomes an experiment: every API version that was released, and the ones in between.

Three incompatible shapes share the name ``v2alpha1``, so the shape is told by its fields, not by its version: roles
(operator v0.x), one template (v1.0), tasks (v1.1). Source: opendilab/DI-orchestrator, config/crd/bases at each tag.
"""

from __future__ import annotations

from dataclasses import dataclass

from symphony_charts.formats.field_reader import show
from symphony_charts.formats.paths import join
from symphony_charts.importers.dijob.draft import Draft
from symphony_charts.importers.dijob.roles import read_aggregator, read_roles
from symphony_charts.importers.dijob.tasks import read_single_template, read_tasks
from symphony_charts.importers.input_file import Source
from symphony_charts.importers.report import Imported, Log, build
from symphony_charts.integrations.common.fields import Fields
from symphony_charts.integrations.dijob.settings import Operator
from symphony_charts.spec.checks.pods import OUR_DOMAINS, is_in_domain

__all__ = ["import_dijob"]

_GROUPS = ("diengine.opendilab.org", "nervex.sensetime.com")
_JOB_KINDS = ("DIJob", "NerveXJob")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# A helm release's name, which the experiment's becomes.
_LONGEST_JOB = 53
_OF_TOOLS = (_LAST_APPLIED, "helm.sh/chart")
_VERSIONS = ("v1alpha1", "v1alpha2", "v2alpha1")


@dataclass(slots=True)
class _Objects:
    """The objects of a file, by what they are to the import."""

    jobs: list[Fields]
    aggregators: list[Fields]
    config_maps: list[Fields]


def import_dijob(source: Source, job: str = "", kind: str = "dijob") -> Imported:
    """The experiment of the DIJob in a file, which may also hold its AggregatorConfig and its ConfigMaps.

    `job` chooses one of several by name; `kind` is the workload kind of the result (another one needs no operator).

    Raises SpecError with every fault.
    """
    log = Log()
    objects = _sort(source, log)
    fields = _choose(objects.jobs, job, log)
    log.raise_faults()
    draft = Draft(log=log, config_maps=_config_maps(objects.config_maps))
    if fields is not None:
        _read_job(fields, objects, draft, kind)
    for unused in draft.unused_config_maps():
        log.note(draft.config_maps[unused].path, f"ConfigMap `{unused}` is mounted by nothing; it is not carried over")
    return build(draft.data(), log, draft.origins)


def _sort(source: Source, log: Log) -> _Objects:
    objects = _Objects([], [], [])
    for index, document in enumerate(source.documents):
        fields = Fields(document.data, source.prefix(index), log)
        for item in fields.maps("items") if fields.text("kind") == "List" else [fields]:
            kind = item.text("kind")
            if kind in _JOB_KINDS:
                objects.jobs.append(item)
            elif kind in ("AggregatorConfig", "ALConfig"):
                objects.aggregators.append(item)
            elif kind == "ConfigMap":
                objects.config_maps.append(item)
            elif item:
                log.note(
                    item.path, f"{show(kind) if kind else 'an object without kind'} is no part of a DIJob; left out"
                )
    return objects


def _is_tool(key: str) -> bool:
    """Return True if helm or Argo CD keeps its own records in a label or annotation of this key."""
    return key.startswith(("meta.helm.sh/", "argocd.argoproj.io/"))


def _choose(jobs: list[Fields], name: str, log: Log) -> Fields | None:
    named = [(_name(job), job) for job in jobs]
    fits = [job for job_name, job in named if not name or job_name == name]
    if len(fits) == 1:
        return fits[0]
    if not jobs:
        log.fault("", "the file holds no DIJob", "give a file with `kind: DIJob`")
    elif not fits:
        log.fault("", f'no DIJob is called "{name}"', f"it holds: {', '.join(job_name for job_name, _ in named)}")
    else:
        names = ", ".join(job_name for job_name, _ in named)
        log.fault(fits[1].path, f"the file holds {len(fits)} DIJobs: {names}", "choose one with --job NAME")
    return None


def _name(job: Fields) -> str:
    metadata = job.get("metadata")
    if not isinstance(metadata, dict):
        return ""
    return str(metadata.get("name") or metadata.get("generateName") or "")


def _config_maps(objects: list[Fields]) -> dict[str, Fields]:
    return {_name(item): item for item in objects}


def _read_job(job: Fields, objects: _Objects, draft: Draft, kind: str) -> None:
    version = _version(job, draft.log)
    _read_metadata(job, draft)
    spec = job.map("spec")
    draft.workload["kind"] = kind
    _read_common(spec, draft)
    if version == "v1alpha1" or "coordinator" in spec:
        dialect: Operator = "v0"
        read_roles(spec, draft)
        if objects.aggregators:
            read_aggregator(objects.aggregators[0], draft)
    elif "tasks" in spec or not ({"template", "minReplicas", "engineFields"} & set(spec.keys())):
        dialect = _dialect_of_tasks(spec, draft.log)
        read_tasks(spec, draft)
    else:
        dialect = "v1.0"
        read_single_template(spec, draft)
    if dialect != "v1.1":
        draft.say("group", spec.text("group") or None)
    draft.say("operator", dialect if dialect != "v1.1" else None)
    if kind != "dijob":
        _go_without_operator(spec, dialect, draft)
    spec.note_unread("is not known to any DI-orchestrator, and not carried over")
    job.skip("status")
    job.note_unread("is not carried over")


def _dialect_of_tasks(spec: Fields, log: Log) -> Operator:
    """Which of the operators with tasks a job was written for: the first has a `group`, the later ones volumes."""
    for key in ("minReplicas", "maxReplicas", "engineFields", "template"):
        if key in spec:
            spec.drop(key, "is what operator v1.0 reads; those with tasks do not")
    if "group" not in spec:
        return "v1.1"
    if "volumes" in spec:
        spec.drop("group", "is known to operators before v1.1.1 alone, and those know no `volumes` of a job")
        return "v1.1"
    what = "operators before v1.1.1 alone know a `group`, so the job is taken for one of v1.1.0"
    log.changed(spec.at("group"), what, "drop it for a newer operator")
    return "v1.1.0"


def _version(job: Fields, log: Log) -> str:
    text = job.text("apiVersion") or ""
    group, _, version = text.rpartition("/")
    if group not in _GROUPS or version not in _VERSIONS:
        versions = ", ".join(f"{_GROUPS[0]}/{name}" for name in _VERSIONS)
        log.fault(job.at("apiVersion"), f"{show(text)} is no version of the DIJob API", f"one of {versions}")
    return version


def _read_metadata(job: Fields, draft: Draft) -> None:
    metadata = job.map("metadata")
    name = metadata.text("name") or (metadata.text("generateName") or "").rstrip("-")
    if not name:
        draft.log.fault(metadata.at("name"), "the DIJob has no name", "add metadata.name")
    draft.name = draft.names.clean(name or "dijob", metadata.at("name"), _LONGEST_JOB)
    if name and "." in name:
        draft.log.changed(metadata.at("name"), f'"{name}" is called "{draft.name}": names here have no dots')
    draft.origins["name"] = metadata.at("name")
    draft.namespace = metadata.text("namespace")
    for key in ("labels", "annotations"):
        values = metadata.text_map(key)
        # Whoever installed the job said so there; the experiment's own objects bear marks of their own.
        taken = [name for name in values if is_in_domain(name, OUR_DOMAINS) or name in _OF_TOOLS or _is_tool(name)]
        for name in taken:
            if name != _LAST_APPLIED:
                draft.log.lost(
                    join(metadata.at(key), name), f'"{name}" is set by the tool that installs; it is left out'
                )
        (draft.labels if key == "labels" else draft.annotations).update(
            {name: value for name, value in values.items() if name not in taken}
        )
    metadata.skip(
        "generateName", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"
    )
    metadata.note_unread("of the metadata is not carried over")


def _read_common(spec: Fields, draft: Draft) -> None:
    """Fields that several shapes share; each is read where it stands."""
    policy = spec.text("cleanPodPolicy")
    if policy is not None:
        policies = {"running": "Running", "all": "All", "none": "None"}
        # v0.1.0 spelled one of them ALL; all others are refused as they stand.
        spellings = (*policies.values(), *(("ALL",) if "coordinator" in spec else ()))
        if policy not in spellings:
            choices = ", ".join(policies.values())
            draft.log.fault(spec.at("cleanPodPolicy"), f'"{policy}" is no clean-up policy', f"one of {choices}")
        policy = policies.get(policy.lower(), "Running")
        if policy != "Running":
            what = f"`cleanPodPolicy: {policy}` holds on workload.kind dijob only; elsewhere finished pods stay"
            draft.log.changed(spec.at("cleanPodPolicy"), what)
    draft.say("clean_pod_policy", policy if policy != "Running" else None)
    is_preemptible = spec.flag("preemptible")
    if isinstance(spec.raw("preemptible"), str):  # `no` without quotes is a text to our reader, too
        what = f"`preemptible` is taken for {str(is_preemptible).lower()}; the definition refuses it in quotes"
        draft.log.changed(spec.at("preemptible"), what, "write true or false, without quotes")
    if is_preemptible:
        what = "`preemptible: true` makes no released operator create pods; it is not carried over"
        draft.log.note(spec.at("preemptible"), what)
    priority = spec.text("priority")
    if priority not in (None, "normal", "high"):
        draft.log.fault(spec.at("priority"), f'"{priority}" is no priority', "normal or high")
    if priority == "high":
        what = "no operator acts on `priority`; it is kept, and means nothing"
        draft.log.changed(
            spec.at("priority"), what, "use `workload.priority_class` (pods) or `workload.priority` (queue)"
        )
    draft.say("priority", "high" if priority == "high" else None)


def _go_without_operator(spec: Fields, dialect: Operator, draft: Draft) -> None:
    """Say what the operator did; what it told the pods of tasks, `compat` tells them too."""
    if dialect.startswith("v1.1"):
        draft.compat = "di-engine"
        for ref in draft.without_command():
            what = "its replicas learn their ranks before its command, which stands in the image and is not known here"
            draft.log.changed(ref, what, "say `command`; charts refuse it without")
        return
    env = {
        "v0": "the coordinator asks the operator's server for pods, which is not there; replicas are fixed instead",
        "v1.0": "DI_*_ARG variables are set by the operator; pass --parallel-workers and its like to ditask yourself",
    }
    draft.log.note(spec.path, env[dialect])
