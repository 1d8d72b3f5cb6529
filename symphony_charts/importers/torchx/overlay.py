"""Pod overlays in a role's metadata (key ``kubernetes``) are TorchX's patches of the pod it makes.

Maps merge and lists append there, unless a key says otherwise: ``__put__:f`` replaces, ``__del__:f`` removes,
``__join__:f:on`` merges lists by a key. Source: meta-pytorch/torchx, torchx/specs/overlays.py.
"""

from __future__ import annotations

from symphony_charts.importers.report import Log
from symphony_charts.integrations.torchx.appdef import Role

__all__ = ["overlay_of", "pod_overlay_of"]

_FORMAT_KEY = "__torchx_overlays__"
_PUT, _JOIN, _DEL = "__put__:", "__join__:", "__del__:"


def overlay_of(role: Role) -> object:
    """The patch as the role holds it: a map, the address of a file, or None."""
    held = role.metadata.get("kubernetes")
    if isinstance(held, dict) and (_FORMAT_KEY in held or "V1Pod" in held):
        return held.get("V1Pod")
    return held


def pod_overlay_of(role: Role, log: Log) -> dict[str, object]:
    """The patch as an experiment's `pod_overlay`, which merges by Kubernetes' rule."""
    overlay = overlay_of(role)
    path = f"{role.path}.metadata.kubernetes"
    if overlay is None:
        return {}
    if not isinstance(overlay, dict):
        log.note(path, "a pod overlay that stands in a file is not read", "put its content in `pod_overlay`")
        return {}
    return _plain(overlay, path, log)


def _plain(overlay: dict[str, object], path: str, log: Log) -> dict[str, object]:
    result: dict[str, object] = {}
    for key, value in overlay.items():
        if key.startswith(_DEL):
            log.note(
                f"{path}.{key}", f"`{key.removeprefix(_DEL)}` cannot be removed by an overlay; it is left as it is"
            )
            continue
        name = key.removeprefix(_PUT)
        if key.startswith(_JOIN):
            name, _, on = key.removeprefix(_JOIN).partition(":")
            if on != "name":
                log.note(f"{path}.{key}", f"lists merge by `name` only; `{name}` is replaced instead")
        elif isinstance(value, list) and not key.startswith(_PUT):
            log.note(f"{path}.{key}", f"TorchX appends to `{name}`; here lists without names are replaced")
        result[name] = _plain(value, f"{path}.{key}", log) if isinstance(value, dict) else value
    return result
