"""The scheduler fits our clusters into TorchX's interface. TorchX alone imports it, and brings itself along.

It works with release 0.7.0 and with the nightlies up to 2026.10: what differs between them (arguments of `list` and
`_validate`, the typed options) is not relied upon.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from torchx.runner import config as torchx_config
from torchx.schedulers.api import DescribeAppResponse, ListAppResponse, Scheduler
from torchx.specs import AppDef, AppDryRunInfo, AppState, ReplicaStatus, Role, RoleStatus, runopts
from torchx.specs.finder import ComponentValidationException
from torchx.util.types import to_dict
from torchx.workspace.api import WorkspaceMixin

from symphony_charts.backend.status import ExperimentStatus, InstanceStatus, Phase, ProcessStatus
from symphony_charts.errors import NotFound, SymphError, UsageError
from symphony_charts.importers.report import Log
from symphony_charts.integrations.torchx.components import plain_data
from symphony_charts.integrations.torchx.request import note_workspace, submit, take_workspaces
from symphony_charts.torchx_scheduler import options
from symphony_charts.torchx_scheduler.app_ids import AppId, cluster_of, parse
from symphony_charts.torchx_scheduler.request import SymphRequest, request_of
from symphony_charts.torchx_scheduler.roles import roles_of

__all__ = ["Refused", "RunOpts", "SymphScheduler", "create_scheduler"]

_log = logging.getLogger(__name__)


class Refused(ComponentValidationException):  # type: ignore[misc] # TorchX ships no types
    """A refusal in our words (what, where, next); TorchX prints it without a traceback and exits 1."""


class SymphScheduler(WorkspaceMixin, Scheduler):  # type: ignore[misc] # TorchX ships no types
    """Runs TorchX applications in tmux here or on Kubernetes, or writes their Helm charts."""

    NAME = "symph"

    def __init__(self, session_name: str) -> None:
        super().__init__(self.NAME, session_name)

    def _run_opts(self) -> runopts:
        opts = RunOpts()
        options.declare(opts)
        return opts

    def _cfg(self, cfg: Mapping[str, object]) -> dict[str, object]:
        """The options of a run, all of them ours; raises UsageError for others."""
        return _known(self.run_opts(), cfg)

    def _submit_dryrun(self, app: AppDef, cfg: Mapping[str, object]) -> AppDryRunInfo:
        """The request for an application: the same text for the same input, without a cluster or the network."""
        with _refusing():
            data = _lasting(app)
            workspaces = take_workspaces(data)
            request, report = request_of(plain_data(data), self._cfg(cfg), workspaces)
        for note in report.notes:
            _log.warning("%s", f"{note.path}: {note.what}" + (f" ({note.next})" if note.next else ""))
        return AppDryRunInfo(request, str)

    def build_workspace_and_update_role(self, role: Role, workspace: str, cfg: Mapping[str, object]) -> None:
        """Remember the folder whose files the image of a role shall have; it gets them on submission."""
        del cfg
        with _refusing():
            note_workspace(role.metadata, workspace)

    def caching_build_workspace_and_update_role(
        self, role: Role, cfg: Mapping[str, object], build_cache: dict[object, object]
    ) -> None:
        """Note the workspace of a role, as newer releases of TorchX ask for it: with the folder in the role."""
        del build_cache
        if role.workspace and not role.workspace.is_unmapped_single_project():
            # TorchX would copy them to a folder that is gone by the time the application is submitted.
            raise Refused("a workspace of several folders cannot be put into an image\n  next: give one folder")
        if role.workspace:
            self.build_workspace_and_update_role(role, str(role.workspace), cfg)

    def schedule(self, dryrun_info: AppDryRunInfo) -> str:
        """Start what was shown (with ``on=chart`` write it); its app id."""
        request = dryrun_info.request
        if not isinstance(request, SymphRequest):
            raise TypeError(f"a {type(request).__name__} is no request of scheduler {self.NAME}")
        with _refusing():
            return str(submit(request))

    def describe(self, app_id: str) -> DescribeAppResponse | None:
        """Return the status of the application, also after its end; None if there is none."""
        meant = parse(app_id)
        if meant.is_chart:
            return None
        cluster = meant.cluster()
        status = cluster.describe(meant.name)
        return None if status is None else describe_response(meant, status, roles_of(cluster, meant.name))

    def list(self, cfg: Mapping[str, object] | None = None) -> list[ListAppResponse]:
        """All experiments of the place that `cfg` (or section ``[symph]`` of .torchxconfig) names; ended ones too."""
        settings: dict[str, Any] = dict(cfg or {})
        torchx_config.apply(scheduler=self.NAME, cfg=settings)
        with _refusing():
            chosen = options.read(self._cfg(settings), Log())
            if chosen.on != "kube":
                return list_response(AppId(name="").cluster().list(ended=True), None)
            return list_response(cluster_of(chosen.run.namespace, chosen.context).list(ended=True), chosen.context)

    def _cancel_existing(self, app_id: str) -> None:
        """End the application; on this machine its logs are kept."""
        meant = parse(app_id)
        # What has ended by itself meanwhile is as ended as was asked for.
        with _refusing(), contextlib.suppress(NotFound):
            meant.cluster().delete(meant.name)

    def _delete_existing(self, app_id: str) -> None:
        """End the application and forget it, its logs included."""
        meant = parse(app_id)
        with _refusing():
            meant.cluster().watcher.delete(meant.name)

    def log_iter(
        self,
        app_id: str,
        role_name: str,
        k: int = 0,
        regex: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        should_tail: bool = False,
        streams: object = None,
    ) -> Iterable[str]:
        """The lines of replica `k` of a role with their line ends; ValueError for any stream but the combined one."""
        meant = parse(app_id)
        stream = None if streams is None else str(getattr(streams, "value", streams))
        with _refusing():
            cluster = meant.cluster()
            # The role as the AppDef has it; the process is called alike, but validly.
            process = next((key for key, role in roles_of(cluster, meant.name).items() if role.name == role_name), "")
            name = process or role_name
            return cluster.log_iter(meant.name, name, k, regex, since, until, should_tail, stream)

    def close(self) -> None:
        """Nothing is held that would need closing."""

    def _validate(self, app: AppDef, scheduler: str, cfg: object = None) -> None:
        """Every application will do: resources need not be said, and what is wrong the dry run finds."""


def create_scheduler(session_name: str, **kwargs: object) -> SymphScheduler:
    """The scheduler for one session of TorchX."""
    del kwargs  # parameters of all schedulers together; none is ours
    return SymphScheduler(session_name)


class RunOpts(runopts):  # type: ignore[misc] # TorchX ships no types
    """Run options that keep what they do not know, for the scheduler to refuse; release 0.7.0 would drop it."""

    def cfg_from_str(self, cfg_str: str) -> dict[str, Any]:
        """The options that a command line gives, those that we know with their types."""
        known: dict[str, Any] = super().cfg_from_str(cfg_str)
        return {**to_dict(cfg_str), **known}


def _lasting(app: AppDef) -> dict[str, Any]:
    """The application as plain data, without what TorchX makes up anew for every session that submits it."""
    data: dict[str, Any] = dataclasses.asdict(app)
    for role in data["roles"]:
        role["env"].pop("TORCHX_INTERNAL_SESSION_ID", None)
    return data


def _known(declared: runopts, cfg: Mapping[str, object]) -> dict[str, object]:
    """The options that are ours: TorchX hands through keys of other schedulers and of its own."""
    names = {name for name, _ in declared}
    unknown = sorted(key for key, value in cfg.items() if key not in names and value is not None)
    if unknown:
        raise UsageError(f"unknown run options: {', '.join(unknown)}", next="torchx runopts lists them")
    return dict(cfg)


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    """Turn our errors into an exception that TorchX shows to its users as text."""
    try:
        yield
    except SymphError as error:
        raise Refused(str(error)) from error


# Releases after 0.7.0 list the name of an application beside its id.
_LISTS_NAMES = any(item.name == "name" for item in dataclasses.fields(ListAppResponse))

# `stopping` is no end yet: TorchX would take CANCELLED for one and look away.
_STATES: dict[Phase, AppState] = {
    "queued": AppState.PENDING,
    "pending": AppState.PENDING,
    "running": AppState.RUNNING,
    "stopping": AppState.RUNNING,
    "succeeded": AppState.SUCCEEDED,
    "failed": AppState.FAILED,
    "stopped": AppState.CANCELLED,
    "lost": AppState.FAILED,
    "damaged": AppState.UNKNOWN,
}


def describe_response(app_id: AppId, status: ExperimentStatus, roles: Mapping[str, Role]) -> DescribeAppResponse:
    """The answer to ``torchx status`` and ``torchx describe``: a role for each process, its real replicas.

    `roles` are those that processes came from, by process.
    """
    told = [(_role(process, roles), process) for process in status.processes]
    return DescribeAppResponse(
        app_id=str(app_id),
        state=_STATES[status.phase],
        num_restarts=sum(instance.restarts for instance in status.instances),
        msg=_message(status.instances),
        roles=[role for role, _ in told],
        roles_statuses=[
            RoleStatus(role=role.name, replicas=[_replica(role.name, instance) for instance in process.instances])
            for role, process in told
        ],
    )


def list_response(statuses: Iterable[ExperimentStatus], context: str | None) -> list[ListAppResponse]:
    """The answer to ``torchx list``."""
    return [
        ListAppResponse(
            app_id=str(AppId(name=status.name, namespace=status.namespace or None, context=context)),
            state=_STATES[status.phase],
            **({"name": status.experiment} if _LISTS_NAMES else {}),
        )
        for status in statuses
    ]


def _role(process: ProcessStatus, roles: Mapping[str, Role]) -> Role:
    name = f"{process.group}/{process.name}" if process.group else process.name
    role = Role(name=name, image="") if process.group else roles.get(name, Role(name=name, image=""))
    return dataclasses.replace(role, num_replicas=len(process.instances))


def _replica(role: str, instance: InstanceStatus) -> ReplicaStatus:
    """One replica; of a failed one TorchX's commands read the message as its own programs write it."""
    error = {"structured_error_msg": _error(instance)} if instance.phase == "failed" else {}
    return ReplicaStatus(id=instance.index, state=_STATES[instance.phase], role=role, hostname=instance.place, **error)


def _error(instance: InstanceStatus) -> str:
    code = "" if instance.status is None else str(instance.status)
    extra = {"timestamp": str(int(instance.ended or 0))}
    return json.dumps({"message": {"message": instance.state, "errorCode": code, "extraInfo": extra}})


def _message(instances: Iterable[InstanceStatus]) -> str:
    """Return why it is not well, a line per instance with a reason."""
    return "\n".join(
        f"{instance.path}: {instance.state}" for instance in instances if instance.reason or instance.phase == "failed"
    )
