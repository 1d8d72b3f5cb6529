"""`AddressBook` gives the addresses of services as environment variables, as Symphony does."""

from __future__ import annotations

from collections.abc import Mapping

from symphony_charts.spec.variable_names import service_prefix, service_variable

__all__ = ["AddressBook"]


class AddressBook:
    """`entries`, which Symphony called `di`, maps a service to its ``host`` and ``port``."""

    def __init__(self, di: Mapping[str, Mapping[str, object]] | None = None) -> None:
        self.entries: dict[str, dict[str, object]] = {name: dict(entry) for name, entry in (di or {}).items()}

    def add_entry(self, name: str, host: str, port: int | str) -> None:
        """Say where a service is."""
        self.entries[name] = {"host": host, "port": port}

    def format_name(self, name: str) -> str:
        """``replay-server`` -> ``REPLAY_SERVER``."""
        return service_prefix(name).removeprefix("SYMPH_")

    def dump(self) -> dict[str, str]:
        """``SYMPH_<NAME>_HOST``, ``_PORT`` and ``_ADDR`` of every service."""
        environment: dict[str, str] = {}
        for name, entry in self.entries.items():
            environment[service_variable(name, "HOST")] = str(entry["host"])
            environment[service_variable(name, "PORT")] = str(entry["port"])
            environment[service_variable(name, "ADDR")] = f"{entry['host']}:{entry['port']}"
        return environment
