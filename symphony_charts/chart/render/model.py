"""What a release is, computed from its values once: the twin of ``charts/symph/templates/_model.tpl``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from symphony_charts.chart.render import names
from symphony_charts.chart.render.names import Release
from symphony_charts.chart.render.sealing import check_sealed
from symphony_charts.chart.render.values import Values, integer, is_true, normalise, ordered, scalar, texts
from symphony_charts.environment.variables import Address, shared_environment
from symphony_charts.errors import Problem, SpecError
from symphony_charts.formats import go_json
from symphony_charts.formats.data import sub
from symphony_charts.formats.paths import nearest
from symphony_charts.kinds.base import Kind
from symphony_charts.kinds.group import Group
from symphony_charts.kinds.registry import KINDS
from symphony_charts.kinds.table import Row, fill, settings_faults, variant_of
from symphony_charts.spec.variable_names import FAILURES, RESTARTS

__all__ = [
    "ConfigData",
    "LiveService",
    "Model",
    "build_model",
    "check_workload",
    "connects_of",
    "kind_name",
    "row_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveService:
    """A service whose listener runs: `host` is its Service, `hosts` one name per replica, in order."""

    name: str
    host: str
    hosts: tuple[str, ...]
    port: int
    group: str
    process: str
    has_run_hosts: bool
    is_bound: bool
    expose: str
    values: Values

    @property
    def address(self) -> Address:
        """Where it is reached."""
        return Address(host=self.host, hosts=self.hosts, port=self.port)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigData:
    """The ConfigMap of configuration files and how its keys are mounted."""

    name: str
    items: list[object]
    data: dict[str, str]
    binary: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """All that the objects of a release are made from, but for the identity of its run.

    `bound` are the services of each group and container. `names_run`: whether addresses of replicas contain that
    identity. `addresses` is the data of the ConfigMap `addresses_name`, which tells all processes where services are.
    `account` is the service account of pods that name none; empty where Kubernetes' own is meant.
    `nodes` are the hosts of each group whose replicas are told their ranks, by rank.
    `row` is what the table says of the kind under the version of its controller. `unit` is the name, without the run,
    of the object that runs all groups that end.
    """

    values: Values
    kind: Kind
    row: Row
    unit: str
    fullname: str
    experiment: str
    identity: dict[str, str]
    labels: dict[str, str]
    secret_name: str
    account: str
    groups: dict[str, Group]
    services: dict[str, LiveService]
    bound: dict[tuple[str, str], list[LiveService]]
    names_run: bool
    nodes: dict[str, tuple[str, ...]]
    addresses: dict[str, str]
    addresses_name: str
    configs: ConfigData | None
    defaults: Values = field(default_factory=dict)

    @property
    def kind_name(self) -> str:
        """What the kind of workload is called, such as ``jobset``."""
        return scalar(sub(self.values, "workload").get("kind") or "jobs")


def build_model(values: Mapping[str, object], release: Release) -> Model:
    """The model of `release` under merged `values`. Raises SpecError where the templates fail."""
    clean = normalise(values)
    check_workload(clean)
    full = names.fullname(clean, release)
    secret_name = scalar(sub(clean, "secrets").get("name") or names.join(full, "secrets", 63))
    if not release.is_draft:
        check_sealed(sub(clean, "secrets"), secret_name, release.namespace)
    kind, row = KINDS[kind_name(clean)], row_of(clean)
    unit = names.fit(full, row.unit_length)
    account = _account(clean, full)
    defaults = sub(clean, "defaults")
    groups = _groups(clean, full, unit, row)
    _refuse(kind.faults([group for group in groups.values() if group.is_finite or group.in_unit], clean))
    services = _services(clean, full, groups)
    restarted = _restarted(groups, services)
    groups = {name: replace(group, keep=name not in restarted) for name, group in groups.items()}
    _check_names(groups, services)
    told = shared_environment({name: service.address for name, service in services.items()})
    addresses = {name: told[name] for name in sorted(told)}
    digest = names.sha256(go_json.dumps(addresses))[:8]
    bound: dict[tuple[str, str], list[LiveService]] = {}
    for service in services.values():
        bound.setdefault((service.group, service.process), []).append(service)
    return Model(
        values=clean,
        kind=kind,
        row=row,
        unit=unit,
        fullname=full,
        experiment=scalar(clean.get("experiment") or release.chart_name),
        identity=names.identity(clean, release),
        labels=names.labels(clean, release),
        secret_name=secret_name,
        account=account,
        groups=groups,
        services=services,
        bound=bound,
        names_run=any(service.has_run_hosts for service in services.values()),
        nodes={
            name: _replica_hosts(groups[name])
            for name in ordered(groups, sub(clean, "workload").get("order"))
            if groups[name].is_node
        },
        addresses=addresses,
        addresses_name=names.join(full, f"addresses-{digest}", 63),
        configs=_configs(clean, full),
        defaults={**defaults, "serviceAccountName": defaults.get("serviceAccountName") or account},
    )


def check_workload(values: Values) -> None:
    """Raises SpecError with every combination of settings of ``workload`` that cannot be."""
    settings = {key: scalar(value) for key, value in sub(values, "workload").items() if not isinstance(value, dict)}
    scheduler = scalar(sub(values, "defaults").get("schedulerName") or "")
    _refuse(settings_faults(settings.get("kind") or "jobs", settings, scheduler))


def _refuse(faults: Iterable[Problem]) -> None:
    found = list(faults)
    if found:
        raise SpecError(found)


def kind_name(values: Values) -> str:
    """What the kind of workload is called that `values` ask for. Raises SpecError for one that is unknown."""
    name = scalar(sub(values, "workload").get("kind") or "jobs")
    if name not in KINDS:
        near = nearest(name, KINDS)
        hint = f'did you mean "{near}"? ' if near else ""
        raise SpecError.one(
            f'workload.kind "{name}" is none of {", ".join(KINDS)}', "workload.kind", f"{hint}give one of them"
        )
    return name


def row_of(values: Values) -> Row:
    """What the table says of the kind that `values` ask for, under the version of its controller."""
    name = kind_name(values)
    version = scalar(sub(sub(values, "workload"), name).get("operator") or "")
    return variant_of(name, version)


def _account(values: Values, full: str) -> str:
    """The service account of the release, the chart's own where it is created; nothing where none is named."""
    own = sub(values, "serviceAccount")
    return scalar(own.get("name") or (names.fit(full, 63) if is_true(own.get("create")) else ""))


def _groups(values: Values, full: str, unit: str, row: Row) -> dict[str, Group]:
    groups = {}
    has_ranks = values.get("compat") == "di-engine" and not row.selector
    for name in sorted(sub(values, "groups")):
        group = sub(sub(values, "groups"), name)
        replicas = integer(group.get("replicas"), 1, f"groups.{name}.replicas")
        if replicas == 0:
            continue
        containers = sub(group, "containers")
        finite = any((sub(containers, key).get("lifecycle") or "finite") != "service" for key in containers)
        least = group.get("minReplicas")
        retries = integer(group.get("backoffLimit"), 0, f"groups.{name}.backoffLimit")
        base = names.join(full, name, 43)
        member = names.fit(name, row.member_length)
        in_unit = name in row.roles or (finite and not row.roles)
        parts = {"base": base, "unit": unit, "member": member}
        parts["workload"] = workload = fill(row.workload if in_unit else "{base}", parts)
        pod = fill(row.pod if in_unit else "{workload}-{index}", parts)
        groups[name] = Group(
            name=name,
            values=group,
            replicas=replicas,
            is_finite=finite,
            base=base,
            unit=unit,
            member=member,
            workload_pattern=workload,
            pod_pattern=pod,
            domain_pattern=fill(row.domain if in_unit else "{base}-pods", parts),
            selector_patterns={key: fill(text, parts) for key, text in row.selector.items()} if in_unit else {},
            in_unit=in_unit,
            is_scaled_live=in_unit and row.is_scaled_live,
            is_node=has_ranks and finite,
            min_replicas=None if least is None else integer(least, None, f"groups.{name}.minReplicas"),
            retries=retries,
            restart=(restart := _restart(group, retries) if finite else "Always"),
            tries=_tries(values, row, retries) if in_unit and row.failures and restart == "Never" else None,
        )
    return groups


def _tries(values: Values, row: Row, retries: int) -> dict[str, str]:
    """The variables that count the tries before that of a pod, with their fields; none where it is the only one."""
    restarts = sub(values, "workload", "jobset").get("maxRestarts") if row.restarts else None
    begins_again = integer(restarts, 0, "workload.jobset.maxRestarts") > 0
    return {**({FAILURES: row.failures} if retries else {}), **({RESTARTS: row.restarts} if begins_again else {})}


def _restart(group: Values, retries: int) -> str:
    """The restart policy of pods that end; what is never tried again is not restarted in place either."""
    said = scalar(group.get("restartPolicy") or "Never")
    own = "Never" if said == "OnFailure" and not retries else said
    return scalar(sub(group, "overlay", "spec").get("restartPolicy") or own)


def _services(values: Values, full: str, groups: Mapping[str, Group]) -> dict[str, LiveService]:
    services = {}
    for name in sorted(sub(values, "services")):
        service = sub(sub(values, "services"), name)
        group = groups.get(scalar(service.get("group")))
        process = scalar(service.get("process"))
        if group is None or process not in sub(dict(group.values), "containers"):
            continue
        host = names.join(full, name, 63)
        services[name] = LiveService(
            name=name,
            host=host,
            hosts=_replica_hosts(group) if group.replicas > 1 and group.pod_pattern else (host,),
            port=integer(service.get("port"), None, f"services.{name}.port"),
            group=group.name,
            process=process,
            has_run_hosts=group.is_scaled_live or group.is_indexed,
            is_bound=is_true(service.get("bind")),
            expose=scalar(service.get("expose") or ""),
            values=service,
        )
    return services


def _restarted(groups: Mapping[str, Group], services: Mapping[str, LiveService]) -> set[str]:
    """The groups that begin anew with each run; others, of services alone, do when they themselves change.

    Of services these are what the processes of a run connect to, unless ``keep`` is true; what is told the pods of a
    run by name; and what ``keep`` is false for.
    """
    restarted: set[str] = set()
    found = [(group, False) for group in groups.values()]
    while found:
        group, is_reached = found.pop()
        keep = scalar(group.values.get("keep"))
        dialled = [services[name] for name in connects_of(group) if name in services]
        is_told = any(service.has_run_hosts for service in dialled)
        begins = group.in_unit or is_told or keep == "false" or (is_reached and keep != "true")
        if begins and group.name not in restarted:
            restarted.add(group.name)
            found += [(groups[service.group], True) for service in dialled]
    return restarted


def connects_of(group: Group) -> list[str]:
    """The services that the containers of `group` connect to."""
    containers = sub(dict(group.values), "containers")
    return [service for name in containers for service in texts(sub(containers, name).get("connects"))]


def _check_names(groups: Mapping[str, Group], services: Mapping[str, LiveService]) -> None:
    """Raises SpecError where a name of a pod's own is that of another Service of the release."""
    taken = {service.host for service in services.values()} | {group.pods for group in groups.values()}
    for group in groups.values():
        for name in texts(group.values.get("names")):
            if name in taken:
                path = f"groups.{group.name}.names"
                raise SpecError.one(f"{path}: another Service of the release is called {name}", path, "rename one")
            taken.add(name)


def _replica_hosts(group: Group) -> tuple[str, ...]:
    return tuple(group.host("$(SYMPH_RUN)", index) for index in range(group.replicas))


def _configs(values: Values, full: str) -> ConfigData | None:
    files = sub(values, "configs")
    if not files:
        return None
    items: list[object] = []
    data: dict[str, str] = {}
    binary: dict[str, object] = {}
    for name in sorted(files):
        file = sub(files, name)
        item: Values = {"key": name, "path": name}
        if file.get("mode") is not None:
            item["mode"] = integer(file["mode"], None, f"configs.{name}.mode")
        items.append(item)
        if "base64" in file:
            binary[name] = file["base64"]
        else:
            data[name] = scalar(file.get("text") or "")
    digest = names.sha256(go_json.dumps({"data": data, "binaryData": binary}))[:8]
    return ConfigData(name=names.join(full, f"config-{digest}", 63), items=items, data=data, binary=binary)
