"""Short forms of single fields are expanded to what the record has. What fits no form passes."""

from __future__ import annotations

import re

from symphony_charts.formats.scalars import plain, scalar_text
from symphony_charts.spec.added_kinds import added_kind
from symphony_charts.spec.workload import ADDED_KINDS

__all__ = [
    "assignment",
    "by_field",
    "exposures",
    "port_range",
    "probe",
    "restart",
    "shell",
    "texts",
    "tolerations",
    "words",
    "workload",
]

_SPANS = ("initial_delay", "period", "timeout")
_UNITS = {"s": 1, "m": 60, "h": 3600}
_RESTARTS = {"Always": "always", "OnFailure": "on-failure", "Never": "never", "on_failure": "on-failure"}


def words(value: object) -> object:
    """Return a list of text; one text is a list of one."""
    if isinstance(value, str):
        return [value]
    return [scalar_text(item) for item in value] if isinstance(value, (list, tuple)) else value


def shell(value: object) -> object:
    """Return the name of a shell stays a text; words in front of a script are a list of text."""
    return value if isinstance(value, str) else words(value)


def texts(value: object) -> object:
    """Return a map whose values are text."""
    return {key: scalar_text(item) for key, item in value.items()} if isinstance(value, dict) else value


def restart(value: object) -> object:
    """Return a restart policy in Kubernetes' spelling or ours."""
    return _RESTARTS.get(value, value) if isinstance(value, str) else value


def assignment(value: object) -> object:
    """Return ``machine`` for ``{assign_to: machine}``."""
    return {"assign_to": value} if isinstance(value, str) else plain(value)


def port_range(value: object) -> object:
    """Return ``7000-8999``, as Symphony writes it."""
    if isinstance(value, str) and (match := re.fullmatch(r"\s*(\d{1,6})\s*-\s*(\d{1,6})\s*", value, re.ASCII)):
        return [int(match[1]), int(match[2])]
    return value


def by_field(value: object, field: str) -> object:
    """Return a map of records, where one text is for a record with that `field`."""
    if not isinstance(value, dict):
        return value
    return {key: {field: item} if isinstance(item, str) else item for key, item in value.items()}


def exposures(value: object) -> object:
    """How services are exposed, where one text is the type; annotations are text."""
    named = by_field(value, "type")
    return {key: _annotated(item) for key, item in named.items()} if isinstance(named, dict) else named


def _annotated(settings: object) -> object:
    """Settings with the values of their `annotations` as text."""
    if not isinstance(settings, dict) or "annotations" not in settings:
        return settings
    return {**settings, "annotations": texts(settings["annotations"])}


def tolerations(value: object) -> object:
    """One toleration or several; `tolerationSeconds` is Kubernetes' name of `seconds`."""
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
    """``ready: 8080`` (a TCP port, by number or service name), as below `tcp`, `http` and `exec`; ``period: 1s``."""
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
    """Return ``90s``, ``5m`` or ``1h`` as seconds, in which Kubernetes counts."""
    match = re.fullmatch(r"(\d{1,6})([smh])", value, re.ASCII) if isinstance(value, str) else None
    return int(match[1]) * _UNITS[match[2]] if match else value


def workload(value: object) -> object:
    """`workload` with the short forms of kinds expanded."""
    if not isinstance(value, dict):
        return value
    if "appwrapper" in value:
        value = {**value, "appwrapper": _annotated(value["appwrapper"])}
    written = {name: value[name] for name in ADDED_KINDS if isinstance(value.get(name), dict)}
    return {**value, **{name: added_kind(name).expanded(settings) for name, settings in written.items()}}
