"""A gate before a real registry: it forwards everything, except for the events that a test injects."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import threading
from collections.abc import Callable, Iterator


class Passed:
    """A request on its way, which a test can inspect and change."""

    def __init__(self, handler: _Handler) -> None:
        self._handler = handler
        self.method, self.path, self.headers = handler.command, handler.path, handler.headers
        self.length = int(handler.headers.get("Content-Length") or 0)

    @property
    def is_tag(self) -> bool:
        return "/manifests/" in self.path and "sha256:" not in self.path

    def forward(self) -> tuple[int, list[tuple[str, str]], bytes]:
        body = self._handler.rfile.read(self.length)
        upstream = http.client.HTTPConnection(self._handler.gate.upstream, timeout=20)
        upstream.request(self.method, self.path, body=body or None, headers=dict(self.headers.items()))
        answer = upstream.getresponse()
        content = answer.read()
        upstream.close()
        return answer.status, answer.getheaders(), content

    def reply(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self._handler.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("transfer-encoding", "connection"):
                self._handler.send_header(name, value)
        self._handler.end_headers()
        if self.method != "HEAD":
            self._handler.wfile.write(body)

    def refuse(self, status: int) -> None:
        """Read the body and answer `status` without a message."""
        self._handler.rfile.read(self.length)
        self.reply(status, [("Content-Length", "0")], b"")

    def cut(self, after: int = 0) -> None:
        self._handler.rfile.read(after)
        self._handler.close_connection = True
        self._handler.connection.close()


class Gate(http.server.ThreadingHTTPServer):
    """The server; `on_request` sees each request and returns True if it handled it."""

    daemon_threads = True

    def __init__(self, upstream: str, on_request: Callable[[Passed], bool]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream, self.on_request = upstream, on_request

    def handle_error(self, *_: object) -> None:
        """Ignore connections that a test cut."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def gate(self) -> Gate:
        assert isinstance(self.server, Gate)
        return self.server

    def _pass(self) -> None:
        request = Passed(self)
        if not self.gate.on_request(request):
            request.reply(*request.forward())

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = _pass  # noqa: N815 - the server calls them so

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextlib.contextmanager
def running_gate(upstream: str, on_request: Callable[[Passed], bool]) -> Iterator[str]:
    gate = Gate(upstream, on_request)
    thread = threading.Thread(target=gate.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{gate.server_port}"
    finally:
        gate.shutdown()
        gate.server_close()
        thread.join()
