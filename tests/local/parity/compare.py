"""Comparison of processes here and in their pods, by plan, manifests and probe."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

import msgspec

from symphony_charts.integrations.dijob.settings import ASKED_FOR, ROLES, SERVER, is_of_v0, settings_of
from symphony_charts.local.machine.machine import plan_here
from symphony_charts.local.plan.replicas import foreign_containers, local_process, replica_name, replicas_here
from symphony_charts.placement.pools.pool import Pools
from symphony_charts.prepare import prepare_experiment
from symphony_charts.spec.model import Experiment, LocalProcess, PodSettings, Process
from symphony_charts.spec.pods import Service, allocate, pods_of
from symphony_charts.spec.sources import SECRETS_DIR
from symphony_charts.spec.variable_names import INDEX, Part, service_variable
from tests.local.parity.pod_view import view_of_manifests
from tests.local.parity.probe import probe
from tests.local.parity.process_view import ProcessView, differences, view_of_plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One field of one process: `sides` names the compared sides, `text` has both values."""

    process: str
    sides: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Parity:
    """The result of comparing `processes` processes on `sides`."""

    processes: int
    sides: tuple[str, ...]
    differences: tuple[Difference, ...]


def compare(
    experiment: Experiment, pins: Mapping[str, int], folder: Path, *, probes: bool, pools: Pools | None = None
) -> Parity:
    """Return the differences between the local plan and the rendered manifests, beyond the closed list.

    `pools` decide the placement of processes. With `probes`, also compare both with a probe that really runs in tmux.
    Changes by `local:` are intended and no difference.
    """
    services = allocate(experiment, pins)
    of_cluster, uncounted = ((SERVER,), ASKED_FOR) if is_of_v0(experiment) else ((), ())
    planned = {
        name: replace(view, files=_without_secrets(view.files))
        for name, view in view_of_plan(plan_here(experiment, services, folder, "diff")).items()
        if name.partition("/")[0] not in of_cluster
    }
    pins = {service.name: service.port for service in services}
    in_templates = view_of_manifests(
        prepare_experiment(_with_local(experiment), pins, pools=pools, force=True).objects,
        # `up` reports that it does not run them.
        without={name: foreign_containers(pod) for name, pod in pods_of(experiment).items()},
    )
    in_pods = dict(_with_replicas(experiment, in_templates, uncounted))
    passed = frozenset(experiment.local.pass_env) | _older_names(experiment) | _left_out(experiment, services)
    passed |= {service_variable(service.name, "HOSTS") for service in services if service.listener.pod in uncounted}
    differences = list(_compare("plan, manifests", planned, in_pods, passed))
    sides: tuple[str, ...] = ("the plan", "the manifests")
    if probes:
        seen = probe(experiment, services, folder, planned)
        differences += _compare("tmux, plan", seen, planned, passed)
        differences += _compare("tmux, manifests", seen, in_pods, passed)
        sides = (*sides, "tmux")
    return Parity(processes=len(planned), sides=sides, differences=tuple(differences))


def _with_replicas(
    experiment: Experiment, views: Mapping[str, ProcessView], uncounted: Collection[str]
) -> Iterator[tuple[str, ProcessView]]:
    """Yield the views, with one per local replica of the `uncounted` pods, for which manifests have only a template."""
    pods = pods_of(experiment)
    # Operator v0, the only one with such pods, gives no pod its index.
    unknown = {INDEX} if uncounted else set()
    for name, known in views.items():
        pod, _, process = name.partition("/")
        view = replace(known, unknown=known.unknown | unknown)
        if pod not in uncounted:
            yield name, view
            continue
        count = replicas_here(pods[pod])
        for index in range(count):
            called = f"{replica_name(pod, index, count, pods)}/{process}"
            yield called, replace(view, name=called)


def _left_out(experiment: Experiment, services: Sequence[Service]) -> frozenset[str]:
    """Return the variables of services that `local:` omits here: they are set all the same, as on a cluster."""
    here = {name for name, pod in pods_of(experiment).items() if replicas_here(pod)}
    parts: tuple[Part, ...] = get_args(Part)
    return frozenset(
        service_variable(service.name, part)
        for service, part in itertools.product(services, parts)
        if service.listener.pod not in here
    )


def _without_secrets(files: Mapping[str, str]) -> dict[str, str]:
    """Return the files that the manifests contain too; a Secret's content is made separately."""
    return {path: mark for path, mark in files.items() if not path.startswith(f"{SECRETS_DIR}/")}


def _compare(
    sides: str, here: Mapping[str, ProcessView], there: Mapping[str, ProcessView], allowed: frozenset[str]
) -> Iterator[Difference]:
    for name in sorted({*here, *there}):
        if name not in here or name not in there:
            text = f"only in {sides.split(', ')[0 if name in here else 1]}"
            yield Difference(process=name, sides=sides, text=text)
            continue
        for text in differences(here[name], there[name], allowed):
            yield Difference(process=name, sides=sides, text=text)


def _with_local(experiment: Experiment) -> Experiment:
    """Return `experiment` with the `local:` overrides of its processes in place, as if they were meant for a cluster.

    Preambles are left out: their variables are known only at run time.
    """
    here = {name: _counted(pod.settings, replicas_here(pod)) for name, pod in pods_of(experiment).items()}
    groups = {
        name: msgspec.structs.replace(
            group,
            processes={inner: _settled(experiment, process) for inner, process in group.processes.items()},
            **here[name],
        )
        for name, group in experiment.groups.items()
    }
    processes = {
        name: msgspec.structs.replace(_settled(experiment, process), **here[name])
        for name, process in experiment.processes.items()
    }
    return msgspec.structs.replace(experiment, groups=groups, processes=processes)


def _counted(settings: PodSettings, replicas: int) -> dict[str, int | None]:
    least = settings.min_replicas
    return {"replicas": replicas, "min_replicas": None if least is None else min(least, replicas)}


def _settled(experiment: Experiment, process: Process) -> Process:
    local = process.local or LocalProcess()
    # A folder of this machine is in no image.
    cwd = process.cwd if local.cwd is None else None
    env = {**process.env, **experiment.local.env, **local.env}
    return msgspec.structs.replace(local_process(process), env=env, cwd=cwd, local=None)


def _older_names(experiment: Experiment) -> frozenset[str]:
    """Return the names of `older_variables`, which an operator adds to the manifests."""
    if experiment.workload.kind != "dijob" or settings_of(experiment.workload).operator not in ("v1.0", "v0"):
        return frozenset()
    arguments = (f"DI_{name}_ARG" for name in ("PARALLEL_WORKERS", "PORTS", "NODE_IDS", "ATTACHED_NODES"))
    ports = (f"{role.upper()}_PORT" for role in ROLES)
    urls = (f"KUBERNETES_{name}" for name in ("POD_NAME", "POD_NAMESPACE", "SERVER_URL", "COORDINATOR_URL"))
    return frozenset((*arguments, *ports, *urls, "DI_JOB_ID", "DI_JOB_GENERATION"))
