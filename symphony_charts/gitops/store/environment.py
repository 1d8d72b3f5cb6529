"""The Kubernetes objects of everything that an environment runs."""

from __future__ import annotations

from symphony_charts.chart.build.chart import Release
from symphony_charts.errors import NotFound
from symphony_charts.formats.data import sub
from symphony_charts.gitops import layout
from symphony_charts.gitops.diff.sides import Read
from symphony_charts.gitops.operations.pointer import Pointer, parse_pointer
from symphony_charts.gitops.published import objects_of

__all__ = ["objects_of_environment"]


def objects_of_environment(read: Read, env: str) -> tuple[list[dict[str, object]], list[str]]:
    """Return the objects of every experiment in `env` without those of `helm test`, in order of team and name.

    `read` loads folders and files of the tip. The texts name the charts that Helm rendered.

    Raises:
        NotFound: A chart is missing.
        SpecError: A chart refuses the values of its environment.
        ToolMissing: symph cannot build a chart again, and helm is not installed.
    """
    pointers = _pointers(read, env)
    charts = read([pointer.chart for pointer in pointers], lambda _seen: ()).below_each(
        pointer.chart for pointer in pointers
    )
    objects: list[dict[str, object]] = []
    notes: list[str] = []
    for pointer, files in zip(pointers, charts, strict=True):
        if not files:
            raise NotFound(f"{env} runs {pointer.chart}, which is not there", next="symph gitops lint")
        release = Release(name=pointer.name, namespace=pointer.destination.namespace)
        made, note = objects_of(files, pointer.chart, pointer.values, release)
        objects += [item for item in made if "helm.sh/hook" not in sub(item, "metadata", "annotations")]
        notes += [note] if note else []
    return objects, notes


def _pointers(read: Read, env: str) -> list[Pointer]:
    top = read([f"envs/{env}"], lambda _seen: [])
    teams = sorted(name for name, entry in top.folder(f"envs/{env}").items() if entry.is_folder)
    folders = [layout.pointer_folder(env, team) for team in teams]
    listed = read(
        folders,
        lambda seen: [f"{folder}/{name}" for folder in folders for name in sorted(seen.folder(folder))],
    )
    return [parse_pointer(content, path) for path, content in listed.files.items() if layout.pointer_name(path)]
