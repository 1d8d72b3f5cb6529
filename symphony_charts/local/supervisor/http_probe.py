"""A try of an HTTP check in steps that never block.

Like the kubelet it takes 200 to 399 for an answer that passes, follows redirects on the same host, does not verify
certificates and reads no more than 10 KiB. Source: kubernetes/kubernetes pkg/probe/http.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
from collections.abc import Generator
from urllib.parse import urljoin, urlsplit

from symphony_charts.local.plan.records import Check
from symphony_charts.local.supervisor.probe_checks import Steps, connected, new_socket

__all__ = ["get_steps"]

_MOST_BYTES = 10 << 10
_MOST_REDIRECTS = 10


def get_steps(check: Check) -> Steps:
    """Ask, and ask again where the answer points to, while that is the same host."""
    scheme = "https" if check.is_tls else "http"
    url = f"{scheme}://{check.host}:{check.port}{check.path if check.path.startswith('/') else '/' + check.path}"
    for _ in range(_MOST_REDIRECTS):
        status, place = yield from _ask(url, check.headers)
        target = urljoin(url, place) if place else ""
        if not target or not 300 <= status < 400 or urlsplit(target).hostname != urlsplit(url).hostname:
            return "" if 200 <= status < 400 else f"HTTP status {status}"
        url = target
    return f"stopped after {_MOST_REDIRECTS} redirects"


def _ask(url: str, headers: tuple[tuple[str, str], ...]) -> Generator[tuple[int, int], None, tuple[int, str]]:
    """Status and `Location` of the answer to a GET."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(new_socket())
        yield from connected(connection, parts.hostname or "", parts.port or (443 if secure else 80))
        if secure:
            connection = stack.enter_context(
                _any_certificate().wrap_socket(connection, do_handshake_on_connect=False, suppress_ragged_eofs=True)
            )
            yield from _shake_hands(connection)
        yield from _send(connection, _request(url, headers))
        answer = b""
        while len(answer) < _MOST_BYTES and not _is_whole(answer):
            data = yield from _receive(connection)
            if not data:
                break
            answer += data
    return _status_and_place(answer)


def _shake_hands(connection: socket.socket) -> Generator[tuple[int, int], None, None]:
    assert isinstance(connection, ssl.SSLSocket)  # noqa: S101 - made by `wrap_socket`
    while True:
        try:
            connection.do_handshake()
        except ssl.SSLWantReadError:
            yield connection.fileno(), select.POLLIN
        except ssl.SSLWantWriteError:
            yield connection.fileno(), select.POLLOUT
        else:
            return


def _send(connection: socket.socket, data: bytes) -> Generator[tuple[int, int], None, None]:
    while data:
        try:
            data = data[connection.send(data) :]
        except (BlockingIOError, ssl.SSLWantWriteError):
            yield connection.fileno(), select.POLLOUT


def _receive(connection: socket.socket) -> Generator[tuple[int, int], None, bytes]:
    while True:
        try:
            return connection.recv(1 << 14)
        except (BlockingIOError, ssl.SSLWantReadError):
            yield connection.fileno(), select.POLLIN


def _request(url: str, headers: tuple[tuple[str, str], ...]) -> bytes:
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    said = {"Host": parts.netloc, "User-Agent": "kube-probe/symph", "Accept": "*/*"}
    own = {name.lower() for name, _ in headers}
    lines = [f"{name}: {value}" for name, value in said.items() if name.lower() not in own]
    lines += [f"{name}: {value}" for name, value in headers]
    text = "\r\n".join([f"GET {path} HTTP/1.1", *lines, "Connection: close", "", ""])
    return text.encode("latin-1", "replace")


def _is_whole(answer: bytes) -> bool:
    """Whether the answer says by itself that nothing more will come; else its connection ends."""
    head, found, body = answer.partition(b"\r\n\r\n")
    fields = _fields(head)
    if not found:
        return False
    if fields.get("transfer-encoding", "").lower() == "chunked":
        return body.endswith(b"0\r\n\r\n")
    length = fields.get("content-length", "")
    return length.isdecimal() and len(body) >= int(length)


def _status_and_place(answer: bytes) -> tuple[int, str]:
    head, found, _ = answer.partition(b"\r\n\r\n")
    words = head.split(b"\r\n", 1)[0].split()
    if not found or len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        raise ValueError("the answer is not HTTP")
    return int(words[1]), _fields(head).get("location", "")


def _fields(head: bytes) -> dict[str, str]:
    rows = [line.partition(":") for line in head.decode("latin-1").split("\r\n")[1:]]
    return {name.strip().lower(): value.strip() for name, _, value in rows}


def _any_certificate() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
