"""Convert a DIJob of any operator version to an experiment.

Three incompatible shapes share the name ``v2alpha1``, so the fields decide the shape, not the version: roles
(operator v0.x), one template (v1.0), tasks (v1.1). Source: opendilab/DI-orchestrator, config/crd/bases at each tag.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from symphony_charts.formats.data import sub
from symphony_charts.formats.field_reader import show
from symphony_charts.formats.names import join
from symphony_charts.importers.input_file import Source
from symphony_charts.importers.report import Imported, Log, build
from symphony_charts.integrations.common.fields import Fields
from symphony_charts.integrations.dijob.import_pods import AddedPod, Draft, add_pod
from symphony_charts.integrations.dijob.settings import CONTAINER, TASK_TYPES, Operator
from symphony_charts.spec.checks.pods import OUR_DOMAINS, is_in_domain
from symphony_charts.spec.variable_names import di_group_nodes

# Jobs with roles: the coordinator's program requests collectors and learners from the operator's server; their number
# is in the Python configuration. Here replicas are fixed, and read from that configuration if possible.

ROLES = ("coordinator", "collector", "learner")
# Ports that the operator uses if the container names none. Source: opendilab/DI-orchestrator v0.2.2.
PORTS = {"collector": 22270, "learner": 22271, "aggregator": 22272, "coordinator": 22273}
_PORT_NAME = "di-port"


def read_roles(spec: Fields, draft: Draft) -> None:
    """Add the three roles. Only the coordinator decides when the job is done; the others serve it until then."""
    for role in ROLES:
        if role not in spec:
            spec.skip(role)
            continue
        part = spec.map(role)
        pod = add_pod(part.map("template"), role, part.path, spec.maps("volumes"), draft)
        part.note_unread("of a role is not carried over")
        main = _complete_roles(pod, role, draft)
        if role == "coordinator":
            draft.done_when = [main]
    if "coordinator" not in spec:
        draft.log.fault(spec.at("coordinator"), "the DIJob has no coordinator", "add it, or use a newer apiVersion")
    spec.skip("volumes")
    _read_replicas(spec, draft)
    if (priority_class := spec.text("priorityClassName")) is not None and priority_class:
        coordinator = draft.processes.get("coordinator", draft.groups.get("coordinator"))
        if isinstance(coordinator, dict):
            coordinator["priority_class"] = priority_class
        what = "`priorityClassName` applies only to the coordinator, as with the operator"
        draft.log.changed(spec.at("priorityClassName"), what, "use `workload.priority_class` for all pods")


def read_aggregator(config: Fields, draft: Draft) -> None:
    """Add the pod of an AggregatorConfig as process `aggregator`."""
    spec = config.map("spec")
    part = spec.map("aggregator")
    pod = add_pod(part.map("template"), "aggregator", part.path, [], draft)
    part.note_unread("of a role is not carried over")
    spec.note_unread("of an AggregatorConfig is not carried over")
    config.skip("apiVersion", "kind", "metadata", "status")
    _complete_roles(pod, "aggregator", draft)
    what = "the aggregator always runs; the operator starts it only for learners with several GPUs"
    draft.log.changed(config.path, what, "set its replicas to 0 if no learner uses more than one GPU")


def _main_container(pod: AddedPod, role: str) -> str:
    """Return the container that the operator watches: by its known name, else the role's name, else the first."""
    return next((name for name in (CONTAINER, role) if name in pod.processes), next(iter(pod.processes)))


def _complete_roles(pod: AddedPod, role: str, draft: Draft) -> str:
    main = _main_container(pod, role)
    named = dict(pod.parts.ports.get(main, {}))
    # The operator looks for this port only in this container, and else uses the default number.
    number = named.pop(_PORT_NAME, PORTS[role]) if main == CONTAINER else PORTS[role]
    for container, process in pod.processes.items():
        binds: dict[str, object] = {role: number} if container == main else {}
        others = named if container == main else pod.parts.ports.get(container, {})
        # The default number under another name is still the role's port.
        binds |= {f"{role}-{name}": port for name, port in others.items() if port != number}
        if binds:
            process["binds"] = binds
        if container == main or binds:
            # The operator does not check readiness.
            process.setdefault("ready", "none")
        env = process.setdefault("env", {})
        if isinstance(env, dict):
            # The operator's variables override those of the container.
            env[f"{role.upper()}_PORT"] = str(number)
            env["KUBERNETES_POD_NAME"] = {"field": "metadata.name"}
            env["KUBERNETES_POD_NAMESPACE"] = {"field": "metadata.namespace"}
    _live(pod, role, draft)
    if pod.name in draft.processes:
        return pod.name
    refs = [ref for ref in draft.order if ref.startswith(f"{pod.name}/")]
    return refs[list(pod.processes).index(main)]


def _live(pod: AddedPod, role: str, draft: Draft) -> None:
    """Set the lifecycle and restart policy of a role."""
    restart = pod.parts.restart or ("never" if role == "coordinator" else "always")
    if restart == "on-failure":
        pod.settings["restart"] = "on-failure"
    elif restart == "always" and role == "coordinator":
        pod.settings["restart"] = "on-failure"
        what = "with `restartPolicy: Always` of a coordinator a job never ends; it restarts only after failures"
        draft.log.changed(pod.parts.path, what)
    elif restart == "always":
        for process in pod.processes.values():
            process["lifecycle"] = "service"


def _read_replicas(spec: Fields, draft: Draft) -> None:
    """Set the number of collectors and learners that the configuration requests from the operator's server."""
    texts = [text for text in draft.configs.values() if "init_replicas_request" in text or "_target_num" in text]
    for role in ("collector", "learner"):
        process = draft.processes.get(role, draft.groups.get(role))
        if not isinstance(process, dict):
            continue
        count = next((number for text in texts if (number := _requested(text, role)) is not None), None)
        if count is None:
            what = f"the number of {role}s is set in the Python configuration; one is assumed"
            draft.log.changed(spec.at(role), what, f"set `processes.{role}.replicas`")
        elif count != 1:
            process["replicas"] = count
            what = f"{count} {role}s, as the configuration requests; keep both numbers the same"
            draft.log.changed(spec.at(role), what)


def _requested(text: str, role: str) -> int | None:
    patterns = (
        rf"\b{role}s['\"]?\s*[:=]\s*(?:\{{|dict\()[^}})]{{0,400}}?['\"]?\breplicas['\"]?\s*[:=]\s*(\d{{1,4}})\b",
        rf"\b{role}_target_num['\"]?\s*[:=]\s*(\d{{1,4}})\b",
    )
    for pattern in patterns:
        if (match := re.search(pattern, text)) is not None:
            return int(match[1])
    return None


_DEFAULT_BACKOFF = 3  # the CRD's default
_UNLIMITED = 100
_MOST_REPLICAS = 100_000


def read_tasks(spec: Fields, draft: Draft) -> None:
    _read_backoff(spec, draft)
    tasks = spec.maps("tasks")
    if not tasks:
        draft.log.fault(spec.at("tasks"), "the DIJob has no tasks, so it would stay Pending", "add a task")
    seen: set[str] = set()
    types: set[str | None] = set()
    for task in tasks:
        kind = task.text("type")
        if kind is not None and kind not in TASK_TYPES:
            choices = ", ".join(TASK_TYPES)
            draft.log.fault(task.at("type"), f'"{kind}" is not a type of task', f"use one of {choices}")
        name = _task_name(task, kind, draft)
        if name in seen:
            draft.log.fault(task.at("name"), f'two tasks are named "{name}"', "rename one of them")
            name = f"{name}-{len(seen)}"
        seen.add(name)
        pod = add_pod(task.map("template"), name, task.at("name"), spec.maps("volumes"), draft)
        if (replicas := task.integer("replicas", 1, _MOST_REPLICAS)) not in (None, 1):
            pod.settings["replicas"] = replicas
        _note_variable(task, name, pod.name, draft)
        task.note_unread("of a task is not carried over")
        _complete_tasks(pod, draft, task.path)
        if kind in types and kind not in (None, "none"):
            what = f'the operator refuses a second task of type "{kind}"; this one gets type none'
            draft.log.changed(task.at("type"), what)
            kind = "none"
        types.add(kind)
        if kind not in (None, name) or (kind is None and name in TASK_TYPES):
            draft.tasks[pod.name] = kind or "none"
    spec.skip("volumes")


def read_single_template(spec: Fields, draft: Draft) -> None:
    """Add the only process of a v1.0 job; all its pods are alike."""
    engine = spec.map("engineFields")
    for fields in (engine, spec):  # before the v1.0 release these fields were in the spec itself
        if (topology := fields.text("topology")) is not None:
            if topology not in ("star", "alone", "mesh"):
                draft.log.fault(fields.at("topology"), f'"{topology}" is not a topology', "use star, alone or mesh")
            elif topology != "star":
                draft.say("topology", topology)
        if (workers := fields.integer("parallelWorkers", 1, 1000)) not in (None, 1):
            draft.say("parallel_workers", workers)
    engine.note_unread("of the engine fields is not carried over")
    pod = add_pod(spec.map("template"), "worker", spec.at("template"), spec.maps("volumes"), draft)
    spec.skip("volumes")
    replicas = spec.integer("minReplicas", 0, _MOST_REPLICAS)
    if not replicas:
        what = "without `minReplicas` the operator never starts a pod; one replica is assumed"
        draft.log.changed(spec.at("minReplicas"), what)
    elif replicas > 1:
        pod.settings["replicas"] = replicas
    if (most := spec.integer("maxReplicas", 1, _MOST_REPLICAS)) is not None and most != replicas:
        draft.say("max_replicas", most)
        what = "no released operator starts more pods than `minReplicas`; `maxReplicas` is kept without effect"
        draft.log.changed(spec.at("maxReplicas"), what)
    _complete_tasks(pod, draft, spec.path)


def _read_backoff(spec: Fields, draft: Draft) -> None:
    if isinstance(spec.raw("backoffLimit"), str):
        draft.log.fault(spec.at("backoffLimit"), "the number of restarts is text", "write it without quotes")
    if "backoffLimit" in spec:
        retries = spec.integer("backoffLimit", 0, 2**31 - 1) or 0
    elif "backoffLimit" in spec.keys():  # noqa: SIM118 - null means something else than absent
        spec.skip("backoffLimit")
        retries = _UNLIMITED
        what = f"`backoffLimit: null` means unlimited restarts; the limit is now {_UNLIMITED}"
        draft.log.changed(spec.at("backoffLimit"), what)
    else:
        retries = _DEFAULT_BACKOFF
    if retries:
        draft.workload["retries"] = retries
        what = f"a restarted pod (up to {retries} times) gets another DI_RANK; only the last rank allows that"
        draft.log.changed(spec.at("backoffLimit"), what, "use `workload.retries: 0` on kind dijob, or another kind")


def _task_name(task: Fields, kind: str | None, draft: Draft) -> str:
    name = task.text("name")
    if name:
        return name
    if kind in (None, "none"):
        draft.log.fault(task.at("name"), "a task without type needs a name", "add `name`")
        return "task"
    return str(kind)


def _note_variable(task: Fields, theirs: str, ours: str, draft: Draft) -> None:
    """Note the variable with the nodes of a task, if the name of the task changed it."""
    told = f"DI_{theirs.upper().replace('-', '_')}_NODES"
    if told != di_group_nodes(ours):
        draft.log.changed(task.at("name"), f"the variable {di_group_nodes(ours)} has its nodes, not {told}")


def _complete_tasks(pod: AddedPod, draft: Draft, path: str) -> None:
    if len(pod.parts.processes) > 1:
        what = f"{len(pod.parts.processes)} containers in one pod: with the operator, such a job never becomes Running"
        draft.log.changed(path, what)
    for container, ports in pod.parts.port_objects.items():
        if not ports:
            continue
        overlay = pod.processes[container].setdefault("container_overlay", {})
        if isinstance(overlay, dict):
            overlay["ports"] = ports
        what = "the ports are kept as an overlay; the operator gives the pods one headless Service"
        draft.log.changed(f"{pod.parts.paths[container]}.ports", what, "add `binds` for ports that other processes use")
    if pod.parts.restart not in (None, "never"):
        what = f"the operator ignores `restartPolicy` {pod.parts.restart}: it never restarts a pod in place"
        draft.log.changed(pod.parts.path, what)


_GROUPS = ("diengine.opendilab.org", "nervex.sensetime.com")
_JOB_KINDS = ("DIJob", "NerveXJob")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# Maximum length of a Helm release name, which the experiment's name becomes, and of the host name of a pod.
_LONGEST_JOB, _LONGEST_POD = 53, 63
_OF_TOOLS = (_LAST_APPLIED, "helm.sh/chart")
_VERSIONS = ("v1alpha1", "v1alpha2", "v2alpha1")


@dataclass(slots=True)
class _Objects:
    jobs: list[Fields]
    aggregators: list[Fields]
    config_maps: list[Fields]


def import_dijob(source: Source, job: str = "", kind: str = "dijob") -> Imported:
    """Return the experiment of the DIJob in a file, which may also hold its AggregatorConfig and its ConfigMaps.

    `job` selects one of several by name; `kind` is the workload kind of the result (other kinds need no operator).

    Raises SpecError with every fault.
    """
    log = Log()
    objects = _sort(source, log)
    fields = _choose(objects.jobs, job, log)
    log.raise_faults()
    draft = Draft(log=log, config_maps=_config_maps(objects.config_maps))
    if fields is not None:
        _read_job(fields, objects, draft, kind)
        _name_job(fields.map("metadata"), draft)
    for unused in draft.unused_config_maps():
        log.note(draft.config_maps[unused].path, f"no pod mounts ConfigMap `{unused}`; it is not carried over")
    return build(draft.data(), log, draft.origins)


def _sort(source: Source, log: Log) -> _Objects:
    objects = _Objects([], [], [])
    for index, document in enumerate(source.documents):
        fields = Fields(document.data, source.prefix(index), log)
        is_list = fields.text("kind") == "List"
        fields.skip(*(("apiVersion", "metadata") if is_list else ()))
        for item in fields.maps("items") if is_list else [fields]:
            kind = item.text("kind")
            if kind in _JOB_KINDS:
                objects.jobs.append(item)
            elif kind in ("AggregatorConfig", "ALConfig"):
                objects.aggregators.append(item)
            elif kind == "ConfigMap":
                objects.config_maps.append(item)
            elif item:
                log.note(
                    item.path,
                    f"{show(kind) if kind else 'an object without kind'} is not part of a DIJob; not imported",
                )
    return objects


def _is_tool(key: str) -> bool:
    """Return True if Helm or Argo CD keeps its own records in a label or annotation of this key."""
    return key.startswith(("meta.helm.sh/", "argocd.argoproj.io/"))


def _choose(jobs: list[Fields], name: str, log: Log) -> Fields | None:
    named = [(_name(job), job) for job in jobs]
    fits = [job for job_name, job in named if not name or job_name == name]
    if len(fits) == 1:
        return fits[0]
    if not jobs:
        log.fault("", "the file has no DIJob", "give a file with `kind: DIJob`")
    elif not fits:
        log.fault("", f'the file has no DIJob "{name}"', f"its DIJobs: {', '.join(job_name for job_name, _ in named)}")
    else:
        names = ", ".join(job_name for job_name, _ in named)
        log.fault(fits[1].path, f"the file has {len(fits)} DIJobs: {names}", "choose one with --job NAME")
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
    spec.note_unread("is unknown to every version of DI-orchestrator, and not carried over")
    job.skip("status")
    job.note_unread("is not carried over")


def _dialect_of_tasks(spec: Fields, log: Log) -> Operator:
    """Return the operator version of a job with tasks: the first has a `group`, later ones have volumes."""
    for key in ("minReplicas", "maxReplicas", "engineFields", "template"):
        if key in spec:
            spec.drop(key, "is a field of operator v1.0; operators with tasks ignore it")
    if "group" not in spec:
        return "v1.1"
    if "volumes" in spec:
        spec.drop("group", "is a field of operators before v1.1.1, which have no `volumes` of a job")
        return "v1.1"
    what = "only operators before v1.1.1 have a `group`, so the import assumes v1.1.0"
    log.changed(spec.at("group"), what, "remove it for a newer operator")
    return "v1.1.0"


def _version(job: Fields, log: Log) -> str:
    text = job.text("apiVersion") or ""
    group, _, version = text.rpartition("/")
    if group not in _GROUPS or version not in _VERSIONS:
        versions = ", ".join(f"{_GROUPS[0]}/{name}" for name in _VERSIONS)
        log.fault(job.at("apiVersion"), f"{show(text)} is not a version of the DIJob API", f"use one of {versions}")
    return version


def _read_metadata(job: Fields, draft: Draft) -> None:
    metadata = job.map("metadata")
    name = metadata.text("name") or (metadata.text("generateName") or "").rstrip("-")
    if not name:
        draft.log.fault(metadata.at("name"), "the DIJob has no name", "add metadata.name")
    draft.name = name or "dijob"
    draft.origins["name"] = metadata.at("name")
    draft.namespace = metadata.text("namespace")
    for key in ("labels", "annotations"):
        values = metadata.text_map(key)
        # Marks of the tool that installed the job; the experiment's objects get marks of their own.
        taken = [name for name in values if is_in_domain(name, OUR_DOMAINS) or name in _OF_TOOLS or _is_tool(name)]
        for name in taken:
            if name != _LAST_APPLIED:
                draft.log.lost(
                    join(metadata.at(key), name), f'"{name}" belongs to the installing tool; it is not carried over'
                )
        (draft.labels if key == "labels" else draft.annotations).update(
            {name: value for name, value in values.items() if name not in taken}
        )
    metadata.skip(
        "generateName", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"
    )
    metadata.note_unread("of the metadata is not carried over")


def _name_job(metadata: Fields, draft: Draft) -> None:
    """Shorten the job's name so that the names of its pods fit, and make it valid."""
    written, path, pods = draft.name, metadata.at("name"), {**draft.processes, **draft.groups}
    # As many digits as the number of replicas has.
    longest = max((len(f"-{name}-{sub(pods, name).get('replicas', 1)}") for name in pods), default=0)
    room = _LONGEST_POD - longest if draft.workload.get("kind") == "dijob" else _LONGEST_JOB
    draft.name = draft.names.clean(written, path, min(room, _LONGEST_JOB))
    if "." in written:
        draft.log.changed(path, f'"{written}" is named "{draft.name}": names of experiments have no dots')


def _read_common(spec: Fields, draft: Draft) -> None:
    """Read fields that several shapes share."""
    policy = spec.text("cleanPodPolicy")
    if policy is not None:
        policies = {"running": "Running", "all": "All", "none": "None"}
        # v0.1.0 spelled one of them ALL; other spellings are refused.
        spellings = (*policies.values(), *(("ALL",) if "coordinator" in spec else ()))
        if policy not in spellings:
            choices = ", ".join(policies.values())
            draft.log.fault(spec.at("cleanPodPolicy"), f'"{policy}" is not a clean-up policy', f"use one of {choices}")
        policy = policies.get(policy.lower(), "Running")
        if policy != "Running":
            what = f"`cleanPodPolicy: {policy}` applies only to workload.kind dijob; other kinds keep finished pods"
            draft.log.changed(spec.at("cleanPodPolicy"), what)
    draft.say("clean_pod_policy", policy if policy != "Running" else None)
    is_preemptible = spec.flag("preemptible")
    if isinstance(spec.raw("preemptible"), str):  # our reader returns an unquoted `no` as text, too
        what = f"`preemptible` is text, read as {str(is_preemptible).lower()}; a cluster refuses it"
        draft.log.changed(spec.at("preemptible"), what, "write true or false, without quotes")
    if is_preemptible:
        what = "with `preemptible: true`, no released operator creates pods; it is not carried over"
        draft.log.note(spec.at("preemptible"), what)
    priority = spec.text("priority")
    if priority not in (None, "normal", "high"):
        draft.log.fault(spec.at("priority"), f'"{priority}" is not a priority', "use normal or high")
    if priority == "high":
        what = "no operator uses `priority`; it is kept without effect"
        draft.log.changed(
            spec.at("priority"), what, "use `workload.priority_class` (pods) or `workload.priority` (queue)"
        )
    draft.say("priority", "high" if priority == "high" else None)


def _go_without_operator(spec: Fields, dialect: Operator, draft: Draft) -> None:
    """Note features of the operator that are lost; for tasks, `compat` replaces its environment variables."""
    if dialect.startswith("v1.1"):
        draft.compat = "di-engine"
        for ref in draft.without_command():
            what = "a script must set the rank of each replica before its command, and the image sets the command"
            draft.log.changed(ref, what, "set `command`: a chart needs it")
        return
    env = {
        "v0": "without the operator, the coordinator cannot request pods; replicas are fixed",
        "v1.0": "without the operator, no DI_*_ARG variables are set; pass --parallel-workers and others to ditask",
    }
    draft.log.note(spec.path, env[dialect])
