"""On one machine specs keep the names that a launcher wrote; a run has those of Kubernetes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from symphony_charts.errors import SpecError
from symphony_charts.formats.names import sanitize
from symphony_charts.integrations.symphony.spec import ExperimentSpec, ProcessGroupSpec, ProcessSpec

__all__ = ["LocalExperimentSpec", "LocalProcessGroupSpec", "LocalProcessSpec"]


class LocalProcessSpec(ProcessSpec):
    """A process under its launcher's name."""

    def __init__(self, name: str, *words: Any, **fields: Any) -> None:
        super().__init__(name, *words, **fields)
        self.name = name


class LocalProcessGroupSpec(ProcessGroupSpec):
    """A group under its launcher's name."""

    def __init__(self, name: str, *words: Any, **fields: Any) -> None:
        super().__init__(name, *words, **fields)
        self.name = name


class LocalExperimentSpec(ExperimentSpec):
    """An experiment under its launcher's name, behind the user's."""

    def __init__(self, name: str, *words: Any, **fields: Any) -> None:
        super().__init__(name, *words, **fields)
        written = (name, f"{self._data.get('owner')}-{name}")
        self.name = next((one for one in written if sanitize(one) == self.name), self.name)

    def to_data(self) -> dict[str, object]:
        """The experiment as data, whose names are those of a run."""
        data: dict[str, Any] = super().to_data()
        data["name"] = sanitize(self.name)
        groups = _of_run(data.get("groups", {}), "group")
        for group in groups.values():
            group["processes"] = _of_run(group["processes"], "process")
        processes = _of_run(data.get("processes", {}), "process")
        held = {"groups": groups, "processes": processes, "order": [sanitize(ref) for ref in data.get("order", [])]}
        return {**data, **{key: value for key, value in held.items() if value}}

    @classmethod
    def load_dict(cls, di: Mapping[str, object]) -> ExperimentSpec:
        """The experiment of a dump, under the names that stand there."""
        spec: ExperimentSpec = super().load_dict(di)
        if sanitize(str(di["name"])) == spec.name:
            spec.name = str(di["name"])
        members = _dumped(di, "process_groups")
        _rename(spec._groups, members)
        _rename(spec._processes, _dumped(di, "processes"))
        for group in members:
            _rename(spec.get_process_group(group["name"])._processes, _dumped(group, "processes"))
        return spec


def _of_run(held: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Return `held` under the names of the run; raises SpecError if two of them become one there."""
    names: dict[str, str] = {}
    for written in held:
        if names.setdefault(sanitize(written), written) != written:
            both = f"{names[sanitize(written)]!r} and {written!r}"
            raise SpecError.one(f"{both} are the same {what} name here", what, "give one of them another name")
    return {name: held[written] for name, written in names.items()}


def _dumped(di: Mapping[str, Any], key: str) -> list[Any]:
    """Return what a dump of Symphony's holds under a key; nothing for this package's own form."""
    held = di.get(key)
    return held if isinstance(held, list) else []


def _rename(held: dict[str, Any], dumps: Iterable[Mapping[str, Any]]) -> None:
    """Call what is `held` by the names that stand in dumps."""
    for name in (one["name"] for one in dumps):
        if sanitize(name) in held:
            held[sanitize(name)].name = name
    renamed = {one.name: one for one in held.values()}
    held.clear()
    held.update(renamed)
