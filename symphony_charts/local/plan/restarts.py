"""What an experiment says of the end of each process: started again or not, and what that means for the run."""

from __future__ import annotations

from dataclasses import dataclass

from symphony_charts.local.plan.records import OnExit, Restart
from symphony_charts.spec.model import Experiment, Process, Step
from symphony_charts.spec.pods import Pod, retries_of

__all__ = ["PolicyFacts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFacts:
    """What happens when a process ends."""

    is_service: bool
    restart: Restart
    retries: int
    on_exit: OnExit

    @classmethod
    def of(cls, experiment: Experiment, pod: Pod, process: Process | Step) -> PolicyFacts:
        """Those of one process or step of `pod`."""
        is_service = isinstance(process, Process) and process.lifecycle == "service"
        settings, local = pod.settings, process.local if isinstance(process, Process) else None
        # A service beside finite processes is a sidecar, which the kubelet always starts again.
        restart: Restart = "always" if is_service else "never"
        if settings.restart is not None and not (is_service and pod.is_finite):
            restart = settings.restart
        retries = retries_of(experiment, pod)
        if not is_service and restart == "never" and retries:
            restart = "on-failure"
        on_exit = (local.on_exit if local is not None else None) or experiment.local.on_exit
        return cls(is_service=is_service, restart=restart, retries=retries, on_exit=on_exit)
