"""The variables of processes as trees: one ConfigMap with what all share, and a map for each process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from symphony_charts.chart.build.draft import Draft, Group, with_names
from symphony_charts.chart.tree import Helper, Include, Merged, NonZero, Text, Tree, Value, When
from symphony_charts.spec import variable_names as names
from symphony_charts.spec.environment import ServiceFact, hosts_variables, shared_variables
from symphony_charts.spec.sources import CONFIG_DIR, SECRETS_DIR

_POD_INDEX = "metadata.labels['apps.kubernetes.io/pod-index']"


def shared_environment(draft: Draft) -> Tree:
    """Return the data of the ConfigMap of variables that all processes share: where each service is."""
    data: dict[str, Tree] = {
        names.EXPERIMENT: draft.experiment.name,
        names.CONFIG_FOLDER: CONFIG_DIR,
        names.SECRETS_FOLDER: SECRETS_DIR,
    }
    for name, source in shared_variables(draft.services):
        assert isinstance(source, ServiceFact)  # noqa: S101 - shared variables hold nothing else
        group = draft.groups[draft.services[source.service].listener.pod]
        data[name] = When(NonZero(f"{group.path}.replicas"), _fact(draft, source))
    return data


def variables_name(group: Group, process: str) -> str:
    """Return the name of the helper with the variables of one process or step."""
    return f"variables.{group.name}.{process}"


def _items(variables: Mapping[str, Tree]) -> list[Tree]:
    items: list[Tree] = []
    for name, tree in variables.items():
        value = tree.tree if isinstance(tree, When) else tree
        item = {"name": name, "valueFrom" if isinstance(value, dict) else "value": value}
        items.append(When(tree.condition, item) if isinstance(tree, When) else item)
    return items


def own_variables(draft: Draft, group: Group) -> list[Helper]:
    """Return a helper for each process and step of `group` with its own variables."""
    pod = _pod_variables(draft, group)
    shared = [Helper(name=f"variables.{group.name}", tree=_items(pod))] if pod and len(group.programs) > 1 else []
    helpers = list(shared)
    for name in group.programs:
        process = group.pod.processes.get(name)
        common = {**_common(draft, group, name), **draft.kind.variables(process or group.steps[name])}
        own: dict[str, Tree] = {}
        if process is not None:
            own |= {} if shared else pod
            own |= _process_variables(draft, group, name, process.connects)
            own |= draft.peers.variables(draft, group, _field(draft.kind.index))
        inside: list[Tree] = [Include(shared[0].name)] if shared and process is not None else []
        tree = Merged(_items(common), *inside, _items(own)) if inside else _items(common | own)
        helpers.append(Helper(name=variables_name(group, name), tree=with_names(tree)))
    return helpers


def _common(draft: Draft, group: Group, name: str) -> dict[str, Tree]:
    is_run = draft.kind.runs(group)
    index = draft.kind.index if is_run else _POD_INDEX
    attempt = draft.kind.attempt(group) if is_run else ""
    return {
        names.ROLE: name,
        names.GROUP: group.name,
        **({names.INDEX: _field(index)} if index else {}),
        **({names.INDEX: "0"} if is_run and draft.kind.is_single(group) else {}),
        names.REPLICAS: Value(f"{group.path}.replicas", is_text=True),
        **({} if group.is_kept else {names.RUN: Text("{$run}")}),
        **({names.ATTEMPT: _field(attempt)} if attempt else {}),
    }


def _pod_variables(draft: Draft, group: Group) -> dict[str, Tree]:
    """Return where the services of a pod are for its own processes: in the pod itself."""
    tree: dict[str, Tree] = {}
    for service in draft.services_of(group):
        host = names.service_variable(service.name, "HOST")
        tree[host] = _field("status.podIP")
        port = f"{{.Values.services.{service.name}.port}}"
        tree[names.service_variable(service.name, "ADDR")] = Text(f"$({host}):{port}")
    return tree


def _process_variables(draft: Draft, group: Group, name: str, connects: Iterable[str]) -> dict[str, Tree]:
    """Return the addresses that a process can bind, and those of the replicas that it dials or is one of."""
    listens = [service.name for service in draft.services_of(group, name)]
    tree: dict[str, Tree] = {
        names.service_variable(service, "BIND_HOST"): _field("status.podIP") for service in listens
    }
    conditional: dict[str, Tree] = {}
    for variable, source in hosts_variables(listens, (each for each in connects if each in draft.services)):
        assert isinstance(source, ServiceFact)  # noqa: S101 - these variables hold nothing else
        service = draft.services[source.service]
        other = draft.groups[service.listener.pod]
        if other.name == group.name:
            tree[variable] = draft.hosts(service)
        else:
            conditional[variable] = When(NonZero(f"{other.path}.replicas"), draft.hosts(service))
    return tree | conditional


def _field(path: str) -> Tree:
    return {"fieldRef": {"fieldPath": path}}


def _fact(draft: Draft, fact: ServiceFact) -> Tree:
    service = draft.services[fact.service]
    host = draft.name(service.name).format
    match fact.part:
        case "HOST":
            return Text(host)
        case "ADDR":
            return Text(f"{host}:{{.Values.services.{service.name}.port}}")
        case _:
            return Value(f".Values.services.{service.name}.port", is_text=True)
