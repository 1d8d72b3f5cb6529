"""A chart becomes an OCI artifact, and its ``.prov`` file is composed, as helm does both.

Source: helm/helm, pkg/registry/constants.go and client.go, pkg/provenance/sign.go (messageBlock);
opencontainers/image-spec, manifest.md. The annotation ``created`` is left out: with it the same chart would get
another digest each time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from symphony_charts.errors import SpecError
from symphony_charts.formats.yaml_write import dump

__all__ = ["Artifact", "Blob", "artifact_of", "provenance_text"]

_MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
_CONFIG_TYPE = "application/vnd.cncf.helm.config.v1+json"
_CHART_TYPE = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
_PROVENANCE_TYPE = "application/vnd.cncf.helm.chart.provenance.v1.prov"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """Bytes of a media type."""

    media_type: str
    data: bytes

    @property
    def digest(self) -> str:
        return f"sha256:{hashlib.sha256(self.data).hexdigest()}"

    @property
    def descriptor(self) -> dict[str, object]:
        return {"mediaType": self.media_type, "digest": self.digest, "size": len(self.data)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """The artifact to push: the blobs, the manifest that names them, and the tag."""

    blobs: tuple[Blob, ...]
    manifest: Blob
    tag: str


def artifact_of(metadata: Mapping[str, object], archive: bytes, provenance: bytes | None = None) -> Artifact:
    """Return the artifact of an archive with the Chart.yaml `metadata`. Raises SpecError."""
    name, version = metadata.get("name"), metadata.get("version")
    if not isinstance(name, str) or not isinstance(version, str):
        raise SpecError.one("Chart.yaml needs a name and a version", "Chart.yaml")
    config = Blob(media_type=_CONFIG_TYPE, data=json.dumps(dict(metadata), separators=(",", ":")).encode())
    layers = [Blob(media_type=_CHART_TYPE, data=archive)]
    if provenance is not None:
        layers.append(Blob(media_type=_PROVENANCE_TYPE, data=provenance))
    layers.sort(key=lambda blob: blob.digest)
    annotations = {"org.opencontainers.image.title": name, "org.opencontainers.image.version": version}
    if isinstance(metadata.get("description"), str):
        annotations["org.opencontainers.image.description"] = str(metadata["description"])
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST_TYPE,
        "config": config.descriptor,
        "layers": [blob.descriptor for blob in layers],
        "annotations": dict(sorted(annotations.items())),
    }
    data = json.dumps(manifest, separators=(",", ":")).encode()
    return Artifact(
        blobs=(config, *layers), manifest=Blob(media_type=_MANIFEST_TYPE, data=data), tag=version.replace("+", "_")
    )


def provenance_text(metadata: Mapping[str, object], file_name: str, archive: bytes) -> str:
    """Return the text to sign for the archive `file_name` with the Chart.yaml `metadata`."""
    digest = hashlib.sha256(archive).hexdigest()
    return f"{dump(dict(sorted(metadata.items())))}\n...\n{dump({'files': {file_name: f'sha256:{digest}'}})}"
