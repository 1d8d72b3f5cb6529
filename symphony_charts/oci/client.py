"""The client talks to OCI registries: blobs and manifests, with the credentials that docker and helm keep.

Sources: opencontainers/distribution-spec, spec.md; distribution/distribution, docs/content/spec/auth/token.md;
docker/cli, cli/config/configfile/file.go and docker/docker-credential-helpers, README (logins).
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import re
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode, urljoin, urlsplit

from symphony_charts.errors import Conflict, NotFound, SpecError, ToolFailed
from symphony_charts.system.subprocess_runner import run

__all__ = ["Login", "Manifest", "Reference", "Registry", "parse_reference"]

_LOOPBACK = re.compile(r"(localhost|127(\.\d+){3}|\[::1\])(:\d+)?")
_NAME = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*")
_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
_ACCEPT = (
    "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json"
)
_TRIES, _FIRST_PAUSE_S, _MOST_BYTES = 5, 0.2, 8 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A place in a registry: its host, the repository, and a tag or digest where one is given."""

    host: str
    repository: str
    tag: str = ""

    def __str__(self) -> str:
        separator = "@" if ":" in self.tag else ":"
        return f"{self.host}/{self.repository}{separator + self.tag if self.tag else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A manifest as the registry holds it."""

    media_type: str
    data: bytes

    @property
    def digest(self) -> str:
        """``sha256:<hex>``."""
        return f"sha256:{hashlib.sha256(self.data).hexdigest()}"


def parse_reference(text: str) -> Reference:
    """``[oci://]host/repository[:tag|@digest]``; images without a host are of docker.io. Raises SpecError."""
    rest = text.removeprefix("oci://")
    host, slash, path = rest.partition("/")
    if not slash or not ("." in host or ":" in host or host == "localhost"):
        if text.startswith("oci://"):
            raise SpecError.one(f'"{text}" names no registry', next="write it as oci://HOST/PATH")
        host, path = "registry-1.docker.io", rest if slash else f"library/{rest}"
    host = "registry-1.docker.io" if host in ("docker.io", "index.docker.io") else host
    path, at, tag = path.partition("@")
    if not at:
        path, _, tag = path.partition(":")
    if not _NAME.fullmatch(path) or (tag and not at and not _TAG.fullmatch(tag)):
        raise SpecError.one(f'"{text}" is no place in a registry', next="lower case: HOST/PATH[:TAG]")
    return Reference(host=host, repository=path, tag=tag)


@dataclass(slots=True)
class Registry:
    """One registry. Raises ToolFailed where it does not answer as it should; the last answer is in the error."""

    host: str
    _tokens: dict[str, str] = field(default_factory=dict)
    _login: Login | None = None
    _connections: dict[str, http.client.HTTPConnection] = field(default_factory=dict)

    def __enter__(self) -> Registry:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine, where plain HTTP is safe."""
        return _LOOPBACK.fullmatch(self.host) is not None

    def has_blob(self, repository: str, digest: str) -> bool:
        """Whether the repository holds a blob."""
        return self._ask("HEAD", f"/v2/{repository}/blobs/{digest}", repository, ok=(200, 404)).status == 200

    def blob(self, repository: str, digest: str) -> bytes:
        """A blob, checked against its digest."""
        answer = self._ask("GET", f"/v2/{repository}/blobs/{digest}", repository, ok=(200, 404))
        if answer.status == 404:
            raise NotFound(f"{self.host}/{repository} has no blob {digest}")
        self._check(answer.body, digest)
        return answer.body

    def put_blob(self, repository: str, data: bytes) -> bool:
        """Put a blob; False when it was there."""
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        if self.has_blob(repository, digest):
            return False
        begun = self._ask("POST", f"/v2/{repository}/blobs/uploads/", repository, ok=(202,), pushes=True)
        self._finish(repository, begun.headers.get("location", ""), digest, data)
        return True

    def mount(self, repository: str, digest: str, source: str) -> bool:
        """Take over a blob from another repository of this registry; False where the registry will not."""
        query = urlencode({"mount": digest, "from": source})
        path = f"/v2/{repository}/blobs/uploads/?{query}"
        return self._ask("POST", path, repository, ok=(201, 202), pushes=True, also=source).status == 201

    def manifest(self, repository: str, tag: str) -> Manifest | None:
        """The manifest of a tag or digest; None where there is none."""
        path = f"/v2/{repository}/manifests/{tag}"
        answer = self._ask("GET", path, repository, ok=(200, 404), headers={"Accept": _ACCEPT})
        if answer.status == 404:
            return None
        if tag.startswith("sha256:"):
            self._check(answer.body, tag)
        return Manifest(media_type=answer.headers.get("content-type", "").partition(";")[0], data=answer.body)

    def put_manifest(self, repository: str, tag: str, manifest: Manifest) -> None:
        """Put a manifest whose blobs are there under a tag or its digest."""
        headers = {"Content-Type": manifest.media_type}
        path = f"/v2/{repository}/manifests/{tag}"
        self._ask("PUT", path, repository, ok=(201,), headers=headers, body=manifest.data, pushes=True)

    def put_tag_once(self, repository: str, tag: str, manifest: Manifest) -> bool:
        """`put_manifest` unless the tag has this content already (False). Raises Conflict where it has another."""
        there = self.manifest(repository, tag)
        if there is None:
            self.put_manifest(repository, tag, manifest)
            return True
        if there.digest != manifest.digest:
            raise Conflict(
                f"{self.host}/{repository}:{tag} is there already, with other content",
                f"{there.digest} instead of {manifest.digest}",
                "a published version never changes: push another one",
            )
        return False

    def _finish(self, repository: str, location: str, digest: str, data: bytes) -> None:
        base = f"{'http' if self.is_local else 'https'}://{self.host}"
        address = urlsplit(urljoin(base, location))
        query = f"{address.query}&" if address.query else ""
        path = f"{address.path}?{query}{urlencode({'digest': digest})}"
        headers = {"Content-Type": "application/octet-stream"}
        self._ask("PUT", path, repository, ok=(201,), headers=headers, body=data, pushes=True, host=address.netloc)

    def _check(self, data: bytes, digest: str) -> None:
        if f"sha256:{hashlib.sha256(data).hexdigest()}" != digest:
            raise ToolFailed(f"{self.host} sent other content than {digest}", next="try again; tell who runs it")

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
        host: str = "",
    ) -> _Answer:
        """One request, with a token where the registry wants one; again when it is busy."""
        scope = f"repository:{repository}:pull{',push' if pushes else ''}"
        scopes = (scope, f"repository:{also}:pull") if also else (scope,)
        for number in range(_TRIES):
            answer = self._send(method, path, headers or {}, body, " ".join(scopes), host or self.host)
            if answer.status == 401:
                self._authorise(answer.headers.get("www-authenticate", ""), scopes)
                answer = self._send(method, path, headers or {}, body, " ".join(scopes), host or self.host)
            if answer.status not in (408, 429, 500, 502, 503, 504) or number == _TRIES - 1:
                break
            time.sleep(_FIRST_PAUSE_S * 2**number)
        if answer.status in ok:
            return answer
        hint = (
            f"log in: helm registry login {self.host}" if answer.status in (401, 403) else "look at the registry's log"
        )
        raise ToolFailed(
            f"{self.host} answered {answer.status} to {method} {path.partition('?')[0]}: {answer.text}", next=hint
        )

    def _send(
        self, method: str, path: str, headers: dict[str, str], body: bytes | None, scope: str, host: str
    ) -> _Answer:
        sent = dict(headers)
        # Only the registry itself is told who we are: uploads may go to another host.
        if host == self.host and scope in self._tokens:
            sent["Authorization"] = self._tokens[scope]
        return _exchange(
            self._connections, host, method, path, sent, body, is_plain=_LOOPBACK.fullmatch(host) is not None
        )

    def _authorise(self, challenge: str, scopes: tuple[str, ...]) -> None:
        kind, _, rest = challenge.partition(" ")
        login = self._login = self._login or _login_for(self.host)
        basic = base64.b64encode(f"{login.user}:{login.password}".encode()).decode() if login.user else ""
        if kind.lower() == "basic":
            if not basic:
                raise ToolFailed(f"{self.host} wants a password", next=f"log in: helm registry login {self.host}")
            self._tokens[" ".join(scopes)] = f"Basic {basic}"
            return
        facts = dict(_CHALLENGE.findall(rest))
        realm = urlsplit(facts.get("realm", ""))
        is_plain = _LOOPBACK.fullmatch(realm.netloc) is not None
        if kind.lower() != "bearer" or realm.scheme not in ("https", "http" if is_plain else "https"):
            raise ToolFailed(f"{self.host} wants an authentication that is unknown or unsafe: {kind}")
        query = [("service", facts["service"])] if "service" in facts else []
        query += [("scope", scope) for scope in scopes]
        headers = {"Authorization": f"Basic {basic}"} if basic else {}
        path = f"{realm.path}?{urlencode(query)}"
        answer = _exchange(self._connections, realm.netloc, "GET", path, headers, None, is_plain=is_plain)
        token = _token_of(answer)
        if answer.status != 200 or not token:
            raise ToolFailed(
                f"{realm.netloc} gave no token for {self.host} ({answer.status})",
                next=f"log in: helm registry login {self.host}",
            )
        self._tokens[" ".join(scopes)] = f"Bearer {token}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The registry's own error text, shortened."""
        try:
            errors = json.loads(self.body)["errors"]
            return "; ".join(str(error.get("message") or error.get("code")) for error in errors)
        except (ValueError, KeyError, TypeError, AttributeError):
            return self.body[:200].decode("utf-8", "replace").strip() or http.client.responses.get(self.status, "")


def _exchange(
    connections: dict[str, http.client.HTTPConnection],
    host: str,
    method: str,
    path: str,
    headers: dict[str, str],
    body: bytes | None,
    *,
    is_plain: bool,
    redirects: int = 3,
) -> _Answer:
    """One request and its whole answer; a redirect of a GET is followed without saying who we are."""
    try:
        connection = connections.get(host)
        if connection is None:
            if is_plain:
                connection = http.client.HTTPConnection(host, timeout=60)
            else:
                connection = http.client.HTTPSConnection(host, timeout=60, context=ssl.create_default_context())
            connections[host] = connection
        connection.request(method, path, body=body, headers={"User-Agent": "symphony-charts", **headers})
        response = connection.getresponse()
        content = response.read(_MOST_BYTES)
    except (OSError, http.client.HTTPException) as error:
        broken = connections.pop(host, None)
        if broken is not None:
            broken.close()
        raise ToolFailed(f"cannot reach {host}: {error}", next="check the address, and that it runs") from error
    answered_headers = {name.lower(): value for name, value in response.getheaders()}
    if response.status in (301, 302, 303, 307, 308) and method == "GET" and redirects:
        address = urlsplit(
            urljoin(f"{'http' if is_plain else 'https'}://{host}{path}", answered_headers.get("location", ""))
        )
        plain = _LOOPBACK.fullmatch(address.netloc) is not None
        kept = {name: value for name, value in headers.items() if name != "Authorization" or address.netloc == host}
        target = f"{address.path}?{address.query}" if address.query else address.path
        return _exchange(
            connections, address.netloc, method, target, kept, None, is_plain=plain, redirects=redirects - 1
        )
    return _Answer(status=response.status, headers=answered_headers, body=content)


def _token_of(answer: _Answer) -> str:
    try:
        data = json.loads(answer.body)
    except ValueError:
        return ""
    return str(data.get("token") or data.get("access_token") or "") if isinstance(data, dict) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A user and a password; both empty for somebody unknown."""

    user: str = ""
    password: str = field(default="", repr=False)


def _login_for(host: str) -> Login:
    """The login that helm's or docker's files hold for `host`, helm's first; an empty one where none does."""
    names = [host, f"https://{host}", f"https://{host}/v1/", f"https://{host}/v2/"]
    if host == "registry-1.docker.io":
        names += ["https://index.docker.io/v1/", "docker.io"]
    for path in _files():
        try:
            config = json.loads(path.read_bytes())
        except (OSError, ValueError):
            continue
        login = _in_config(config, names) if isinstance(config, dict) else None
        if login is not None:
            return login
    return Login()


def _files() -> Iterator[Path]:
    helm = os.environ.get("HELM_REGISTRY_CONFIG")
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    yield Path(helm) if helm else Path(base).expanduser() / "helm" / "registry" / "config.json"
    yield Path(os.environ.get("DOCKER_CONFIG") or "~/.docker").expanduser() / "config.json"


def _in_config(config: dict[str, object], names: list[str]) -> Login | None:
    helpers, auths = config.get("credHelpers"), config.get("auths")
    for name in names:
        helper = helpers.get(name) if isinstance(helpers, dict) else None
        helper = helper or (config.get("credsStore") if isinstance(auths, dict) and name in auths else None)
        if isinstance(helper, str) and re.fullmatch(r"[\w.-]+", helper):
            login = _ask_helper(helper, name)
            if login is not None:
                return login
        entry = auths.get(name) if isinstance(auths, dict) else None
        if isinstance(entry, dict) and isinstance(entry.get("auth"), str):
            user, _, password = base64.b64decode(entry["auth"]).decode("utf-8", "replace").partition(":")
            if user:
                return Login(user=user, password=password.rstrip("\0"))
    return None


def _ask_helper(helper: str, host: str) -> Login | None:
    ended = run([f"docker-credential-{helper}", "get"], input=host.encode(), timeout_s=30, check=False)
    try:
        data = json.loads(ended.stdout) if ended.status == 0 else {}
    except ValueError:
        data = {}
    if not isinstance(data, dict) or not data.get("Username"):
        return None
    return Login(user=str(data["Username"]), password=str(data.get("Secret", "")))
