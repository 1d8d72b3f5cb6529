"""Rules about an experiment of kind dijob: what its operator ignores, or does otherwise.

Source: opendilab/DI-orchestrator v1.1.3, pkg/controllers/dijob.go and pkg/context/pod.go; v1.0.0; v0.2.2.
"""

from __future__ import annotations

from collections.abc import Iterator

from symphony_charts.chart.lint.finding import Finding
from symphony_charts.spec.dijob import tasks_of
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import Pod, retries_of

__all__ = ["check_dijob"]

# What operators since v1.0 add to every container.
_OWNED = {"DI_JOB_ID", "DI_NODES", "DI_RANK", "DI_SERVER_URL"}


def check_dijob(experiment: Experiment) -> Iterator[Finding]:
    """Warnings with paths in the spec; none for other kinds."""
    if experiment.workload.kind != "dijob":
        return
    for pod in tasks_of(experiment):
        yield from _labels(pod)
        yield from _restarts(experiment, pod)
        yield from _environment(pod)
        if len(pod.processes) > 1:
            what = "the operator counts containers for pods: a job with several in a pod never leaves Starting"
            yield _warning("dijob-containers", pod.path, what, "give each process a pod of its own")
    if experiment.annotations:
        what = "DI-orchestrator drops annotations of pods"
        yield _warning("dijob-labels", "annotations", what, "use another workload.kind if something reads them")


def _labels(pod: Pod) -> Iterator[Finding]:
    for field in ("labels", "annotations"):
        if getattr(pod.settings, field):
            what = f"DI-orchestrator drops {field} of pods"
            step = "use another workload.kind if something reads them"
            yield _warning("dijob-labels", f"{pod.path}.{field}", what, step)


def _restarts(experiment: Experiment, pod: Pod) -> Iterator[Finding]:
    operator = experiment.workload.dijob.operator
    if pod.settings.restart == "on-failure":
        what = "DI-orchestrator never restarts a container in place"
        yield _warning("dijob-restart", f"{pod.path}.restart", what, "use `retries`, or another workload.kind")
    if not retries_of(experiment, pod):
        return
    if operator in ("v0", "v1.0"):
        what = f"operator {operator} starts no failed pod again"
        yield _warning("dijob-retries", f"{pod.path}.retries", what, "use a newer operator, or another workload.kind")
    else:
        what = "a pod that comes back has the rank after the last, which DI_NODES does not have: only the last bears it"
        yield _warning("dijob-retries", f"{pod.path}.retries", what, "use jobset with compat: di-engine")


def _environment(pod: Pod) -> Iterator[Finding]:
    for name, process in pod.processes.items():
        path = f"{pod.path}.processes.{name}" if pod.is_group else pod.path
        for variable in sorted(_OWNED & set(process.env)):
            what = f"DI-orchestrator sets {variable} itself, after what is said here"
            yield _warning("dijob-env", f"{path}.env.{variable}", what, "leave it out")


def _warning(rule: str, path: str, what: str, next: str) -> Finding:
    return Finding(rule=rule, severity="warning", path=path, what=what, next=next)
