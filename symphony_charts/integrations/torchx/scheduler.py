"""The TorchX scheduler `symph`: submit, describe, list, cancel and follow applications.

It works with release 0.7.0 and with the nightlies up to 2026.10, and does not rely on their differences (arguments of
`list` and `_validate`, the typed options).
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from torchx.runner import config as torchx_config
from torchx.schedulers.api import DescribeAppResponse, ListAppResponse, Scheduler
from torchx.specs import (
    AppDef,
    AppDryRunInfo,
    AppState,
    BindMount,
    DeviceMount,
    ReplicaStatus,
    Resource,
    Role,
    RoleStatus,
    VolumeMount,
    runopts,
)
from torchx.specs.finder import ComponentValidationException
from torchx.util.types import to_dict
from torchx.workspace.api import WorkspaceMixin

from symphony_charts.backend.status import ExperimentStatus, InstanceStatus, Phase, ProcessStatus
from symphony_charts.clusters.base import Cluster
from symphony_charts.errors import NotFound, SymphError, UsageError
from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.quantity import quantity
from symphony_charts.importers.report import Log
from symphony_charts.integrations.torchx import request as torchx_request
from symphony_charts.integrations.torchx.appdef import APP_ID_VARIABLES, MACROS
from symphony_charts.integrations.torchx.components import plain_data
from symphony_charts.integrations.torchx.request import (
    AppId,
    SymphRequest,
    cluster_of,
    note_workspace,
    parse,
    request_of,
    submit,
    take_workspaces,
)
from symphony_charts.kubernetes.backend import KubeWatcher
from symphony_charts.local.history import load_saved
from symphony_charts.local.runs import find_run
from symphony_charts.spec.environment import entry_point
from symphony_charts.spec.model import Experiment, Process
from symphony_charts.spec.sources import ClaimVolume, DeviceVolume, EnvSource, HostPathVolume
from symphony_charts.spec.variable_names import is_ours

_ROLE = "torchx.pytorch.org/role-name"
_PROCESS = "symph.dev/group"
_GPU = "nvidia.com/gpu"
_MEGA = 10**6


def roles_of(cluster: Cluster, name: str) -> dict[str, Role]:
    """Return the original role of each lone process of an experiment, without the number of its replicas.

    Programs appear without the shell lines that run before them.
    """
    watcher = cluster.watcher
    if isinstance(watcher, KubeWatcher):
        return _of_objects([*watcher.workloads(name), *watcher.pods(name)])
    try:
        return _of_experiment(load_saved(find_run(name)).experiment)
    except NotFound:
        return {}  # the run is just starting, or its saved spec is gone


# --- here -----------------------------------------------------------------------------------------------------------


def _of_experiment(experiment: Experiment) -> dict[str, Role]:
    return {name: _of_process(name, process, experiment) for name, process in experiment.processes.items()}


def _of_process(name: str, process: Process, experiment: Experiment) -> Role:
    start = entry_point(process)
    asked = {**process.requests, **process.limits, **({_GPU: str(process.gpus)} if process.gpus else {})}
    return _role(
        process.labels.get(_ROLE, name),
        process.image or experiment.image or "",
        [*(start.command or []), *(start.args or [])],
        {key: _field(value) if isinstance(value, EnvSource) else value for key, value in process.env.items()},
        asked,
        port_map={key: port for key, port in process.binds.items() if port is not None},
        mounts=[mount for mount in (_mount_here(item, experiment) for item in process.mounts) if mount is not None],
    )


def _field(source: EnvSource) -> str:
    return f"[FIELD_PATH]{source.field}" if source.field is not None else ""


def _mount_here(mount: Any, experiment: Experiment) -> BindMount | VolumeMount | DeviceMount | None:
    volume = experiment.volumes.get(mount.volume)
    if isinstance(volume, HostPathVolume):
        return BindMount(src_path=volume.path, dst_path=mount.at, read_only=mount.read_only)
    if isinstance(volume, ClaimVolume):
        return VolumeMount(src=volume.claim, dst_path=mount.at, read_only=mount.read_only)
    if isinstance(volume, DeviceVolume):
        return DeviceMount(src_path=volume.path, dst_path=mount.at, permissions=volume.perm)
    return None


# --- on a cluster ---------------------------------------------------------------------------------------------------


def _of_objects(objects: Sequence[Mapping[str, Any]]) -> dict[str, Role]:
    roles: dict[str, Role] = {}
    for item in objects:
        for labels, spec in _pods_in(item):
            containers = maps(spec, "containers")
            if _PROCESS in labels and containers:
                name = str(labels[_PROCESS])
                roles.setdefault(name, _of_container(str(labels.get(_ROLE, name)), containers[0], spec))
    return roles


def _pods_in(item: object) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield labels and spec of every pod or pod template in an object of any kind."""
    if isinstance(item, list):
        for part in item:
            yield from _pods_in(part)
    elif isinstance(item, dict):
        spec = item.get("spec")
        if isinstance(spec, dict) and isinstance(spec.get("containers"), list):
            yield sub(item, "metadata", "labels"), spec
        else:
            for part in item.values():
                yield from _pods_in(part)


def _of_container(name: str, container: Mapping[str, Any], spec: Mapping[str, Any]) -> Role:
    resources = sub(container, "resources")
    return _role(
        name,
        str(container.get("image", "")),
        [*container.get("command", []), *container.get("args", [])],
        {str(entry["name"]): _value(entry) for entry in maps(container, "env")},
        {**sub(resources, "requests"), **sub(resources, "limits")},
        port_map={str(port.get("name")): int(str(port["containerPort"])) for port in maps(container, "ports")},
        mounts=[mount for mount in (_mount_there(item, spec) for item in maps(container, "volumeMounts")) if mount],
    )


def _value(entry: Mapping[str, Any]) -> str:
    path = sub(entry, "valueFrom", "fieldRef").get("fieldPath")
    return f"[FIELD_PATH]{path}" if path else str(entry.get("value", ""))


def _mount_there(mount: Mapping[str, Any], spec: Mapping[str, Any]) -> BindMount | VolumeMount | None:
    volume = next((item for item in maps(spec, "volumes") if item.get("name") == mount["name"]), {})
    read_only = mount.get("readOnly") is True
    if path := sub(volume, "hostPath").get("path"):
        return BindMount(src_path=str(path), dst_path=str(mount["mountPath"]), read_only=read_only)
    if claim := sub(volume, "persistentVolumeClaim").get("claimName"):
        return VolumeMount(src=str(claim), dst_path=str(mount["mountPath"]), read_only=read_only)
    return None


# --- both -----------------------------------------------------------------------------------------------------------


def _role(
    name: str, image: str, argv: list[str], env: Mapping[str, str], asked: Mapping[str, object], **fields: Any
) -> Role:
    entrypoint, *args = _without_preamble(argv) or [""]
    return Role(
        name=name,
        image=image,
        entrypoint=entrypoint,
        args=[_with_macros(arg) for arg in args],
        env={
            key: _with_macros(value) for key, value in env.items() if not is_ours(key) and key not in APP_ID_VARIABLES
        },
        resource=_resource(asked),
        **fields,
    )


def _with_macros(text: str) -> str:
    """Return an argument or value with the AppDef's macros instead of references to the environment."""
    for macro in ("app_id", "replica_id"):
        text = text.replace(MACROS[macro], f"${{{macro}}}")
    return text


def _without_preamble(argv: list[str]) -> list[str]:
    """Return the program without the shell that `entry_point` puts in front of it for a preamble."""
    shell = entry_point(Process(command=["x"], preamble=["x"])).command or []
    front = len(shell) - len(["script", "sh", "x"])
    is_wrapped = argv[:front] == shell[:front] and len(argv) > front + 2 and argv[front].endswith('exec "$@"')
    return argv[front + 2 :] if is_wrapped else argv


def _resource(asked: Mapping[str, object]) -> Resource:
    """Return the requests in TorchX's units; -1 means not set."""
    amounts = {}
    for key, amount in asked.items():
        with contextlib.suppress(ValueError):
            amounts[key] = quantity(str(amount))
    cpu, memory = amounts.pop("cpu", None), amounts.pop("memory", None)
    return Resource(
        cpu=-1 if cpu is None else int(cpu) if cpu == int(cpu) else float(cpu),
        gpu=int(amounts.pop(_GPU, 0)),
        memMB=-1 if memory is None else int(memory / _MEGA),
        devices={key: int(amount) for key, amount in amounts.items() if "/" in key},
    )


_log = logging.getLogger(__name__)


class Refused(ComponentValidationException):  # type: ignore[misc] # TorchX ships no types
    """A refusal with our message (what, where, next); TorchX prints it without a traceback and exits with 1."""


class SymphScheduler(WorkspaceMixin, Scheduler):  # type: ignore[misc] # TorchX ships no types
    """Run TorchX applications in tmux here or on Kubernetes, or write their Helm charts."""

    NAME = "symph"

    def __init__(self, session_name: str) -> None:
        super().__init__(self.NAME, session_name)

    def _run_opts(self) -> runopts:
        opts = RunOpts()
        torchx_request.declare(opts)
        return opts

    def _cfg(self, cfg: Mapping[str, object]) -> dict[str, object]:
        """Return the options of a run. Raises UsageError for options that are not ours."""
        return _known(self.run_opts(), cfg)

    def _submit_dryrun(self, app: AppDef, cfg: Mapping[str, object]) -> AppDryRunInfo:
        """Return the request for an application; deterministic, without a cluster or the network."""
        with _refusing():
            data = _lasting(app)
            workspaces = take_workspaces(data)
            request, report = request_of(plain_data(data), self._cfg(cfg), workspaces)
        for note in report.notes:
            _log.warning("%s", f"{note.path}: {note.what}" + (f" ({note.next})" if note.next else ""))
        return AppDryRunInfo(request, str)

    def build_workspace_and_update_role(self, role: Role, workspace: str, cfg: Mapping[str, object]) -> None:
        """Record the workspace folder of a role; its image gets the files on submission."""
        del cfg
        with _refusing():
            note_workspace(role.metadata, workspace)

    def caching_build_workspace_and_update_role(
        self, role: Role, cfg: Mapping[str, object], build_cache: dict[object, object]
    ) -> None:
        """Record the workspace of a role in newer TorchX releases, which keep the folder in the role."""
        del build_cache
        if role.workspace and not role.workspace.is_unmapped_single_project():
            # TorchX would copy them to a temporary folder that is gone by the time of submission.
            raise Refused("a workspace of several folders cannot be put into an image\n  next: give one folder")
        if role.workspace:
            self.build_workspace_and_update_role(role, str(role.workspace), cfg)

    def schedule(self, dryrun_info: AppDryRunInfo) -> str:
        """Start the application (with `on=chart` write it) and return its app id."""
        request = dryrun_info.request
        if not isinstance(request, SymphRequest):
            raise TypeError(f"a {type(request).__name__} is not a request of scheduler {self.NAME}")
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
        """Return all experiments at the place in `cfg` (or `[symph]` in .torchxconfig), including ended ones."""
        settings: dict[str, Any] = dict(cfg or {})
        torchx_config.apply(scheduler=self.NAME, cfg=settings)
        with _refusing():
            chosen = torchx_request.read(self._cfg(settings), Log())
            if chosen.on != "kube":
                return list_response(AppId(name="").cluster().list(ended=True), None)
            return list_response(cluster_of(chosen.run.namespace, chosen.context).list(ended=True), chosen.context)

    def _cancel_existing(self, app_id: str) -> None:
        """End the application; on this machine its logs are kept."""
        meant = parse(app_id)
        # An application that has ended in the meantime is a success.
        with _refusing(), contextlib.suppress(NotFound):
            meant.cluster().delete(meant.name)

    def _delete_existing(self, app_id: str) -> None:
        """End the application and remove it with its logs."""
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
        """Return the lines of replica `k` of a role, with line ends. Raises ValueError for separate streams."""
        meant = parse(app_id)
        stream = None if streams is None else str(getattr(streams, "value", streams))
        with _refusing():
            cluster = meant.cluster()
            # Find the process by the role's name in the AppDef; process names may be sanitised.
            process = next((key for key, role in roles_of(cluster, meant.name).items() if role.name == role_name), "")
            name = process or role_name
            return cluster.log_iter(meant.name, name, k, regex, since, until, should_tail, stream)

    def close(self) -> None:
        """Do nothing: no resources are held."""

    def _validate(self, app: AppDef, scheduler: str, cfg: object = None) -> None:
        """Accept every application: resources are optional, and the dry run finds errors."""


def create_scheduler(session_name: str, **kwargs: object) -> SymphScheduler:
    """Return the scheduler for one session of TorchX."""
    del kwargs  # parameters of all schedulers together; none is ours
    return SymphScheduler(session_name)


class RunOpts(runopts):  # type: ignore[misc] # TorchX ships no types
    """Run options that keep unknown keys, so that the scheduler can refuse them; release 0.7.0 drops them."""

    def cfg_from_str(self, cfg_str: str) -> dict[str, Any]:
        """Return the options of a command line; known ones with their types."""
        known: dict[str, Any] = super().cfg_from_str(cfg_str)
        return {**to_dict(cfg_str), **known}


def _lasting(app: AppDef) -> dict[str, Any]:
    """Return the application as plain data, without the session id that TorchX generates for each submission."""
    data: dict[str, Any] = dataclasses.asdict(app)
    for role in data["roles"]:
        role["env"].pop("TORCHX_INTERNAL_SESSION_ID", None)
    return data


def _known(declared: runopts, cfg: Mapping[str, object]) -> dict[str, object]:
    """Return the options if all are ours: TorchX passes keys of other schedulers and its own, too."""
    names = {name for name, _ in declared}
    unknown = sorted(key for key, value in cfg.items() if key not in names and value is not None)
    if unknown:
        raise UsageError(f"unknown run options: {', '.join(unknown)}", next="list them: torchx runopts")
    return dict(cfg)


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    """Convert our errors to an exception whose text TorchX prints."""
    try:
        yield
    except SymphError as error:
        raise Refused(str(error)) from error


# Releases after 0.7.0 list the name of an application beside its id.
_LISTS_NAMES = any(item.name == "name" for item in dataclasses.fields(ListAppResponse))

# `stopping` is not final: after CANCELLED, TorchX would stop watching.
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
    """Return the answer to `torchx status` and `torchx describe`: a role for each process, with its real replicas.

    `roles` are the original roles, by process.
    """
    told = [(_role_of_request(process, roles), process) for process in status.processes]
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
    return [
        ListAppResponse(
            app_id=str(AppId(name=status.name, namespace=status.namespace or None, context=context)),
            state=_STATES[status.phase],
            **({"name": status.experiment} if _LISTS_NAMES else {}),
        )
        for status in statuses
    ]


def _role_of_request(process: ProcessStatus, roles: Mapping[str, Role]) -> Role:
    name = f"{process.group}/{process.name}" if process.group else process.name
    role = Role(name=name, image="") if process.group else roles.get(name, Role(name=name, image=""))
    return dataclasses.replace(role, num_replicas=len(process.instances))


def _replica(role: str, instance: InstanceStatus) -> ReplicaStatus:
    """Return one replica; TorchX's commands parse the message of a failed one as its own programs write it."""
    error = {"structured_error_msg": _error(instance)} if instance.phase == "failed" else {}
    return ReplicaStatus(id=instance.index, state=_STATES[instance.phase], role=role, hostname=instance.place, **error)


def _error(instance: InstanceStatus) -> str:
    code = "" if instance.status is None else str(instance.status)
    extra = {"timestamp": str(int(instance.ended or 0))}
    return json.dumps({"message": {"message": instance.state, "errorCode": code, "extraInfo": extra}})


def _message(instances: Iterable[InstanceStatus]) -> str:
    """Return a line per instance that failed or has a reason."""
    return "\n".join(
        f"{instance.path}: {instance.state}" for instance in instances if instance.reason or instance.phase == "failed"
    )
