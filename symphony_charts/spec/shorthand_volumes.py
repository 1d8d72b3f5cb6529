"""Volumes said at the mount itself (`type=bind,...` strings, inline maps) become declared volumes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

from symphony_charts.errors import Problem
from symphony_charts.formats.names import DNS_LABEL, sanitize, shorten
from symphony_charts.formats.paths import join, nearest

__all__ = ["VolumeTable", "inline_volume", "parse_mounts", "volume_kinds"]

# The inline key, and the field that a bare string under it fills.
_KINDS = {
    "nfs": None,
    "host_path": "path",
    "claim": "claim",
    "empty_dir": "size",
    "secret": "secret",
    "config": "config",
    "device": "path",
    "git": "repository",
}
_SHARED_NAME = "devshm"
_ALIASES = {"source": "src", "destination": "dst", "target": "dst", "ro": "readonly", "permissions": "perm"}
_KNOWN = ("type", "src", "dst", "readonly", "perm")

Report = Callable[[Problem], None]


class VolumeTable:
    """The volumes of an experiment while it is read: a volume said twice is one, two of one name are kept apart."""

    def __init__(self, declared: dict[str, object]) -> None:
        self.volumes = declared

    def declare(self, volume: dict[str, object], wanted: str) -> str:
        """Return the name under which `volume` is in the table, made from `wanted` where it is not there yet.

        The name depends on the volume alone as long as no other volume wants the same one.
        """
        name = shorten(_label(wanted), 50)
        if self.volumes.setdefault(name, volume) == volume:
            return name
        content = json.dumps(volume, sort_keys=True, default=str)
        name = f"{name}-{hashlib.sha256(content.encode()).hexdigest()[:8]}"
        self.volumes.setdefault(name, volume)
        return name


def volume_kinds() -> list[str]:
    """Return the inline forms of a mount's volume."""
    return [*_KINDS, "shm"]


def inline_volume(mount: dict[str, object], path: str, report: Report) -> tuple[dict[str, object], str] | None:
    """The volume that `mount` says inline (one key of `volume_kinds`) and a name for it; None if it says none."""
    kinds = [kind for kind in volume_kinds() if kind in mount]
    if not kinds:
        return None
    if len(kinds) > 1 or "volume" in mount:
        others = [*kinds, *(["volume"] if "volume" in mount else [])]
        what = f"a mount shows one volume, not {len(others)} ({', '.join(others)})"
        report(Problem(what=what, path=path, next="make a mount of each"))
    kind = kinds[0]
    value = mount[kind]
    if kind == "shm":
        return {
            "type": "empty_dir",
            "memory": True,
            **({"size": value} if isinstance(value, str) else {}),
        }, _SHARED_NAME
    field = _KINDS[kind]
    if isinstance(value, dict):
        volume = {"type": kind, **value}
    elif isinstance(value, str) and field:
        volume = {"type": kind, field: value}
    elif kind == "empty_dir" and value in (None, True):
        volume = {"type": kind}
    else:
        forms = "a map" if field is None else f"a map or its {field}"
        report(Problem(what=f"`{kind}` needs {forms}", path=join(path, kind), next=f"write `{kind}:` with {forms}"))
        return None
    return volume, _name_of(volume, kind)


def parse_mounts(text: str, path: str, report: Report) -> list[dict[str, object]]:
    """Return the mounts of ``type=bind|volume|device,src=,dst=[,readonly][,perm=]``, each with its volume inline.

    A new ``type=`` begins a new mount. Source: meta-pytorch/torchx, torchx/specs/api.py, parse_mounts.
    """
    mounts: list[dict[str, str]] = []
    for option in text.split(","):
        key, _, value = option.strip().partition("=")
        key = _ALIASES.get(key, key)
        if key not in _KNOWN:
            meant = nearest(key, _KNOWN)
            next_step = f'did you mean "{meant}"?' if meant else f"options: {', '.join(_KNOWN)}"
            report(Problem(what=f'unknown mount option "{key}"', path=path, next=next_step))
        elif key == "type":
            mounts.append({"type": value})
        elif not mounts:
            report(Problem(what="a mount begins with `type=`", path=path, next="write type=bind,src=...,dst=..."))
            return []
        else:
            mounts[-1][key] = value
    return [mount for options in mounts if (mount := _mount(options, path, report)) is not None]


def _mount(options: dict[str, str], path: str, report: Report) -> dict[str, object] | None:
    kind, src = options["type"], options.get("src", "")
    dst = options.get("dst") or (src if kind == "device" else "")
    if not src or not dst:
        report(Problem(what=f"the mount `type={kind}` needs src and dst", path=path, next="add src=...,dst=..."))
        return None
    mount: dict[str, object] = {"at": dst}
    if "readonly" in options:
        mount["read_only"] = options["readonly"] not in ("false", "0")
    if kind == "bind":
        mount["host_path"] = {"path": src}
    elif kind == "volume":
        mount["claim"] = src
    elif kind == "device":
        mount["device"] = {"path": src, **({"perm": options["perm"]} if "perm" in options else {})}
    else:
        next_step = "write type=bind (host path), type=volume (claim) or type=device"
        report(Problem(what=f'unknown mount type "{kind}"', path=path, next=next_step))
        return None
    return mount


def _name_of(volume: dict[str, object], kind: str) -> str:
    """Symphony's names: the server of NFS, the last part of a path, the name of a repository, claim or Secret."""
    if kind == "empty_dir":
        return _SHARED_NAME if volume.get("memory") else "scratch"
    source = volume.get("server" if kind == "nfs" else _KINDS[kind] or "path")
    return str(source or kind).rstrip("/").rpartition("/")[2].removesuffix(".git")


def _label(wanted: str) -> str:
    """Return a DNS label near `wanted`; letters that it cannot have become dashes."""
    clean = "".join(letter if DNS_LABEL.fullmatch(letter) else "-" for letter in sanitize(wanted)).strip("-")
    return "-".join(part for part in clean.split("-") if part) or "volume"
