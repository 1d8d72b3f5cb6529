"""Find kinds by word or object, the objects of their controllers, and the outcome of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, cast

from symphony_charts.formats.data import sub
from symphony_charts.formats.printable import with_gpus
from symphony_charts.kinds.appwrapper import AppWrapper
from symphony_charts.kinds.base import End, Kind, Object, Restartable, conditions_of, is_conductor, is_service
from symphony_charts.kinds.job import Conductor, Deployments, Jobs, JobSet, StatefulSets, VolcanoJob
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import ProcessRef, find_process, pods_of, pods_that_end
from symphony_charts.system.launching import entry_points

_CONDUCTOR = Conductor()
_NAMED: tuple[Kind, ...] = (Jobs(), JobSet(), AppWrapper(), VolcanoJob())
_OURS: tuple[Kind, ...] = (*_NAMED, StatefulSets())

ADDED: Mapping[str, Kind] = {name: cast("Kind", entry.load()) for name, entry in entry_points("symph.kinds").items()}
"""The kinds of integrations and other packages, by the names of their entry points."""

KINDS: Mapping[str, Kind] = {**{kind.name: kind for kind in _NAMED}, **ADDED}
"""The kinds by their words in a spec."""

RENDERED: tuple[Kind, ...] = (*_OURS, *(kind for kind in ADDED.values() if kind.builder))
"""The kinds whose objects our charts contain."""

ALL = (*_OURS, Deployments(), *ADDED.values())


def kind_of(item: Mapping[str, object]) -> str:
    """Return the kind of an object; ``VolcanoJob`` for a Job of Volcano."""
    is_volcano = str(item.get("apiVersion")).startswith("batch.volcano.sh/")
    return f"{'Volcano' if is_volcano else ''}{item.get('kind')}"


RUNS = {kind_of({"apiVersion": api, "kind": word}): kind for kind in ALL for api, word in kind.gvks}
"""The kinds of runs by what `kind_of` returns for their objects."""

_BY_API = {(api.partition("/")[0], word): kind for kind in ALL for api, word in (*kind.gvks, *kind.further)}
# If several projects have objects of the same kind, Kubernetes' own wins.
_BY_WORD = {word: kind for kind in reversed(ALL) for _, word in (*kind.gvks, *kind.further)}


def kind_for(item: Mapping[str, object]) -> Kind | None:
    """Return the kind of an object, by its API group or otherwise its `kind` alone; None if it is unknown."""
    word = str(item.get("kind"))
    if word == "Job" and is_conductor(item):
        return _CONDUCTOR
    if word == "Job" and not item.get("apiVersion") and "tasks" in sub(item, "spec"):
        return KINDS["volcano"]
    return _BY_API.get((str(item.get("apiVersion")).partition("/")[0], word)) or _BY_WORD.get(word)


def compat_kind(word: str | None) -> Kind | None:
    """Return the kind with the word of `compat` in a spec; None without one."""
    return next((kind for kind in KINDS.values() if word and kind.compat == word), None)


def workload_kind(item: Mapping[str, object]) -> Kind | None:
    """Return the kind of a chart object that runs pods; None for others, such as templates of later runs."""
    kind = kind_for(item)
    return kind if kind in RENDERED and item.get("kind") in {word for _, word in kind.gvks} else None


def opened(objects: Iterable[dict[str, object]]) -> list[dict[str, object]]:
    """Return `objects`, each followed by the objects that its controller creates, with the controller's names."""
    beside = list(objects)

    def with_children(item: dict[str, object]) -> Iterator[dict[str, object]]:
        yield item
        kind = kind_for(item)
        for child in kind.children(item, beside) if kind else ():
            yield from with_children(child)

    return [one for item in beside for one in with_children(item)]


# A JobSet creates its Jobs late, deletes them early, and has none while it is queued. So read its groups from the set
# itself, but prefer a Job that exists.

_DONE = "symph.dev/done-when"
# Reads objects of unknown kinds.
_UNKNOWN = Jobs()


def parts_of(workload: Object) -> list[Object]:
    """Return the Jobs that an object describes; none if it is being deleted."""
    kind = kind_for(workload)
    return kind.jobs(workload) if kind and _is_alive(workload) else []


def _is_alive(workload: Object) -> bool:
    return not workload["metadata"].get("deletionTimestamp")


def verdict_of(workloads: Sequence[Object]) -> End | None:
    """Return the outcome by the workload that holds the groups; None without one, or before its end.

    If no workload holds them all, the experiment has succeeded with the Jobs of `done_when`.
    """
    alive = list(filter(_is_alive, workloads))
    is_failed = any("Failed" in conditions_of(item) for item in alive)
    sets = _newest([item for item in alive if is_whole(item)])
    if is_failed and any((kind_for(item) or _UNKNOWN).ends_either_way and end_of(item) for item in sets):
        return "failed"
    if sets:
        return next((end for item in sets if (end := end_of(item))), None)
    deciding = [item for item in alive if (item["metadata"].get("annotations") or {}).get(_DONE)]
    is_done = deciding and not is_failed and all("Complete" in conditions_of(item) for item in deciding)
    return "succeeded" if is_done else None


def may_start_again(workloads: Sequence[Object]) -> bool:
    """Return True if an unfinished workload continues after a failed Job, usually by restarting everything."""
    alive = filter(_is_alive, workloads)
    again = [item for item in alive if isinstance(kind := kind_for(item), Restartable) and kind.restarts(item)]
    return any(end_of(item) is None for item in _newest(again))


def end_of(item: Object) -> End | None:
    """Return the outcome of a workload by its own status; None before its end."""
    return (kind_for(item) or _UNKNOWN).outcome(item)


def is_whole(item: Object) -> bool:
    kind = kind_for(item)
    return kind is None or kind.holds_groups


def word_of(item: Object) -> str:
    """Return the state of a workload in its project's word."""
    return (kind_for(item) or _UNKNOWN).state(item)


def _newest(sets: list[Object]) -> list[Object]:
    repeated = [item for item in sets if (kind := kind_for(item)) and kind.is_repeated]
    last = max(repeated, key=lambda item: str(item["metadata"].get("creationTimestamp", "")), default=None)
    return [item for item in sets if item not in repeated or item is last]


def deciding_objects(objects: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Return the workloads of a release that decide when it is done: those of `done_when`, or all that end."""
    workloads = [item for item in objects if end_conditions(item) is not None and not is_service(item)]
    return [item for item in workloads if _DONE in sub(item, "metadata", "annotations")] or workloads


def end_conditions(item: Mapping[str, object]) -> tuple[str, str] | None:
    """Return an Argo Workflow's conditions of success and failure for an object; None if it has none."""
    kind = kind_for(item)
    return kind.argo_conditions if kind else None


class _Chart(Protocol):
    @property
    def experiment(self) -> Experiment: ...


def runs_on(chart: _Chart, values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return group and name of each process that keeps running when the experiment is done.

    `values` are the complete values of a release of `chart`. A service in a finite pod stops with it.
    """
    experiment, workload = chart.experiment, chart.experiment.workload
    kind = KINDS[workload.kind]
    pods = pods_of(experiment)
    done = {find_process(experiment, name) for name in experiment.done_when}
    is_ended = kind.is_conducted(workload) or kind.stops_the_rest(workload, len({ref.pod for ref in done}))
    removed = set(kind.removed_pods(experiment))
    if kind.ends_services(experiment) and any(pod.is_finite for pod in pods.values()):
        removed |= pods_that_end(experiment)
    return [
        (pod.name, name)
        for _, pod in sorted(pods.items())
        if pod.name not in removed and int(values["groups"][pod.name]["replicas"])
        for name, process in pod.processes.items()
        if (process.lifecycle == "service" and not pod.is_finite)
        or (process.lifecycle == "finite" and done and not is_ended and ProcessRef(pod.name, name) not in done)
    ]


def left_after_run(chart: _Chart, values: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """Return the processes of `runs_on` as text, with the GPUs of all their replicas: ``board (2 GPUs)``."""
    found = {}
    for pod, name in runs_on(chart, values):
        group = values["groups"][pod]
        limits = sub(group["containers"][name], "resources", "limits")
        gpus = sum(int(str(count)) for resource, count in limits.items() if resource.endswith("/gpu"))
        found[pod, name] = with_gpus(name if name == pod else f"{pod}/{name}", gpus * int(group["replicas"]))
    return found


def failure_difference(experiment: Experiment) -> str:
    """Return how the effect of a final failure on other processes differs here and on a cluster, or ""."""
    kind, stops = experiment.workload.kind, experiment.on_failure == "stop"
    is_told = KINDS[kind].is_conducted(experiment.workload)
    if len(pods_of(experiment)) < 2 or is_told or KINDS[kind].fails_together(experiment.workload) == stops:
        return ""
    if stops:
        return f"a permanent failure stops a local run; on kind {kind}, other groups continue (on_failure: continue)"
    return f"a permanent failure stops the other groups on kind {kind}, but not in a local run (on_failure)"
