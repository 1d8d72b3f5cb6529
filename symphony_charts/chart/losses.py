"""What a chart ignores of an experiment."""

from __future__ import annotations

from collections.abc import Iterator

from symphony_charts.errors import Problem
from symphony_charts.placement.assign.launch import asks_for_tpu
from symphony_charts.spec.model import Experiment, Process, Step
from symphony_charts.spec.pods import pods_of, processes_of
from symphony_charts.spec.sources import SecretSource

__all__ = ["losses"]

# Settings of a store of secrets outside the cluster.
_EXTERNAL = ("store", "is_cluster_store", "refresh")


def losses(experiment: Experiment) -> Iterator[Problem]:
    """Yield what a chart ignores of an experiment, with paths in the spec."""
    programs: list[Process | Step] = [*experiment.prepare.values()]
    for ref, process in processes_of(experiment):
        programs.append(process)
        if process.after:
            what = "the cluster starts all pods at once; `after` orders processes on one machine only"
            step = "let it wait for what it connects to"
            pod = pods_of(experiment)[ref.pod]
            path = f"{pod.path}.processes.{ref.process}" if pod.is_group else pod.path
            yield Problem(what=what, path=f"{path}.after", next=step)
    mounted = {mount.volume for program in programs for mount in program.mounts}
    for name in experiment.volumes:
        if name not in mounted:
            yield Problem(what="nothing mounts it", path=f"volumes.{name}", next="mount it, or leave it out")
    if experiment.placement.tpu_topology and not any(asks_for_tpu(pod) for pod in pods_of(experiment).values()):
        what, step = "nothing asks for a TPU", "say `requests: {google.com/tpu: ...}`, or leave it out"
        yield Problem(what=what, path="placement.tpu_topology", next=step)
    yield from _secret_losses(experiment)


def _secret_losses(experiment: Experiment) -> Iterator[Problem]:
    source, usual = experiment.secret_source, SecretSource()
    if source.source != "external":
        unread = [f"secret_source.{field}" for field in _EXTERNAL if getattr(source, field) != getattr(usual, field)]
        unread += [f"secrets[{index}].remote" for index, file in enumerate(experiment.secrets) if file.remote]
        what = f"only an external store reads it, and the source is {source.source}"
        for path in unread:
            yield Problem(what=what, path=path, next="set `secret_source.source: external`, or leave it out")
    if source.source != "sealed" and source.scope != usual.scope:
        what = f"only sealed values have a scope, and the source is {source.source}"
        step = "set `secret_source.source: sealed`, or leave it out"
        yield Problem(what=what, path="secret_source.scope", next=step)
