"""The containers and pods of a dump are written as Symphony's kube backend kept them: in Kubernetes' own words.

Source: symphony 0.10, symphony/kube/{builder,process,process_group}.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from symphony_charts.formats.data import maps, sub

__all__ = ["container_yml", "pod_yml"]

Data = dict[str, Any]
_POLICIES = {"always": "Always", "on-failure": "OnFailure", "never": "Never"}
_SECONDS = "seconds"
_NUMBER = re.compile(r"0|[1-9][0-9]*|[0-9]+\.[0-9]+")
_NO_LABEL = re.compile(r"[^a-z0-9]+")


def container_yml(name: str, fields: Mapping[str, Any], volumes: Mapping[str, Any]) -> Data:
    """The container of a process, and the records of what it mounts; what Symphony had no word for is left out.

    `volumes` are those that the experiment declares.
    """
    env = {"SYMPHONY_ROLE": name, **{key: value for key, value in sub(fields, "env").items() if _is_plain(value)}}
    data: Data = {"name": name, "image": fields.get("image")}
    data["env"] = [{"name": key, "value": str(value)} for key, value in env.items()]
    for key in ("command", "args"):
        if (words := fields.get(key)) is not None:
            data[key] = [str(word) for word in (words if isinstance(words, list) else [words])]
    limits = {**sub(fields, "limits"), **({"nvidia.com/gpu": fields["gpus"]} if fields.get("gpus") else {})}
    resources = {"requests": _amounts(sub(fields, "requests")), "limits": _amounts(limits)}
    if any(resources.values()):
        data["resources"] = {key: amounts for key, amounts in resources.items() if amounts}
    mounted = list(_mounted(fields, volumes))
    if mounted:
        data["volumeMounts"] = [{"name": record["name"], "mountPath": path} for record, path in mounted]
    if policy := fields.get("image_pull_policy"):
        data["imagePullPolicy"] = policy
    return {"data": data, "mounted_volumes": [record for record, _ in mounted]}


def pod_yml(name: str, fields: Mapping[str, Any], containers: Iterable[Mapping[str, Any]]) -> Data:
    """The pod of a lone process or a group; `containers` are what `container_yml` gave, and stand beside it."""
    spec: Data = {"containers": []}
    if policy := fields.get("restart"):
        spec["restartPolicy"] = _POLICIES.get(policy, policy)
    volumes: dict[str, Data] = {}
    for record in (each for one in containers for each in one["mounted_volumes"]):
        volumes.setdefault(record["name"], record)
    if volumes:
        spec["volumes"] = [_volume(record) for record in volumes.values()]
    if tolerations := maps(fields, "tolerations"):
        spec["tolerations"] = [_toleration(each) for each in tolerations]
    if selector := sub(fields, "node_selector"):
        spec["nodeSelector"] = selector
    labels = {"symphony_pg": name, **sub(fields, "labels")}
    return {"data": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}}


def _is_plain(value: object) -> bool:
    return not isinstance(value, Mapping)


def _toleration(fields: Mapping[str, Any]) -> Data:
    return {("tolerationSeconds" if key == _SECONDS else key): value for key, value in fields.items()}


def _amounts(amounts: Mapping[str, Any]) -> Data:
    """Amounts with numbers as numbers, which a text form has turned into texts."""
    return {key: json.loads(text) if _NUMBER.fullmatch(text := str(value)) else value for key, value in amounts.items()}


def _mounted(fields: Mapping[str, Any], volumes: Mapping[str, Any]) -> Iterable[tuple[Data, str]]:
    """What a process mounts that Symphony knows, each with its path."""
    for mount in maps(fields, "mounts"):
        declared = sub(volumes, str(mount.get("volume")))
        record = _record({str(declared["type"]): declared} if declared else mount)
        if record is not None:
            name = mount.get("name") or _own_name(str(record["name"]), str(mount.get("volume", "")))
            yield {**record, "name": name}, str(mount.get("at", "/dev/shm"))  # noqa: S108 - a path of a container


def _own_name(usual: str, declared: str) -> str:
    """The name that Symphony gave a volume, if the experiment's declared one was made of it."""
    label = _NO_LABEL.sub("-", usual.lower())
    return usual if declared in ("", label, f"x{label}") else declared


def _record(mount: Mapping[str, Any]) -> Data | None:
    """Symphony's record of a volume, with the name that it gave it."""
    if nfs := sub(mount, "nfs"):
        return {
            "name": nfs.get("server"),
            "server": nfs.get("server"),
            "path": nfs.get("path"),
            "type": "KubeNFSVolume",
        }
    if host := sub(mount, "host_path"):
        path = str(host.get("path"))
        own = {"path": path, "hostpath_type": host.get("kind", ""), "type": "KubeHostPathVolume"}
        return {"name": path.split("/")[-1], **own}
    if secret := sub(mount, "secret"):
        mode = int(str(secret.get("mode", "0644")), 8)
        name = secret.get("secret")
        return {"name": name, "secret_name": name, "defaultMode": mode, "type": "KubeSecretVolume"}
    if git := sub(mount, "git"):
        repository = str(git.get("repository"))
        name = repository.rpartition("/")[2].rpartition(".git")[0] or repository.rpartition("/")[2]
        own = {"repository": repository, "revision": git.get("revision"), "type": "KubeGitVolume"}
        return {"name": name.lower(), **own}
    if mount.get("shm") or "empty_dir" in mount:
        in_memory = bool(mount.get("shm") or sub(mount, "empty_dir").get("memory"))
        return {"name": "devshm", "use_memory": in_memory, "type": "KubeEmptyDirVolume"}
    return None


def _volume(record: Mapping[str, Any]) -> Data:
    """A volume of a pod out of its record."""
    kind = record["type"]
    if kind == "KubeNFSVolume":
        return {"name": record["name"], "nfs": {"server": record["server"], "path": record["path"]}}
    if kind == "KubeHostPathVolume":
        # Not Kubernetes' own key; its readers know it as such.
        held = {"hostpath_type": record["hostpath_type"], "path": record["path"]}
        return {"name": record["name"], "hostPath": held}
    if kind == "KubeSecretVolume":
        held = {"secretName": record["secret_name"], "defaultMode": record["defaultMode"]}
        return {"name": record["name"], "secret": held}
    if kind == "KubeGitVolume":
        held = {"repository": record["repository"], "revision": record["revision"]}
        return {"name": record["name"], "gitRepo": held}
    return {"name": record["name"], "emptyDir": {"medium": "Memory"} if record["use_memory"] else {}}
