"""The environment and the entry point of a process, the same on every backend.

The list is made here alone. A backend only answers: what it knows of a process (`Fact`) and where services are
(`Address`); `interpret` turns list and answers into its environment. Variables that the user declares are further
entries of the same list, behind ours. Kubernetes' rules for ``$(VAR)`` are in `environment.expansion`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from symphony_charts.spec import variable_names as names
from symphony_charts.spec.model import Process, Step
from symphony_charts.spec.pods import ProcessRef, Service
from symphony_charts.spec.sources import EnvSource
from symphony_charts.spec.variable_names import beside_shells, reference_order, shell_argv

T = TypeVar("T")


class Fact(Enum):
    """The facts that a backend knows of one process."""

    ADDRESS = "an address of the own pod that it can listen on"
    INDEX = "the number of the replica, from 0"
    REPLICAS = "how many replicas there are"
    RUN = "the identity of the run"
    ATTEMPT = "the number of earlier tries, in a pod that ends"
    CONFIG_DIR = "the folder of the configuration files"
    SECRETS_DIR = "the folder of the secret files"


class ServiceFact(NamedTuple):
    """What there is to say of where a service is; OWN_PORT and OWN_ADDR are where the asking replica itself listens."""

    service: str
    part: Literal["HOST", "PORT", "ADDR", "HOSTS", "OWN_PORT", "OWN_ADDR"]


# Where a value comes from: the text itself, the process, a service, or what only a cluster holds (Secret, ConfigMap,
# pod field, resource).
Source: TypeAlias = "str | Fact | ServiceFact | EnvSource"


class Variable(NamedTuple):
    """One entry of an environment: its name and where its value comes from."""

    name: str
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a service is reached: `host` (any replica), `hosts` (one of each replica, in order), and its `port`.

    `ports` are those of the replicas where each has another one, as on a single address.
    """

    host: str
    hosts: tuple[str, ...]
    port: int
    ports: tuple[int, ...] = ()

    def port_of(self, index: int) -> int:
        """Return the port of replica `index`."""
        return self.ports[index] if self.ports else self.port

    def text(self, part: str, index: int = 0) -> str:
        """Return a part of a `ServiceFact` as text; `index` is the replica that asks."""
        if part == "HOST":
            return self.host
        if part == "ADDR":
            return joined(self.host, self.port)
        if part == "HOSTS":
            return ",".join(joined(host, self.port_of(number)) for number, host in enumerate(self.hosts))
        return str(self.port_of(index) if part == "OWN_PORT" else self.port)


def joined(host: str, port: int | str) -> str:
    """Return host and port as one address, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def variables_of(
    experiment: str,
    process: ProcessRef,
    services: Sequence[Service],
    *,
    connects: Iterable[str] = (),
) -> list[Variable]:
    """Return all variables of `process`, later ones before earlier ones of the same name.

    `connects` are the services that it dials.
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
        Variable(names.service_variable(service, part), ServiceFact(service, part))
        for service in services
        for part in parts
    ]


def hosts_variables(listens: Iterable[str], connects: Iterable[str]) -> list[Variable]:
    """Return the addresses of all replicas, for processes that dial the service or are one of them.

    Told to all, such lists would grow with the square of an experiment.
    """
    return [
        Variable(names.service_variable(service, "HOSTS"), ServiceFact(service, "HOSTS"))
        for service in dict.fromkeys([*connects, *listens])
    ]


def shared_environment(addresses: Mapping[str, Address]) -> dict[str, str]:
    """Return `shared_variables` of all services, interpreted: alike for every process and replica."""
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
    """Return the variables of one process, and the replicas of the services that it listens on or dials.

    Of a service in `listens`, or in `beside` (those of other processes of its pod), HOST is an address of its own pod,
    and ADDR that address with the port. BIND_HOST is the same address, for the process that listens.
    """
    variables = [
        variable
        for service in [*beside, *listens]
        for variable in (
            Variable(names.service_variable(service, "HOST"), Fact.ADDRESS),
            Variable(names.service_variable(service, "PORT"), ServiceFact(service, "OWN_PORT")),
            Variable(names.service_variable(service, "ADDR"), ServiceFact(service, "OWN_ADDR")),
        )
    ]
    variables += [Variable(names.service_variable(service, "BIND_HOST"), Fact.ADDRESS) for service in listens]
    variables += hosts_variables(listens, connects)
    return [
        *variables,
        Variable(names.ROLE, process.process),
        Variable(names.EXPERIMENT, experiment),
        Variable(names.GROUP, process.pod),
        Variable(names.INDEX, Fact.INDEX),
        Variable(names.REPLICAS, Fact.REPLICAS),
        Variable(names.RUN, Fact.RUN),
        Variable(names.ATTEMPT, Fact.ATTEMPT),
        Variable(names.CONFIG_FOLDER, Fact.CONFIG_DIR),
        Variable(names.SECRETS_FOLDER, Fact.SECRETS_DIR),
    ]


def interpret(
    variables: Iterable[Variable], facts: Mapping[Fact, T | None], addresses: Mapping[str, Address], index: int = 0
) -> dict[str, str | EnvSource | T]:
    """The environment of replica `index`, by a backend's answers; a later variable takes the place of an earlier one.

    `facts` answers every `Fact` that the variables ask for (None where the backend leaves such a variable out),
    `addresses` every service. What only a cluster holds stays as it is, for the backend to say.
    """
    environment: dict[str, str | EnvSource | T | None] = {}
    for name, source in variables:
        if isinstance(source, Fact):
            environment[name] = facts[source]
        elif isinstance(source, ServiceFact) and source.part == "OWN_ADDR":
            # Where only a pod knows its address, a reference says it.
            known = facts[Fact.ADDRESS]
            host = known if isinstance(known, str) else f"$({names.service_variable(source.service, 'BIND_HOST')})"
            environment[name] = joined(host, addresses[source.service].text("OWN_PORT", index))
        elif isinstance(source, ServiceFact):
            environment[name] = addresses[source.service].text(source.part, index)
        else:
            environment[name] = source
    return {name: value for name, value in environment.items() if value is not None}


def pod_order(values: Mapping[str, object]) -> list[str]:
    """Return the names of variables in the order in which a pod gets them, since a value sees only what is before it.

    Texts with ``$(`` come behind everything else, those of SYMPH_* before others; each by name.
    """
    referring = [name for name, value in values.items() if isinstance(value, str) and "$(" in value]
    return [*sorted(values.keys() - referring), *sorted(referring, key=reference_order)]


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Return `text` with each ``$(NAME)`` replaced by its value.

    ``$$`` is one ``$``, a reference to an unknown name or one that is never closed stays as it stands, and nothing
    that came out of a value is looked at again.

    Source: kubernetes/kubernetes third_party/forked/golang/expansion/expand.go.
    """
    if "$" not in text:
        return text
    parts: list[str] = []
    position = 0
    while (dollar := text.find("$", position)) >= 0 and dollar + 1 < len(text):
        parts.append(text[position:dollar])
        following = text[dollar + 1]
        if following == "$":
            parts.append("$")
            position = dollar + 2
            continue
        end = text.find(")", dollar) if following == "(" else -1
        if following == "(" and end >= 0:
            name = text[dollar + 2 : end]
            parts.append(variables.get(name, f"$({name})"))
            position = end + 1
        elif following == "(":
            parts.append("$(")
            position = dollar + 2
        else:
            parts.append("$" + following)
            position = dollar + 2
    parts.append(text[position:])
    return "".join(parts)


class EntryPoint(NamedTuple):
    """Kubernetes' `command` and `args`; None leaves the image's own in place."""

    command: list[str] | None
    args: list[str] | None


def entry_point(process: Process | Step, preamble: Sequence[str] = ()) -> EntryPoint:
    """Return what `process` starts after the shell lines of `preamble` and its own.

    `cmds` become one script of the process's shell, the preamble's lines in front. In front of a `command` the preamble
    runs in the same shell, which is then replaced by the command, so signals reach it as they do without a preamble.
    Without `cmds` and preamble both lists go through untouched; a preamble alone cannot know the image's entry point.
    """
    lines = [*preamble, *(process.preamble if isinstance(process, Process) else ())]
    if process.cmds is not None:
        return EntryPoint([*shell_argv(process.shell), "\n".join([*lines, *process.cmds])], None)
    if lines and process.command:
        script = "\n".join([*lines, 'exec "$@"'])
        return EntryPoint(
            [*shell_argv(process.shell), script, "sh", *beside_shells(process.env), *process.command], process.args
        )
    return EntryPoint(process.command, process.args)
