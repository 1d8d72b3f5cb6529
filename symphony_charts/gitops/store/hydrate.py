"""Manifests of what environments run are rendered into the repository, as GitOps Promoter expects of a hydrator."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from symphony_charts.chart.render.release import Release, render_release
from symphony_charts.chart.values.merge import merge
from symphony_charts.errors import NotFound, SpecError
from symphony_charts.formats.yaml_text import dump_all, load
from symphony_charts.gitops import layout
from symphony_charts.gitops.operations.base import Change
from symphony_charts.gitops.operations.pointer import Pointer, parse_pointer
from symphony_charts.gitops.operations.snapshot import Snapshot

__all__ = ["Render", "load_environment", "rendered_files"]

_MANIFEST, _METADATA = "manifest.yaml", "hydrator.metadata"


def rendered_files(pointer: Pointer, values: object, dry_sha: str, schema: bytes | None = None) -> dict[str, bytes]:
    """The files of one experiment: its manifests, and what they were made from.

    `schema` is the chart's own ``values.schema.json``. Raises SpecError for bad values.
    """
    if not isinstance(values, dict):
        raise SpecError.one("values.yaml holds no map", at=f"{pointer.chart}/values.yaml")
    release = Release(
        name=pointer.name, namespace=pointer.destination.namespace, chart_name=pointer.chart.split("/")[2]
    )
    _, rendered = render_release(merge(values, pointer.values), release, schema=schema)
    objects = [item for item in rendered if not _is_hook(item)]
    subject = f"{pointer.op} {pointer.team}/{pointer.name} {pointer.version} in {pointer.env}"
    return {_MANIFEST: dump_all(objects).encode(), _METADATA: _metadata(dry_sha, subject, pointer.at)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Render:
    """Write `files` of every experiment (by ``<team>/<name>``) below `root`, and take away those that are gone.

    `root` is ``rendered/<env>``, or empty on a branch of the environment's own, which then gets the metadata that
    GitOps Promoter reads at its top. What differs in nothing but the commit that it was made from is left as it is.
    """

    env: str
    root: str
    dry_sha: str
    experiments: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)

    def folders(self) -> Iterable[str]:
        """The folders of all experiments, and those above them."""
        return [self.root, *self._teams(), *(self._at(experiment) for experiment in self.experiments)]

    def files(self, tip: Snapshot) -> Iterable[str]:  # noqa: ARG002 - part of the protocol
        """The manifests that are there."""
        return [f"{self._at(experiment)}/{_MANIFEST}" for experiment in self.experiments]

    def change(self, tip: Snapshot) -> Change:
        """The experiments whose manifests differ."""
        edits: dict[str, bytes | None] = {}
        changed = 0
        for experiment, files in self.experiments.items():
            if tip.read(f"{self._at(experiment)}/{_MANIFEST}") != files[_MANIFEST]:
                changed += 1
                edits |= {f"{self._at(experiment)}/{name}": content for name, content in files.items()}
        gone = list(self._gone(tip))
        edits |= dict.fromkeys(gone)
        if edits and not self.root:
            edits[_METADATA] = _metadata(self.dry_sha, f"render {self.env}", "")
        subject = f"render {changed} of {len(self.experiments)} in {self.env}"
        return Change(
            subject=f"{subject}, {len(gone)} gone" if gone else subject,
            edits=edits,
            trailers=(("Symph-Op", "render"), ("Symph-Dry-Sha", self.dry_sha)),
            facts={"env": self.env, "experiments": len(self.experiments), "changed": changed, "gone": gone},
        )

    def _gone(self, tip: Snapshot) -> Iterator[str]:
        teams = self._teams()
        for name, entry in tip.folder(self.root).items():
            team = self._at(name)
            if not entry.is_folder:
                continue
            if team not in teams:
                yield team
                continue
            yield from (
                self._at(f"{name}/{each}") for each in tip.folder(team) if f"{name}/{each}" not in self.experiments
            )

    def _at(self, path: str) -> str:
        return f"{self.root}/{path}" if self.root else path

    def _teams(self) -> list[str]:
        return sorted({self._at(experiment.partition("/")[0]) for experiment in self.experiments})


def _metadata(dry_sha: str, subject: str, date: str) -> bytes:
    """Format: argoproj-labs/gitops-promoter, docs/advanced-usage/custom-hydrator.md."""
    fields = {"drySha": dry_sha, "subject": subject, "date": date}
    return (json.dumps({key: text for key, text in fields.items() if text}, indent=2) + "\n").encode()


def _is_hook(item: dict[str, object]) -> bool:
    metadata = item.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return isinstance(annotations, dict) and "helm.sh/hook" in annotations


def load_environment(
    read: Callable[[Iterable[str], Callable[[Snapshot], Iterable[str]]], Snapshot], env: str
) -> tuple[str, list[tuple[Pointer, object, bytes | None]]]:
    """The tip's commit, and every pointer of `env` with its chart's values and their schema.

    Raises NotFound for a missing chart.
    """
    top = read([f"envs/{env}"], lambda _seen: [])
    teams = sorted(name for name, entry in top.folder(f"envs/{env}").items() if entry.is_folder)
    folders = [layout.pointer_folder(env, team) for team in teams]
    listed = read(
        folders,
        lambda seen: [f"{folder}/{name}" for folder in folders for name in sorted(seen.folder(folder))],
    )
    pointers = [
        parse_pointer(content, path) for path, content in listed.files.items() if layout.pointer_name(path) is not None
    ]
    files = [f"{pointer.chart}/{name}" for pointer in pointers for name in ("values.yaml", "values.schema.json")]
    seen = read([], lambda _seen: files)
    loaded = []
    for pointer in pointers:
        content = seen.read(f"{pointer.chart}/values.yaml")
        if content is None:
            raise NotFound(f"{pointer.env} runs {pointer.chart}, which is not there", next="symph gitops lint")
        loaded.append((pointer, load(content.decode()), seen.read(f"{pointer.chart}/values.schema.json")))
    return top.commit, loaded
