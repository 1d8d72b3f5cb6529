"""Charts on disk: read a packaged chart, detect edited files, remember unchanged specs, and write a kustomize folder.

A file in a generated chart folder is ours, the user's, or ours with edits; edited files are never overwritten. The
package cache is in the user's state folder and can be deleted at any time; it never serves a spec that reads other
files (Python, `file:`).
"""

from __future__ import annotations

import difflib
import hashlib
import io
import json
import os
import re
import tarfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from symphony_charts.chart import archive
from symphony_charts.errors import Conflict, SpecError
from symphony_charts.formats.yaml_read import load
from symphony_charts.formats.yaml_write import dump
from symphony_charts.spec.files import lock_path_of
from symphony_charts.system import package_data
from symphony_charts.system.files import write_file
from symphony_charts.system.user_folders import state_dir
from symphony_charts.version import __version__


class PackageCache:
    """The records of charts below `dest`. `settings` are all inputs of their content besides spec and lock file."""

    def __init__(self, dest: Path, settings: Mapping[str, object]) -> None:
        """Read the cache; only `save` writes it."""
        dest_hash = hashlib.sha256(str(dest.absolute()).encode()).hexdigest()[:16]
        self._path = state_dir() / "packaged" / f"{dest_hash}.json"
        template = hashlib.sha256()
        for path, content in package_data.folder("chart-template").items():
            template.update(path.encode() + b"\0" + content)
        self._base = json.dumps([__version__, template.hexdigest(), settings], sort_keys=True).encode()
        self._entries = self._read()
        self._changed = False

    def fresh(self, spec: str) -> dict[str, object] | None:
        """Return the record of the chart of `spec`, if neither inputs nor outputs have changed since."""
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
    """Return a hash of sizes and times of all files written for a spec; empty if one is missing."""
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


# Lists our files with their hashes in the format of `sha256sum --check`; not part of the archive.
RECORD = ".symph-files"

_MAX_DIFF_LINES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """The changes in the folder: `writes` by path, and `removes`, our files that the chart no longer has."""

    writes: dict[str, bytes]
    removes: tuple[str, ...]


def is_users(path: str) -> bool:
    """Return True if a path of the folder belongs to the user: ``values-*.yaml`` and ``templates/extra-*``."""
    return (path.startswith("values-") and path.endswith(".yaml") and "/" not in path) or path.startswith(
        "templates/extra-"
    )


def _parse_record(content: bytes) -> dict[str, str]:
    lines = content.decode(errors="replace").splitlines()
    return {path: digest for digest, _, path in (line.partition("  ") for line in lines) if path}


def plan_write(files: Mapping[str, bytes], present: Mapping[str, bytes], where: str = "") -> WritePlan:
    """Return the changes that turn the folder with files `present` into the chart of `files`.

    Raises Conflict, with a diff, if one of our files was edited or another file is in its place.
    """
    record = _parse_record(present.get(RECORD, b""))
    drifted = [path for path, content in sorted(present.items()) if _is_drift(path, content, record, files)]
    if drifted:
        raise _conflict(drifted, files, present, where)
    writes = {path: content for path, content in files.items() if present.get(path) != content}
    new_record = archive.checksums(files)
    if present.get(RECORD) != new_record:
        writes[RECORD] = new_record
    removes = tuple(path for path in sorted(record) if path in present and path not in files)
    return WritePlan(writes=writes, removes=removes)


def _is_drift(path: str, content: bytes, record: Mapping[str, str], files: Mapping[str, bytes]) -> bool:
    if path == RECORD or is_users(path) or content == files.get(path):
        return False
    return record[path] != hashlib.sha256(content).hexdigest() if path in record else path in files


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


_MOST_BYTES = 100 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedChart:
    """A chart's archive with its file name, metadata, files by path, and the ``.prov`` beside it, if there is one."""

    file_name: str
    metadata: dict[str, object]
    archive: bytes
    files: dict[str, bytes]
    provenance: bytes | None = None

    @property
    def name(self) -> str:
        return str(self.metadata["name"])

    @property
    def version(self) -> str:
        return str(self.metadata["version"])


def read_chart(path: Path) -> PackedChart:
    """Return the chart in the archive or folder `path`. Raises SpecError if there is none."""
    if path.is_dir():
        return _from_folder(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        what = f"no chart at {path}: {error.strerror}"
        raise SpecError.one(what, str(path), "make one: symph package SPEC") from error
    files = _unpacked(path, data)
    prov = path.with_name(f"{path.name}.prov")
    provenance = prov.read_bytes() if prov.is_file() else None
    metadata = _metadata(files, str(path))
    return PackedChart(file_name=path.name, metadata=metadata, archive=data, files=files, provenance=provenance)


def _from_folder(folder: Path) -> PackedChart:
    # The chart's own .helmignore excludes the rest.
    every = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    files = archive.packed(
        {
            name: path.read_bytes()
            for name, path in every.items()
            if not (name == RECORD or name.startswith(".git/") or name.endswith((".tgz", ".orig", ".swp")))
            and (not is_users(name) or name.startswith("templates/"))
        }
    )
    metadata = _metadata(files, str(folder))
    name = str(metadata["name"])
    file_name = f"{name}-{metadata['version']}.tgz"
    return PackedChart(file_name=file_name, metadata=metadata, archive=archive.pack(name, files), files=files)


def _unpacked(path: Path, data: bytes) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as packed:
            for member in packed:
                stream = packed.extractfile(member) if member.isfile() else None
                if stream is not None and sum(map(len, files.values())) < _MOST_BYTES:
                    files[member.name.partition("/")[2]] = stream.read(_MOST_BYTES)
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise SpecError.one(
            "this is not the archive of a chart", at=str(path), next="make one: symph package SPEC"
        ) from error
    return files


def _metadata(files: dict[str, bytes], at: str) -> dict[str, object]:
    try:
        data = load(files.get("Chart.yaml", b"").decode("utf-8", "replace"))
    except SpecError as error:
        raise SpecError(error.problems, at=f"{at}, Chart.yaml") from error
    if not isinstance(data, dict) or not isinstance(data.get("name"), str) or not isinstance(data.get("version"), str):
        raise SpecError.one(
            "it has no Chart.yaml with a name and a version", at=at, next="make one: symph package SPEC"
        )
    return data


_NOT_OF_A_FILE = re.compile(r"[^a-z0-9.-]+")


def kustomize_files(objects: Iterable[Mapping[str, object]], *, namespace: str | None = None) -> dict[str, bytes]:
    """Return ``kustomization.yaml`` and a file per object, by path; kustomize sets `namespace` on all objects.

    The files keep the order of the objects, in which kustomize builds them.
    """
    files: dict[str, bytes] = {}
    for item in objects:
        path = _path(item, files)
        files[path] = dump(item).encode()
    head: dict[str, object] = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    if namespace:
        head["namespace"] = namespace
    return {"kustomization.yaml": dump({**head, "resources": list(files)}).encode(), **files}


def _path(item: Mapping[str, object], taken: Mapping[str, bytes]) -> str:
    """Return ``<kind>-<name>.yaml``, with the API group if that path is taken."""
    metadata = item["metadata"]
    name = metadata["name"] if isinstance(metadata, Mapping) else ""
    group = str(item["apiVersion"]).rpartition("/")[0]
    words = f"{item['kind']}-{name}".lower()
    plain, full = (f"{_NOT_OF_A_FILE.sub('-', text)}.yaml" for text in (words, f"{words}-{group}"))
    return plain if plain not in taken else full
