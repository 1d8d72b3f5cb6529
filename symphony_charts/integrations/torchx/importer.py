"""Convert a TorchX application to an experiment: one process per role, with the role's replicas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from symphony_charts.chart.build.chart import Release
from symphony_charts.chart.build.chart import build as build_chart
from symphony_charts.chart.lint.workload_rules import MAX_ENV_BYTES
from symphony_charts.errors import SpecError
from symphony_charts.importers.input_file import Source
from symphony_charts.importers.report import Imported, Log, build
from symphony_charts.integrations.common.fields import Fields, UniqueNames, Volumes
from symphony_charts.integrations.torchx.appdef import (
    APP_ID_VARIABLES,
    MACROS,
    RANK0_VARIABLE,
    AnyMount,
    AppDef,
    BindMount,
    Resource,
    Role,
    VolumeMount,
    as_references,
    read_appdef,
    uses,
)
from symphony_charts.integrations.torchx.options import (
    SCHEDULER_OPTIONS,
    RunOptions,
    parse_cfg,
    pushed_image,
    read_options,
)
from symphony_charts.spec.checks.finish import finish
from symphony_charts.spec.model import Experiment
from symphony_charts.spec.pods import allocate
from symphony_charts.spec.variable_names import INDEX, service_variable

# In a TorchX overlay maps merge and lists append, except for keys with a prefix: ``__put__:f`` replaces, ``__del__:f``
# removes, ``__join__:f:on`` merges lists by a key. Source: meta-pytorch/torchx, torchx/specs/overlays.py.

_FORMAT_KEY = "__torchx_overlays__"
_PUT, _JOIN, _DEL = "__put__:", "__join__:", "__del__:"


def overlay_of(role: Role) -> object:
    """Return the overlay in the role's metadata: a map, the address of a file, or None."""
    held = role.metadata.get("kubernetes")
    if isinstance(held, dict) and (_FORMAT_KEY in held or "V1Pod" in held):
        return held.get("V1Pod")
    return held


def pod_overlay_of(role: Role, log: Log) -> dict[str, object]:
    """Return the overlay as an experiment's `pod_overlay`, which merges by Kubernetes' rules."""
    overlay = overlay_of(role)
    path = f"{role.path}.metadata.kubernetes"
    if overlay is None:
        return {}
    if not isinstance(overlay, dict):
        log.note(path, "the import does not read the file of a pod overlay", "put its content in `pod_overlay`")
        return {}
    return _plain(overlay, path, log)


def _plain(overlay: dict[str, object], path: str, log: Log) -> dict[str, object]:
    result: dict[str, object] = {}
    for key, value in overlay.items():
        if key.startswith(_DEL):
            log.note(f"{path}.{key}", f"`{key.removeprefix(_DEL)}` remains: an overlay cannot remove a field")
            continue
        name = key.removeprefix(_PUT)
        if key.startswith(_JOIN):
            name, _, on = key.removeprefix(_JOIN).partition(":")
            if on != "name":
                log.note(f"{path}.{key}", f"lists merge by `name` only; `{name}` is replaced instead")
        elif isinstance(value, list) and not key.startswith(_PUT):
            log.note(f"{path}.{key}", f"TorchX appends to `{name}`; here lists without names are replaced")
        result[name] = _plain(value, f"{path}.{key}", log) if isinstance(value, dict) else value
    return result


INSTANCE_TYPE = "node.kubernetes.io/instance-type"
FIELD_PATH = "[FIELD_PATH]"
EFA = "vpc.amazonaws.com/efa"
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - where POSIX shared memory is, not a temporary file
_LABELS = "torchx.pytorch.org/"
_INSTANCE = "app.kubernetes.io/instance"
_RANK0_ITSELF = "localhost"


@dataclass(slots=True, kw_only=True)
class RoleContext:
    """Shared state while the roles of one application are converted to processes."""

    app: AppDef
    options: RunOptions
    log: Log
    volumes: Volumes = field(default_factory=Volumes)

    def needs_host(self, role: Role, index: int) -> bool:
        """Return True if a replica of the role at `index` needs the host of rank 0, and is not rank 0 itself."""
        if index == 0 and role.num_replicas == 1:
            return False
        return _asks(role, "rank0_env")


def restarts_whole_set(app: AppDef, options: RunOptions) -> bool:
    """Return True if a JobSet restarts the whole application: no role retries single replicas."""
    policies = {role.retry_policy for role in app.roles if role.max_retries}
    return options.kind == "jobset" and policies == {"APPLICATION"}


def process_of(
    role: Role, index: int, context: RoleContext, binds: dict[str, int], rank0: str | None
) -> dict[str, object]:
    """Return the process of the role at `index`; `binds` are its services.

    `rank0` is the service whose first host is rank 0, None if no replica needs the host of another.
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
        # TorchX promises no port: the program decides if and when it opens one.
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
    """Return shell lines that set the host of rank 0: the host of the first replica behind `service`.

    With `has_rank0` the first replica is rank 0. It must know that, since it listens, and it does not recognise itself
    by the name that others dial (torch compares its own names, and waits for DNS in vain).
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
    release, run = APP_ID_VARIABLES
    if context.options.kind == "dijob":
        what = "`${app_id}` is the application's name, because pods of a DIJob do not get the id of their run"
        context.log.lost("name", what, "use another `kind` for an id per run")
        return {release: UniqueNames.label_value(context.app.name), run: "0"}
    return {release: {"field": f"metadata.labels['{_INSTANCE}']"}, run: {"field": "metadata.labels['symph.dev/run']"}}


def _image(role: Role, context: RoleContext) -> str | None:
    image = pushed_image(role.image, context.options)
    if image is None:
        context.log.fault(
            f"{role.path}.image",
            f'the image "{role.image}" exists only on this machine',
            "give the repository to push it to: --cfg image_repo=example.com/your/container",
        )
    return image or None


def _env_value(value: str) -> object:
    if value.startswith(FIELD_PATH):
        return {"field": value.removeprefix(FIELD_PATH)}
    return as_references(value)


def _resources(role: Role, options: RunOptions) -> tuple[dict[str, str], dict[str, str]]:
    """Return requests and limits: equal, unless run options reserve a part of the requests for the node.

    At least half of each request remains; TorchX's own requests can drop to zero.
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
    """Return a request without the `kept` part of the node, but at least half of it."""
    return max(asked - (kept or 0), (asked + 1) // 2)


def devices_of(resource: Resource, options: RunOptions) -> dict[str, int]:
    """Return the extended resources, with the run option's number of EFA devices."""
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
    """Return capabilities that are labels of nodes; TorchX itself uses only the instance type."""
    capabilities: dict[str, str] = {}
    for name, value in role.resource.capabilities.items():
        if isinstance(value, str) and (name == INSTANCE_TYPE or "/" in name):
            capabilities[name] = value
        else:
            path = f"{role.path}.resource.capabilities.{name}"
            log.changed(
                path, f"capability `{name}` is not a label of a node; it is not carried over (TorchX drops it too)"
            )
    return capabilities


def _metadata(role: Role) -> dict[str, str]:
    """Return metadata of the role as annotations of its pods, without the pod overlay."""
    return {
        f"{_LABELS}metadata-{UniqueNames.label_value(name)}": value
        for name, value in role.metadata.items()
        if isinstance(value, str) and name != "kubernetes"
    }


def _note_losses(role: Role, context: RoleContext) -> None:
    note = context.log.note
    restarts_all = context.options.kind == "appwrapper" or restarts_whole_set(context.app, context.options)
    if role.max_retries and restarts_all and role.retry_policy == "REPLICA":
        what = "REPLICA restarts only the failed replica; this kind restarts the whole application"
        note(f"{role.path}.retry_policy", what, "use `kind=jobs` to retry each replica alone")
    if role.max_retries and not restarts_all and role.retry_policy != "REPLICA":
        what = f"{role.retry_policy} restarts more than the failed replica; this kind retries each replica alone"
        note(f"{role.path}.retry_policy", what, "to restart the whole application: `workload.kind: jobset`")
    if role.min_replicas not in (None, role.num_replicas) and not context.options.starts_as_gang:
        what = "`min_replicas` has no effect: each replica starts as soon as it has a node"
        note(f"{role.path}.min_replicas", what, "use gang=kueue or another gang, coscheduler_name, or kind=volcano")
    if role.workspace is not None:
        note(f"{role.path}.workspace", "the workspace is not in the image", "to add it: symph package --workspace DIR")
    if role.base_image:
        context.log.changed(
            f"{role.path}.base_image", "`base_image` has no effect on Kubernetes; it is not carried over"
        )
    if role.resource.tags:
        note(f"{role.path}.resource.tags", "`tags` of a resource are not carried over")
    for name, value in role.metadata.items():
        if not isinstance(value, str) and name != "kubernetes":
            note(f"{role.path}.metadata.{name}", f"metadata `{name}` is not text; it is not carried over")
    for name, value in role.metadata.items():
        if isinstance(value, str) and any(uses(value, macro) for macro in MACROS):
            note(
                f"{role.path}.metadata.{name}", "the macro in metadata remains: all replicas have the same annotations"
            )
    if _asks(role, "base_img_root"):
        context.log.changed(f"{role.path}.args", "the macro `base_img_root` no longer exists in TorchX; it is empty")


# A host contains the names of experiment and process in both of its labels, and also run, index and port. No host is
# longer than two DNS labels and a port.
_BESIDE_NAMES = len("--01234567-99999--pods.:65535,")
_LONGEST_HOST = len(f"{'a' * 63}.{'a' * 63}:65535,")


def long_host_lists(experiment: Experiment) -> Iterator[tuple[str, int]]:
    """Yield processes whose replicas could not start, with the size in bytes of the variable with their hosts."""
    if all(
        process.replicas * min(2 * len(experiment.name + name) + _BESIDE_NAMES, _LONGEST_HOST) < MAX_ENV_BYTES
        for name, process in experiment.processes.items()
    ):
        return
    try:
        settled = finish(experiment, for_cluster=True)
        chart = build_chart(settled, allocate(settled))
    except SpecError:
        return  # building the chart for real reports this error
    for service in chart.draft.services.values():
        group = chart.draft.groups[service.listener.pod]
        host = chart.text(chart.draft.host(group).replace("{$i}", "INDEX"), chart.values, Release(name=chart.name))
        indexes = range(group.pod.settings.replicas)
        size = len(",".join(f"{host.replace('INDEX', str(index))}:{service.port}" for index in indexes))
        if size >= MAX_ENV_BYTES:
            yield service.listener.process, size


# The import keeps what a TorchX program relies on: its arguments with macros, `/dev/shm` of any size, the name of rank
# 0's host in a variable. It does not keep TorchX's faults: roles do not collide, every replica of every role finds rank
# 0, and requests are not reduced unless asked.

_LABEL_APP = "torchx.pytorch.org/app-name"
_METADATA = "torchx.pytorch.org/metadata-"
_RANK0_SERVICE = "rank0"
_RANK0_PORT = 29500  # TorchX's own default for its Service


def import_torchx(source: Source, cfg: str = "", kind: str = "") -> Imported:
    """Return the experiment of the AppDef in a file; `cfg` holds run options as `torchx run -cfg` takes them.

    `kind` overrides the workload kind in `cfg`.

    Raises SpecError with file and line of every fault.
    """
    log = Log()
    app, options = appdef_of(source, log)
    if cfg:
        options = parse_cfg(cfg, log)
    options = replace(options, kind=kind) if kind else options
    return experiment_of(app, options, log)


def appdef_of(source: Source, log: Log) -> tuple[AppDef, RunOptions]:
    """Return the application in a file, with its run options if `torchx run --dryrun --json` wrote the file."""
    data = source.documents[0].data
    if len(source.documents) > 1:
        log.note(source.prefix(1), "symph reads only the first document")
    prefix = source.prefix(0)
    if isinstance(data, dict) and isinstance(data.get("app"), dict) and "roles" not in data:
        outer = Fields(data, prefix, log)
        cfg = outer.map("cfg")
        # The target of our own scheduler is not a property of the application.
        places = {option.name for option in SCHEDULER_OPTIONS}
        cfg_values = {key: cfg.raw(key) for key in cfg.keys() if key not in places}  # noqa: SIM118 - not a dict
        options = read_options(cfg_values, log, cfg.path)
        return read_appdef(outer.get("app"), log, outer.at("app")), options
    return read_appdef(data, log, prefix), RunOptions()


def experiment_of(app: AppDef, options: RunOptions, log: Log) -> Imported:
    """Return the experiment of an application; `log` may already contain faults."""
    log.raise_faults()
    names = UniqueNames(log)
    roles = [(names.give(role.name, f"{role.path}.name"), role) for role in app.roles]
    context = RoleContext(app=app, options=options, log=log)
    services = _services(roles)
    rank0 = next(iter(services[0].values()), None)
    if rank0 is None and any(context.needs_host(role, index) for index, role in enumerate(app.roles)):
        what = f"a role without a port has no host names, so it gets port {_RANK0_PORT}, TorchX's default"
        log.changed(f"{app.roles[0].path}.port_map", what, "set the port that rank 0 opens")
        rank0 = _RANK0_SERVICE
        services[0] = {"": _RANK0_SERVICE}
    _note_options(options, log)
    data: dict[str, object] = {"name": names.clean(app.name, "name"), **_settings(app, options)}
    origins = {"name": "name"}
    processes: dict[str, object] = {}
    for index, (name, role) in enumerate(roles):
        binds = {service: role.port_map.get(port, _RANK0_PORT) for port, service in services[index].items()}
        processes[name] = process_of(role, index, context, binds, rank0)
        origins |= {f"processes.{name}": role.path, f"processes.{name}.binds": f"{role.path}.port_map"}
    data["processes"] = processes
    data["volumes"] = context.volumes.declared
    # TorchX starts all roles at once, and programs rely on that.
    data["local"] = {"start": "together"}
    imported = build(data, log, origins)
    for process, size in long_host_lists(imported.experiment):
        path = f"{origins[f'processes.{process}']}.num_replicas"
        what = f"the list of all replicas' hosts has {size} bytes, too many for an environment variable"
        log.fault(path, what, "use fewer replicas, or no port_map")
    log.raise_faults()
    return imported


def _services(roles: list[tuple[str, Role]]) -> list[dict[str, str]]:
    """Return a map of ports to services per role; port names used by several roles get the role as a prefix."""
    used = [port for _, role in roles for port in role.port_map]
    taken: set[str] = set()
    services: list[dict[str, str]] = []
    for name, role in roles:
        mine: dict[str, str] = {}
        for port in role.port_map:
            service = UniqueNames.label(port if used.count(port) == 1 else f"{name}-{port}")
            while service in taken:
                service = f"{service}-x"
            taken.add(service)
            mine[port] = service
        services.append(mine)
    return services


def _note_options(options: RunOptions, log: Log) -> None:
    """Refuse conflicting run options, and note those without effect."""
    if options.appwrapper_version is not None and options.kind != "appwrapper":
        log.fault(
            "cfg.appwrapper_version",
            f'kind "{options.kind}" is not an AppWrapper',
            "use kind=appwrapper, or remove the option",
        )
    if options.coscheduler_name is not None and options.kind in ("volcano", "dijob"):
        what = f"kind `{options.kind}` has its own scheduler, and cannot use a second one"
        log.fault("cfg.coscheduler_name", what, "remove it, or use another kind")
    if options.priority is not None and not options.is_for_mcad:
        what = "`priority` applies only to AppWrappers of MCAD, version v1beta1"
        log.lost(
            "cfg.priority", what, "use appwrapper_version=v1beta1, or priority_class_name, which every kind supports"
        )
    log.raise_faults()


def _settings(app: AppDef, options: RunOptions) -> dict[str, object]:
    workload: dict[str, object] = {}
    if options.kind is not None:
        workload["kind"] = options.kind
    if restarts_whole_set(app, options):
        workload["jobset"] = {"max_restarts": max(role.max_retries for role in app.roles)}
    if options.coscheduler_name is not None:
        workload |= {"gang": "coscheduling", "scheduler_name": options.coscheduler_name}
    if options.gang is not None:
        workload["gang"] = options.gang
    if options.appwrapper_version is not None:
        workload["appwrapper"] = {"version": options.appwrapper_version}
    if options.priority is not None and options.is_for_mcad:
        workload["priority"] = options.priority
    if options.priority_class_name is not None:
        workload["priority_class"] = options.priority_class_name
    if options.queue is not None:
        workload["queue"] = options.queue
    annotations = {f"{_METADATA}{UniqueNames.label_value(key)}": value for key, value in app.metadata.items()}
    settings: dict[str, object] = {
        "namespace": options.namespace,
        "service_account": options.service_account,
        # A set service account is meant to be used, which needs its token; TorchX keeps Kubernetes' default, a token.
        "security": {"service_account_token": True} if options.service_account else None,
        "image_pull_secrets": [options.image_secret] if options.image_secret else None,
        "networks": [options.network] if options.network else None,
        "workload": workload or None,
        "labels": {_LABEL_APP: UniqueNames.label_value(app.name)},
        "annotations": annotations or None,
    }
    return {key: value for key, value in settings.items() if value is not None}
