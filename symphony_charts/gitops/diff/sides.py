"""One side of a comparison is read from what the repository holds of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

from symphony_charts.chart.files.chart import TEMPLATES, ChartTemplate
from symphony_charts.chart.render.release import Release, render_release
from symphony_charts.chart.render.values import Values
from symphony_charts.chart.values.merge import merge
from symphony_charts.errors import NotFound, SpecError
from symphony_charts.formats.yaml_text import load
from symphony_charts.gitops import layout
from symphony_charts.gitops.diff.comparison import Side
from symphony_charts.gitops.operations.pointer import Pointer, parse_pointer
from symphony_charts.gitops.operations.snapshot import Snapshot
from symphony_charts.gitops.store.git_objects import hash_of, object_of

__all__ = ["Published", "Read"]

Read: TypeAlias = Callable[[Iterable[str], Callable[[Snapshot], Iterable[str]]], Snapshot]


class Published:
    """What a repository holds of one experiment; `read` loads folders and files of its tip."""

    def __init__(self, read: Read, team: str, name: str, ours: ChartTemplate) -> None:
        self._read, self.team, self.name = read, team, name
        # By Git's own ids: a template that differs in a byte differs here.
        self._ours = {
            path: content
            for path, content in ours.fixed.items()
            if path.startswith(TEMPLATES) and path.endswith(("s.yaml", ".tpl"))
        }

    def pointer(self, env: str) -> Pointer:
        """The pointer of the experiment in `env`. Raises NotFound."""
        path = layout.pointer_path(env, self.team, self.name)
        content = self._read([layout.pointer_folder(env, self.team)], lambda _seen: [path]).read(path)
        if content is None:
            raise NotFound(
                f"{env} runs no {self.team}/{self.name}", next=f"symph status {self.name} says where it runs"
            )
        return parse_pointer(content, path)

    def in_environment(self, env: str) -> Side:
        """The side of what `env` runs, with the environment's own values."""
        pointer = self.pointer(env)
        title = f"{pointer.version} in {env}"
        side = self._side(title, pointer.chart, pointer.values, pointer.destination.namespace)
        return replace(side, destination=pointer.destination)

    def version(self, version: str, env_values: Values, namespace: str) -> Side:
        """A published version under given values."""
        return self._side(version, layout.chart_path(self.team, self.name, version), env_values, namespace)

    def _side(self, title: str, chart: str, env_values: Values, namespace: str) -> Side:
        path = f"{chart}/values.yaml"
        versions = chart.rpartition("/")[0]
        top = self._read([versions], lambda _seen: [])
        if top.entry(chart) is None:
            published = ", ".join(sorted(top.folder(versions))) or "none"
            raise NotFound(f"the repository holds no {chart}", f"it holds {published}", "symph history says what ran")
        schema = f"{chart}/values.schema.json"
        seen = self._read(
            [chart, *(f"{chart}/{folder.rstrip('/')}" for folder in TEMPLATES)], lambda _seen: [path, schema]
        )
        values = load((seen.read(path) or b"").decode())
        if not isinstance(values, dict):
            raise SpecError.one("values.yaml holds no map", at=path)
        release = Release(name=self.name, namespace=namespace, chart_name=chart.split("/")[2], is_draft=True)
        _, objects = render_release(merge(values, env_values), release, schema=seen.read(schema))
        return Side(title=title, objects=tuple(objects), notes=self._notes(title, seen, chart))

    def _notes(self, title: str, seen: Snapshot, chart: str) -> tuple[str, ...]:
        theirs = {
            f"{folder}{name}": entry.oid
            for folder in TEMPLATES
            for name, entry in seen.folder(f"{chart}/{folder.rstrip('/')}").items()
            if not entry.is_folder
        }
        notes = []
        if any(path.startswith("templates/extra-") for path in theirs):
            notes.append(f"{title}: the chart's own templates (templates/extra-*) are not compared")
        if any(not _is(theirs.get(path, ""), content) for path, content in self._ours.items()):
            notes.append(f"{title}: made by another version of symph; compared as this one would render it")
        return tuple(notes)


def _is(oid: str, content: bytes) -> bool:
    """Whether a file of the repository holds exactly `content`."""
    return oid == object_of("blob", content, hash_of(oid)).oid
