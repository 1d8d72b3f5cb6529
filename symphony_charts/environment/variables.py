"""The environment contract: what every process finds in its environment, on every backend."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from symphony_charts.spec.pods import ProcessRef
from symphony_charts.spec.services import Service

__all__ = ["CONFIG_DIR", "SECRETS_DIR", "Address", "env_prefix", "identity_environment", "service_environment"]

CONFIG_DIR = "/etc/symph/config"
SECRETS_DIR = "/etc/secrets"


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
        """The port of replica `index`."""
        return self.ports[index] if self.ports else self.port


def env_prefix(service: str) -> str:
    """``replay-server`` -> ``SYMPH_REPLAY_SERVER``."""
    return "SYMPH_" + service.upper().replace("-", "_")


def service_environment(
    services: Iterable[Service],
    addresses: Mapping[str, Address],
    process: ProcessRef,
    bind_host: str,
    index: int = 0,
) -> dict[str, str]:
    """The SYMPH_* variables of all `services` as replica `index` of `process` sees them.

    Where `process` listens itself, HOST is `bind_host`, an address of its own pod that it can bind, ADDR still
    holds the address that others dial, and BIND_HOST says the bindable one again.
    """
    environment: dict[str, str] = {}
    for service in services:
        prefix, address = env_prefix(service.name), addresses[service.name]
        listens = service.listener == process
        environment[f"{prefix}_HOST"] = bind_host if listens else address.host
        environment[f"{prefix}_PORT"] = str(address.port_of(index) if listens else address.port)
        environment[f"{prefix}_ADDR"] = f"{address.host}:{address.port}"
        hosts = (f"{host}:{address.port_of(number)}" for number, host in enumerate(address.hosts))
        environment[f"{prefix}_HOSTS"] = ",".join(hosts)
        if listens:
            environment[f"{prefix}_BIND_HOST"] = bind_host
    return environment


def identity_environment(experiment: str, process: ProcessRef, index: int, replicas: int) -> dict[str, str]:
    """The variables that tell a process who it is; `index` counts from 0 below `replicas`."""
    return {
        "SYMPHONY_ROLE": process.process,
        "SYMPH_CONFIG_DIR": CONFIG_DIR,
        "SYMPH_EXPERIMENT": experiment,
        "SYMPH_GROUP": process.pod,
        "SYMPH_INDEX": str(index),
        "SYMPH_REPLICAS": str(replicas),
        "SYMPH_SECRETS_DIR": SECRETS_DIR,
    }
