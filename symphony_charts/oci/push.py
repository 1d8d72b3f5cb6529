"""Charts to where helm fetches them from: an OCI registry, or a folder with an index."""

from __future__ import annotations

import fcntl
import os
import time
from dataclasses import dataclass
from pathlib import Path

from symphony_charts.chart.files.read import PackedChart
from symphony_charts.errors import Conflict
from symphony_charts.oci.chart_artifact import artifact_of
from symphony_charts.oci.client import Manifest, Reference, Registry
from symphony_charts.oci.index import IndexEntry, add_to_index
from symphony_charts.system.files import write_file

__all__ = ["Pushed", "add_to_folder", "push_chart"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """Where a chart is, its manifest's digest, and whether anything had to be sent."""

    place: str
    digest: str
    is_new: bool


def push_chart(chart: PackedChart, target: Reference, *, dry_run: bool = False) -> Pushed:
    """Push a chart below `target`, as `helm push` does. Raises Conflict where its version has other content."""
    artifact = artifact_of(chart.metadata, chart.archive, chart.provenance)
    repository = f"{target.repository}/{chart.name}"
    place = f"oci://{target.host}/{repository}:{artifact.tag}"
    if dry_run:
        return Pushed(place=place, digest=artifact.manifest.digest, is_new=True)
    manifest = Manifest(media_type=artifact.manifest.media_type, data=artifact.manifest.data)
    with Registry(target.host) as registry:
        for blob in artifact.blobs:
            registry.put_blob(repository, blob.data)
        is_new = registry.put_tag_once(repository, artifact.tag, manifest)
    return Pushed(place=place, digest=manifest.digest, is_new=is_new)


def add_to_folder(chart: PackedChart, folder: Path, url: str, *, dry_run: bool = False) -> Pushed:
    """Put the archive into `folder` and list it in its ``index.yaml``, which only ever grows.

    `url` is where the folder will be served, empty for addresses relative to the index. Raises Conflict.
    """
    place = f"{url.rstrip('/')}/{chart.file_name}" if url else chart.file_name
    entry = IndexEntry(metadata=chart.metadata, archive=chart.archive, url=place)
    if not dry_run:
        folder.mkdir(parents=True, exist_ok=True)
    index = folder / "index.yaml"
    with _locked(folder, dry_run=dry_run):
        before = index.read_text(encoding="utf-8") if index.is_file() else ""
        after = add_to_index(before, entry, _now())
        if not dry_run:
            there = folder / chart.file_name
            if there.exists() and there.read_bytes() != chart.archive:
                raise Conflict(f"{there} is there already, with other content", next="package another version")
            # The archive first: an index never lists what is not there.
            write_file(there, chart.archive)
            if chart.provenance is not None:
                write_file(folder / f"{chart.file_name}.prov", chart.provenance)
            write_file(index, after.encode())
    return Pushed(place=str(folder / chart.file_name), digest="", is_new=after != before)


class _locked:  # noqa: N801 - used as a word, like contextlib's own
    """Hold a folder's lock, so that two writers add one after the other."""

    def __init__(self, folder: Path, *, dry_run: bool) -> None:
        self._path = None if dry_run else folder / ".index.lock"
        self._handle = -1

    def __enter__(self) -> None:
        if self._path is not None:
            self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._handle, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        if self._handle >= 0:
            os.close(self._handle)


def _now() -> str:
    """The time of the entry, or of SOURCE_DATE_EPOCH for builds that can be repeated."""
    moment = float(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))
