"""Expand short forms of single fields, and volumes declared at their mounts."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable

from symphony_charts.errors import Problem
from symphony_charts.formats.names import DNS_LABEL, join, nearest, sanitize, shorten
from symphony_charts.formats.yaml_read import plain, scalar_text
from symphony_charts.spec.json_schema import added_kind
from symphony_charts.spec.workload import ADDED_KINDS

_SPANS = ("initial_delay", "period", "timeout")
_UNITS = {"s": 1, "m": 60, "h": 3600}
_RESTARTS = {"Always": "always", "OnFailure": "on-failure", "Never": "never", "on_failure": "on-failure"}


def words(value: object) -> object:
    """Return a list of texts; a single text becomes a list of one."""
    if isinstance(value, str):
        return [value]
    return [scalar_text(item) for item in value] if isinstance(value, (list, tuple)) else value


def shell(value: object) -> object:
    """Return the name of a shell as it is; a list of the words before a script becomes a list of texts."""
    return value if isinstance(value, str) else words(value)


def texts(value: object) -> object:
    return {key: scalar_text(item) for key, item in value.items()} if isinstance(value, dict) else value


def restart(value: object) -> object:
    """Return a restart policy in our spelling; accepts Kubernetes' spelling."""
    return _RESTARTS.get(value, value) if isinstance(value, str) else value


def assignment(value: object) -> object:
    """Return ``{assign_to: machine}`` for ``machine``."""
    return {"assign_to": value} if isinstance(value, str) else plain(value)


def port_range(value: object) -> object:
    """Return ``[7000, 8999]`` for ``7000-8999``, Symphony's form."""
    if isinstance(value, str) and (match := re.fullmatch(r"\s*(\d{1,6})\s*-\s*(\d{1,6})\s*", value, re.ASCII)):
        return [int(match[1]), int(match[2])]
    return value


def by_field(value: object, field: str) -> object:
    """Return a map of records; a text becomes a record with that `field`."""
    if not isinstance(value, dict):
        return value
    return {key: {field: item} if isinstance(item, str) else item for key, item in value.items()}


def exposures(value: object) -> object:
    """Return the settings of exposed services; a text becomes the type, and annotations become text."""
    named = by_field(value, "type")
    return {key: _annotated(item) for key, item in named.items()} if isinstance(named, dict) else named


def _annotated(settings: object) -> object:
    """Return `settings` with the values of `annotations` as text."""
    if not isinstance(settings, dict) or "annotations" not in settings:
        return settings
    return {**settings, "annotations": texts(settings["annotations"])}


def tolerations(value: object) -> object:
    """Return a list of tolerations, from one or several; `tolerationSeconds` becomes `seconds`."""
    items = [value] if isinstance(value, dict) else value
    if not isinstance(items, (list, tuple)):
        return value
    return [
        {("seconds" if key == "tolerationSeconds" else key): part for key, part in item.items()}
        if isinstance(item, dict)
        else item
        for item in items
    ]


def probe(value: object) -> object:
    """Return a probe from its short forms.

    ``8080`` or a service name is a TCP port. `tcp`, `http` and `exec` have short forms, too, and times may have a
    unit, as in ``period: 1s``.
    """
    if value == "none":
        return value
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return {"tcp": {"port": value}}
    if not isinstance(value, dict):
        return value
    result = {key: _seconds(item) if key in _SPANS else item for key, item in value.items()}
    for kind in ("tcp", "http"):
        if isinstance(result.get(kind), (str, int)):
            result[kind] = {"port": result[kind]}
    asked = result.get("exec")
    if isinstance(asked, (str, list, tuple)):
        asked = {"command": asked}
    if isinstance(asked, dict) and "command" in asked:
        result["exec"] = {**asked, "command": words(asked["command"])}
    return result


def _seconds(value: object) -> object:
    """Return ``90s``, ``5m`` or ``1h`` in seconds, Kubernetes' unit."""
    match = re.fullmatch(r"(\d{1,6})([smh])", value, re.ASCII) if isinstance(value, str) else None
    return int(match[1]) * _UNITS[match[2]] if match else value


def workload(value: object) -> object:
    """Return `workload` with the short forms of kinds expanded."""
    if not isinstance(value, dict):
        return value
    if "appwrapper" in value:
        value = {**value, "appwrapper": _annotated(value["appwrapper"])}
    written = {name: value[name] for name in ADDED_KINDS if isinstance(value.get(name), dict)}
    return {**value, **{name: added_kind(name).expanded(settings) for name, settings in written.items()}}


# The inline key, and the field for a bare string under it.
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
    """The volumes of an experiment while it is read. Merges equal volumes, and renames different ones with one name."""

    def __init__(self, declared: dict[str, object]) -> None:
        self.volumes = declared

    def declare(self, volume: dict[str, object], wanted: str) -> str:
        """Return the name of `volume` in the table; adds it under a name derived from `wanted` if it is new.

        The name depends only on the volume, unless another volume has the same wanted name.
        """
        name = shorten(_label(wanted), 50)
        if self.volumes.setdefault(name, volume) == volume:
            return name
        content = json.dumps(volume, sort_keys=True, default=str)
        name = f"{name}-{hashlib.sha256(content.encode()).hexdigest()[:8]}"
        self.volumes.setdefault(name, volume)
        return name


def volume_kinds() -> list[str]:
    return [*_KINDS, "shm"]


def inline_volume(mount: dict[str, object], path: str, report: Report) -> tuple[dict[str, object], str] | None:
    """Return the inline volume of `mount` (one key of `volume_kinds`) and a name for it; None if there is none."""
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

    A further ``type=`` begins a new mount. Source: meta-pytorch/torchx, torchx/specs/api.py, parse_mounts.
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
    """Return Symphony's default name: NFS server, last part of a path, or name of a repository, claim or Secret."""
    if kind == "empty_dir":
        return _SHARED_NAME if volume.get("memory") else "scratch"
    source = volume.get("server" if kind == "nfs" else _KINDS[kind] or "path")
    return str(source or kind).rstrip("/").rpartition("/")[2].removesuffix(".git")


def _label(wanted: str) -> str:
    """Return a DNS label similar to `wanted`; invalid characters become dashes."""
    clean = "".join(letter if DNS_LABEL.fullmatch(letter) else "-" for letter in sanitize(wanted)).strip("-")
    return "-".join(part for part in clean.split("-") if part) or "volume"
