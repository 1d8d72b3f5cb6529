"""Talk to an OCI registry: references, blobs, manifests and tags, and the artifact of a chart.

Sources: opencontainers/distribution-spec, spec.md; distribution/distribution, docs/content/spec/auth/token.md.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

from symphony_charts.errors import Conflict, NotFound, SpecError, ToolFailed
from symphony_charts.formats.yaml_write import dump
from symphony_charts.oci.transport import Access, Answer, Transport, login_for

_NAME = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*")
_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
_ACCEPT = (
    "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A place in a registry: its host, the repository, and optionally a tag or digest."""

    host: str
    repository: str
    tag: str = ""

    def __str__(self) -> str:
        separator = "@" if ":" in self.tag else ":"
        return f"{self.host}/{self.repository}{separator + self.tag if self.tag else ''}"


def digest_of(data: bytes) -> str:
    """Return the digest under which a registry keeps `data`."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """A blob or manifest of a registry."""

    media_type: str
    data: bytes

    @property
    def digest(self) -> str:
        return digest_of(self.data)

    @property
    def descriptor(self) -> dict[str, object]:
        return {"mediaType": self.media_type, "digest": self.digest, "size": len(self.data)}


def parse_reference(text: str) -> Reference:
    """Parse ``[oci://]host/repository[:tag|@digest]``; images without a host are on docker.io. Raises SpecError."""
    rest = text.removeprefix("oci://")
    host, slash, path = rest.partition("/")
    if not slash or not ("." in host or ":" in host or host == "localhost"):
        if text.startswith("oci://"):
            raise SpecError.one(f'"{text}" has no registry', next="write it as oci://HOST/PATH")
        host, path = "registry-1.docker.io", rest if slash else f"library/{rest}"
    host = "registry-1.docker.io" if host in ("docker.io", "index.docker.io") else host
    path, at, tag = path.partition("@")
    if not at:
        path, _, tag = path.partition(":")
    if not _NAME.fullmatch(path) or (tag and not at and not _TAG.fullmatch(tag)):
        raise SpecError.one(
            f'"{text}" is not a valid place in a registry', next="write it in lower case: HOST/PATH[:TAG]"
        )
    return Reference(host=host, repository=path, tag=tag)


class Registry:
    """One registry. Raises ToolFailed for unexpected answers; the error contains the last answer."""

    def __init__(self, host: str, access: Access | None = None) -> None:
        self.host = host
        self._transport = Transport(host, access or Access())
        self._tokens: dict[str, str] = {}
        self._login = self._transport.access.login

    def __enter__(self) -> Registry:
        return self

    def __exit__(self, *_: object) -> None:
        self._transport.close()

    def has_blob(self, repository: str, digest: str) -> bool:
        return self._ask("HEAD", f"/v2/{repository}/blobs/{digest}", repository, ok=(200, 404)).status == 200

    def blob(self, repository: str, digest: str) -> bytes:
        """Return a blob, checked against its digest."""
        answer = self._ask("GET", f"/v2/{repository}/blobs/{digest}", repository, ok=(200, 404))
        if answer.status == 404:
            raise NotFound(f"{self.host}/{repository} has no blob {digest}")
        self._check(answer.body, digest)
        return answer.body

    def put_blob(self, repository: str, data: bytes) -> bool:
        """Upload a blob; return False if it exists. Registries check the digest, so a truncated upload is rejected."""
        digest = digest_of(data)
        if self.has_blob(repository, digest):
            return False
        begun = self._ask("POST", f"/v2/{repository}/blobs/uploads/", repository, ok=(202,), pushes=True)
        address = self._transport.place(begun.headers.get("location", ""))
        query = f"{address.query}&" if address.query else ""
        url = address._replace(query=f"{query}{urlencode({'digest': digest})}").geturl()
        headers = {"Content-Type": "application/octet-stream"}
        self._ask("PUT", url, repository, ok=(201,), headers=headers, body=data, pushes=True)
        return True

    def mount(self, repository: str, digest: str, source: str) -> bool:
        """Mount a blob from another repository of this registry; return False if the registry refuses."""
        query = urlencode({"mount": digest, "from": source})
        path = f"/v2/{repository}/blobs/uploads/?{query}"
        return self._ask("POST", path, repository, ok=(201, 202), pushes=True, also=source).status == 201

    def manifest(self, repository: str, tag: str) -> Blob | None:
        """Return the manifest of a tag or digest; None if there is none."""
        path = f"/v2/{repository}/manifests/{tag}"
        answer = self._ask("GET", path, repository, ok=(200, 404), headers={"Accept": _ACCEPT})
        if answer.status == 404:
            return None
        if tag.startswith("sha256:"):
            self._check(answer.body, tag)
        return Blob(media_type=answer.headers.get("content-type", "").partition(";")[0], data=answer.body)

    def put_manifest(
        self, repository: str, tag: str, manifest: Blob, *, condition: dict[str, str] | None = None
    ) -> None:
        """Put a manifest under a tag or its digest, after its blobs; `condition` are additional headers."""
        headers = {"Content-Type": manifest.media_type, **(condition or {})}
        path = f"/v2/{repository}/manifests/{tag}"
        self._ask("PUT", path, repository, ok=(201,), headers=headers, body=manifest.data, pushes=True)

    def put_tag_once(self, repository: str, tag: str, manifest: Blob) -> bool:
        """Put a manifest, or return False if the tag has this content already. Raises Conflict if it has another.

        Of two pushes at once, registries with conditional requests or immutable tags take the first; others the last.
        """
        if self._has_tag(repository, tag, manifest.digest):
            return False
        try:
            self.put_manifest(repository, tag, manifest, condition={"If-None-Match": "*"})
        except ToolFailed:
            # Another client was faster, or only the answer got lost: the tag shows which.
            if not self._has_tag(repository, tag, manifest.digest):
                raise
        return True

    def _has_tag(self, repository: str, tag: str, digest: str) -> bool:
        """Return True if a tag has the content `digest`. Raises Conflict if it has other content."""
        there = self.manifest(repository, tag)
        if there is not None and there.digest != digest:
            raise Conflict(
                f"{self.host}/{repository}:{tag} already exists with other content",
                f"digest {there.digest}, not {digest}",
                "push another version: a published one never changes",
            )
        return there is not None

    def _check(self, data: bytes, digest: str) -> None:
        if digest_of(data) != digest:
            raise ToolFailed(
                f"{self.host} sent content that does not match {digest}",
                next="retry; if it persists, report it to the registry's operator",
            )

    def _ask(
        self,
        method: str,
        path: str,
        repository: str,
        *,
        ok: tuple[int, ...],
        headers: dict[str, str] | None = None,
        body: bytes | None = None,
        pushes: bool = False,
        also: str = "",
    ) -> Answer:
        """Send a request to a path of the registry, with a token if required."""
        scope = f"repository:{repository}:pull{',push' if pushes else ''}"
        scopes = (scope, f"repository:{also}:pull") if also else (scope,)
        answer = self._send(method, path, headers or {}, body, " ".join(scopes))
        if answer.status == 401:
            self._authorise(answer.headers.get("www-authenticate", ""), scopes)
            answer = self._send(method, path, headers or {}, body, " ".join(scopes))
        if answer.status in ok:
            return answer
        hint = self._login_hint() if answer.status in (401, 403) else "see the log of the registry"
        raise ToolFailed(
            f"{self.host} answered {answer.status} to {method} {urlsplit(path).path}: {answer.text}", next=hint
        )

    def _login_hint(self) -> str:
        return f"log in: helm registry login {self.host}, or give --username and --password-stdin"

    def _send(self, method: str, path: str, headers: dict[str, str], body: bytes | None, scope: str) -> Answer:
        address = self._transport.place(path)
        sent = dict(headers)
        # Send credentials only to the registry itself: uploads may go to another host.
        if address.netloc == self.host and scope in self._tokens:
            sent["Authorization"] = self._tokens[scope]
        return self._transport.exchange(method, address, sent, body)

    def _authorise(self, challenge: str, scopes: tuple[str, ...]) -> None:
        kind, _, rest = challenge.partition(" ")
        login = self._login = self._login or login_for(self.host)
        basic = base64.b64encode(f"{login.user}:{login.password}".encode()).decode() if login.user else ""
        if kind.lower() == "basic":
            if not basic:
                raise ToolFailed(f"{self.host} requires a password", next=self._login_hint())
            self._tokens[" ".join(scopes)] = f"Basic {basic}"
            return
        facts = dict(_CHALLENGE.findall(rest))
        realm = urlsplit(facts.get("realm", ""))
        is_safe = realm.scheme == "https" or (realm.scheme == "http" and self._transport.may_be_plain(realm.netloc))
        if kind.lower() != "bearer" or not is_safe:
            raise ToolFailed(f"{self.host} requires an unknown or unsafe kind of authentication: {kind}")
        query = [("service", facts["service"])] if "service" in facts else []
        query += [("scope", scope) for scope in scopes]
        headers = {"Authorization": f"Basic {basic}"} if basic else {}
        answer = self._transport.exchange("GET", realm._replace(query=urlencode(query)), headers)
        token = _token_of(answer)
        if answer.status != 200 or not token:
            raise ToolFailed(
                f"{realm.netloc} returned no token for {self.host} (status {answer.status})", next=self._login_hint()
            )
        self._tokens[" ".join(scopes)] = f"Bearer {token}"


def _token_of(answer: Answer) -> str:
    try:
        data = json.loads(answer.body)
    except ValueError:
        return ""
    return str(data.get("token") or data.get("access_token") or "") if isinstance(data, dict) else ""


# Source: helm/helm, pkg/registry/constants.go and client.go, pkg/provenance/sign.go (messageBlock);
# opencontainers/image-spec, manifest.md. The annotation `created` is omitted: with it the same chart would get a new
# digest each time.

_MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
_CONFIG_TYPE = "application/vnd.cncf.helm.config.v1+json"
_CHART_TYPE = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
_PROVENANCE_TYPE = "application/vnd.cncf.helm.chart.provenance.v1.prov"


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
    return f"{dump(dict(sorted(metadata.items())))}\n...\n{dump({'files': {file_name: digest_of(archive)}})}"
