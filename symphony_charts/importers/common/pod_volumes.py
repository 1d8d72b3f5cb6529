"""Volumes and mounts of a Kubernetes pod become those of an experiment."""

from __future__ import annotations

from dataclasses import dataclass, field

from symphony_charts.formats.field_reader import show
from symphony_charts.importers.common.names import Volumes
from symphony_charts.integrations.common.fields import Fields

__all__ = ["PodVolumes"]

_DEFAULT_MODE = 0o644


@dataclass(slots=True)
class PodVolumes:
    """The volumes that one pod may mount, by the names they have in the pod.

    `names` maps them to names of the experiment; `foreign` holds those that an experiment has no record for (csi,
    projected...): they stay as they are, in the overlay of the pod.
    """

    declared: Volumes
    names: dict[str, str] = field(default_factory=dict)
    foreign: dict[str, dict[str, object]] = field(default_factory=dict)

    def add(self, volume: Fields) -> None:
        """Declare one entry of a `volumes` list."""
        name = volume.required_text("name", "volume", "name the volume")
        if name in self.names or name in self.foreign:
            volume.log.fault(volume.at("name"), f'two volumes of one pod are called "{name}"', "rename one of them")
            return
        content = _read_volume(volume)
        if content is None:
            self.foreign[name] = {"name": name, **volume.rest()}
        else:
            self.names[name] = self.declared.declare(name, content)
            volume.note_unread("of a volume is not carried over")

    def mount(self, mount: Fields) -> tuple[dict[str, object] | None, dict[str, object] | None]:
        """One entry of a `volumeMounts` list: as a mount of the experiment, or else as it stands, for the overlay."""
        name = mount.required_text("name", "", "name the volume to mount")
        at = mount.required_text("mountPath", "/volume", "say where the volume is mounted")
        if name and name not in self.names and name not in self.foreign:
            names = ", ".join([*self.names, *self.foreign]) or "none"
            mount.log.fault(mount.at("name"), f'no volume is called "{name}"', f"volumes of the pod: {names}")
            return None, None
        if name in self.foreign:
            mount.log.changed(mount.path, f'volume "{name}" has no form of its own here; it is kept as an overlay')
            return None, {"name": name, "mountPath": at, **mount.rest()}
        result: dict[str, object] = {"volume": self.names.get(name, name), "at": at}
        if mount.flag("readOnly"):
            result["read_only"] = True
        if (sub_path := mount.text("subPath")) is not None:
            result["sub_path"] = sub_path
        mount.note_unread("of a mount is not carried over")
        return result, None


def _read_volume(volume: Fields) -> dict[str, object] | None:
    """The volume as data of the experiment's own records; None for kinds that it has none for."""
    if "hostPath" in volume:
        source = volume.map("hostPath")
        content = _said({"type": "host_path", "path": _path(source), "kind": source.text("type") or None})
    elif "emptyDir" in volume or (volume.keys() == ("name", "emptyDir")):
        source = volume.map("emptyDir")
        is_memory = (source.text("medium") or "") == "Memory"
        content = _said({"type": "empty_dir", "memory": is_memory or None, "size": source.text("sizeLimit")})
    elif "nfs" in volume:
        source = volume.map("nfs")
        server = source.required_text("server", "server", "name the NFS server")
        read_only = source.flag("readOnly") or None
        content = _said({"type": "nfs", "server": server, "path": _path(source), "read_only": read_only})
    elif "persistentVolumeClaim" in volume:
        source = volume.map("persistentVolumeClaim")
        content = {"type": "claim", "claim": source.required_text("claimName", "claim", "name the claim")}
        if source.flag("readOnly"):
            what = "`readOnly` of a claim is not carried over"
            source.log.note(source.at("readOnly"), what, "say `read_only: true` at the mounts")
    elif "secret" in volume:
        source = volume.map("secret")
        secret = source.required_text("secretName", "secret", "name the Secret")
        content = {"type": "secret", "secret": secret, **_files(source)}
    elif "configMap" in volume:
        source = volume.map("configMap")
        content = {"type": "config", "config": source.required_text("name", "config", "name it"), **_files(source)}
    else:
        return None
    source.note_unread("of a volume is not carried over")
    return content


def _path(source: Fields) -> str:
    return source.required_text("path", "/volume", "say which path")


def _files(source: Fields) -> dict[str, object]:
    items = {}
    for item in source.maps("items"):
        items[item.required_text("key", "key")] = item.required_text("path", "path")
        item.note_unread("of a file is not carried over")
    mode = mode_text(source, "defaultMode")
    return _said({"items": items or None, "mode": mode})


def mode_text(source: Fields, key: str) -> str | None:
    """A file mode as octal text; Kubernetes takes numbers, and text in YAML's old octal form."""
    value = source.get(key)
    if value is None:
        return None
    if (
        isinstance(value, str)
        and 3 <= len(value.removeprefix("0o")) <= 5
        and set(value.removeprefix("0o")) <= set("01234567")
    ):
        number = int(value.removeprefix("0o"), 8)
    else:
        number = source.integer(key, 0, 0o777) or 0
    if not 0 <= number <= 0o777:
        source.log.fault(source.at(key), f"{show(value)} is no file mode", "write it as in 0644")
        return None
    return None if number == _DEFAULT_MODE else f"0{number:o}"


def _said(fields: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in fields.items() if value is not None}
