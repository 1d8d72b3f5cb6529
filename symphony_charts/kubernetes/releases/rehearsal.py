"""Rehearse a step of a release: run helm itself, while the cluster checks every write and keeps none.

Helm computes its requests from the previous release, the live objects and the new ones, in ways that differ between its
versions and with how a release was first applied. So nothing of that is imitated: helm connects to a local port that
forwards its reads to the API server unchanged, its writes as server-side dry runs, and its deletions not at all. A
refused object is recorded and reported to helm as success, so that one rehearsal finds every refusal. Helm's own
records of the release are not kept either.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from symphony_charts.errors import Conflict, Problem, SpecError, SymphError
from symphony_charts.kubernetes.client import KubeApi, Object
from symphony_charts.kubernetes.connection import Connection
from symphony_charts.kubernetes.releases.helm_client import HelmReleases, Target

_FAILURE = 400
_RECORD = "sh.helm.release.v1."
# A record of helm's in its namespace; the sql driver does not use the API.
_RECORDS = re.compile(rf"/api/v1/namespaces/[^/]+/(secrets|configmaps)(/{re.escape(_RECORD)}.*)?")
_PASSED_ON = ("Accept", "Content-Type", "If-None-Match")
_PASSED_BACK = ("Content-Type", "ETag", "Cache-Control", "Vary", "Warning")
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
_JSON = {"Content-Type": "application/json"}
# A namespace of every cluster.
_PRESENT = "default"
_DELETED = b'{"kind":"Status","apiVersion":"v1","status":"Success"}'
_DEFINITIONS = "/apis/apiextensions.k8s.io/"
# Helm limits its request rate to spare the server, which answers a dry run at once.
_ENVIRONMENT = {"HELM_QPS": "1000", "HELM_BURST_LIMIT": "1000"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An object that the API server refuses: `kind/name`, HTTP status, and its message."""

    title: str
    status: int
    message: str


@dataclass(kw_only=True)
class Rehearsal:
    """One run of helm that changes nothing, and the cluster's answers.

    `answers` holds the object that each write would have made, `warnings` the server's warnings about accepted writes
    (with helm 3 it drops unknown fields). Live objects for which `hidden` returns True are hidden from helm: they count
    as objects of another owner, and writes over them as refused. Objects of the `missing_namespace`, which is still to
    be created, are checked in `default`.
    """

    connection: Connection
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    missing_namespace: str = ""
    hidden: Callable[[Object], bool] = lambda _: False
    refusals: list[Refusal] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    answers: list[Object] = field(default_factory=list)
    failure: SymphError | None = None
    _foreign: set[str] = field(default_factory=set)
    _made: set[str] = field(default_factory=set)

    def answer(self, request: Request) -> _Answer:
        if request.method in ("GET", "HEAD"):
            return self._read(request)
        if request.method not in ("POST", "PUT", "PATCH"):
            # A deletion has its options in its body and ignores a dry run in the query: never forward it. Helm would
            # continue if it failed.
            return _Answer(200, _DELETED, _JSON)
        is_record = _RECORDS.fullmatch(request.path) is not None
        if is_record and (request.method == "PUT" or self.missing_namespace):
            # Objects of earlier writes do not exist in a dry run; nor does a namespace that is still to be created.
            return _Answer(200, request.body, {"Content-Type": request.headers.get("Content-Type", "")})
        return self._write(request)

    def _read(self, request: Request) -> _Answer:
        answer = self._forward(replace(request, method="GET", body=b""))
        if answer.status < _FAILURE and not _RECORDS.fullmatch(request.path) and self.hidden(answer.object()):
            self._foreign.add(request.path)
            return _status(404, "NotFound", f"{request.path} has another owner")
        return answer

    def _write(self, request: Request) -> _Answer:
        path, item = request.path, _decoded(request.body)
        is_new = request.method == "POST"
        name = str(_meta(item).get("name", "")) if is_new else unquote(path.rpartition("/")[2])
        own = f"{path}/{name}" if is_new else path
        if own in self._foreign:
            self._refuse(item, 409, "it already exists and has another owner")
            return _Answer(200, request.body, _JSON)
        answer = self._dry_run(request, item)
        if answer.status == 409 and path.startswith(_DEFINITIONS):
            # Helm continues if the definition exists.
            return answer
        if answer.status < _FAILURE:
            self._made.add(name)
            if not _RECORDS.match(path):
                self.answers.append(answer.object())
                self.warnings += [f"{_title(answer.object())}: {text}" for text in answer.warnings()]
            return answer
        live = self._forward(Request(method="GET", path=own)) if name else _Answer(404, b"", {})
        # It may refer to an object of an earlier write, which a dry run does not keep.
        refers = any(f'"{made}" not found' in answer.message() for made in self._made)
        if not (refers and answer.status in (403, 404)):
            self._refuse(item if "kind" in item else live.object(), answer.status, answer.message())
        if live.status < _FAILURE:
            return live
        return _Answer(
            200, request.body, {"Content-Type": request.headers.get("Content-Type", "")} if is_new else _JSON
        )

    def _refuse(self, item: Object, status: int, message: str) -> None:
        self.refusals.append(Refusal(title=_title(item), status=status, message=message))

    def _dry_run(self, request: Request, item: Object) -> _Answer:
        """Return the cluster's answer to a write; one into the missing namespace is a creation in `default`."""
        # Helm's records are Protobuf; a refusal of one must be readable here.
        headers = {**request.headers, "Accept": "application/json"}
        request = replace(request, query={**request.query, "dryRun": "All"}, headers=headers)
        space = f"/namespaces/{self.missing_namespace}/"
        if not self.missing_namespace or space not in request.path:
            return self._forward(request)
        path = request.path.replace(space, f"/namespaces/{_PRESENT}/")
        created = Request(
            method="POST",
            path=path if request.method == "POST" else path.rpartition("/")[0],
            query={key: value for key, value in request.query.items() if key != "force"},
            headers={**headers, **_JSON},
            body=json.dumps({**item, "metadata": {**_meta(item), "namespace": _PRESENT}}).encode(),
        )
        answer = self._forward(created)
        return _Answer(200, request.body, _JSON) if answer.status == 409 else answer

    def _forward(self, request: Request) -> _Answer:
        kept = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        try:
            response = self.connection.request(
                request.method, request.path, query=request.query, body=request.body or None, headers=kept
            )
            data = self.connection.body(response)
        except SymphError as error:
            self.failure = self.failure or error
            return _status(503, "ServiceUnavailable", error.what)
        back = {name: response.headers[name] for name in _PASSED_BACK if name in response.headers}
        return _Answer(response.status, data, back)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request of helm, or one to the cluster in its place."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: bytes
    headers: Mapping[str, str]

    def object(self) -> Object:
        """Return the body as an object; empty if it is none."""
        return _decoded(self.body)

    def warnings(self) -> list[str]:
        """The server's warnings, which share one header."""
        return [text.replace('\\"', '"') for text in _WARNING.findall(self.headers.get("Warning", ""))]

    def message(self) -> str:
        return str(self.object().get("message") or self.body.decode("utf-8", "replace"))


@contextmanager
def rehearsed(rehearsal: Rehearsal, namespace: str) -> Iterator[tuple[Path, dict[str, str]]]:
    """Yield a kubeconfig that connects helm to the rehearsal, and additional environment variables for helm.

    The local port only accepts clients with the token in that file. Raises the error that kept the cluster from
    answering.
    """
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(rehearsal))
    server.daemon_threads = True
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    serving.start()
    try:
        with tempfile.TemporaryDirectory(prefix="symph-rehearsal-") as folder:
            file = Path(folder) / "kubeconfig"
            file.touch(mode=0o600)
            file.write_text(json.dumps(_kubeconfig(server.server_address[1], rehearsal.token, namespace)))
            yield file, {**_ENVIRONMENT, "KUBECACHEDIR": f"{folder}/cache"}
    finally:
        server.shutdown()
        server.server_close()
    if rehearsal.failure is not None:
        raise rehearsal.failure


def is_owned(item: Object, release: str, namespace: str) -> bool:
    """Return True if an object has the marks by which helm recognises objects of the release."""
    marks = _meta(item).get("annotations") or {}
    labels = _meta(item).get("labels") or {}
    return (
        labels.get("app.kubernetes.io/managed-by") == "Helm"
        and marks.get("meta.helm.sh/release-name") == release
        and marks.get("meta.helm.sh/release-namespace") == namespace
    )


def _kubeconfig(port: int, token: str, namespace: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "rehearsal",
        # Go clients send no token over plain HTTP, so it is part of the path.
        "clusters": [{"name": "rehearsal", "cluster": {"server": f"http://127.0.0.1:{port}/{token}"}}],
        "contexts": [{"name": "rehearsal", "context": {"cluster": "rehearsal", "namespace": namespace}}],
    }


def _handler_of(rehearsal: Rehearsal) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            given, _, path = self.path.removeprefix("/").partition("/")
            if hmac.compare_digest(given.encode(), rehearsal.token.encode()):
                parts = urlsplit(f"/{path}")
                query = dict(parse_qsl(parts.query, keep_blank_values=True))
                headers = dict(self.headers.items())
                answer = rehearsal.answer(
                    Request(method=self.command, path=parts.path, query=query, headers=headers, body=body)
                )
            else:
                answer = _status(401, "Unauthorized", "this port belongs to another program")
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815  # the base class's names

        def log_message(self, *_: object) -> None:
            """Log no requests."""

    return Handler


def _decoded(body: bytes) -> Object:
    try:
        item = json.loads(body)
    except ValueError:
        return {}
    return item if isinstance(item, dict) else {}


def _title(item: Object) -> str:
    return f"{item['kind']}/{_meta(item).get('name')}" if "kind" in item else "helm's record of the release"


def _meta(item: Object) -> Object:
    meta: Object = item.get("metadata") or {}
    return meta


def _status(code: int, reason: str, message: str) -> _Answer:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message}
    return _Answer(code, json.dumps({**body, "code": code}).encode(), _JSON)


Step = Callable[[HelmReleases], object]

_OTHERS = "choose another --name or namespace; change an experiment of Argo CD with symph publish"
_FIELDS = "undo that change, or let helm overwrite the fields: helm upgrade --force-conflicts"


def rehearse(
    api: KubeApi,
    step: Step,
    name: str,
    namespace: str,
    *,
    manifest: Callable[[], Sequence[Object]],
    is_there: bool = True,
    timeout_s: float = 300.0,
) -> Rehearsal:
    """Rehearse `step` on the release `name` and return the rehearsal if nothing was refused.

    `manifest` returns the objects of the current release. If the namespace does not exist yet, `default` is used for
    the checks. Raises SpecError with all refusals of the cluster, Conflict if all of them are about objects of other
    owners, and helm's own errors. Releases kept in SQL are not checked: helm's records do not pass through the cluster.
    """
    missing = "" if is_there else namespace
    rehearsal = Rehearsal(connection=api.connection, missing_namespace=missing)
    if os.environ.get("HELM_DRIVER") == "sql":
        return rehearsal
    try:
        _run_helm(rehearsal, step, namespace, timeout_s)
    except Conflict:
        # Helm stops at the first object of another owner. If all of them are hidden, every one is reported.
        own = {_title(item) for item in manifest()}

        def is_foreign(item: Object) -> bool:
            is_object = "name" in _meta(item) and item.get("kind") not in (None, "Status", "Namespace")
            return is_object and _title(item) not in own and not is_owned(item, name, namespace)

        foreign = Rehearsal(connection=api.connection, missing_namespace=missing, hidden=is_foreign)
        _run_helm(foreign, step, namespace, timeout_s)
        if not foreign.refusals:
            raise
        rehearsal = foreign
    if rehearsal.refusals:
        raise _failure(rehearsal.refusals, namespace)
    return rehearsal


def _run_helm(rehearsal: Rehearsal, step: Step, namespace: str, timeout_s: float) -> None:
    with rehearsed(rehearsal, namespace) as (kubeconfig, env):
        step(HelmReleases(Target(kubeconfig=kubeconfig), timeout_s=timeout_s, env=env))


def _failure(refusals: Sequence[Refusal], namespace: str) -> Conflict | SpecError:
    if all(refusal.status == 409 for refusal in refusals):
        what = "; ".join(f"{refusal.title}: {refusal.message}" for refusal in refusals)
        is_fields = any("Apply failed" in refusal.message for refusal in refusals)
        return Conflict(what, namespace, _FIELDS if is_fields else _OTHERS)
    steps = {409: "choose another --name or namespace"}
    problems = [
        Problem(what=each.message, path=each.title, next=steps.get(each.status, "correct the values or the spec"))
        for each in refusals
    ]
    return SpecError(problems, at=f"the cluster, namespace {namespace}")
