"""A small client of the Kubernetes API: plain HTTPS, JSON in and out, endless watches.

The official client turns objects into classes and back; a kubelet wants the JSON itself. Objects are nested
dictionaries here.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from symphony_charts.errors import ToolFailed

Object: TypeAlias = dict[str, Any]
"""A Kubernetes object as JSON; the API server has checked its shape."""

_TIMEOUT_S = 30
_WATCH_S = 300
_KINDS = {"PATCH": "application/merge-patch+json"}


class ApiError(ToolFailed):
    """A request that the API server refused; `status` is the HTTP status."""


class Api:
    """One cluster, reached with the certificates of a kubeconfig; usable from many threads."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        context = next(c["context"] for c in config["contexts"] if c["name"] == config["current-context"])
        cluster = next(c["cluster"] for c in config["clusters"] if c["name"] == context["cluster"])
        user = next(u["user"] for u in config["users"] if u["name"] == context["user"])
        self._address = urllib.parse.urlsplit(cluster["server"])
        self._tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self._tls.load_cert_chain(user["client-certificate"], user["client-key"])
        self._local = threading.local()
        self._open: list[http.client.HTTPConnection] = []

    def __enter__(self) -> Api:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every kept connection, including those of other threads: none of them may be in use."""
        while self._open:
            self._open.pop().close()
        self._local = threading.local()

    @property
    def address(self) -> tuple[str, int]:
        return str(self._address.hostname), self._address.port or 443

    def get(self, path: str) -> Object:
        return self.call("GET", path)

    def find(self, path: str) -> Object | None:
        return self.call("GET", path, absent_ok=True) or None

    def create(self, path: str, body: Object, *, exists_ok: bool = False) -> Object | None:
        """Create an object in the collection `path` and return it; None if it exists and `exists_ok`."""
        try:
            return self.call("POST", path, body)
        except ApiError as error:
            if exists_ok and error.status == 409:
                return None
            raise

    def merge(self, path: str, body: Object, *, absent_ok: bool = True) -> Object | None:
        """Return the object after a merge patch; None if it is gone."""
        return self.call("PATCH", path, body, absent_ok=absent_ok) or None

    def delete(self, path: str, body: Object | None = None) -> None:
        """Request the deletion of the object at `path`; a missing one is fine."""
        self.call("DELETE", path, body, absent_ok=True)

    def call(self, verb: str, path: str, body: Object | None = None, *, absent_ok: bool = False) -> Object:
        """Return the decoded answer; empty for 404, or 409 of a stale deletion, if `absent_ok`.

        Raises ApiError with the server's own message for any other refusal, OSError if the server cannot be reached.
        """
        status, data = self._exchange(verb, path, body)
        if status < 400:
            return json.loads(data) if data else {}
        if absent_ok and status in (404, 409):
            return {}
        raise self._refusal(f"{verb} {path}", status, data)

    def text(self, path: str) -> str:
        """Return the plain answer to a GET, for non-JSON content (logs, health)."""
        status, data = self._exchange("GET", path, None)
        if status >= 400:
            raise ApiError(f"GET {path}: {data.decode(errors='replace')}", at=self._address.geturl(), status=status)
        return data.decode(errors="replace")

    def watch(self, path: str) -> Iterator[tuple[str, Object]]:
        """Yield every object of the collection `path` as ADDED, then SYNCED, then its changes, until the watch breaks.

        Raises ApiError, OSError or HTTPException when it breaks; the caller lists again then.
        """
        page = self.get(path)
        yield from (("ADDED", item) for item in page["items"])
        yield "SYNCED", {}
        version = page["metadata"]["resourceVersion"]
        connection = self._connect(_WATCH_S + 30)
        try:
            query = f"?watch=1&allowWatchBookmarks=true&timeoutSeconds={_WATCH_S}&resourceVersion={version}"
            connection.request("GET", path + query)
            answer = connection.getresponse()
            if answer.status >= 400:
                raise self._refusal(f"watch {path}", answer.status, answer.read())
            for line in answer:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise ApiError(f"watch {path}: {event['object'].get('message')}", at=self._address.geturl())
                if event["type"] != "BOOKMARK":
                    yield event["type"], event["object"]
        finally:
            connection.close()

    def _refusal(self, request: str, status: int, data: bytes) -> ApiError:
        try:
            message = json.loads(data).get("message", "")
        except ValueError:
            message = data.decode(errors="replace")
        return ApiError(f"{request}: {message or status}", at=self._address.geturl(), status=status)

    def _exchange(self, verb: str, path: str, body: Object | None) -> tuple[int, bytes]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": _KINDS.get(verb, "application/json")}
        kept: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if kept:
            try:
                return self._ask(kept, verb, path, data, headers)
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
                kept.close()  # the server had closed the idle connection: the request never ran, so it may run now
        fresh = self._local.connection = self._connect(_TIMEOUT_S)
        self._open.append(fresh)
        return self._ask(fresh, verb, path, data, headers)

    def _ask(
        self, connection: http.client.HTTPConnection, verb: str, path: str, data: bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        try:
            connection.request(verb, path, data, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except BaseException:
            self._local.connection = None  # the connection is unusable after half an exchange
            connection.close()
            raise

    def _connect(self, timeout_s: float) -> http.client.HTTPConnection:
        host, port = str(self._address.hostname), self._address.port
        return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=self._tls)
