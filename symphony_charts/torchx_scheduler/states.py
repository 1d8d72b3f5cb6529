"""How an experiment is, in TorchX's words."""

from __future__ import annotations

from collections.abc import Iterable

from torchx.schedulers.api import DescribeAppResponse, ListAppResponse
from torchx.specs import AppState, ReplicaStatus, Role, RoleStatus

from symphony_charts.backend.status import ExperimentStatus, InstanceStatus, Phase, ProcessStatus
from symphony_charts.torchx_scheduler.app_ids import AppId

__all__ = ["described", "listed"]

# `stopping` is no end yet: TorchX would take CANCELLED for one and look away.
_STATES: dict[Phase, AppState] = {
    "queued": AppState.PENDING,
    "pending": AppState.PENDING,
    "running": AppState.RUNNING,
    "stopping": AppState.RUNNING,
    "succeeded": AppState.SUCCEEDED,
    "failed": AppState.FAILED,
    "stopped": AppState.CANCELLED,
}


def described(app_id: AppId, status: ExperimentStatus) -> DescribeAppResponse:
    """The answer to ``torchx status`` and ``torchx describe``: a role for each process, its real replicas."""
    return DescribeAppResponse(
        app_id=str(app_id),
        state=_STATES[status.phase],
        num_restarts=sum(one.restarts for one in status.instances),
        msg=_message(status.instances),
        roles=[_role(process) for process in status.processes],
        roles_statuses=[
            RoleStatus(role=_name(process), replicas=[_replica(_name(process), one) for one in process.instances])
            for process in status.processes
        ],
    )


def listed(statuses: Iterable[ExperimentStatus], context: str | None) -> list[ListAppResponse]:
    """The answer to ``torchx list``."""
    return [
        ListAppResponse(
            app_id=str(AppId(name=one.name, namespace=one.namespace or None, context=context)),
            state=_STATES[one.phase],
        )
        for one in statuses
    ]


def _name(process: ProcessStatus) -> str:
    return f"{process.group}/{process.name}" if process.group else process.name


def _role(process: ProcessStatus) -> Role:
    return Role(name=_name(process), image="", num_replicas=len(process.instances))


def _replica(role: str, one: InstanceStatus) -> ReplicaStatus:
    said = {"structured_error_msg": one.state} if one.phase == "failed" else {}
    return ReplicaStatus(id=one.index, state=_STATES[one.phase], role=role, hostname=one.place, **said)


def _message(instances: Iterable[InstanceStatus]) -> str:
    """Why it is not well, a line per instance that says so."""
    return "\n".join(f"{one.path}: {one.state}" for one in instances if one.reason or one.phase == "failed")
