"""Where services are, by name, as environment variables: Symphony's AddressBook."""

from __future__ import annotations

from collections.abc import Mapping

from symphony_charts.environment.variables import env_prefix

__all__ = ["AddressBook"]


class AddressBook:
    """`entries` maps a service to its ``host`` and ``port``."""

    def __init__(self, entries: Mapping[str, Mapping[str, object]] | None = None) -> None:
        self.entries: dict[str, dict[str, object]] = {name: dict(entry) for name, entry in (entries or {}).items()}

    def add_entry(self, name: str, host: str, port: int | str) -> None:
        """Say where a service is."""
        self.entries[name] = {"host": host, "port": port}

    def format_name(self, name: str) -> str:
        """``replay-server`` -> ``REPLAY_SERVER``."""
        return env_prefix(name).removeprefix("SYMPH_")

    def dump(self) -> dict[str, str]:
        """``SYMPH_<NAME>_HOST``, ``_PORT`` and ``_ADDR`` of every service."""
        environment: dict[str, str] = {}
        for name, entry in self.entries.items():
            prefix = env_prefix(name)
            environment[f"{prefix}_HOST"] = str(entry["host"])
            environment[f"{prefix}_PORT"] = str(entry["port"])
            environment[f"{prefix}_ADDR"] = f"{entry['host']}:{entry['port']}"
        return environment
