"""`local:` changes an experiment into the one that runs here, as if all of `local:` were meant for a cluster, too.

Comparing a local plan with the manifests of that experiment leaves exactly the differences that nobody asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from symphony_charts.spec.model import Experiment, LocalProcess, PodSettings, Process
from symphony_charts.spec.pods import Pod, pods_of, processes_of

__all__ = ["local_process", "overridden", "replicas_here", "with_local"]

_FIELDS = ("command", "args", "cmds", "preamble", "shell", "env", "replicas", "cwd")


def local_process(process: Process) -> Process:
    """`process` with its `local:` overrides in place."""
    if process.local is None:
        return process
    local = process.local
    changes: dict[str, object] = {}
    if local.cmds is not None:
        changes = {"command": None, "args": None}
    elif local.command is not None:
        changes = {"cmds": None}
    own = {name: getattr(local, name) for name in ("command", "args", "cmds", "shell", "cwd")}
    changes.update({key: value for key, value in own.items() if value is not None})
    return msgspec.structs.replace(process, **changes)


def replicas_here(pod: Pod) -> int:
    """How many replicas of `pod` run on one machine."""
    own = [process.local.replicas for process in pod.processes.values() if process.local is not None]
    chosen = [count for count in own if count is not None]
    return chosen[0] if chosen else pod.settings.replicas


def with_local(experiment: Experiment) -> Experiment:
    """`experiment` whose processes are what their `local:` overrides make of them.

    Preambles stay out: what they set is known only while they run.
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


def overridden(experiment: Experiment) -> list[str]:
    """What `local:` sets, one line for each process that has any: ``learner: command, env LR``."""
    return list(_lines(experiment))


def _lines(experiment: Experiment) -> Iterator[str]:
    common = [f"env {name}" for name in experiment.local.env]
    common += [f"env {name} (passed on)" for name in experiment.local.pass_env]
    common += [name for name in ("preamble", "cwd") if getattr(experiment.local, name)]
    if common:
        yield f"every process: {', '.join(common)}"
    for ref, process in processes_of(experiment):
        if process.local is None:
            continue
        changed = [name for name in _FIELDS if name != "env" and getattr(process.local, name) is not None]
        changed += [f"env {name}" for name in process.local.env]
        if changed:
            yield f"{ref}: {', '.join(changed)}"


def _settled(experiment: Experiment, process: Process) -> Process:
    local = process.local or LocalProcess()
    # A folder of this machine is in no image.
    cwd = process.cwd if local.cwd is None else None
    env = {**process.env, **experiment.local.env, **local.env}
    return msgspec.structs.replace(local_process(process), env=env, cwd=cwd, local=None)
