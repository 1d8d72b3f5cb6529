"""The draft of an experiment's chart: groups, services, names and volumes, each fact derived once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import msgspec

from symphony_charts.chart.helpers import MAX_WORKLOAD, cut
from symphony_charts.chart.tree import Helper, Join, Let, Text, Tree
from symphony_charts.errors import Problem
from symphony_charts.formats.data import Values, maps, merge_overlay, sub
from symphony_charts.spec.model import Experiment, Process, Step
from symphony_charts.spec.pods import Pod, Service, find_process, pods_of, pods_that_end, retries_of
from symphony_charts.spec.sources import (
    AnyVolume,
    ClaimVolume,
    ConfigVolume,
    DeviceVolume,
    EmptyDirVolume,
    GitVolume,
    HostPathVolume,
    Mount,
    NfsVolume,
    SecretVolume,
)
from symphony_charts.spec.workload import Workload

_GIT_IMAGE = "alpine/git:v2.49.1"

_CHECKOUT = "/symph/checkout"

# Fetches only what is needed if the server allows it, and can run again in the same folder. There is no "$(",
# which Kubernetes would read as a variable reference.
_GIT_SCRIPT = f"""cd {_CHECKOUT}
git() {{ command git -c safe.directory={_CHECKOUT} "$@"; }}
test -d .git || {{ git init -q . && git remote add origin "$GIT_REPOSITORY"; }}
if git fetch -q --depth 1 origin "$GIT_REVISION"; then git checkout -q -f FETCH_HEAD
else git fetch -q --tags origin '+refs/heads/*:refs/remotes/origin/*' && git checkout -q -f "$GIT_REVISION"
fi"""


def volume_source(volume: AnyVolume) -> Values:
    """Return the pod's volume source; a repository is an empty volume that an init container fills."""
    match volume:
        case NfsVolume():
            nfs: Values = {"server": volume.server, "path": volume.path}
            return {"nfs": {**nfs, "readOnly": True} if volume.read_only else nfs}
        case HostPathVolume():
            path: Values = {"path": volume.path}
            return {"hostPath": {**path, "type": volume.kind} if volume.kind else path}
        case DeviceVolume():
            return {"hostPath": {"path": volume.path}}
        case ClaimVolume():
            return {"persistentVolumeClaim": {"claimName": volume.claim}}
        case SecretVolume():
            return {"secret": {"secretName": volume.secret, **_files(volume)}}
        case ConfigVolume():
            return {"configMap": {"name": volume.config, **_files(volume)}}
        case EmptyDirVolume():
            scratch = {"medium": "Memory" if volume.memory else "", "sizeLimit": volume.size or ""}
            return {"emptyDir": {key: value for key, value in scratch.items() if value}}
        case GitVolume():
            return {"emptyDir": {}}


def _files(volume: SecretVolume | ConfigVolume) -> Values:
    files: Values = {}
    if volume.mode is not None:
        files["defaultMode"] = int(volume.mode, 8)
    if volume.items:
        files["items"] = [{"key": key, "path": path} for key, path in volume.items.items()]
    return files


MAX_NAME = 63
_RUN = 8
_PORT_NAME = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Processes that share a pod.

    `part` is the group's part of object names; a long name is cut with a hash. `is_finite`: a Job runs it, else a
    StatefulSet. `is_kept`: its pods outlive a run. `is_restarted_in_place`: the kubelet restarts its containers.
    `is_ended`: services in a Job that something ends with the run. They are sidecars of a container that waits, so that
    the kubelet restarts them whatever their exit status is. If the kind does not run it, the Job is beside its object.
    """

    name: str
    part: str
    pod: Pod
    steps: Mapping[str, Step]
    is_finite: bool
    is_kept: bool
    is_restarted_in_place: bool
    is_ended: bool

    @property
    def is_replaced(self) -> bool:
        """True if a new pod replaces a failed one."""
        return self.is_finite and not self.is_restarted_in_place

    @property
    def programs(self) -> tuple[str, ...]:
        return (*self.steps, *self.pod.processes)

    def is_sidecar(self, process: str) -> bool:
        """Return True if `process` is a service in a finite pod."""
        return self.is_finite and self.pod.processes[process].lifecycle == "service"

    @property
    def path(self) -> str:
        return f".Values.groups.{self.name}"

    @property
    def pods_service(self) -> str:
        """The format of the name of the chart's headless Service for the host names of its pods."""
        return f"{{$fullname}}-{self.part}-pods"


class Kind:
    """Interface of a kind of workload. Each kind is a class in a module of ``build/kinds``.

    The defaults hold for most kinds. Names are `Text` formats with the variables ``{$fullname}``, ``{$run}`` and, for
    pods, ``{$i}``.

    `name` is the kind's word in a spec. `file` is the template with the object that runs all its groups; if empty, each
    group has its workload in its own template. `max_part` limits the characters of a group in a name. `more_letters`
    counts the characters of a workload name besides full name, run and group. `index` is the field with the index of a
    pod; empty if there is none. `has_pod_groups`: the chart creates the PodGroups of a gang, not a controller.
    `is_scaled_live`: a new number of replicas does not start a new run. `has_ranks`: the controller sets the ranks of
    DI-engine processes. `reads_queue`: the objects name a queue. `has_group_retries`: each group has its own retries.
    `fails_when_evicted`: an eviction by the node or scheduler counts as a failure.
    """

    name: str
    file: str = ""
    max_part: int = 18
    more_letters: int = 0
    index: str = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    has_pod_groups: bool = True
    is_scaled_live: bool = False
    has_ranks: bool = False
    reads_queue: bool = False
    has_group_retries: bool = True
    fails_when_evicted: bool = False
    workload: Workload

    def __init__(self, workload: Workload) -> None:
        self.workload = workload

    # --- names and fields ---

    def runs(self, group: Group) -> bool:
        """Return True if the kind's objects run `group`; Jobs or StatefulSets run the others."""
        return group.is_finite

    def watched(self) -> tuple[str, str] | None:
        """Return the object with which a run ends, as ``resource.group``, and the path of its state.

        None: a run ends with its Jobs.
        """
        return None

    def job_name(self, group: Group) -> str:
        """Return the format of the name of a group's Job, or of the group's part of the kind's object."""
        return f"{{$fullname}}-{group.part}-{{$run}}"

    def pod_name(self, group: Group) -> str:
        """Return the format of a replica's host name."""
        return f"{self.job_name(group)}-{{$i}}"

    def domain(self, group: Group) -> str:
        """Return the format of the name of the headless Service that gives a group's pods their host names."""
        return group.pods_service

    def selector(self, group: Group) -> Tree | None:
        """Return the labels that select the group's pods; None for the labels of the chart."""
        return None

    def is_single(self, group: Group) -> bool:
        """Return True if the controller starts exactly one pod of `group`, independent of the values."""
        return False

    def attempt(self, group: Group) -> str:
        """Return the field path of a pod's number of earlier attempts; empty if the kind does not count them."""
        if group.is_restarted_in_place:
            return ""
        return "metadata.annotations['batch.kubernetes.io/job-index-failure-count']"

    def restart_policy(self, group: Group) -> str:
        return "OnFailure" if group.is_restarted_in_place and not group.is_ended else "Never"

    def container_name(self, group: Group, process: str) -> str:
        return process

    def port_name(self, group: Group, service: str) -> str:
        """Return the port name that a controller requires for a service; empty if it requires none."""
        return ""

    def variables(self, program: Process | Step) -> Mapping[str, Tree]:
        """Return the variables of a program that the kind sets; they are not among its values."""
        return {}

    def pod_fields(self, draft: Draft, group: Group) -> dict[str, Tree]:
        """Return fields of the pod spec that only this kind sets."""
        return {}

    # --- objects ---

    def group_objects(self, draft: Draft, group: Group) -> list[Tree]:
        """Return the objects that run one group; they are in the template of the group."""
        return []

    def objects(self, draft: Draft) -> list[Tree]:
        """Return the objects that run all groups of the kind; they are in the template `file`."""
        return []

    def fixed(self, draft: Draft, group: Group) -> Mapping[str, Tree]:
        """Return the parts of a group that cannot change during a run; a change starts a new run."""
        raise NotImplementedError

    def fixed_settings(self, draft: Draft) -> list[Tree]:
        """Return further parts that cannot change during a run."""
        return []

    # --- the rest of the chart ---

    def values(self, draft: Draft) -> dict[str, Any]:
        """Return the values of `workload` that this kind reads in addition to those of a gang."""
        return {}

    def reads_minimum(self) -> bool:
        """Return True if the kind's objects read `minReplicas` of groups even without a gang."""
        return False

    def helpers(self, draft: Draft) -> Iterable[Helper]:
        return ()

    def local_helpers(self, draft: Draft) -> Iterable[Helper]:
        """Return helpers for the template `file` only."""
        return ()

    def faults(self, draft: Draft) -> Iterable[Problem]:
        return ()

    def findings(
        self, draft: Draft, groups: Sequence[Group], values: Mapping[str, Any]
    ) -> Iterable[tuple[Literal["warning", "info"], str, Problem]]:
        """Return settings that the controller ignores or treats differently: severity, rule, and the finding.

        `groups` are those with replicas under the complete `values` of a release.
        """
        return ()

    def shared_retries(self, most: int) -> str:
        """Return how pods share their retries, of which a group has `most`; empty if each replica has its own."""
        return ""

    def unread(self) -> Iterable[Problem]:
        """Return the kind's settings that have no effect in combination with others."""
        return ()


class Peers:
    """Interface of `compat`, with which replicas of several groups find each other. The default has no nodes."""

    def nodes_of(self, draft: Draft) -> list[Group]:
        """Return the groups that are nodes, ordered by rank."""
        return []

    def rank_words(self, draft: Draft, group: Group, program: Process | Step) -> list[str]:
        """Return the words before a command that compute the replica's rank if it is not its index."""
        return []

    def variables(self, draft: Draft, group: Group, index: Tree) -> dict[str, Tree]:
        """Return the variables of a process of `group` for the replica with number `index`."""
        return {}

    def helpers(self, draft: Draft, fullname: Helper, run: Helper) -> list[Helper]:
        """Return the helpers that the variables need."""
        return []

    def faults(self, draft: Draft) -> Iterable[Problem]:
        """Return the processes that cannot get their rank."""
        return ()


@dataclass(frozen=True, kw_only=True)
class Draft:
    """An experiment as all builders see it.

    `fullname_limit` leaves room for the longest name of a workload. `pods` are the pod templates by group.
    """

    experiment: Experiment
    kind: Kind
    peers: Peers
    groups: Mapping[str, Group]
    services: Mapping[str, Service]
    fullname_limit: int
    pods: Mapping[str, dict[str, Tree]] = field(default_factory=dict)

    @cached_property
    def finite(self) -> list[Group]:
        """The groups that Jobs run."""
        return [group for group in self.groups.values() if group.is_finite]

    @cached_property
    def members(self) -> list[Group]:
        """The groups that the kind's objects run."""
        return [group for group in self.groups.values() if self.kind.runs(group)]

    @cached_property
    def ended(self) -> list[Group]:
        """The groups of services that end with the run."""
        return [group for group in self.groups.values() if group.is_ended]

    @cached_property
    def done(self) -> dict[str, Group]:
        """The groups of `done_when`, or if services end with the run all others; empty: the run ends with all."""
        pods = {find_process(self.experiment, name).pod for name in self.experiment.done_when}
        if not pods and self.ended:
            return {group.name: group for group in self.finite if not group.is_ended}
        return {group.name: group for group in self.finite if group.name in pods}

    def name(self, suffix: str) -> Text:
        """Return an object name: the full name and `suffix`, shortened to fit."""
        return Text(f"{{$fullname}}-{cut(suffix, MAX_NAME - 1 - self.fullname_limit)}")

    def workload(self, group: Group) -> str:
        """Return the format of the name of a group's Job or StatefulSet."""
        if self.kind.runs(group):
            return self.kind.job_name(group)
        return f"{{$fullname}}-{group.part}{'-{$run}' if group.is_ended else ''}"

    def host(self, group: Group) -> str:
        """Return the format of the address of replica ``{$i}`` of a group."""
        if self.kind.runs(group):
            return f"{self.kind.pod_name(group)}.{self.kind.domain(group)}"
        return f"{self.workload(group)}-{{$i}}.{group.pods_service}"

    def hosts(self, service: Service) -> Join | Text:
        """Return the address of each listening replica, in order; the service's address if they have no host names."""
        group = self.groups[service.listener.pod]
        if self.kind.runs(group) and not self.kind.pod_name(group):
            return Text(f"{self.name(service.name).format}:{{.Values.services.{service.name}.port}}")
        return Join(f"{group.path}.replicas", Text(f"{self.host(group)}:{{$.Values.services.{service.name}.port}}"))

    def services_of(self, group: Group, process: str | None = None) -> list[Service]:
        return [
            service
            for service in self.services.values()
            if service.listener.pod == group.name and process in (None, service.listener.process)
        ]

    def port_names(self, group: Group) -> dict[str, str]:
        """Return the port name of each service of a group: at most 15 characters, unique in the pod."""
        names: dict[str, str] = {}
        for service in self.services_of(group):
            short = service.name[:_PORT_NAME].removesuffix("-")
            taken = short in names.values() or not any(char.isalpha() for char in short)
            expected = self.kind.port_name(group, service.name) if self.kind.runs(group) else ""
            names[service.name] = expected or (cut(f"port-{service.name}", _PORT_NAME) if taken else short)
        return names

    def is_scaled_live(self, group: Group) -> bool:
        """Return True if a new number of replicas does not start a new run, as in a Job with their addresses."""
        if not (self.kind.is_scaled_live and self.kind.runs(group)):
            return False
        dialled = [self.services[each] for other in self.ended for each in dials_of(other) if each in self.services]
        return all(service.listener.pod != group.name for service in dialled)

    def is_foreign(self, group: Group) -> bool:
        """Return True if a controller sets its own names and labels on the pods of `group`."""
        return self.kind.runs(group) and self.kind.selector(group) is not None

    def needs_host_names(self, group: Group) -> bool:
        """Return True if other pods reach the pods of `group` by host names that the chart sets."""
        if self.is_foreign(group):
            return False
        return not group.is_finite or self.experiment.compat is not None or bool(self.services_of(group))


def draft(
    experiment: Experiment, services: Iterable[Service], kind: Kind, peers: Peers, *, ends_services: bool
) -> Draft:
    """Return the draft of a finished experiment's chart. `services` have their ports; `kind` runs it.

    `ends_services`: services with `until: run` are Jobs, alone or in the kind's object, and end with the run.
    """
    pods = pods_of(experiment)
    of_run = pods_that_end(experiment)
    ended = of_run if ends_services and any(pod.is_finite for pod in pods.values()) else ()
    by_name = {service.name: service for service in services}
    groups = {
        name: Group(
            name=name,
            part=cut(name, kind.max_part),
            pod=pod,
            steps=_steps(experiment, pod),
            is_finite=pod.is_finite or name in ended,
            is_kept=True,
            is_restarted_in_place=name in ended
            or (pod.is_finite and pod.settings.restart == "on-failure" and retries_of(experiment, pod) > 0),
            is_ended=name in ended,
        )
        for name, pod in sorted(pods.items())
    }
    restarted = _restarted(kind, groups, by_name, of_run)
    longest = max((len(group.part) for group in groups.values()), default=0)
    return Draft(
        experiment=experiment,
        kind=kind,
        peers=peers,
        groups={name: replace(group, is_kept=name not in restarted) for name, group in groups.items()},
        services={name: by_name[name] for name in sorted(by_name)},
        fullname_limit=MAX_WORKLOAD - _RUN - 2 - longest - kind.more_letters,
    )


def _steps(experiment: Experiment, pod: Pod) -> dict[str, Step]:
    steps = {key: step for key, step in experiment.prepare.items() if not step.groups or pod.name in step.groups}
    programs: list[Process | Step] = [*pod.processes.values(), *steps.values()]
    checkouts = {}
    for name in dict.fromkeys(mount.volume for program in programs for mount in program.mounts):
        volume = experiment.volumes[name]
        if isinstance(volume, GitVolume):
            checkouts[f"git-{name}"] = Step(
                image=volume.image or _GIT_IMAGE,
                command=["/bin/sh", "-e", "-c", _GIT_SCRIPT],
                env={"GIT_REPOSITORY": volume.repository, "GIT_REVISION": volume.revision},
                mounts=[Mount(volume=name, at=_CHECKOUT)],
            )
    overlays = {str(item.get("name")): item for item in maps(sub(pod.settings.pod_overlay, "spec"), "initContainers")}
    return {name: _overlaid(step, overlays.get(name, {})) for name, step in (checkouts | steps).items()}


def _overlaid(step: Step, overlay: Mapping[str, object]) -> Step:
    rest = {key: item for key, item in overlay.items() if key != "name"}
    return msgspec.structs.replace(step, container_overlay=merge_overlay(step.container_overlay, rest))


def _restarted(
    kind: Kind, groups: Mapping[str, Group], services: Mapping[str, Service], ended: Collection[str]
) -> set[str]:
    """Return the groups whose pods belong to a run and are replaced by a new one.

    These are the groups that the kind runs, the `ended` ones, and those that connect to one of them, since the
    addresses of its replicas change with the run.
    """

    def reads_run(group: Group) -> bool:
        listeners = [groups[services[each].listener.pod] for each in dials_of(group) if each in services]
        return any(kind.runs(listener) or listener.is_ended for listener in listeners)

    return {name for name, group in groups.items() if name in ended or kind.runs(group) or reads_run(group)}


def dials_of(group: Group) -> list[str]:
    return list(dict.fromkeys(each for process in group.pod.processes.values() for each in process.connects))


def with_names(tree: Tree) -> Tree:
    """Return `tree` inside the variables for the full name and the run."""
    return Let("$fullname", "fullname", Let("$run", "run", tree))
