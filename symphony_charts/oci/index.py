"""``index.yaml`` of a chart repository that only ever grows: what is listed stays as it is.

Source: helm/helm, pkg/repo/v1/index.go. helm itself stamps unchanged entries anew and drops what it does not see.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from symphony_charts.chart.render.values import Values
from symphony_charts.errors import Conflict, SpecError
from symphony_charts.formats.yaml_text import dump, load

__all__ = ["IndexEntry", "add_to_index"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """A chart to list: what its Chart.yaml holds, its archive, and where that can be fetched from."""

    metadata: Mapping[str, object]
    archive: bytes
    url: str


def add_to_index(text: str, entry: IndexEntry, now: str) -> str:
    """The index `text` (empty for a new one) with `entry` at its place, newest version first; `now` is ISO 8601.

    The same chart again changes nothing. Raises Conflict for a version that is listed with other content, SpecError
    for what is no index.
    """
    index = _read(text)
    entries = index["entries"]
    assert isinstance(entries, dict)  # noqa: S101 - as _read has seen
    name, version = str(entry.metadata["name"]), str(entry.metadata["version"])
    digest = hashlib.sha256(entry.archive).hexdigest()
    listed = entries.get(name, [])
    for other in listed:
        if other.get("version") != version:
            continue
        if other.get("digest") == digest:
            return text
        raise Conflict(
            f"{name} {version} is listed already, with other content",
            f"digest {str(other.get('digest'))[:12]}",
            "package it under another version: --version",
        )
    added: Values = {**entry.metadata, "created": now, "digest": digest, "urls": [entry.url]}
    entries[name] = sorted([*listed, added], key=lambda each: _key(str(each.get("version"))), reverse=True)
    return dump({"apiVersion": "v1", "entries": dict(sorted(entries.items())), "generated": now})


def _read(text: str) -> Values:
    if not text.strip():
        return {"entries": {}}
    index = load(text)
    entries = index.get("entries") if isinstance(index, dict) else None
    if not isinstance(entries, dict) or not all(
        isinstance(versions, list) and all(isinstance(each, dict) for each in versions) for versions in entries.values()
    ):
        raise SpecError.one("this is no index of a chart repository", "index.yaml", "restore it, or begin another")
    return {"entries": entries}


def _key(version: str) -> tuple[object, ...]:
    """What sorts versions as helm does. Source: SemVer 2.0.0, clause 11."""
    core, _, pre = version.partition("+")[0].removeprefix("v").partition("-")
    numbers = tuple(int(part) if part.isdigit() else -1 for part in core.split("."))
    parts = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in pre.split(".")) if pre else ()
    return numbers, not pre, parts
