"""The environment and the entry point of a process, the same on every backend.

This module alone makes the list of variables. A backend supplies facts about a process (`Fact`) and the addresses of
services (`Address`); `interpret` turns list and facts into an environment. User variables are further entries of the
list, after ours. `expand` has Kubernetes' rules for ``$(VAR)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from symphony_charts.spec import variable_names
from symphony_charts.spec.model import Process, Step
from symphony_charts.spec.pods import ProcessRef, Service
from symphony_charts.spec.sources import EnvSource
from symphony_charts.spec.variable_names import beside_shells, reference_order, shell_argv

T = TypeVar("T")


class Fact(Enum):
    """A fact that a backend knows about a process."""

    ADDRESS = "an address of the pod that the process can listen on"
    INDEX = "the number of the replica, from 0"
    REPLICAS = "the number of replicas"
    RUN = "the identity of the run"
    ATTEMPT = "the number of earlier tries, in a pod that ends"
    CONFIG_DIR = "the folder of the configuration files"
    SECRETS_DIR = "the folder of the secret files"


class ServiceFact(NamedTuple):
    """A fact about a service's address; OWN_PORT and OWN_ADDR are where the requesting replica itself listens."""

    service: str
    part: Literal["HOST", "PORT", "ADDR", "HOSTS", "OWN_PORT", "OWN_ADDR"]


# The source of a value: the text itself, the process, a service, or an object of the cluster (Secret, ConfigMap,
# pod field, resource).
Source: TypeAlias = "str | Fact | ServiceFact | EnvSource"


class Variable(NamedTuple):
    """An entry of an environment: name and source of the value."""

    name: str
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The address of a service: `host` (any replica), `hosts` (one of each replica, in order), and its `port`.

    `ports` are the ports of the replicas if they differ, as on a single IP address.
    """

    host: str
    hosts: tuple[str, ...]
    port: int
    ports: tuple[int, ...] = ()

    def port_of(self, index: int) -> int:
        return self.ports[index] if self.ports else self.port

    def text(self, part: str, index: int = 0) -> str:
        """Return a part of a `ServiceFact` as text; `index` is the requesting replica."""
        if part == "HOST":
            return self.host
        if part == "ADDR":
            return joined(self.host, self.port)
        if part == "HOSTS":
            return ",".join(joined(host, self.port_of(number)) for number, host in enumerate(self.hosts))
        return str(self.port_of(index) if part == "OWN_PORT" else self.port)


def joined(host: str, port: int | str) -> str:
    """Return ``host:port``, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def variables_of(
    experiment: str, process: ProcessRef, services: Sequence[Service], *, connects: Iterable[str] = ()
) -> list[Variable]:
    """Return all variables of `process`; a later one overrides an earlier one of the same name.

    `connects` are the services to which it connects.
    """
    listens = [service.name for service in services if service.listener == process]
    known = {service.name for service in services}
    dials = [name for name in connects if name in known]
    shared = shared_variables(service.name for service in services)
    return [*shared, *own_variables(experiment, process, listens, dials)]


def shared_variables(services: Iterable[str]) -> list[Variable]:
    """Return the variables that all processes share: the address of each service."""
    parts: tuple[Literal["HOST", "PORT", "ADDR"], ...] = ("HOST", "PORT", "ADDR")
    return [
        Variable(variable_names.service_variable(service, part), ServiceFact(service, part))
        for service in services
        for part in parts
    ]


def hosts_variables(listens: Iterable[str], connects: Iterable[str]) -> list[Variable]:
    """Return the addresses of all replicas, for processes that connect to the service or belong to it.

    Other processes do not get them: the lists would grow with the square of the experiment's size.
    """
    return [
        Variable(variable_names.service_variable(service, "HOSTS"), ServiceFact(service, "HOSTS"))
        for service in dict.fromkeys([*connects, *listens])
    ]


def shared_environment(addresses: Mapping[str, Address]) -> dict[str, str]:
    """Return the interpreted `shared_variables` of all services, equal for every process and replica."""
    return {
        name: addresses[source.service].text(source.part)
        for name, source in shared_variables(addresses)
        if isinstance(source, ServiceFact)
    }


def own_variables(
    experiment: str,
    process: ProcessRef,
    listens: Sequence[str],
    connects: Iterable[str] = (),
    *,
    beside: Sequence[str] = (),
) -> list[Variable]:
    """Return the variables of one process, including the replicas of services that it listens on or connects to.

    For a service in `listens`, or in `beside` (those of other processes of its pod), HOST is an address of its own pod,
    and ADDR that address with the port. BIND_HOST is the same address, for the process that listens.
    """
    variables = [
        variable
        for service in [*beside, *listens]
        for variable in (
            Variable(variable_names.service_variable(service, "HOST"), Fact.ADDRESS),
            Variable(variable_names.service_variable(service, "PORT"), ServiceFact(service, "OWN_PORT")),
            Variable(variable_names.service_variable(service, "ADDR"), ServiceFact(service, "OWN_ADDR")),
        )
    ]
    variables += [Variable(variable_names.service_variable(service, "BIND_HOST"), Fact.ADDRESS) for service in listens]
    variables += hosts_variables(listens, connects)
    return [
        *variables,
        Variable(variable_names.ROLE, process.process),
        Variable(variable_names.EXPERIMENT, experiment),
        Variable(variable_names.GROUP, process.pod),
        Variable(variable_names.INDEX, Fact.INDEX),
        Variable(variable_names.REPLICAS, Fact.REPLICAS),
        Variable(variable_names.RUN, Fact.RUN),
        Variable(variable_names.ATTEMPT, Fact.ATTEMPT),
        Variable(variable_names.CONFIG_FOLDER, Fact.CONFIG_DIR),
        Variable(variable_names.SECRETS_FOLDER, Fact.SECRETS_DIR),
    ]


def interpret(
    variables: Iterable[Variable], facts: Mapping[Fact, T | None], addresses: Mapping[str, Address], index: int = 0
) -> dict[str, str | EnvSource | T]:
    """Return the environment of replica `index` from a backend's facts; a later variable overrides an earlier one.

    `facts` has a value for every `Fact` in the variables (None to omit the variable), `addresses` for every service.
    Values that only a cluster has stay EnvSources, for the backend to resolve.
    """
    environment: dict[str, str | EnvSource | T | None] = {}
    for name, source in variables:
        if isinstance(source, Fact):
            environment[name] = facts[source]
        elif isinstance(source, ServiceFact) and source.part == "OWN_ADDR":
            # If only the pod knows its address, use a variable reference.
            known, variable = facts[Fact.ADDRESS], variable_names.service_variable(source.service, "BIND_HOST")
            host = known if isinstance(known, str) else f"$({variable})"
            environment[name] = joined(host, addresses[source.service].text("OWN_PORT", index))
        elif isinstance(source, ServiceFact):
            environment[name] = addresses[source.service].text(source.part, index)
        else:
            environment[name] = source
    return {name: value for name, value in environment.items() if value is not None}


def pod_order(values: Mapping[str, object]) -> list[str]:
    """Return the names of variables in the order of a pod's `env`, where a value sees only earlier variables.

    Texts with ``$(`` come last, those of SYMPH_* before others; each part is sorted by name.
    """
    referring = [name for name, value in values.items() if isinstance(value, str) and "$(" in value]
    return [*sorted(values.keys() - referring), *sorted(referring, key=reference_order)]


_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Return `text` with each ``$(NAME)`` replaced by its value.

    ``$$`` becomes one ``$``. A reference that is unknown or unclosed stays unchanged. Inserted values are not expanded
    again.

    Source: kubernetes/kubernetes third_party/forked/golang/expansion/expand.go.
    """
    return _REFERENCE.sub(lambda found: "$" if found[1] is None else variables.get(found[1], found[0]), text)


class EntryPoint(NamedTuple):
    """Kubernetes' `command` and `args`; None keeps the image's default."""

    command: list[str] | None
    args: list[str] | None


def entry_point(process: Process | Step) -> EntryPoint:
    """Return the entry point of `process`.

    `cmds` become one script of the process's shell, after the preamble's lines. Before a `command` the preamble runs in
    the same shell, which then execs the command, so that signals reach it as usual. Without `cmds` and preamble, both
    lists stay unchanged; a preamble alone has no effect, since the image's entry point is unknown.
    """
    lines = process.preamble if isinstance(process, Process) else []
    if process.cmds is not None:
        return EntryPoint([*shell_argv(process.shell), "\n".join([*lines, *process.cmds])], None)
    if lines and process.command:
        script = "\n".join([*lines, 'exec "$@"'])
        argv = [*shell_argv(process.shell), script, "sh", *beside_shells(process.env), *process.command]
        return EntryPoint(argv, process.args)
    return EntryPoint(process.command, process.args)
