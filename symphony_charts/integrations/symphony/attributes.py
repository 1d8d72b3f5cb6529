"""Symphony's public attributes of specs: scripts read, assign and append to them, as in Symphony 0.10."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from types import MappingProxyType
from typing import Any, cast

from symphony_charts.errors import SpecError
from symphony_charts.formats.names import hint
from symphony_charts.spec.builder.experiment import ExperimentSpec, ProcessGroupSpec, ProcessSpec

__all__ = ["ExperimentAttributes", "GroupAttributes", "ProcessAttributes"]

# Attributes that the builders set on their instances.
_PLAIN = frozenset(("name", "standalone", "group", "experiment", "address_book"))
_OURS = "symphony_charts."
_PORTS = (7000, 8999)


class _Attributes:
    """Refuses attributes that Symphony did not have; a new `name` also counts in the group and experiment around."""

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("_"):
            self._check(name)
        old = self.__dict__.get("name")
        super().__setattr__(name, value)
        if name == "name" and old is not None:
            held = self._siblings()
            members = [(str(value) if member is self else key, member) for key, member in held.items()]
            held.clear()
            held.update(members)

    def _check(self, name: str) -> None:
        held = inspect.getattr_static(type(self), name, None)
        if name in _PLAIN or (isinstance(held, property) and held.fset is not None):
            return
        path = self.__dict__.get("name", "")
        if isinstance(held, property):
            raise SpecError.one(f'"{name}" is read-only', path, "change it with the methods add_... and new_...")
        if callable(held):
            raise SpecError.one(f'"{name}" is a method; you cannot assign it', path, f"call {name}(...)")
        known = [each for each in dir(type(self)) if not each.startswith("_")]
        next_step = hint(name, [*known, *_PLAIN])
        # Projects may keep attributes of their own in their own classes.
        if next_step or type(self).__module__.startswith(_OURS):
            raise SpecError.one(f'{type(self).__name__} has no attribute "{name}"', path, next_step)

    def _siblings(self) -> dict[str, Any]:
        """Return the members of the group or experiment around this spec, by name; empty if there is none."""
        return {}


class _Connected(MutableMapping[str, None]):
    """Symphony's map of connected services, kept in the list of names that this package has."""

    def __init__(self, names: list[str]) -> None:
        self._names = names

    def __getitem__(self, name: str) -> None:
        if name not in self._names:
            raise KeyError(name)

    def __setitem__(self, name: str, port: None) -> None:
        if name not in self._names:
            self._names.append(name)

    def __delitem__(self, name: str) -> None:
        self._names.remove(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return repr(dict(self))


class ProcessAttributes(_Attributes, ProcessSpec):
    """The attributes of a process."""

    @property
    def parent_process_group(self) -> ProcessGroupSpec | None:
        """The group of the process; None for a lone one."""
        return self.group

    @property
    def parent_experiment(self) -> ExperimentSpec | None:
        """The experiment of the process; None before it is added."""
        return self.experiment

    @property
    def binded_services(self) -> dict[str, int | None]:
        """Bound services: name -> fixed port or None."""
        return cast("dict[str, int | None]", self._map("binds"))

    @binded_services.setter
    def binded_services(self, services: Mapping[str, int | None]) -> None:
        self._data["binds"] = dict(services)

    @property
    def exposed_services(self) -> dict[str, int | None]:
        """Exposed services: name -> fixed port or None."""
        return cast("dict[str, int | None]", self._map("exposes"))

    @exposed_services.setter
    def exposed_services(self, services: Mapping[str, int | None]) -> None:
        self._data["exposes"] = dict(services)

    @property  # type: ignore[override]  # it writes to the list of names
    def connected_services(self) -> MutableMapping[str, None]:
        """Connected services; the values are None."""
        return _Connected(cast("list[str]", self._list("connects")))

    @connected_services.setter
    def connected_services(self, services: Iterable[str]) -> None:
        self._data["connects"] = list(services)

    @property
    def env(self) -> dict[str, object]:
        """The environment variables."""
        return self._map("env")

    @env.setter
    def env(self, variables: Mapping[str, object]) -> None:
        self._data["env"] = dict(variables)

    @property
    def cmds(self) -> list[str]:
        """The shell lines."""
        lines = self._data.get("cmds")
        if lines is None:
            # An empty list that nobody fills must not become the lines of the process: it may have a command.
            unset: list[str] = self.__dict__.setdefault("_unset_cmds", [])
            return unset
        if not isinstance(lines, list):
            self._data["cmds"] = [lines]
        return cast("list[str]", self._data["cmds"])

    @cmds.setter
    def cmds(self, lines: str | Iterable[str]) -> None:
        self.set_cmds(lines)

    @property
    def start_dir(self) -> str:
        """The folder in which the process starts; `.` by default."""
        return str(self._data.get("cwd") or ".")

    @start_dir.setter
    def start_dir(self, folder: str) -> None:
        self._data["cwd"] = os.path.expanduser(folder)  # noqa: PTH111 - keeps `.`

    def settle(self) -> None:
        """Keep lines that were appended to a list which `cmds` returned before the process had any."""
        if lines := self.__dict__.pop("_unset_cmds", None):
            self._data.setdefault("cmds", lines)

    def _siblings(self) -> dict[str, Any]:
        holder = getattr(self, "group", None) or getattr(self, "experiment", None)
        return holder._processes if holder is not None else {}


class GroupAttributes(_Attributes, ProcessGroupSpec):
    """The attributes of a process group."""

    @property
    def processes(self) -> Mapping[str, ProcessSpec]:
        """The processes by name, to read."""
        return MappingProxyType(self._processes)

    @property
    def parent_experiment(self) -> ExperimentSpec | None:
        """The experiment of the group; None before it is added."""
        return self.experiment

    @property
    def preamble_cmds(self) -> list[str]:
        """Shell lines that run before those of every process."""
        lines: list[str] = self.__dict__.setdefault("_preamble", [])
        return lines

    @preamble_cmds.setter
    def preamble_cmds(self, lines: str | Iterable[str]) -> None:
        self.__dict__["_preamble"] = [lines] if isinstance(lines, str) else list(lines)

    @property
    def start_dir(self) -> str:
        """The folder in which processes start that name none; `.` by default."""
        return str(self.__dict__.get("_start_dir") or ".")

    @start_dir.setter
    def start_dir(self, folder: str) -> None:
        self.__dict__["_start_dir"] = os.path.expanduser(folder)  # noqa: PTH111 - keeps `.`

    def _siblings(self) -> dict[str, Any]:
        experiment = getattr(self, "experiment", None)
        return experiment._groups if experiment is not None else {}


class ExperimentAttributes(_Attributes, ExperimentSpec):
    """The attributes of an experiment."""

    # The ports to give, if a script named or read them one by one; `_usual` is the list that a script only read.
    _ports: list[int]
    _usual: list[int]

    @property
    def lone_processes(self) -> Mapping[str, ProcessSpec]:
        """The lone processes by name, to read."""
        return MappingProxyType(self._processes)

    @property
    def all_processes(self) -> Mapping[str, ProcessSpec]:
        """All processes by name, to read."""
        return MappingProxyType({process.name: process for process in self.list_all_processes()})

    @property
    def process_groups(self) -> Mapping[str, ProcessGroupSpec]:
        """The groups by name, to read."""
        return MappingProxyType(self._groups)

    @property
    def preamble_cmds(self) -> list[str]:
        """Shell lines that run before every process on one machine."""
        return cast("list[str]", self._local().setdefault("preamble", []))

    @preamble_cmds.setter
    def preamble_cmds(self, lines: str | Iterable[str]) -> None:
        self.set_preamble_cmds(lines)

    @property
    def start_dir(self) -> str:
        """The folder in which processes start on one machine; `.` by default."""
        return str(self._local().get("cwd") or ".")

    @start_dir.setter
    def start_dir(self, folder: str) -> None:
        self._local()["cwd"] = os.path.expanduser(folder)  # noqa: PTH111 - keeps `.`

    @property
    def secrets(self) -> list[Any]:
        """Files whose content every process finds at /etc/secrets."""
        held = self._data.setdefault("secrets", [])
        if not isinstance(held, list):
            self._data["secrets"] = [held]
        return cast("list[Any]", self._data["secrets"])

    @secrets.setter
    def secrets(self, files: Iterable[Any]) -> None:
        self._data["secrets"] = list(files)

    @property
    def port_range(self) -> list[int]:
        """The ports that services may get, one by one."""
        if not self._ports:
            low, high = cast("tuple[int, int]", self._data.get("port_range") or _PORTS)
            self._ports, self._usual = list(range(low, high + 1)), list(range(low, high + 1))
        return self._ports

    @port_range.setter
    def port_range(self, ports: Iterable[int]) -> None:
        self._ports, self._usual = list(ports), []

    @property
    def binded_services(self) -> dict[str, object]:
        """The ports of bound services by name; those without a fixed one have None before a launch."""
        return self._ports_of("binds")

    @property
    def exposed_services(self) -> dict[str, object]:
        """The ports of exposed services by name; those without a fixed one have None before a launch."""
        return self._ports_of("exposes")

    def _ports_of(self, kind: str) -> dict[str, object]:
        entries: Mapping[str, Mapping[str, object]] = cast("Any", self).address_book.entries
        fixed = [process._map(kind) for process in self.list_all_processes()]
        return {name: entries.get(name, {}).get("port", port) for held in fixed for name, port in held.items()}
