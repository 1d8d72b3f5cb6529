"""Rules about the experiment itself: what it says that a cluster does not do, or does otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterator

from symphony_charts.chart.lint.finding import Finding
from symphony_charts.spec.model import Experiment, Process
from symphony_charts.spec.pods import Pod, pods_of, retries_of
from symphony_charts.spec.sources import DeviceVolume
from symphony_charts.workloads.ending import runs_on
from symphony_charts.workloads.gang import GANGS_OF_PODS

__all__ = ["check_experiment"]

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|PRIVATE_KEY|CREDENTIALS)(?:_|$)", re.IGNORECASE
)
_SHELL_WORDS = ("cd ", "export ", "set ", "exec ", "#", "exit", "wait")


def check_experiment(experiment: Experiment) -> Iterator[Finding]:
    """Warnings with paths in the spec."""
    pods = pods_of(experiment)
    yield from _done_when(experiment, pods)
    yield from _queue(experiment, pods)
    yield from _argo(experiment)
    for pod in pods.values():
        for name, process in pod.processes.items():
            path = f"{pod.path}.processes.{name}" if pod.is_group else pod.path
            yield from _process(experiment, process, path)


def _done_when(experiment: Experiment, pods: dict[str, Pod]) -> Iterator[Finding]:
    """What nothing stops."""
    for ref in runs_on(experiment):
        pod = pods[ref.pod]
        yield Finding(
            rule="runs-on",
            severity="warning",
            path=f"{pod.path}.processes.{ref.process}" if pod.is_group else pod.path,
            what=f"{ref} runs on after the experiment is done; nothing stops it",
            next="uninstall the release when the rest is done",
        )


def _queue(experiment: Experiment, pods: dict[str, Pod]) -> Iterator[Finding]:
    """A scheduler counts pods that run: a new pod of a Job waits for members of its gang that have finished."""
    workload = experiment.workload
    if workload.priority is not None and (workload.kind, workload.appwrapper.version) != ("appwrapper", "v1beta1"):
        what = "only MCAD, by kind appwrapper v1beta1, queues by a number"
        step = "use queue_priority (Kueue) or priority_class (pods)"
        yield _warning("priority", "workload.priority", what, step)
    if workload.gang not in GANGS_OF_PODS or workload.gang_scope == "group":
        return
    finite = [pod for pod in pods.values() if pod.is_finite]
    for pod in finite:
        makes_pods = retries_of(experiment, pod) > 0 and pod.settings.restart != "on-failure"
        if makes_pods and pod.settings.min_replicas is None and len(finite) > 1:
            what = "a pod that is tried again after another group has finished waits for ever for its gang"
            step = "set workload.gang_scope: group, restart: on-failure, or min_replicas"
            yield _warning("gang-retry", f"{pod.path}.retries", what, step)


def _argo(experiment: Experiment) -> Iterator[Finding]:
    if experiment.workload.kind == "argo" and not experiment.workload.argo.service_account:
        what = "the chart makes a service account with rights on Jobs, which Argo CD does not take from Git"
        step = "make one by hand, once for the namespace, and name it (docs/argo.md)"
        path = "workload.argo.service_account"
        yield Finding(rule="argo-rights", severity="info", path=path, what=what, next=step)


def _process(experiment: Experiment, process: Process, path: str) -> Iterator[Finding]:
    if process.cmds is not None:
        yield from _cmds(process.cmds, path)
    if process.after:
        what = "the cluster starts all pods at once; `after` orders processes on one machine only"
        yield _warning("after", f"{path}.after", what, "let the process wait for what it connects to")
    for name, value in process.env.items():
        if isinstance(value, str) and value and "$(" not in value and _SECRET_NAME.search(name):
            what = f"{name} looks like a secret, and its value would stand in the chart"
            yield _warning("secret-in-env", f"{path}.env.{name}", what, f"use `{name}: {{secret: NAME, key: KEY}}`")
    for index, mount in enumerate(process.mounts):
        if isinstance(experiment.volumes[mount.volume], DeviceVolume):
            what = "a device of the node makes the container privileged"
            yield _warning("privileged-device", f"{path}.mounts[{index}]", what, "use a device plugin if there is one")


def _cmds(cmds: list[str], path: str) -> Iterator[Finding]:
    lines = [line.strip() for text in cmds for line in text.splitlines() if line.strip()]
    if lines and not lines[-1].startswith(_SHELL_WORDS):
        what = "the shell stays process 1 and passes no TERM on: what it runs is killed after the grace period"
        yield _warning("cmds-exec", f"{path}.cmds[{len(cmds) - 1}]", what, "begin it with `exec`")


def _warning(rule: str, path: str, what: str, next: str) -> Finding:
    return Finding(rule=rule, severity="warning", path=path, what=what, next=next)
