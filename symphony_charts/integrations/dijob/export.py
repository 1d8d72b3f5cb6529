"""Write an experiment as a DIJob of one operator version, with the objects that it needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from symphony_charts.errors import Problem
from symphony_charts.formats.data import maps, merge_overlay, sub
from symphony_charts.importers.report import Log, Note
from symphony_charts.integrations.common.pod_objects import (
    env_object,
    mount_object,
    probe_object,
    toleration_object,
    volume_object,
)
from symphony_charts.integrations.common.pods import GPU
from symphony_charts.integrations.dijob.settings import (
    ROLES,
    Operator,
    container_name,
    dijob_faults,
    pods_in_order,
    settings_of,
    task_type,
)
from symphony_charts.spec.environment import Address, Fact, entry_point, interpret, pod_order, variables_of
from symphony_charts.spec.model import Experiment, Process, Step
from symphony_charts.spec.pods import Pod, ProcessRef, Service, allocate, pods_of
from symphony_charts.spec.sources import CONFIG_DIR, SECRETS_DIR, EnvSource, EnvValue, Mount, Probe, key_of

_CONFIG_VOLUME = "symph-config"
_SECRETS_VOLUME = "symph-secrets"


class TaskAddresses:
    """The host names that an operator gives the pods of a job, by pod of the experiment."""

    def __init__(self, dialect: Operator, job: str, pods: Sequence[Pod]) -> None:
        self.dialect = dialect
        self._job = job
        self._replicas = {pod.name: max(pod.settings.replicas, 1) for pod in pods}

    def hosts(self, pod: str) -> tuple[str, ...]:
        """Return the hosts of all replicas, in order; empty if names are unknown before the pods exist."""
        if self.dialect == "v0":
            return (f"{self._job}-coordinator",) if pod == "coordinator" else ()
        indexes = range(self._replicas[pod])
        if self.dialect == "v1.0":
            return tuple(f"{self._job}-0-{index}.{self._job}" for index in indexes)
        return tuple(f"{self._job}-{pod}-{index}.di-{self._job}" for index in indexes)


class PodWriter:
    def __init__(
        self, experiment: Experiment, services: tuple[Service, ...], addresses: TaskAddresses, log: Log
    ) -> None:
        self.log = log
        self._experiment = experiment
        self._services = services
        self._addresses = addresses
        self._config_map = f"{experiment.name}-config"

    def template(self, pod: Pod) -> dict[str, object]:
        """Return the spec of the pod."""
        settings = pod.settings
        spec: dict[str, object] = {}
        steps = [
            (name, step)
            for name, step in self._experiment.prepare.items()
            if not step.groups or pod.name in step.groups
        ]
        if steps:
            spec["initContainers"] = [self._step(name, step, pod) for name, step in steps]
        spec["containers"] = [self._container(name, process, pod) for name, process in pod.processes.items()]
        experiment = self._experiment
        fields: dict[str, object] = {
            "nodeSelector": {**settings.node_selector, **settings.capabilities},
            "tolerations": [toleration_object(item) for item in settings.tolerations],
            "serviceAccountName": settings.service_account or experiment.service_account,
            "priorityClassName": settings.priority_class or experiment.workload.priority_class,
            "imagePullSecrets": [{"name": name} for name in experiment.image_pull_secrets],
            "terminationGracePeriodSeconds": settings.grace_period,
            "activeDeadlineSeconds": settings.deadline,
        }
        spec |= {key: value for key, value in fields.items() if value not in (None, {}, [])}
        if settings.labels or settings.annotations:
            self.log.note(pod.path, "an operator drops labels and annotations of pods")
        overlay = settings.pod_overlay.get("spec")
        return merge_overlay(spec, overlay) if isinstance(overlay, dict) else spec

    def with_volumes(self, template: dict[str, object], pod: Pod | None = None) -> dict[str, object]:
        """Return the template with the volumes that `pod` mounts (default: all), for jobs without a `volumes` field."""
        return self._put(template, set(self._experiment.volumes) if pod is None else self._mounted(pod))

    def with_own_volumes(self, template: dict[str, object], pod: Pod) -> dict[str, object]:
        """Return the template with the volumes that `pod` mounts and the job cannot share between all pods."""
        return self._put(template, self._mounted(pod) & self._not_shared(), is_job=True)

    def _put(self, template: dict[str, object], names: set[str], *, is_job: bool = False) -> dict[str, object]:
        volumes = self._declared(names) if is_job else self._volumes(names)
        held = template.get("volumes")
        return {**template, "volumes": [*volumes, *(held if isinstance(held, list) else [])]} if volumes else template

    def _not_shared(self) -> set[str]:
        """Return the volumes whose names a pod uses for a volume of its own."""
        overlays = [pod.settings.pod_overlay for pod in pods_of(self._experiment).values()]
        own = {str(volume.get("name")) for overlay in overlays for volume in maps(sub(overlay, "spec"), "volumes")}
        return own & set(self._experiment.volumes)

    def _mounted(self, pod: Pod) -> set[str]:
        mounts = [mount for process in pod.processes.values() for mount in process.mounts]
        for step in self._experiment.prepare.values():
            mounts += step.mounts if not step.groups or pod.name in step.groups else []
        return {mount.volume for mount in mounts}

    def job_volumes(self) -> dict[str, object]:
        """Return the volumes of all pods as a field of the job; empty if there are none."""
        volumes = self._volumes(set(self._experiment.volumes) - self._not_shared())
        return {"volumes": volumes} if volumes else {}

    def config_maps(self) -> list[dict[str, object]]:
        configs = self._experiment.configs
        if not configs:
            return []
        data = {name: config.text for name, config in configs.items() if config.text is not None}
        binary = {name: config.base64 for name, config in configs.items() if config.base64 is not None}
        for name, config in configs.items():
            if config.text is None and config.base64 is None:
                self.log.fault(f"configs.{name}", f"this export does not read {config.file}", "set its `text`")
        result: dict[str, object] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": self._config_map}}
        return [result | {key: value for key, value in (("data", data), ("binaryData", binary)) if value}]

    def exposed_services(self) -> list[dict[str, object]]:
        """Return a Service for each exposed port, selecting pods by the operator's labels."""
        return [self._exposed(service) for service in self._services if service.is_exposed]

    def _exposed(self, service: Service) -> dict[str, object]:
        settings = self._experiment.expose.get(service.name)
        kind = settings.type if settings is not None and settings.type in ("LoadBalancer", "NodePort") else "ClusterIP"
        job, pod = self._experiment.name, service.listener.pod
        selector = {
            "v0": {"dijob-name": job, "replica-type": pod},
            "v1.0": {"diengine/job": job},
            "v1.1.0": {"diengine/job": job, "diengine/pod": f"{job}-{pod}-0"},
        }.get(self._addresses.dialect, {"diengine/job": job, "diengine/task-name": pod})
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": f"{self._experiment.name}-{service.name}"},
            "spec": {
                "type": kind,
                "selector": selector,
                "ports": [{"name": service.name[:15].rstrip("-"), "port": service.port}],
            },
        }

    def _container(self, name: str, process: Process, pod: Pod) -> dict[str, object]:
        ref = ProcessRef(pod.name, name)
        container = self._common(process, self._environment(process.env, ref, pod))
        container["name"] = container_name(settings_of(self._experiment.workload), pod, name)
        container["image"] = process.image or self._experiment.image
        ports = [
            {
                "name": "di-port" if service.name == pod.name else service.name[:15].rstrip("-"),
                "containerPort": service.port,
            }
            for service in self._services
            if service.listener == ref
        ]
        fields: dict[str, object] = {
            "imagePullPolicy": process.image_pull_policy,
            "ports": ports if self._addresses.dialect == "v0" else [],
            "readinessProbe": probe_object(process.ready, self._ports()) if isinstance(process.ready, Probe) else None,
        }
        if process.gpus:
            resources = container.setdefault("resources", {})
            if isinstance(resources, dict):
                for key in ("requests", "limits"):
                    resources[key] = {**resources.get(key, {}), GPU: str(process.gpus)}
        container |= {key: value for key, value in fields.items() if value not in (None, [])}
        return merge_overlay(container, process.container_overlay)

    def _step(self, name: str, step: Step, pod: Pod) -> dict[str, object]:
        first = next(iter(pod.processes.values()))
        environment = self._environment(step.env, ProcessRef(pod.name, name), pod)
        container = self._common(step, environment)
        container["name"] = name
        container["image"] = step.image or first.image or self._experiment.image
        return merge_overlay(container, step.container_overlay)

    def _common(self, process: Process | Step, environment: Mapping[str, EnvValue]) -> dict[str, object]:
        start = entry_point(process)
        mounts = [mount_object(mount) for mount in process.mounts]
        if self._experiment.configs:
            mounts.append(mount_object(Mount(volume=_CONFIG_VOLUME, at=CONFIG_DIR, read_only=True)))
        if self._experiment.secrets:
            mounts.append(mount_object(Mount(volume=_SECRETS_VOLUME, at=SECRETS_DIR, read_only=True)))
        mounts += [
            mount_object(Mount(volume=_SECRETS_VOLUME, at=at, sub_path=key_of(secret), read_only=True))
            for secret in self._experiment.secrets
            for at in secret.also_at
        ]
        resources = {
            key: dict(value) for key, value in (("requests", process.requests), ("limits", process.limits)) if value
        }
        fields: dict[str, object] = {
            "command": start.command,
            "args": start.args,
            "workingDir": process.cwd,
            "env": [env_object(name, environment[name]) for name in pod_order(environment)],
            "resources": resources,
            "volumeMounts": mounts,
        }
        return {key: value for key, value in fields.items() if value not in (None, {}, [])}

    def _environment(self, own: Mapping[str, EnvValue], ref: ProcessRef, pod: Pod) -> dict[str, EnvValue]:
        """Return the variables that an experiment promises, overridden by the process's own variables."""
        replicas = max(pod.settings.replicas, 1)
        index: EnvValue | None = None if replicas > 1 else "0"
        if self._addresses.dialect.startswith("v1.1"):
            index = EnvSource(field="metadata.annotations['diengine/task-rank']")
        facts = {
            Fact.ADDRESS: "0.0.0.0",  # noqa: S104 - a pod's own addresses
            Fact.INDEX: index,
            Fact.REPLICAS: str(replicas),
            Fact.RUN: None,
            Fact.ATTEMPT: None,
            Fact.CONFIG_DIR: CONFIG_DIR,
            Fact.SECRETS_DIR: SECRETS_DIR,
        }
        hosts = {service.name: self._addresses.hosts(service.listener.pod) for service in self._services}
        dialled = pod.processes[ref.process].connects if ref.process in pod.processes else []
        for name in hosts:
            if not hosts[name] and name in dialled:
                what = f"the address of {name} is unknown until its pods exist, so no SYMPH_* variable has it"
                self.log.note(pod.path, what)
        reached = [service for service in self._services if hosts[service.name]]
        addresses = {
            service.name: Address(host=hosts[service.name][0], hosts=hosts[service.name], port=service.port)
            for service in reached
        }
        variables = variables_of(self._experiment.name, ref, reached, connects=dialled)
        return {**interpret(variables, facts, addresses), **own}

    def _ports(self) -> dict[str, int]:
        return {service.name: service.port for service in self._services}

    def _declared(self, names: set[str]) -> list[dict[str, object]]:
        declared = self._experiment.volumes.items()
        return [volume_object(name, volume, self.log) for name, volume in declared if name in names]

    def _volumes(self, names: set[str]) -> list[dict[str, object]]:
        volumes = self._declared(names)
        if self._experiment.configs:
            volumes.append({"name": _CONFIG_VOLUME, "configMap": {"name": self._config_map}})
        if self._experiment.secrets:
            secret = f"{self._experiment.name}-secrets"
            volumes.append({"name": _SECRETS_VOLUME, "secret": {"secretName": secret}})
            self.log.changed(
                "secrets", f"the job reads these files from the Secret {secret}", "create the Secret before the job"
            )
        return volumes


# The inverse of `importers.dijob`: importing the result gives the same experiment. Settings that a DIJob cannot express
# are faults if they change the run, else notes.
# Source: opendilab/DI-orchestrator, config/crd/bases at v0.2.2, v1.0.0, v1.1.0 and v1.1.3.

_GROUP = "diengine.opendilab.org"
_LONGEST = 63


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """Kubernetes objects to apply in order, and `notes` on settings of the experiment that they lack."""

    objects: tuple[dict[str, object], ...]
    notes: tuple[Note, ...] = ()


def dijob_objects(experiment: Experiment, operator: Operator | None = None) -> Exported:
    """Return the experiment as a DIJob for `operator` (default: the operator in `workload.dijob`).

    Raises SpecError with everything that a DIJob of that operator cannot express.
    """
    log = Log()
    experiment = _for_operator(experiment, operator)
    chosen = settings_of(experiment.workload).operator
    # Pods without replicas are not part of the job, as in the chart.
    pods = [pod for pod in pods_in_order(experiment) if pod.settings.replicas > 0]
    for problem in (*dijob_faults(experiment), *_shape_faults(chosen, pods), *_name_faults(experiment, pods)):
        log.fault(problem.path, problem.what, problem.next)
    log.raise_faults()
    running = {pod.name for pod in pods}
    services = tuple(service for service in allocate(experiment) if service.listener.pod in running)
    writer = PodWriter(experiment, services, TaskAddresses(chosen, experiment.name, pods), log)
    spec, beside = _SPECS[chosen](experiment, pods, writer)
    log.raise_faults()
    job: dict[str, object] = {
        "apiVersion": f"{_GROUP}/{'v1alpha1' if chosen == 'v0' else 'v2alpha1'}",
        "kind": "DIJob",
        "metadata": _metadata(experiment),
        "spec": spec,
    }
    objects = [*writer.config_maps(), *beside, job, *writer.exposed_services()]
    return Exported(objects=tuple(objects), notes=tuple(log.notes))


def _for_operator(experiment: Experiment, operator: Operator | None) -> Experiment:
    workload = experiment.workload
    settings = settings_of(workload)
    settings = msgspec.structs.replace(settings, operator=operator or settings.operator)
    workload = msgspec.structs.replace(workload.with_settings("dijob", settings), kind="dijob")
    return msgspec.structs.replace(experiment, workload=workload)


def _shape_faults(operator: Operator, pods: list[Pod]) -> Iterator[Problem]:
    if not any(pod.is_finite for pod in pods) and operator != "v0":
        yield Problem(
            what="no finite process has a replica", path="processes", next="set `replicas` of one to at least 1"
        )
    for pod in pods:
        if operator == "v0" and pod.name not in ROLES:
            what = f'a DIJob of operator v0 has the roles {", ".join(ROLES)}, not "{pod.name}"'
            yield Problem(what=what, path=pod.path, next="give it replicas: 0, or use `symph package`, which runs it")
        if operator == "v1.0" and not pod.is_finite and len(pods) > 1:
            what = f'a DIJob of operator v1.0 has one kind of pod, so it cannot run "{pod.name}"'
            yield Problem(what=what, path=pod.path, next="give it replicas: 0, or use `symph package`, which runs it")


def _name_faults(experiment: Experiment, pods: list[Pod]) -> Iterator[Problem]:
    for pod in pods:
        longest = f"{experiment.name}-{pod.name}-{max(pod.settings.replicas - 1, 0)}"
        if len(longest) > _LONGEST:
            what = f'the pod\'s name "{longest}" has more than {_LONGEST} characters'
            yield Problem(what=what, path=pod.path, next="shorten the names")


def _metadata(experiment: Experiment) -> dict[str, object]:
    metadata = {
        "name": experiment.name,
        "namespace": experiment.namespace,
        "labels": experiment.labels,
        "annotations": experiment.annotations,
    }
    return {key: value for key, value in metadata.items() if value not in (None, {})}


def _common(experiment: Experiment) -> dict[str, object]:
    dijob = settings_of(experiment.workload)
    # Operators from v1.1.1 on have no such field.
    group: dict[str, object] = {} if dijob.group is None or dijob.operator == "v1.1" else {"group": dijob.group}
    return {**group, "cleanPodPolicy": dijob.clean_pod_policy}


_Spec = tuple[dict[str, object], list[dict[str, object]]]


def _roles_spec(experiment: Experiment, pods: list[Pod], writer: PodWriter) -> _Spec:
    spec = _common(experiment)
    beside: list[dict[str, object]] = []
    for pod in pods:
        template = writer.template(pod)
        if pod.name == "aggregator":
            body: dict[str, object] = {"template": {"spec": writer.with_volumes(template, pod)}}
            beside.append(
                {
                    "apiVersion": f"{_GROUP}/v1alpha1",
                    "kind": "AggregatorConfig",
                    "metadata": {"name": "aggregator-config", "namespace": "di-system"},
                    "spec": {"aggregator": body},
                }
            )
            continue
        if pod.name == "coordinator" and (priority_class := template.pop("priorityClassName", None)):
            spec["priorityClassName"] = priority_class
        template.setdefault("restartPolicy", _restart_policy(pod))
        if pod.settings.replicas != 1:
            what = f"the coordinator's configuration sets the number of {pod.name}s"
            writer.log.changed(f"{pod.path}.replicas", what)
        spec[pod.name] = {"template": {"spec": writer.with_own_volumes(template, pod)}}
    return spec | writer.job_volumes(), beside


def _restart_policy(pod: Pod) -> str:
    """Return the restart policy, which the operator copies; except for coordinators, its default is Kubernetes'."""
    if not pod.is_finite:
        return "Always"
    return "OnFailure" if pod.settings.restart == "on-failure" else "Never"


def _template_spec(experiment: Experiment, pods: list[Pod], writer: PodWriter) -> _Spec:
    pod = pods[0]
    dijob = settings_of(experiment.workload)
    engine: dict[str, object] = {"topology": dijob.topology, "parallelWorkers": dijob.parallel_workers}
    replicas = pod.settings.replicas
    spec = _common(experiment) | {
        "priority": dijob.priority,
        "preemptible": False,
        "minReplicas": replicas,
        "maxReplicas": dijob.max_replicas or max(replicas, 1),
        "engineFields": engine,
        "template": {"spec": writer.with_volumes(writer.template(pod))},
    }
    return spec, []


def _tasks_spec(experiment: Experiment, pods: list[Pod], writer: PodWriter, *, job_volumes: bool = True) -> _Spec:
    settings = settings_of(experiment.workload)
    tasks: list[object] = []
    for pod in pods:
        kind = task_type(settings.tasks, pod.name)
        template = writer.template(pod)
        body = writer.with_own_volumes(template, pod) if job_volumes else writer.with_volumes(template, pod)
        tasks.append({"name": pod.name, "type": kind, "replicas": pod.settings.replicas, "template": {"spec": body}})
        if not pod.is_finite:
            what = f'"{pod.name}" is a service, and a DIJob ends only when all its pods have ended'
            writer.log.note(pod.path, what, "make it a finite process")
    spec = _common(experiment) | {
        "priority": settings.priority,
        "preemptible": False,
        "backoffLimit": experiment.workload.retries,
        "tasks": tasks,
    }
    return (spec | writer.job_volumes() if job_volumes else spec), []


def _old_tasks_spec(experiment: Experiment, pods: list[Pod], writer: PodWriter) -> _Spec:
    return _tasks_spec(experiment, pods, writer, job_volumes=False)


_SPECS = {"v0": _roles_spec, "v1.0": _template_spec, "v1.1.0": _old_tasks_spec, "v1.1": _tasks_spec}
