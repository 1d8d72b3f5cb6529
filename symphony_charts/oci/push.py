"""Push charts and image layers to a registry.

The index only grows, and its entries never change; helm updates the time of unchanged entries and drops those whose
archives it does not see. Source: helm/helm, pkg/repo/v1/index.go.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import semver

from symphony_charts.chart.archive import compress
from symphony_charts.chart.folder import PackedChart
from symphony_charts.errors import Conflict, SpecError
from symphony_charts.formats.data import Values, sub
from symphony_charts.formats.yaml_read import load
from symphony_charts.formats.yaml_write import dump
from symphony_charts.oci.client import Blob, Reference, Registry, artifact_of, digest_of
from symphony_charts.oci.transport import Access
from symphony_charts.system.files import write_file

if sys.platform != "win32":
    import fcntl


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """The address of a pushed chart, its manifest's digest, and `is_new` if anything was sent."""

    place: str
    digest: str
    is_new: bool


def push_charts(
    charts: Sequence[PackedChart],
    target: Reference,
    *,
    access: Access | None = None,
    dry_run: bool = False,
    advance: Callable[[int], None] = lambda _count: None,
) -> list[Pushed]:
    """Push charts below `target`, like `helm push`; `advance` counts them.

    Raises Conflict if a version has other content.
    """
    pushed = []
    with Registry(target.host, access) as registry:
        for chart in charts:
            pushed.append(_push(registry, chart, target.repository, dry_run=dry_run))
            advance(1)
    return pushed


def _push(registry: Registry, chart: PackedChart, folder: str, *, dry_run: bool) -> Pushed:
    artifact = artifact_of(chart.metadata, chart.archive, chart.provenance)
    repository = f"{folder}/{chart.name}"
    address = f"oci://{registry.host}/{repository}:{artifact.tag}"
    is_new = True
    if not dry_run:
        for blob in artifact.blobs:
            registry.put_blob(repository, blob.data)
        is_new = registry.put_tag_once(repository, artifact.tag, artifact.manifest)
    return Pushed(place=address, digest=artifact.manifest.digest, is_new=is_new)


def add_to_folder(chart: PackedChart, folder: Path, url: str, *, dry_run: bool = False) -> Pushed:
    """Put the archive into `folder` and list it in its `index.yaml`, which only grows.

    `url` is the address that serves the folder, empty for addresses relative to the index. Raises Conflict.
    """
    address = f"{url.rstrip('/')}/{chart.file_name}" if url else chart.file_name
    if not dry_run:
        folder.mkdir(parents=True, exist_ok=True)
    index = folder / "index.yaml"
    with contextlib.nullcontext() if dry_run else _locked(folder):
        before = index.read_bytes() if index.is_file() else b""
        after = _add_to_index(before, chart.metadata, chart.archive, address)
        if not dry_run:
            there = folder / chart.file_name
            if there.exists() and there.read_bytes() != chart.archive:
                raise Conflict(f"{there} already exists with other content", next="package another version: --version")
            # The archive first: an index never lists a missing file.
            write_file(there, chart.archive)
            if chart.provenance is not None:
                write_file(folder / f"{chart.file_name}.prov", chart.provenance)
            write_file(index, after)
    return Pushed(place=str(folder / chart.file_name), digest="", is_new=after != before)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a folder's lock, so that two writers add one after the other."""
    with (folder / ".index.lock").open("a") as file:
        if sys.platform != "win32":
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _add_to_index(index: bytes, metadata: Mapping[str, object], archive: bytes, url: str) -> bytes:
    """Return the file `index` (empty for a new one) with the `archive` at `url` added, newest version first.

    Adding the same chart again changes nothing. Raises Conflict for a version that is listed with other content,
    SpecError if it is not an index.
    """
    entries = _entries_in(index)
    name, version = str(metadata["name"]), str(metadata["version"])
    digest = hashlib.sha256(archive).hexdigest()
    listed = entries.get(name, [])
    for other in listed:
        if other.get("version") != version:
            continue
        if other.get("digest") == digest:
            return index
        raise Conflict(
            f"{name} {version} is already in the index with other content",
            f"digest {str(other.get('digest'))[:12]}",
            "package it under another version: --version",
        )
    moment = time.gmtime(float(os.environ.get("SOURCE_DATE_EPOCH") or time.time()))
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", moment)
    added: Values = {**metadata, "created": now, "digest": digest, "urls": [url]}
    entries[name] = sorted([*listed, added], key=lambda each: _key(str(each.get("version"))), reverse=True)
    return dump({"apiVersion": "v1", "entries": dict(sorted(entries.items())), "generated": now}).encode()


def _entries_in(index: bytes) -> dict[str, list[Values]]:
    """Return the versions in an index by chart. Raises SpecError if it is not an index."""
    entries: object = {}
    if index.strip():
        try:
            entries = sub(load(index.decode())).get("entries")
        except UnicodeDecodeError:
            entries = None
    if isinstance(entries, dict) and all(
        isinstance(versions, list) and all(isinstance(each, dict) for each in versions) for versions in entries.values()
    ):
        return entries
    raise SpecError.one(
        "this is not the index of a chart repository", "index.yaml", "restore it, or use another folder"
    )


def _key(version: str) -> tuple[bool, semver.Version]:
    """Return a key that sorts versions as helm does; invalid ones come first."""
    try:
        parsed = semver.Version.parse(version.removeprefix("v"), optional_minor_and_patch=True)
    except ValueError:
        return False, semver.Version(0)
    return True, parsed.replace(build=None)


# Equal files over an equal base give equal digests: the layer contains no time or owner, and names are sorted.
# Source: opencontainers/image-spec, layer.md, config.md, manifest.md and image-index.md; distribution/distribution,
# docs/content/spec/manifest-v2-2.md.

INDEX_TYPES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
_LAYER_TYPES = {
    _OCI_MANIFEST: "application/vnd.oci.image.layer.v1.tar+gzip",
    _DOCKER_MANIFEST: "application/vnd.docker.image.rootfs.diff.tar.gzip",
}
# The earliest time in a zip file: building wheels from such files in an image would fail with 1970.
_MTIME_S = 315532800
_MADE_BY = "symph package --workspace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file, a folder or a symbolic link (`target`) of a workspace; `path` is relative, with `/`."""

    path: str
    content: bytes = b""
    is_folder: bool = False
    is_program: bool = False
    target: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A packed layer, and the digest of its tar."""

    data: bytes
    diff_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformManifest:
    """An image for one platform in an index; `descriptor` is its entry in the index."""

    platform: str
    descriptor: Mapping[str, object]

    @property
    def digest(self) -> str:
        return str(self.descriptor["digest"])


def layer_of(entries: Sequence[Entry], folder: str) -> Layer:
    """Return the layer that puts `entries` into `folder` of an image; the folder itself is not changed.

    Raises SpecError for names that mean a deletion in a layer.
    """
    within = f"{folder.strip('/')}/".lstrip("/")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry in sorted(entries, key=lambda entry: entry.path):
            if entry.path.rpartition("/")[2].startswith(".wh."):
                raise SpecError.one(f'"{entry.path}" would delete a file of the image', next="add it to .dockerignore")
            archive.addfile(_header(entry, within), io.BytesIO(entry.content))
    tar = buffer.getvalue()
    return Layer(data=compress(tar), diff_id=digest_of(tar))


def _header(entry: Entry, within: str) -> tarfile.TarInfo:
    header = tarfile.TarInfo(within + entry.path)
    header.mtime = _MTIME_S
    header.mode = 0o755 if entry.is_folder or entry.is_program else 0o644
    if entry.is_folder:
        header.type = tarfile.DIRTYPE
    elif entry.target is not None:
        header.type, header.linkname, header.mode = tarfile.SYMTYPE, entry.target, 0o777
    else:
        header.size = len(entry.content)
    return header


def add_layer(media_type: str, manifest: bytes, config: bytes, layer: Layer) -> tuple[Blob, Blob, Blob]:
    """Return config, layer and manifest of the image with `layer` on top. Raises SpecError."""
    if media_type not in _LAYER_TYPES:
        raise SpecError.one(f"the image has an unknown format: {media_type}", next="build it with a newer tool")
    image, settings = as_map(manifest), as_map(config)
    files, layers, named = settings.get("rootfs"), image.get("layers"), image.get("config")
    if not isinstance(files, dict) or not isinstance(layers, list) or not isinstance(named, dict):
        raise SpecError.one(
            "the base is not a container image: it has no root file system", next="give another base image"
        )
    settings["rootfs"] = {**files, "diff_ids": [*files.get("diff_ids", []), layer.diff_id]}
    history = settings.get("history")
    if isinstance(history, list):
        step = {"created": settings.get("created") or "1970-01-01T00:00:00Z", "created_by": _MADE_BY}
        settings["history"] = [*history, step]
    new_config = Blob(media_type=str(named["mediaType"]), data=_dumped(settings))
    new_layer = Blob(media_type=_LAYER_TYPES[media_type], data=layer.data)
    image |= {"config": new_config.descriptor, "layers": [*layers, new_layer.descriptor]}
    image.pop("subject", None)
    return new_config, new_layer, Blob(media_type=media_type, data=_dumped(image))


def platforms_of(index: bytes) -> list[PlatformManifest]:
    """Return the images of an index for Linux, in order, without other entries (attestations, Windows)."""
    platforms = []
    listed = as_map(index).get("manifests")
    for descriptor in listed if isinstance(listed, list) else []:
        platform = descriptor.get("platform") if isinstance(descriptor, dict) else None
        if isinstance(platform, dict) and platform.get("os") == "linux":
            parts = ["linux", str(platform.get("architecture", "")), str(platform.get("variant", ""))]
            platforms.append(PlatformManifest(platform="/".join(filter(None, parts)), descriptor=descriptor))
    return platforms


def index_of(media_type: str, images: Sequence[tuple[PlatformManifest, Blob]]) -> Blob:
    """Return the index of the patched images, with the platforms of the originals."""
    manifests = []
    for platform, blob in images:
        manifests.append({**blob.descriptor, "platform": platform.descriptor["platform"]})
    return Blob(
        media_type=media_type, data=_dumped({"schemaVersion": 2, "mediaType": media_type, "manifests": manifests})
    )


def as_map(data: bytes) -> dict[str, object]:
    """Return JSON of a registry as a map. Raises SpecError for anything else."""
    try:
        value = json.loads(data)
    except ValueError as error:
        raise SpecError.one(f"the base is not a container image: {error}") from error
    if not isinstance(value, dict):
        raise SpecError.one("the base is not a container image")
    return value


def _dumped(data: Mapping[str, object]) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode()
