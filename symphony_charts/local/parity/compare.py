"""The comparison finds where a process sees other things here than in its pod, by plan, manifests and probe."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from symphony_charts.environment.di_engine import AGGREGATOR, ASKED_FOR, SERVER, is_of_v0, older_names
from symphony_charts.local.machine.machine import plan_here
from symphony_charts.local.parity.pod_view import view_of_manifests
from symphony_charts.local.parity.probe import probe
from symphony_charts.local.parity.process_view import ProcessView, differences, view_of_plan
from symphony_charts.local.plan.overlays import foreign_containers
from symphony_charts.local.plan.overrides import replicas_here, with_local
from symphony_charts.local.plan.replicas import replica_name
from symphony_charts.placement.pools.pool import Pools
from symphony_charts.prepare import prepare_experiment
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import pods_of
from symphony_charts.spec.services import Service, allocate
from symphony_charts.spec.sources import SECRETS_DIR
from symphony_charts.spec.variable_names import INDEX, Part, service_variable

__all__ = ["Difference", "Parity", "compare"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One field of one process: `sides` names what was compared, `text` says both values."""

    process: str
    sides: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Parity:
    """The outcome of a comparison of `processes` processes on `sides`."""

    processes: int
    sides: tuple[str, ...]
    differences: tuple[Difference, ...]


def compare(
    experiment: Experiment, pins: Mapping[str, int], folder: Path, *, probes: bool, pools: Pools | None = None
) -> Parity:
    """The differences beyond the closed list between the local plan and the rendered manifests.

    `pools` settle where processes were sent. With `probes` also between a probe that really runs in tmux and both. What
    `local:` changes is taken as wanted.
    """
    services = allocate(experiment, pins)
    of_cluster, uncounted = ((SERVER, AGGREGATOR), ASKED_FOR) if is_of_v0(experiment) else ((), ())
    planned = {
        name: replace(view, files=_without_secrets(view.files))
        for name, view in view_of_plan(plan_here(experiment, services, folder, "diff")).items()
        if name.partition("/")[0] not in of_cluster
    }
    pins = {service.name: service.port for service in services}
    in_templates = view_of_manifests(
        prepare_experiment(with_local(experiment), pins, pools=pools, force=True).objects,
        # `up` says of these that it does not run them.
        without={name: foreign_containers(pod) for name, pod in pods_of(experiment).items()},
    )
    in_pods = dict(_with_replicas(experiment, in_templates, uncounted))
    passed = frozenset(experiment.local.pass_env) | older_names(experiment) | _left_out(experiment, services)
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
    """The views, with one for each replica here of the `uncounted` pods, of which manifests have a template alone."""
    pods = pods_of(experiment)
    for name, view in views.items():
        pod, _, process = name.partition("/")
        if pod not in uncounted:
            yield name, view
            continue
        count = replicas_here(pods[pod])
        for index in range(count):
            called = f"{replica_name(pod, index, count, pods)}/{process}"
            yield called, replace(view, name=called, unknown=view.unknown | {INDEX})


def _left_out(experiment: Experiment, services: Sequence[Service]) -> frozenset[str]:
    """The variables of services that `local:` leaves out here: they are told all the same, as on a cluster."""
    here = {name for name, pod in pods_of(experiment).items() if replicas_here(pod)}
    parts: tuple[Part, ...] = get_args(Part)
    return frozenset(
        service_variable(service.name, part)
        for service, part in itertools.product(services, parts)
        if service.listener.pod not in here
    )


def _without_secrets(files: Mapping[str, str]) -> dict[str, str]:
    """The files that manifests hold, too; what is in a Secret is made apart from them."""
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
