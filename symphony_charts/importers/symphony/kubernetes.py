"""What Symphony's kube backend dumped: a container and a pod, each as the object it would have sent."""

from __future__ import annotations

from symphony_charts.importers.common.field_reader import Fields, show
from symphony_charts.importers.common.names import UniqueNames
from symphony_charts.importers.common.pod import read_settings
from symphony_charts.importers.common.pod_container import read_process
from symphony_charts.importers.common.pod_volumes import PodVolumes
from symphony_charts.importers.common.volumes import Volumes

__all__ = ["read_container", "read_pod_settings"]

_SECRETS = "symph-default-secret"
_OWN_ENV = ("SYMPH_", "SYMPHONY_")


def read_container(container_yml: Fields, volumes: Volumes) -> dict[str, object]:
    """A process out of its `container_yml`: `data` is the container, `mounted_volumes` are Symphony's own records."""
    data = container_yml.map("data")
    available = PodVolumes(volumes)
    for record in container_yml.maps("mounted_volumes"):
        _declare(record, available)
    if "volumeMounts" in data:  # the Secret of the experiment is mounted in every process anyway
        mounts = data.get("volumeMounts")
        for mount in mounts if isinstance(mounts, list) else []:
            name = mount.get("name") if isinstance(mount, dict) else None
            if isinstance(name, str) and name == _SECRETS:
                available.names.setdefault(name, "")
    process = read_process(data, available)
    held = process.get("mounts")
    if isinstance(held, list):
        process["mounts"] = [mount for mount in held if isinstance(mount, dict) and mount["volume"]]
    env = process.get("env")
    if isinstance(env, dict):
        process["env"] = {name: value for name, value in env.items() if not name.startswith(_OWN_ENV)}
    container_yml.note_unread("of a container is not carried over")
    return {key: value for key, value in process.items() if value not in (None, {}, [])}


def read_pod_settings(pod_yml: Fields, volumes: Volumes) -> dict[str, object]:
    """What belongs to the pod, out of its `pod_yml`."""
    data = pod_yml.map("data") if "data" in pod_yml else pod_yml
    data.skip("apiVersion", "kind", "status")
    metadata, spec = data.map("metadata"), data.map("spec")
    settings: dict[str, object] = {}
    labels = {key: value for key, value in metadata.text_map("labels").items() if not _is_own(key)}
    if labels:
        settings["labels"] = labels
    if annotations := metadata.text_map("annotations"):
        settings["annotations"] = annotations
    metadata.skip("name", "namespace")
    metadata.note_unread("of a pod's metadata is not carried over")
    spec.skip("containers", "volumes")
    if (policy := spec.text("restartPolicy")) is not None:
        settings["restart"] = {"Always": "always", "OnFailure": "on-failure", "Never": "never"}.get(policy)
    read_settings(spec, settings, PodVolumes(volumes))
    pod_yml.skip("mounted_volumes")
    data.note_unread("of a pod is not carried over")
    return {key: value for key, value in settings.items() if value is not None}


def _is_own(label: str) -> bool:
    """Labels that Symphony computed: the pod's name, and one for each service."""
    return label == "symphony_pg" or label.startswith("service-")


def _declare(record: Fields, available: PodVolumes) -> None:
    """One volume of Symphony's own kinds."""
    kind = record.text("type") or ""
    name = record.required_text("name", "volume")
    content: dict[str, object] | None = None
    if kind == "KubeNFSVolume":
        content = {
            "type": "nfs",
            "server": record.required_text("server", "nfs"),
            "path": record.required_text("path", "/"),
        }
    elif kind == "KubeHostPathVolume":
        content = {"type": "host_path", "path": record.required_text("path", "/")}
        if hostpath_type := record.text("hostpath_type"):
            content["kind"] = hostpath_type
    elif kind == "KubeSecretVolume":
        content = {"type": "secret", "secret": record.required_text("secret_name", "secret")}
        if (mode := record.integer("defaultMode", 0, 0o777)) is not None:
            content["mode"] = f"0{mode:o}"
    elif kind == "KubeGitVolume":
        content = {"type": "git", "repository": record.required_text("repository", "")}
        if revision := record.text("revision"):
            content["revision"] = revision
    elif kind == "KubeEmptyDirVolume":
        content = {"type": "empty_dir", **({"memory": True} if record.flag("use_memory") else {})}
    if content is None:
        record.log.fault(record.at("type"), f"{show(kind)} is no volume of Symphony's", "KubeNFSVolume and its like")
        return
    record.note_unread("of a volume is not carried over")
    if content.get("type") == "secret" and content.get("secret") == _SECRETS:
        available.names[name] = ""
        return
    available.names[name] = available.declared.declare(UniqueNames.label(name), content)
