"""A layer puts the files of a folder over what a base image holds, without running anything.

The same files over the same base make the same digests: the layer holds no time and no owner, and names are sorted.
Source: opencontainers/image-spec, layer.md, config.md, manifest.md and image-index.md; distribution/distribution,
docs/content/spec/manifest-v2-2.md.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from symphony_charts.errors import SpecError
from symphony_charts.oci.client import Blob

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
# The first moment that a zip file can hold: wheels are built from such files in images, which 1970 would break.
_MTIME_S = 315532800
_GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_MADE_BY = "symph package --workspace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file, a folder or a symbolic link (`target`) of a workspace; `path` is relative, with ``/``."""

    path: str
    content: bytes = b""
    is_folder: bool = False
    is_program: bool = False
    target: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A packed layer, and the digest of the tar in it."""

    data: bytes
    diff_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformManifest:
    """An image for one platform in an index; `descriptor` is how the index names it."""

    platform: str
    descriptor: Mapping[str, object]

    @property
    def digest(self) -> str:
        return str(self.descriptor["digest"])


def layer_of(entries: Sequence[Entry], folder: str) -> Layer:
    """Return the layer that puts `entries` into `folder` of an image; `folder` itself stays as the image has it.

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
    deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
    packed = deflate.compress(tar) + deflate.flush()
    data = _GZIP_HEADER + packed + struct.pack("<II", zlib.crc32(tar), len(tar) & 0xFFFFFFFF)
    return Layer(data=data, diff_id=f"sha256:{hashlib.sha256(tar).hexdigest()}")


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
        raise SpecError.one(f"the image is of an unknown format: {media_type}", next="build it again with a newer tool")
    image, settings = as_map(manifest), as_map(config)
    files, layers, named = settings.get("rootfs"), image.get("layers"), image.get("config")
    if not isinstance(files, dict) or not isinstance(layers, list) or not isinstance(named, dict):
        raise SpecError.one("the base is no image: it has no root file system", next="give one that containers run")
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
    """Return the images of an index for Linux, in order; what else it lists (attestations, Windows) is left out."""
    platforms = []
    listed = as_map(index).get("manifests")
    for descriptor in listed if isinstance(listed, list) else []:
        platform = descriptor.get("platform") if isinstance(descriptor, dict) else None
        if isinstance(platform, dict) and platform.get("os") == "linux":
            parts = ["linux", str(platform.get("architecture", "")), str(platform.get("variant", ""))]
            platforms.append(PlatformManifest(platform="/".join(filter(None, parts)), descriptor=descriptor))
    return platforms


def index_of(media_type: str, images: Sequence[tuple[PlatformManifest, Blob]]) -> Blob:
    """Return the index of images that took the place of others."""
    manifests = []
    for platform, blob in images:
        manifests.append({**blob.descriptor, "platform": platform.descriptor["platform"]})
    return Blob(
        media_type=media_type, data=_dumped({"schemaVersion": 2, "mediaType": media_type, "manifests": manifests})
    )


def as_map(data: bytes) -> dict[str, object]:
    """JSON of a registry as a map. Raises SpecError for anything else."""
    try:
        value = json.loads(data)
    except ValueError as error:
        raise SpecError.one(f"the base is no image: {error}") from error
    if not isinstance(value, dict):
        raise SpecError.one("the base is no image")
    return value


def _dumped(data: Mapping[str, object]) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode()
