"""The pointer says which version of an experiment an environment runs, what ran before, and with which values.

Argo CD's ApplicationSet reads this small file, so every field is always there. Its values are checked against the
schema of the chart that they are for, as helm does before it renders.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from symphony_charts.chart.files.values_schema import schema_faults
from symphony_charts.chart.render.values import Values
from symphony_charts.chart.values.merge import merge
from symphony_charts.errors import NotFound, Problem, SpecError
from symphony_charts.formats.yaml_text import dump, load
from symphony_charts.settings.project import Destination

__all__ = ["Deployed", "Pointer", "chart_files", "parse_pointer", "pointer_faults", "render_pointer"]

_MAX_HISTORY = 10
_ALWAYS = ("server", "name", "namespace")

_HEADER = "# Written by symph: promote, rollback and retire change it. Environment values may be edited here.\n"


class Deployed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ran, and why: version, content digest and values, the operation that began it and when (ISO 8601, UTC)."""

    version: str
    digest: str
    values: Values = {}
    op: str = "publish"
    at: str = ""


class Pointer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An experiment in an environment; `history` holds what ran before, the newest first."""

    name: str
    team: str
    env: str
    version: str
    digest: str
    chart: str
    values: Values = {}
    destination: Destination = Destination()
    project: str = "symph"
    op: str = "publish"
    at: str = ""
    source: dict[str, str] = {}
    history: list[Deployed] = []

    @property
    def deployed(self) -> Deployed:
        """The version that runs now, as an entry of the history."""
        return Deployed(version=self.version, digest=self.digest, values=self.values, op=self.op, at=self.at)

    def runs(self, version: str, digest: str, values: Values) -> bool:
        """Whether exactly this runs already."""
        return (self.version, self.digest, self.values) == (version, digest, values)

    def moved(
        self, version: str, digest: str, values: Values, *, op: str, at: str, source: Mapping[str, str]
    ) -> Pointer:
        """The pointer at another version or with other values; what ran until now goes into the history."""
        if self.runs(version, digest, values):
            return self
        return msgspec.structs.replace(
            self,
            version=version,
            digest=digest,
            # Many releases may share a chart: its folder is not always called as they are.
            chart=f"{self.chart.rpartition('/')[0]}/{version}",
            values=values,
            op=op,
            at=at,
            source=dict(source),
            history=[self.deployed, *self.history][:_MAX_HISTORY],
        )

    def find(self, version: str | None) -> Deployed:
        """The newest entry of the history with `version`, or with None what ran before. Raises NotFound."""
        for entry in self.history:
            if version is None or entry.version == version:
                return entry
        versions = ", ".join(dict.fromkeys(entry.version for entry in self.history)) or "nothing"
        wanted = f"version {version}" if version else "a version before this one"
        raise NotFound(
            f"{self.env} never ran {wanted} of {self.name}",
            f"the history holds {versions}",
            f"symph history {self.name} --env {self.env}",
        )


def parse_pointer(content: bytes, path: str) -> Pointer:
    """The pointer in the file `path`. Raises SpecError for what is none."""
    try:
        data = load(content.decode())
        return msgspec.convert(data, Pointer)
    except (ValueError, msgspec.ValidationError) as error:
        raise SpecError.one(f"not a pointer: {error}", at=path, next="restore it from Git's history") from error


def render_pointer(pointer: Pointer) -> bytes:
    """The file of a pointer, the same bytes for equal pointers."""
    data = msgspec.to_builtins(pointer)
    # What Flux alone reads is left out where nobody named it.
    data["destination"] = {key: value for key, value in data["destination"].items() if value or key in _ALWAYS}
    return (_HEADER + dump(data)).encode()


def chart_files(chart: str) -> tuple[str, str]:
    """The paths of a published chart's values, and of their schema."""
    return f"{chart}/values.yaml", f"{chart}/values.schema.json"


def pointer_faults(pointer: Pointer, values: bytes | None, schema: bytes | None) -> list[Problem]:
    """What the schema of its chart refuses of a pointer's values; nothing where either file of the chart is absent.

    Raises SpecError for values that are no YAML.
    """
    if values is None or schema is None:
        return []
    defaults = load(values.decode())
    return schema_faults(merge(defaults if isinstance(defaults, dict) else {}, pointer.values), schema)
