"""Make the pods that Symphony 0.10 makes of a kube dump, by its own rules.

Each process keeps its container in `container_yml`, and its group, or a lone process, the pod in `pod_yml`; Symphony
puts the containers into the pod, with a volume for each record of `mounted_volumes`.
Source: SurrealAI/symphony 0.10, symphony/kube/{experiment,process_group,process,volume}.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from symphony_charts.formats.data import maps, sub
from symphony_charts.formats.names import join


@dataclass(frozen=True, kw_only=True)
class OriginalPod:
    """A pod as Symphony makes it: the `spec` of the pod at `place` in the dump.

    `pod` is its name in the experiment; `processes` has, for each container in order, the name of its process and the
    container's place in the dump.
    """

    pod: str
    spec: Mapping[str, object]
    place: str
    processes: Sequence[tuple[str, str]]


def original_pods(dump: object, prefix: str, names: Mapping[str, str]) -> Iterator[OriginalPod]:
    """Yield the pods of the dump at `prefix`; `names` maps paths of the dump to paths of the experiment."""
    for index, group in enumerate(maps(dump, "process_groups")):
        yield from _pod(group, join(join(prefix, "process_groups"), index), maps(group, "processes"), names)
    for index, process in enumerate(maps(dump, "processes")):
        yield from _pod(process, join(join(prefix, "processes"), index), [], names)


def _pod(
    owner: dict[str, object], path: str, inside: list[dict[str, object]], names: Mapping[str, str]
) -> Iterator[OriginalPod]:
    members = [(process, join(join(path, "processes"), index)) for index, process in enumerate(inside)]
    members = members or [(owner, path)]
    if not all("container_yml" in process for process, _ in members) or path not in names:
        return
    data = sub(owner, "pod_yml", "data") or sub(owner, "pod_yml")
    records = [record for process, _ in members for record in maps(sub(process, "container_yml"), "mounted_volumes")]
    spec = {
        **sub(data, "spec"),
        "containers": [sub(process, "container_yml", "data") for process, _ in members],
        "volumes": [{"name": record.get("name"), **_source(record)} for record in records],
    }
    yield OriginalPod(
        pod=names[path].rpartition(".")[2],
        spec=spec,
        place=join(path, "pod_yml.data.spec"),
        processes=[(names[at].rpartition(".")[2], join(at, "container_yml.data")) for _, at in members],
    )


def _source(record: Mapping[str, object]) -> dict[str, object]:
    """Return the volume of one of Symphony's records, as its own class writes it."""
    source: dict[str, object]
    match record.get("type"):
        case "KubeNFSVolume":
            source = {"nfs": {"server": record.get("server"), "path": record.get("path")}}
        case "KubeHostPathVolume":
            source = {"hostPath": {"path": record.get("path"), "type": record.get("hostpath_type")}}
        case "KubeSecretVolume":
            source = {"secret": {"secretName": record.get("secret_name"), "defaultMode": record.get("defaultMode")}}
        case "KubeGitVolume":
            source = {"gitRepo": {"repository": record.get("repository"), "revision": record.get("revision")}}
        case _:
            source = {"emptyDir": {"medium": "Memory"} if record.get("use_memory") else {}}
    return {
        name: {key: value for key, value in held.items() if value is not None}
        for name, held in source.items()
        if isinstance(held, dict)
    }
