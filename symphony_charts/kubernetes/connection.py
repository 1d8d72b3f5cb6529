"""Send requests and open WebSockets to one API server, over a `Login`, with typed errors."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import unquote, urlencode, urlsplit

import urllib3
from urllib3.exceptions import HTTPError, ProxyError, SSLError
from websocket import WebSocket, WebSocketBadStatusException, WebSocketException

from symphony_charts.errors import Conflict, NotFound, SpecError, SymphError, ToolFailed
from symphony_charts.kubernetes.login import Login
from symphony_charts.system.subprocess_runner import progress_notice

READ_S = 30.0
# Limit for connecting; a response may take longer.
_CONNECT_S = 5.0
_REDIRECTION, _UNAUTHORIZED, _FORBIDDEN, _ABSENT, _CONFLICT, _GONE = 300, 401, 403, 404, 409, 410
_INVALID = (400, 422)
# Enough for one watch per kind and the requests of the program itself.
_CONNECTIONS = 16


# An answer whose body is unread until `data` or `stream` is used.
Response: TypeAlias = urllib3.response.HTTPResponse


class Connection:
    """The connections to the API server of `login`; thread-safe."""

    def __init__(self, login: Login) -> None:
        self.login = login
        self._pool: Any = _pool(login)
        self._lock = threading.Lock()

    def close(self) -> None:
        self._pool.clear()

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        read_s: float | None = READ_S,
    ) -> Response:
        """Return the server's response with any status, unread. Raises ToolFailed if there is none."""
        url = f"{self.login.server}{path}" + (f"?{urlencode(query)}" if query else "")
        title = f"the cluster of context {self.login.context.name}, {self.login.server}"

        def send(authorization: str | None) -> Response:
            mine = {"Authorization": authorization} if authorization else {}
            try:
                with progress_notice(title):
                    return self._pool.request(
                        method,
                        url,
                        headers={"User-Agent": "symph", "Accept": "application/json", **(headers or {}), **mine},
                        body=body,
                        timeout=urllib3.Timeout(connect=_CONNECT_S, read=read_s),
                        # Never send our credentials to a login page or another host.
                        redirect=False,
                        # Retrying a refused connection does not help.
                        retries=urllib3.Retry(2, connect=0),
                        preload_content=False,
                    )
            except HTTPError as error:
                raise self._unreachable(error) from error

        value = self.login.authorization()
        response = send(value)
        if response.status == _UNAUTHORIZED and self._renew(value):
            response.close()
            response = send(self.login.authorization())
        return response

    def checked(self, method: str, path: str, *, title: str = "", **request: Any) -> Response:
        """Return the response to a successful request. Raises the error class of any other status."""
        response = self.request(method, path, **request)
        if response.status >= _REDIRECTION:
            raise failure_of(response.status, self.body(response), title or f"{method} {path}")
        return response

    def body(self, response: Response) -> bytes:
        """Return the whole body. Raises ToolFailed if the connection breaks before its end."""
        try:
            data: bytes = response.data
        except HTTPError as error:
            raise self._unreachable(error) from error
        return data

    def websocket(self, path: str, query: Sequence[tuple[str, str]], protocols: Sequence[str]) -> Any:
        """Return an open WebSocket of websocket-client. Raises ToolFailed with the server's message."""
        value = self.login.authorization()
        try:
            try:
                return self._open(path, query, protocols, value)
            except WebSocketBadStatusException as error:
                if error.status_code != _UNAUTHORIZED or not self._renew(value):
                    raise
                return self._open(path, query, protocols, self.login.authorization())
        except (WebSocketException, OSError) as error:
            what = f"the cluster refused a stream: {_message_in(getattr(error, 'resp_body', None)) or error}"
            raise ToolFailed(what, path.rpartition("/")[0], "check that the container is running: symph ps") from error

    def _renew(self, refused: str | None) -> bool:
        with self._lock:
            has_token, has_certificate = self.login.renew(refused)
            if has_certificate:
                self._pool = _pool(self.login)
        return has_token or has_certificate

    def _open(
        self, path: str, query: Sequence[tuple[str, str]], protocols: Sequence[str], authorization: str | None
    ) -> Any:
        login = self.login
        header = [f"Sec-WebSocket-Protocol: {','.join(protocols)}"]
        header += [f"Authorization: {authorization}"] if authorization else []
        tls, host = login.tls(), urlsplit(login.server).hostname
        sslopt = {"context": tls, "server_hostname": login.server_name or host} if tls else {}
        opened = WebSocket(skip_utf8_validation=True, sslopt=sslopt)
        opened.settimeout(READ_S)
        url = f"ws{login.server.removeprefix('http')}{path}?{urlencode(query)}"
        # Never send our credentials to another host: follow no redirection.
        opened.connect(url, header=header, suppress_origin=True, redirect_limit=0, **_proxy_options(login))  # type: ignore[no-untyped-call]  # it has no types
        if opened.getstatus() != 101:  # before 1.9, websocket-client goes on at the limit
            opened.close()
            raise WebSocketException("it redirects")
        opened.settimeout(None)
        return opened

    def _unreachable(self, error: Exception) -> ToolFailed:
        cause = getattr(error, "reason", None) or error
        login, cluster = self.login, self.login.context.cluster
        # Some errors of urllib3 begin with their connection object.
        text = str(cause.args[-1]) if len(cause.args) > 1 else str(cause)
        reason = text.partition(": ")[2] if "object at 0x" in text else text
        if isinstance(cause, ProxyError) and login.proxy:
            address = urlsplit(login.proxy)
            what = f"the proxy {address.hostname}:{address.port} cannot reach the cluster: {cause.args[-1]}"
            return ToolFailed(what, cluster.file, "correct proxy-url in this file, or HTTPS_PROXY and NO_PROXY")
        if isinstance(cause, SSLError):
            what = f'cannot verify the certificate of cluster "{cluster.name}", {login.server}: {reason}'
            step = "correct certificate-authority, tls-server-name or server of this entry"
            return ToolFailed(what, f"{cluster.file}, clusters, {cluster.name}", step)
        what = f"the cluster of context {login.context.name} does not answer"
        return ToolFailed(what, f"{login.server}: {reason}", "check its address: kubectl cluster-info")


class ForbiddenError(ToolFailed):
    """The API server denies permission; another request may be granted."""


class ExpiredError(SymphError):
    """The server no longer has the requested state; request the current one."""


def failure_of(status: int, body: bytes, where: str) -> SymphError:
    """Return the error for a status of the server, with its message."""
    message = _message_in(body) or http.client.responses.get(status, str(status))
    if status == _ABSENT:
        return NotFound(message, where)
    if status == _CONFLICT:
        return Conflict(message, where, "another manager owns it: change it there, or choose another name or namespace")
    if status == _GONE:
        return ExpiredError(message, where)
    if status in _INVALID:
        return SpecError.one(
            f"the cluster rejected {where}: {message}", next="correct the field that the message names"
        )
    if status in (_UNAUTHORIZED, _FORBIDDEN):
        refusal = ForbiddenError if status == _FORBIDDEN else ToolFailed
        return refusal(
            f"the cluster denied the request: {message}",
            where,
            "log in again, or ask the administrator for this permission",
        )
    return ToolFailed(f"the cluster failed ({status}): {message}", where)


def _pool(login: Login) -> Any:
    settings: dict[str, Any] = {"maxsize": _CONNECTIONS}
    tls = login.tls()
    if tls is not None:
        # urllib3 checks the certificate's names itself; its version 1.26 cannot leave this to OpenSSL for an IP
        # address.
        tls.check_hostname = False
        settings["ssl_context"] = tls
        if login.server_name:
            settings["server_hostname"] = login.server_name
        if tls.verify_mode == ssl.CERT_NONE:
            # The kubeconfig sets insecure-skip-tls-verify: a warning for each request is not useful.
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    if not login.proxy:
        return urllib3.PoolManager(**settings)
    return urllib3.ProxyManager(login.proxy, proxy_headers=_proxy_headers(login.proxy), **settings)


def _proxy_headers(proxy: str) -> dict[str, str]:
    parts = urlsplit(proxy)
    if not parts.username:
        return {}
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    headers: dict[str, str] = urllib3.util.make_headers(proxy_basic_auth=pair)
    return headers


def _proxy_options(login: Login) -> dict[str, Any]:
    """Return options by which a WebSocket takes the proxy of `login`, or none; the environment is ignored."""
    if not login.proxy:
        return {"http_proxy_host": "none", "http_proxy_port": 1, "http_no_proxy": ["*"]}
    proxy = urlsplit(login.proxy)
    if proxy.scheme != "http":
        raise ToolFailed("streams support only http:// proxies", login.context.cluster.file, "correct proxy-url")
    auth = (unquote(proxy.username), unquote(proxy.password or "")) if proxy.username else None
    address = {"http_proxy_host": proxy.hostname, "http_proxy_port": proxy.port or 80}
    return {**address, "http_proxy_auth": auth, "http_no_proxy": ["-"]}


def _message_in(body: bytes | None) -> str:
    """Return the message of a Kubernetes Status; empty if `body` is none."""
    try:
        return str(json.loads(body or b"")["message"])
    except (TypeError, ValueError, KeyError):
        return ""
