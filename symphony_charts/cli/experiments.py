"""Verbs find the backend, the experiment and the processes here that their arguments mean."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

from symphony_charts.backend.current_experiment import absent_experiment, current_of
from symphony_charts.backend.protocol import Watcher, find_instances, match_names, match_processes
from symphony_charts.backend.status import ExperimentStatus, InstanceStatus
from symphony_charts.cli import output
from symphony_charts.cli.matching import choose
from symphony_charts.cli.options import common
from symphony_charts.cli.options.defaults import typed
from symphony_charts.errors import NotFound, UsageError
from symphony_charts.local.backend import LocalWatcher
from symphony_charts.system.full_disks import full_disk
from symphony_charts.system.platforms import refuse_elsewhere
from symphony_charts.system.user_folders import state_dir

__all__ = [
    "find_experiment",
    "find_status",
    "gpu_ids",
    "one_instance",
    "phase_color",
    "place_flags",
    "some_instances",
    "watcher_of",
]

_COLORS = {
    "running": "good",
    "succeeded": "good",
    "failed": "bad",
    "queued": "busy",
    "pending": "busy",
    "stopping": "busy",
    "stopped": "dim",
    "lost": "bad",
    "damaged": "bad",
}


def phase_color(item: Mapping[str, object]) -> str:
    """The colour in which the phase of an item is printed."""
    return _COLORS.get(str(item["phase"]), "")


def gpu_ids(item: Mapping[str, object]) -> str:
    """The beginnings of the ids of an item's GPUs, by which nvidia-smi and CUDA know a GPU as well."""
    return ",".join(gpu[:12] for gpu in output.texts(item["gpus"]))


def watcher_of(args: argparse.Namespace) -> Watcher:
    """What watches the backend that these arguments mean: a user's own cluster, else the one of `--on`."""
    flags = common.cluster_flags(args)
    if flags and typed(args, "on") == "tmux":
        raise UsageError(f"--{flags[0]} means a cluster, --on tmux this machine", next="leave one out")
    if args.symphony.has_own_cluster and not typed(args, "on") and not flags:
        watcher: Watcher = args.symphony.cluster.watcher
        return watcher
    backend = common.backend_of(args)
    if backend not in ("tmux", "kube") and not flags:
        added: Watcher = args.symphony.cluster_for(args).watcher
        return added
    if flags or backend == "kube":
        # The client of Kubernetes takes 100 ms to import, which `symph ps` on this machine has not.
        from symphony_charts.kubernetes.backend import KubeWatcher

        kubeconfig = Path(args.kubeconfig) if args.kubeconfig else None
        namespace = None if getattr(args, "all_namespaces", False) else args.namespace
        return KubeWatcher(namespace=namespace, context=args.context, kubeconfig=kubeconfig)

    refuse_elsewhere()
    why = full_disk(state_dir())
    if why:
        what = f"the disk of {state_dir()} is full ({why}): states are of the past, and logs have gaps"
        output.warn(what, f"make room, by symph local gc or elsewhere (df -h {state_dir()})")
    return LocalWatcher()


def place_flags(args: argparse.Namespace) -> list[str]:
    """What says where to look, for verbs that are called by what runs on the terminal."""
    names = {"--on": "on", "-n": "namespace", "--context": "context", "--kubeconfig": "kubeconfig"}
    given = {flag: value for flag, name in names.items() if (value := typed(args, name))}
    words = [word for flag, value in given.items() for word in (flag, str(value))]
    return [*words, "-A"] if getattr(args, "all_namespaces", False) else words


def find_status(args: argparse.Namespace, watcher: Watcher, *, events: bool = False) -> ExperimentStatus:
    """How the experiment that `args.experiment_name` means is: exactly it, the one it loosely fits, or the current one.

    Verbs that take a process before it understand the other order, too. What else is to be known of it is said on
    stderr. Raises NotFound; UsageError where it fits several and nobody can be asked.
    """
    name = args.experiment_name
    if name is None:
        status = watcher.describe(current_of(watcher), events=events)
    else:
        try:
            status = watcher.describe(_prefix(args)(name), events=events)
        except NotFound:
            status = watcher.describe(_in_other_order(args, watcher) or _loosely(args, watcher, name), events=events)
    if status.note:
        output.warn(f"{status.name}: {status.note}")
    return status


def find_experiment(args: argparse.Namespace, watcher: Watcher) -> str:
    """The name of the experiment that `args.experiment_name` means; raises as `find_status` does."""
    return find_status(args, watcher).name


def some_instances(status: ExperimentStatus, word: str) -> list[InstanceStatus]:
    """The instances that a word means: exactly, else loosely in Symphony's order. Raises NotFound, UsageError."""
    found = find_instances(status, word)
    if found:
        return found
    loose, _ = match_processes(((instance.group or None, instance.name) for instance in status.instances), word)
    if not loose:
        known = ", ".join(instance.path for instance in status.instances if not instance.is_step) or "none"
        raise NotFound(f'experiment "{status.name}" has no process "{word}"', next=f"its processes: {known}")
    chosen = choose([f"{group}/{name}" if group else name for group, name in loose], word, "process")
    return find_instances(status, chosen)


def one_instance(status: ExperimentStatus, word: str) -> InstanceStatus:
    """The one instance a word means; of several replicas the first that runs."""
    found = some_instances(status, word)
    return next((one for one in found if one.phase == "running"), found[0])


def _in_other_order(args: argparse.Namespace, watcher: Watcher) -> str:
    """The experiment where it stands before the process, which then take their places; empty where it does not."""
    process = getattr(args, "component_name", None)
    if not process or _prefix(args)(process) not in watcher.names():
        return ""
    args.component_name, args.experiment_name = args.experiment_name, process
    return _prefix(args)(process)


def _loosely(args: argparse.Namespace, watcher: Watcher, name: str) -> str:
    names = watcher.names()
    matches, is_exact = match_names(names, name, _prefix(args))
    if is_exact:
        return matches[0]
    if not matches:
        raise absent_experiment(name, names)
    return choose(matches, name, "experiment")


def _prefix(args: argparse.Namespace) -> Callable[[str], str]:
    """How the configured user's experiments are called; only a user's own script configures one here."""
    if not args.symphony.has_own_cluster:
        return str
    prefix: Callable[[str], str] = args.symphony.cluster.prefix_username
    return prefix
