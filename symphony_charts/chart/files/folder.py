"""The package cache skips specs whose inputs and outputs are those of the last time."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from symphony_charts.spec.files import lock_path_of
from symphony_charts.system import package_data
from symphony_charts.system.files import write_file
from symphony_charts.system.user_folders import state_dir
from symphony_charts.version import __version__

__all__ = ["PackageCache"]


class PackageCache:
    """The records of charts below `dest`; `settings` is all that decides their content beside spec and lock file."""

    def __init__(self, dest: Path, settings: Mapping[str, object]) -> None:
        """Reads what is remembered; nothing is written before `save`."""
        dest_hash = hashlib.sha256(str(dest.absolute()).encode()).hexdigest()[:16]
        self._path = state_dir() / "packaged" / f"{dest_hash}.json"
        template = hashlib.sha256()
        for path, content in package_data.folder("chart-template").items():
            template.update(path.encode() + b"\0" + content)
        self._base = json.dumps([__version__, template.hexdigest(), settings], sort_keys=True).encode()
        self._entries = self._read()
        self._changed = False

    def fresh(self, spec: str) -> dict[str, object] | None:
        """The record of the chart of `spec`, if neither it nor what was written has changed since."""
        entry = self._entries.get(str(Path(spec).absolute()))
        if entry is None or entry.get("inputs") != self._inputs(spec):
            return None
        record = entry.get("record")
        if not isinstance(record, dict) or entry.get("outputs") != _outputs(record, spec):
            return None
        return record

    def remember(self, spec: str, record: dict[str, object]) -> None:
        inputs = self._inputs(spec)
        if inputs is not None:
            entry: dict[str, object] = {"inputs": inputs, "outputs": _outputs(record, spec), "record": record}
            self._entries[str(Path(spec).absolute())] = entry
            self._changed = True

    def save(self) -> None:
        if self._changed:
            write_file(self._path, json.dumps(self._entries).encode(), mode=0o600)

    def _read(self) -> dict[str, dict[str, object]]:
        try:
            entries = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        return entries if isinstance(entries, dict) else {}

    def _inputs(self, spec: str) -> str | None:
        if spec.endswith(".py"):
            return None
        try:
            content = Path(spec).read_bytes()
            lock = lock_path_of(Path(spec)).read_bytes()
        except OSError:
            return None
        if b"file" in content:
            return None
        return hashlib.sha256(b"\0".join([self._base, content, lock])).hexdigest()


def _outputs(record: Mapping[str, object], spec: str) -> str:
    """Sizes and times of everything that was written for a spec; empty where something is missing."""
    seen: list[str] = []
    try:
        for path in (str(record.get("archive")), str(lock_path_of(Path(spec)))):
            status = os.stat(path)  # noqa: PTH116 - called tens of thousands of times; Path costs twice as much
            seen.append(f"{path} {status.st_size} {status.st_mtime_ns}")
        pending = [str(record.get("folder"))]
        while pending:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        status = entry.stat()
                        seen.append(f"{entry.path} {status.st_size} {status.st_mtime_ns}")
    except OSError:
        return ""
    return hashlib.sha256("\n".join(sorted(seen)).encode()).hexdigest()
