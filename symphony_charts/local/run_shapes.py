"""The shapes of the files of a run: which keys must be there, and the types of all that are. Must stay light.

Files are damaged, and those of another version say other things; what does not fit is told before anything reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["PLAN", "STATE", "misfit"]


@dataclass(frozen=True, slots=True)
class Record:
    """A map: `fields` are the shapes of what it may hold, of which `required` must be there; a list if `in_order`.

    Each item of such a list has its own number as `slot`.
    """

    fields: Mapping[str, Shape]
    required: tuple[str, ...] = ()
    in_order: bool = False


# Types of JSON, a list of one shape, or a map.
Shape: TypeAlias = "tuple[type, ...] | list[Shape] | Record"

_TEXT, _FLAG, _WHOLE, _MAP, _NONE = (str,), (bool,), (int,), (dict,), type(None)
_NUMBER, _TIME, _MAYBE_MAP = (int, float), (int, float, _NONE), (dict, _NONE)
_IDENTITY: dict[str, Shape] = {"slot": _WHOLE, "name": _TEXT, "group": _TEXT, "pod": _TEXT}
_BIND = Record({"source": _TEXT, "target": _TEXT, "read_only": _FLAG, "sub_path": _TEXT}, ("source", "target"))
_CHECK = Record({"kind": _TEXT, "host": _TEXT, "port": _WHOLE, "role": _TEXT, "command": [_TEXT]}, ("kind",))

STATE = Record(
    {
        "experiment": _TEXT,
        "phase": _TEXT,
        "started": _NUMBER,
        "ended": _TIME,
        "reason": _TEXT,
        "cause": _TEXT,
        "failed": _MAYBE_MAP,
        "survivors": [_WHOLE],
        "stuck": [_TEXT],
        "tmux": _MAYBE_MAP,
        "processes": Record(
            {
                **_IDENTITY,
                "phase": _TEXT,
                "ready": _FLAG,
                "restarts": _WHOLE,
                "status": (int, _NONE),
                "wrapper": _MAYBE_MAP,
                "started": _TIME,
                "began": _TIME,
                "ended": _TIME,
                "pane": _TEXT,
                "unready": _TEXT,
                "unhealthy": _TEXT,
                "limit": _TEXT,
                "held": _TEXT,
            },
            (*_IDENTITY, "phase", "ready", "restarts", "status"),
            in_order=True,
        ),
    },
    ("phase", "processes", "started"),
)
PLAN = Record(
    {
        "experiment": _TEXT,
        "done_when": [_WHOLE],
        "folders": [_TEXT],
        "binds": [_BIND],
        "checkouts": [_MAP],
        "has_namespace": _FLAG,
        "base_address": _TEXT,
        "ports": _MAP,
        "moved": _MAP,
        "labels": _MAP,
        "caller": _MAP,
        "mounts": _MAP,
        "backoff": _MAP,
        "notes": [_TEXT],
        "processes": Record(
            {
                **_IDENTITY,
                "process": _TEXT,
                "index": _WHOLE,
                "is_step": _FLAG,
                "is_service": _FLAG,
                "argv": [_TEXT],
                "cwd": _TEXT,
                "tty": _FLAG,
                "address": _TEXT,
                "waits": [Record({"slot": _WHOLE, "until": _TEXT, "service": _TEXT}, ("slot", "until"))],
                "checks": [_CHECK],
                "health": [_CHECK],
                "restart": _TEXT,
                "retries": _WHOLE,
                "on_exit": _TEXT,
                "grace_s": _NUMBER,
                "deadline_s": _TIME,
                "log_bytes": _WHOLE,
                "gpus": [_TEXT],
                "enter": [_TEXT],
                "limits": [_MAP],
                "scope": [_TEXT],
                "binds": [_BIND],
                "spec_path": _TEXT,
                "digest": _TEXT,
            },
            (*_IDENTITY, "process", "log_bytes"),
            in_order=True,
        ),
    },
    ("processes", "base_address", "ports", "moved"),
)


def misfit(value: object, shape: Shape) -> str:
    """Where and how `value` is not of `shape`; empty where it is."""
    why = _misfit(value, shape).removeprefix(".")
    return f"it{why}" if why.startswith(" ") else why


def _misfit(value: object, shape: Shape) -> str:
    # A path is made only where something is wrong: a run may have hundreds of processes, and is read often.
    if isinstance(shape, tuple):
        return "" if type(value) in shape else f" is {_shown(value)}"
    if isinstance(shape, list) or shape.in_order:
        return _of_items(value, shape)
    if not isinstance(value, dict):
        return f" is {_shown(value)}"
    for key in shape.required:
        if key not in value:
            return f" lacks {key}"
    for key, item in value.items():
        own = shape.fields.get(key)
        if own is not None and not (type(own) is tuple and type(item) in own) and (why := _misfit(item, own)):
            return f".{key}{why}"
    return ""


def _of_items(value: object, shape: list[Shape] | Record) -> str:
    if not isinstance(value, list):
        return f" is {_shown(value)}"
    of_item = shape[0] if isinstance(shape, list) else Record(shape.fields, shape.required)
    for number, item in enumerate(value):
        if why := _misfit(item, of_item):
            return f"[{number}]{why}"
        if isinstance(shape, Record) and item["slot"] != number:
            return f"[{number}].slot is {_shown(item['slot'])}"
    return ""


def _shown(value: object) -> str:
    return "none" if value is None else "a map" if isinstance(value, dict) else repr(value)[:40]
