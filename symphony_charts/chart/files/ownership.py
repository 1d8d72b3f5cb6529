"""Find edited files in a generated chart folder."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from symphony_charts.errors import Conflict

__all__ = ["RECORD", "WritePlan", "is_users", "plan_write"]

# Lists our files with their hashes, in the format of `sha256sum --check`; it stays out of the archive.
RECORD = ".symph-files"

_MAX_DIFF_LINES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """What to do in the folder: `writes` by path, and `removes`, files of ours that the chart no longer has."""

    writes: dict[str, bytes]
    removes: tuple[str, ...]


def is_users(path: str) -> bool:
    """Whether a path of the folder belongs to the user: ``values-*.yaml`` and ``templates/extra-*``."""
    return (path.startswith("values-") and path.endswith(".yaml") and "/" not in path) or path.startswith(
        "templates/extra-"
    )


def _parse_record(content: bytes) -> dict[str, str]:
    """The recorded hash of each of our files by path."""
    lines = content.decode(errors="replace").splitlines()
    return {path: digest for digest, _, path in (line.partition("  ") for line in lines) if path}


def plan_write(files: Mapping[str, bytes], present: Mapping[str, bytes], where: str = "") -> WritePlan:
    """How the folder that holds `present` becomes the chart of `files`.

    Raises Conflict, with a diff, when a file of ours was edited or another stands where one of ours belongs.
    """
    record = _parse_record(present.get(RECORD, b""))
    drifted = [path for path, content in sorted(present.items()) if _is_drift(path, content, record, files)]
    if drifted:
        raise _conflict(drifted, files, present, where)
    writes = {path: content for path, content in files.items() if present.get(path) != content}
    new_record = "".join(f"{_hash(content)}  {path}\n" for path, content in sorted(files.items())).encode()
    if present.get(RECORD) != new_record:
        writes[RECORD] = new_record
    return WritePlan(
        writes=writes, removes=tuple(path for path in sorted(record) if path in present and path not in files)
    )


def _is_drift(path: str, content: bytes, record: Mapping[str, str], files: Mapping[str, bytes]) -> bool:
    if path == RECORD or is_users(path) or content == files.get(path):
        return False
    return record[path] != _hash(content) if path in record else path in files


def _conflict(drifted: list[str], files: Mapping[str, bytes], present: Mapping[str, bytes], where: str) -> Conflict:
    diff: list[str] = []
    for path in drifted:
        ours = files.get(path, b"").decode(errors="replace").splitlines(keepends=True)
        theirs = present[path].decode(errors="replace").splitlines(keepends=True)
        diff += difflib.unified_diff(ours, theirs, f"generated/{path}", f"on disk/{path}")
    shown = "".join(f"  | {line.rstrip()}\n" for line in diff[:_MAX_DIFF_LINES])
    more = f"  | ... {len(diff) - _MAX_DIFF_LINES} more lines\n" if len(diff) > _MAX_DIFF_LINES else ""
    return Conflict(
        f"{len(drifted)} generated {'file was' if len(drifted) == 1 else 'files were'} edited:"
        f" {', '.join(drifted)}\n{shown}{more}".rstrip("\n"),
        where,
        "put your changes into the experiment, values-*.yaml or templates/extra-*, delete the edited file, and retry",
    )


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
