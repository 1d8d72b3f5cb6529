"""What the watching verbs share: which backend, which experiment, which processes."""

from __future__ import annotations

import argparse
import re
import time

from symphony_charts.cli.options import common

__all__ = [
    "LIVE_COLORS",
    "add_target",
    "find_experiment",
    "find_status",
    "moment",
    "one_instance",
    "seconds",
    "some_instances",
    "watcher_of",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from symphony_charts.backend.protocol import Watcher
    from symphony_charts.backend.status import ExperimentStatus, InstanceStatus

LIVE_COLORS = {
    "running": "good",
    "succeeded": "good",
    "failed": "bad",
    "queued": "busy",
    "pending": "busy",
    "stopping": "busy",
    "stopped": "dim",
}
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def add_target(parser: argparse.ArgumentParser) -> None:
    """Add `--on`, and for a cluster `-n/--namespace`, `--context`, `--kubeconfig`, each of which means `--on kube`."""
    common.add_on(parser)
    parser.add_argument("-n", "--namespace", default=None, help="of the cluster (default: all that may be read)")
    parser.add_argument("--context", default=None, help="the kubeconfig's context (default: the current one)")
    parser.add_argument("--kubeconfig", metavar="FILE", default=None, help="default: $KUBECONFIG, else ~/.kube/config")


def watcher_of(args: argparse.Namespace) -> Watcher:
    """What watches the backend that these arguments mean: a user's own cluster, else the one of `--on`."""
    from symphony_charts.errors import UsageError

    flags = [name for name in ("namespace", "context", "kubeconfig") if getattr(args, name, None)]
    if flags and args.on == "tmux":
        raise UsageError(f"--{flags[0]} means a cluster, --on tmux this machine", next="leave one out")
    if _is_users(args) and not args.on and not flags:
        watcher: Watcher = args.symphony.cluster.watcher
        return watcher
    if flags or common.backend_of(args) == "kube":
        from pathlib import Path

        from symphony_charts.kubernetes.backend import KubeWatcher

        kubeconfig = Path(args.kubeconfig) if args.kubeconfig else None
        return KubeWatcher(namespace=args.namespace, context=args.context, kubeconfig=kubeconfig)
    from symphony_charts.local.backend import LocalWatcher

    return LocalWatcher()


def find_status(args: argparse.Namespace, watcher: Watcher, *, events: bool = False) -> ExperimentStatus:
    """How the experiment that `args.experiment_name` means is: exactly it, the one it loosely fits, or the current one.

    Raises NotFound; UsageError where it fits several and nobody can be asked.
    """
    from symphony_charts.errors import NotFound

    name = args.experiment_name
    if name is None:
        from symphony_charts.backend.current_experiment import current_of

        return watcher.describe(current_of(watcher), events=events)
    try:
        return watcher.describe(_prefix(args)(name), events=events)
    except NotFound:
        return watcher.describe(_loosely(args, watcher, name), events=events)


def find_experiment(args: argparse.Namespace, watcher: Watcher) -> str:
    """The name of the experiment that `args.experiment_name` means; raises as `find_status` does."""
    return find_status(args, watcher).name


def some_instances(status: ExperimentStatus, word: str) -> list[InstanceStatus]:
    """The instances that a word means: exactly, else loosely in Symphony's order. Raises NotFound, UsageError."""
    from symphony_charts.backend.protocol import find_instances, match_processes
    from symphony_charts.cli.matching import choose
    from symphony_charts.errors import NotFound

    found = find_instances(status, word)
    if found:
        return found
    loose, _ = match_processes(((one.group or None, one.name) for one in status.instances), word)
    if not loose:
        known = ", ".join(one.path for one in status.instances if not one.is_step) or "none"
        raise NotFound(f'experiment "{status.name}" has no process "{word}"', next=f"its processes: {known}")
    chosen = choose([f"{group}/{name}" if group else name for group, name in loose], word, "process")
    return find_instances(status, chosen)


def one_instance(status: ExperimentStatus, word: str) -> InstanceStatus:
    """The one instance a word means; of several replicas the first that runs."""
    found = some_instances(status, word)
    return next((one for one in found if one.phase == "running"), found[0])


def seconds(text: str) -> float:
    """``90``, ``90s``, ``5m``, ``1h`` or ``2d`` in seconds; argparse turns the ValueError into wrong usage."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text)
    if found is None:
        raise ValueError(f"{text!r} is no time")
    return float(found[1]) * _UNITS[found[2]]


def moment(text: str) -> float | None:
    """Seconds since 1970 of so long ago (`seconds`), or of a time such as 2026-03-01T12:00:00Z; None for ``0``."""
    from datetime import datetime

    try:
        ago = seconds(text)
    except ValueError:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    return time.time() - ago if ago else None


def _loosely(args: argparse.Namespace, watcher: Watcher, name: str) -> str:
    from symphony_charts.backend.protocol import match_names
    from symphony_charts.cli.matching import choose
    from symphony_charts.errors import NotFound

    names = watcher.names()
    matches, is_exact = match_names(names, name, _prefix(args))
    if is_exact:
        return matches[0]
    if not matches:
        known = ", ".join(names) or "none"
        raise NotFound(f'experiment "{name}" does not run here', next=f"running now: {known}")
    return choose(matches, name, "experiment")


def _is_users(args: argparse.Namespace) -> bool:
    from symphony_charts.cli.parser import SymphonyParser

    return type(args.symphony).create_cluster is not SymphonyParser.create_cluster


def _prefix(args: argparse.Namespace) -> Callable[[str], str]:
    """How the configured user's experiments are called; only a user's own script configures one here."""
    if not _is_users(args):
        return str
    prefix: Callable[[str], str] = args.symphony.cluster.prefix_username
    return prefix
