"""A TorchX application becomes an experiment: one process per role, as many replicas as the role has.

What a TorchX program relies on is kept: its arguments with macros, ``/dev/shm`` of any size, the name of rank 0's
host in a variable. What TorchX gets wrong is not: roles do not collide, every replica of every role finds rank 0,
nothing is taken off the requests unless asked.
"""

from __future__ import annotations

from dataclasses import replace

from symphony_charts.importers.common.names import UniqueNames
from symphony_charts.importers.input_file import Source
from symphony_charts.importers.report import Imported, Log, build
from symphony_charts.importers.torchx.limits import long_host_lists
from symphony_charts.importers.torchx.options import RunOptions, parse_cfg, read_options
from symphony_charts.integrations.common.fields import Fields
from symphony_charts.integrations.torchx.appdef import AppDef, Role, read_appdef
from symphony_charts.integrations.torchx.importer import RoleContext, process_of, restarts_whole_set
from symphony_charts.integrations.torchx.options import SCHEDULER_OPTIONS

__all__ = ["appdef_of", "experiment_of", "import_torchx"]

_LABEL_APP = "torchx.pytorch.org/app-name"
_METADATA = "torchx.pytorch.org/metadata-"
_RANK0_SERVICE = "rank0"
_RANK0_PORT = 29500  # TorchX's own default for its Service


def import_torchx(source: Source, cfg: str = "", kind: str = "") -> Imported:
    """The experiment of the AppDef in a file; `cfg` holds run options as ``torchx run -cfg`` takes them.

    `kind` is the kind of the workload and overrides theirs.

    Raises SpecError with file and line of every fault.
    """
    log = Log()
    app, options = appdef_of(source, log)
    if cfg:
        options = parse_cfg(cfg, log)
    options = replace(options, kind=kind) if kind else options
    return experiment_of(app, options, log)


def appdef_of(source: Source, log: Log) -> tuple[AppDef, RunOptions]:
    """The application in a file, and the run options beside it when ``torchx run --dryrun --json`` wrote it."""
    data = source.documents[0].data
    if len(source.documents) > 1:
        log.note(source.prefix(1), "only the first document is an application; the others are not read")
    prefix = source.prefix(0)
    if isinstance(data, dict) and isinstance(data.get("app"), dict) and "roles" not in data:
        outer = Fields(data, prefix, log)
        cfg = outer.map("cfg")
        # Where our own scheduler would have taken it is no part of what it is.
        places = {option.name for option in SCHEDULER_OPTIONS}
        cfg_values = {key: cfg.raw(key) for key in cfg.keys() if key not in places}  # noqa: SIM118 - not a dict
        options = read_options(cfg_values, log, cfg.path)
        return read_appdef(outer.get("app"), log, outer.at("app")), options
    return read_appdef(data, log, prefix), RunOptions()


def experiment_of(app: AppDef, options: RunOptions, log: Log) -> Imported:
    """The experiment of an application; faults found before are in `log`."""
    log.raise_faults()
    names = UniqueNames(log)
    roles = [(names.give(role.name, f"{role.path}.name"), role) for role in app.roles]
    context = RoleContext(app=app, options=options, log=log)
    services = _services(roles)
    rank0 = next(iter(services[0].values()), None)
    if rank0 is None and any(context.needs_host(role, index) for index, role in enumerate(app.roles)):
        what = f"without a port its replicas have no names here; it has {_RANK0_PORT}, TorchX's own where there is none"
        log.changed(f"{app.roles[0].path}.port_map", what, "name the port that rank 0 opens")
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
    # TorchX starts all roles at once, and so do the programs expect it.
    data["local"] = {"start": "together"}
    imported = build(data, log, origins)
    for process, size in long_host_lists(imported.experiment):
        path = f"{origins[f'processes.{process}']}.num_replicas"
        what = f"the list of all replicas' hosts has {size} bytes, and no program starts with such a variable"
        log.fault(path, what, "fewer replicas, or no port_map")
    log.raise_faults()
    return imported


def _services(roles: list[tuple[str, Role]]) -> list[dict[str, str]]:
    """For each role the service of each of its ports; a port name that several roles use gets the role's in front."""
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
    """Refuse run options that cannot go together, and say which of them count nothing."""
    if options.appwrapper_version is not None and options.kind != "appwrapper":
        log.fault("cfg.appwrapper_version", f'kind "{options.kind}" is no AppWrapper', "kind=appwrapper, or drop it")
    if options.coscheduler_name is not None and options.kind in ("volcano", "dijob"):
        what = f"kind `{options.kind}` has a scheduler of its own for all pods, and takes no second one"
        log.fault("cfg.coscheduler_name", what, "drop it, or use another kind")
    if options.priority is not None and not options.is_for_mcad:
        what = "`priority` counts in the queue of MCAD alone, whose AppWrappers are of version v1beta1"
        log.lost(
            "cfg.priority", what, "appwrapper_version=v1beta1, or priority_class_name, which pods have on every kind"
        )
    log.raise_faults()


def _settings(app: AppDef, options: RunOptions) -> dict[str, object]:
    """The experiment's own fields, from the run options and the application's metadata."""
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
        # An account is named for what it may do, which its token proves; TorchX leaves Kubernetes' default, a token.
        "security": {"service_account_token": True} if options.service_account else None,
        "image_pull_secrets": [options.image_secret] if options.image_secret else None,
        "networks": [options.network] if options.network else None,
        "workload": workload or None,
        "labels": {_LABEL_APP: UniqueNames.label_value(app.name)},
        "annotations": annotations or None,
    }
    return {key: value for key, value in settings.items() if value is not None}
