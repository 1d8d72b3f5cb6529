"""The volumes of a pod as folders on this machine, and the files of ConfigMaps, Secrets and projections in them.

Source of layout and modes: kubernetes/kubernetes pkg/volume/util/atomic_writer.go and
pkg/volume/{configmap,secret,projected}.
"""

from __future__ import annotations

import os
from base64 import b64decode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.rig.api import Object
from tests.e2e.rig.kubelet.environment import Lookup, field_of

_DEFAULT_MODE = 0o644

MakeToken = Callable[[Object], str]
"""A `serviceAccountToken` source -> a token of the pod's account."""


class VolumeMissing(Exception):  # noqa: N818 - what the kubelet calls FailedMount
    """A missing source object of a volume."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One file of a volume, at the relative path `path`."""

    path: str
    data: bytes
    mode: int


def files_of(volume: Object, pod: Object, lookup: Lookup, make_token: MakeToken) -> list[File] | None:
    """Return the files of a configMap, secret or projected volume of `pod`; None for any other kind that a chart has.

    Raises VolumeMissing, naming the object, if one that is not optional is absent.
    """
    if "configMap" in volume:
        return _keys(volume["configMap"], "configmaps", volume["configMap"]["name"], lookup)
    if "secret" in volume:
        return _keys(volume["secret"], "secrets", volume["secret"]["secretName"], lookup)
    if "projected" in volume:
        return list(_projected(volume["projected"], pod, lookup, make_token))
    return None


def is_read_only(volume: Object) -> bool:
    """Return True if containers cannot write to it, regardless of their settings."""
    return any(kind in volume for kind in ("configMap", "secret", "hostPath", "projected"))


def memory_size(volume: Object) -> str | None:
    """Return the size of an emptyDir in memory in bytes ("" if unlimited), or None for other volumes."""
    empty = volume.get("emptyDir")
    if not isinstance(empty, dict) or empty.get("medium") != "Memory":
        return None
    return str(empty.get("sizeLimit", ""))


def write_files(folder: Path, files: list[File], group: int | None) -> None:
    """Put `files` into `folder` the kubelet's way: real files below ``..v1``, links to them on top."""
    data = folder / "..v1"
    data.mkdir(parents=True)
    (folder / "..data").symlink_to("..v1")
    for file in files:
        path = data / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
        path.chmod(file.mode | (0o440 if group is not None else 0))
        if group is not None:
            os.chown(path, -1, group)
        top = file.path.split("/")[0]
        if not (folder / top).is_symlink():
            (folder / top).symlink_to(f"..data/{top}")


def _projected(volume: Object, pod: Object, lookup: Lookup, make_token: MakeToken) -> Iterator[File]:
    mode = volume.get("defaultMode", _DEFAULT_MODE)
    for source in volume["sources"]:
        for kind, of in source.items():
            if kind == "serviceAccountToken":
                yield File(path=of["path"], data=make_token(of).encode(), mode=mode)
            elif kind == "downwardAPI":
                for item in of["items"]:
                    text = field_of(pod, item["fieldRef"]["fieldPath"], {})
                    yield File(path=item["path"], data=text.encode(), mode=item.get("mode", mode))
            else:
                yield from _keys({"defaultMode": mode, **of}, f"{kind.lower()}s", of["name"], lookup)


def _keys(source: Object, kind: str, name: str, lookup: Lookup) -> list[File]:
    found = lookup(kind, name)
    if found is None:
        if source.get("optional"):
            return []
        raise VolumeMissing(f'{kind[:-1]} "{name}" not found')
    data = {key: text.encode() for key, text in (found.get("data") or {}).items()} if kind == "configmaps" else {}
    encoded = found.get("binaryData") if kind == "configmaps" else found.get("data")
    data |= {key: b64decode(text) for key, text in (encoded or {}).items()}
    mode = source.get("defaultMode", _DEFAULT_MODE)
    items = source.get("items") or [{"key": key, "path": key} for key in sorted(data)]
    absent = [item["key"] for item in items if item["key"] not in data]
    if absent and not source.get("optional"):
        words = {
            "configmaps": "configmap references non-existent config key",
            "secrets": "references non-existent secret key",
        }
        raise VolumeMissing(f"{words[kind]}: {absent[0]}")
    return [
        File(path=item["path"], data=data[item["key"]], mode=item.get("mode", mode))
        for item in items
        if item["key"] in data
    ]
