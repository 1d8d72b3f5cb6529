"""One TorchX role becomes a process."""

from __future__ import annotations

from dataclasses import dataclass, field

from symphony_charts.importers.common.names import UniqueNames, Volumes
from symphony_charts.importers.report import Log
from symphony_charts.importers.torchx.macros import APP_ID_VARIABLES, MACROS, RANK0_VARIABLE, as_references, uses
from symphony_charts.importers.torchx.mounts import AnyMount, BindMount, VolumeMount
from symphony_charts.importers.torchx.options import RunOptions, pushed_image
from symphony_charts.importers.torchx.overlay import pod_overlay_of
from symphony_charts.integrations.torchx.appdef import AppDef, Resource, Role
from symphony_charts.spec.variable_names import INDEX, service_variable

__all__ = ["RoleContext", "process_of", "restarts_whole_set"]

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
FIELD_PATH = "[FIELD_PATH]"
EFA = "vpc.amazonaws.com/efa"
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - where POSIX shared memory is, not a temporary file
_LABELS = "torchx.pytorch.org/"
_INSTANCE = "app.kubernetes.io/instance"
_RANK0_ITSELF = "localhost"


@dataclass(slots=True, kw_only=True)
class RoleContext:
    """Facts that the roles of one application share while they are turned into processes."""

    app: AppDef
    options: RunOptions
    log: Log
    volumes: Volumes = field(default_factory=Volumes)

    def needs_host(self, role: Role, index: int) -> bool:
        """Return True if a replica of the role at `index` asks for the host of rank 0, and is not rank 0 itself."""
        if index == 0 and role.num_replicas == 1:
            return False
        return _asks(role, "rank0_env")


def restarts_whole_set(app: AppDef, options: RunOptions) -> bool:
    """Return True if a JobSet starts the whole application again: no role has retries of its replicas alone."""
    policies = {role.retry_policy for role in app.roles if role.max_retries}
    return options.kind == "jobset" and policies == {"APPLICATION"}


def process_of(
    role: Role, index: int, context: RoleContext, binds: dict[str, int], rank0: str | None
) -> dict[str, object]:
    """The process of the role at `index`; `binds` are its services, `rank0` the service whose first host is rank 0.

    That service is None where no replica needs the host of another.
    """
    _note_losses(role, context)
    asked = rank0 if context.needs_host(role, index) else None
    is_rank0 = index == 0 and role.num_replicas == 1
    requests, limits = _resources(role, context.options)
    data: dict[str, object] = {
        "image": _image(role, context),
        "command": [as_references(role.entrypoint) if "${" in role.entrypoint else role.entrypoint],
        "args": [as_references(arg) for arg in role.args],
        "env": {
            **(_app_id_env(context) if _asks(role, "app_id") else {}),
            **{name: _env_value(value) for name, value in role.env.items()},
            **({RANK0_VARIABLE: _RANK0_ITSELF} if is_rank0 else {}),
        },
        "preamble": _rank0_lines(asked, has_rank0=index == 0 and not is_rank0),
        "replicas": role.num_replicas,
        "min_replicas": role.min_replicas,
        "retries": None if restarts_whole_set(context.app, context.options) else role.max_retries or None,
        "binds": binds,
        # TorchX promises no port: whether and when one is opened is the program's own affair.
        "ready": "none" if binds else None,
        "connects": [asked] if asked is not None and asked not in binds else [],
        "requests": requests,
        "limits": limits,
        "gpus": max(role.resource.gpu, 0),
        "reserve": context.options.reserve or None,
        "mounts": _mounts(role, context.volumes),
        "capabilities": _capabilities(role, context.log),
        "labels": {
            f"{_LABELS}role-name": UniqueNames.label_value(role.name),
            f"{_LABELS}role-index": str(index),
        },
        "annotations": {"sidecar.istio.io/inject": "false", **_metadata(role)},
        "pod_overlay": pod_overlay_of(role, context.log),
    }
    return {key: value for key, value in data.items() if value not in (None, {}, []) and (key, value) != ("gpus", 0)}


def _rank0_lines(service: str | None, *, has_rank0: bool) -> list[str]:
    """The shell lines that tell a role's replicas where rank 0 is: the host of the first replica behind `service`.

    With `has_rank0` the first of them is rank 0. It has to know that, since it is the one that listens, and by the
    name that others dial it does not recognise itself (torch compares its own names, and waits for DNS in vain).
    """
    lines = []
    if service is not None:
        lines.append(f'export {RANK0_VARIABLE}="${{{service_variable(service, "HOSTS")}%%:*}}"')
    if has_rank0:
        lines.append(f'if [ "${INDEX}" = 0 ]; then export {RANK0_VARIABLE}={_RANK0_ITSELF}; fi')
    return lines


def _asks(role: Role, macro: str) -> bool:
    return any(uses(text, macro) for text in (role.entrypoint, *role.args, *role.env.values()) if "$" in text)


def _app_id_env(context: RoleContext) -> dict[str, object]:
    """Return the variables of which a pod makes ``${app_id}``."""
    release, run = APP_ID_VARIABLES
    if context.options.kind == "dijob":
        what = "`${app_id}` is the application's name here: pods of a DIJob are not told which run they belong to"
        context.log.lost("name", what, "another `kind` makes it another one each time")
        return {release: UniqueNames.label_value(context.app.name), run: "0"}
    return {release: {"field": f"metadata.labels['{_INSTANCE}']"}, run: {"field": "metadata.labels['symph.dev/run']"}}


def _image(role: Role, context: RoleContext) -> str | None:
    image = pushed_image(role.image, context.options)
    if image is None:
        context.log.fault(
            f"{role.path}.image",
            f'"{role.image}" is an image of this machine only',
            "say where it is pushed: --cfg image_repo=example.com/your/container",
        )
    return image or None


def _env_value(value: str) -> object:
    if value.startswith(FIELD_PATH):
        return {"field": value.removeprefix(FIELD_PATH)}
    return as_references(value)


def _resources(role: Role, options: RunOptions) -> tuple[dict[str, str], dict[str, str]]:
    """Requests and limits: alike, unless the run options take something off the requests for the node itself.

    Half of what was asked for always stays: TorchX's own requests go down to nothing.
    """
    resource = role.resource
    limits: dict[str, str] = {}
    requests: dict[str, str] = {}
    if resource.cpu > 0:
        millis = int(resource.cpu * 1000)
        limits["cpu"] = f"{millis}m"
        requests["cpu"] = f"{_reserved(millis, options.reserved_millicpu)}m"
    if resource.memory_mb > 0:
        limits["memory"] = f"{resource.memory_mb}M"
        requests["memory"] = f"{_reserved(resource.memory_mb, options.reserved_memmb)}M"
    limits |= {name: str(count) for name, count in devices_of(resource, options).items()}
    return requests, limits


def _reserved(asked: int, kept: int | None) -> int:
    """Return the rest of a request of which the node keeps `kept`, and at least half of it."""
    return max(asked - (kept or 0), (asked + 1) // 2)


def devices_of(resource: Resource, options: RunOptions) -> dict[str, int]:
    """The extended resources, with the run option's number of EFA devices."""
    devices = dict(resource.devices)
    if options.efa_device_count == 0:
        devices.pop(EFA, None)
    elif options.efa_device_count is not None:
        devices[EFA] = options.efa_device_count
    return devices


def _mounts(role: Role, volumes: Volumes) -> list[object]:
    shared_memory = volumes.find({"type": "empty_dir", "memory": True}, "dshm")
    mounts: list[object] = []
    if all(mount.dst_path.rstrip("/") != _SHARED_MEMORY for mount in role.mounts):
        mounts.append({"volume": shared_memory, "at": _SHARED_MEMORY})
    for mount in role.mounts:
        volume, is_read_only = _volume(mount)
        name = volumes.find(volume, f"mount-{len(volumes.declared) - 1}")
        mounts.append({"volume": name, "at": mount.dst_path} | ({"read_only": True} if is_read_only else {}))
    return mounts


def _volume(mount: AnyMount) -> tuple[dict[str, object], bool]:
    if isinstance(mount, BindMount):
        return {"type": "host_path", "path": mount.src_path}, mount.read_only
    if isinstance(mount, VolumeMount):
        return {"type": "claim", "claim": mount.src}, mount.read_only
    return {"type": "device", "path": mount.src_path, "perm": mount.permissions}, mount.is_read_only


def _capabilities(role: Role, log: Log) -> dict[str, str]:
    """Capabilities that are labels of nodes; TorchX itself looks at the instance type alone."""
    capabilities: dict[str, str] = {}
    for name, value in role.resource.capabilities.items():
        if isinstance(value, str) and (name == INSTANCE_TYPE or "/" in name):
            capabilities[name] = value
        else:
            path = f"{role.path}.resource.capabilities.{name}"
            log.changed(
                path, f"capability `{name}` is no label of a node; it is not carried over (TorchX drops it too)"
            )
    return capabilities


def _metadata(role: Role) -> dict[str, str]:
    """Metadata of the role as annotations of its pods, except what patches the pod."""
    return {
        f"{_LABELS}metadata-{UniqueNames.label_value(name)}": value
        for name, value in role.metadata.items()
        if isinstance(value, str) and name != "kubernetes"
    }


def _note_losses(role: Role, context: RoleContext) -> None:
    note = context.log.note
    restarts_all = context.options.kind == "appwrapper" or restarts_whole_set(context.app, context.options)
    if role.max_retries and restarts_all and role.retry_policy == "REPLICA":
        what = "REPLICA restarts the failed replica; an AppWrapper starts the whole application again"
        note(f"{role.path}.retry_policy", what, "use `kind=jobs` to retry each replica alone")
    if role.max_retries and not restarts_all and role.retry_policy != "REPLICA":
        what = f"{role.retry_policy} restarts more than the failed replica; here each replica is retried alone"
        note(f"{role.path}.retry_policy", what, "`workload.kind: jobset` starts the whole application again")
    if role.min_replicas not in (None, role.num_replicas) and not context.options.starts_as_gang:
        what = "`min_replicas` says how many start together; here each replica starts as soon as it has a place"
        note(f"{role.path}.min_replicas", what, "gang=kueue or another, coscheduler_name, or kind=volcano")
    if role.workspace is not None:
        note(f"{role.path}.workspace", "the workspace is not in the image", "symph package --workspace DIR adds it")
    if role.base_image:
        context.log.changed(
            f"{role.path}.base_image", "`base_image` means nothing on Kubernetes; it is not carried over"
        )
    if role.resource.tags:
        note(f"{role.path}.resource.tags", "`tags` of a resource are not carried over")
    for name, value in role.metadata.items():
        if not isinstance(value, str) and name != "kubernetes":
            note(f"{role.path}.metadata.{name}", f"metadata `{name}` is no text; it is not carried over")
    for name, value in role.metadata.items():
        if isinstance(value, str) and any(uses(value, macro) for macro in MACROS):
            note(
                f"{role.path}.metadata.{name}",
                "a macro in metadata is not filled in: an annotation is the same text for all",
            )
    if _asks(role, "base_img_root"):
        context.log.changed(f"{role.path}.args", "the macro `base_img_root` is gone from TorchX; it is empty here")
