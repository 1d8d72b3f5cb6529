"""One side of a comparison is read from what the repository holds of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

from symphony_charts.chart.build.chart import Release
from symphony_charts.errors import NotFound
from symphony_charts.formats.data import Values
from symphony_charts.gitops import layout
from symphony_charts.gitops.diff.comparison import Side
from symphony_charts.gitops.operations.pointer import Pointer, parse_pointer
from symphony_charts.gitops.operations.snapshot import Snapshot
from symphony_charts.gitops.published import objects_of

__all__ = ["Published", "Read"]

Read: TypeAlias = Callable[[Iterable[str], Callable[[Snapshot], Iterable[str]]], Snapshot]


class Published:
    """One experiment in a repository; `read` loads folders and files of its tip."""

    def __init__(self, read: Read, team: str, name: str) -> None:
        self._read, self.team, self.name = read, team, name

    def pointer(self, env: str) -> Pointer:
        """Return the pointer of the experiment in `env`. Raises NotFound."""
        path = layout.pointer_path(env, self.team, self.name)
        content = self._read([layout.pointer_folder(env, self.team)], lambda _seen: [path]).read(path)
        if content is None:
            raise NotFound(
                f"{env} runs no {self.team}/{self.name}", next=f"symph status {self.name} says where it runs"
            )
        return parse_pointer(content, path)

    def in_environment(self, env: str) -> Side:
        """Return the side of what `env` runs, with the environment's own values."""
        pointer = self.pointer(env)
        title = f"{pointer.version} in {env}"
        side = self._side(title, pointer.chart, pointer.values, pointer.destination.namespace)
        return replace(side, destination=pointer.destination)

    def version(self, version: str, env_values: Values, namespace: str) -> Side:
        """Return a published version under given values."""
        return self._side(version, layout.chart_path(self.team, self.name, version), env_values, namespace)

    def _side(self, title: str, chart: str, env_values: Values, namespace: str) -> Side:
        versions = chart.rpartition("/")[0]
        seen = self._read([versions], lambda _seen: [])
        if seen.entry(chart) is None:
            published = ", ".join(sorted(seen.folder(versions))) or "none"
            raise NotFound(f"the repository holds no {chart}", f"it holds {published}", "symph history says what ran")
        release = Release(name=self.name, namespace=namespace, is_draft=True)
        objects, note = objects_of(seen.below(chart), chart, env_values, release)
        return Side(title=title, objects=tuple(objects), notes=(note,) if note else ())
