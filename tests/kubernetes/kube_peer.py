"""A real TLS peer for the API adapter: it returns details of each request, and plays an OIDC issuer and a proxy."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.e2e.rig.pki import Authority


class Peer:
    """The address of the server, and the files of its certificates."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder / "pki")
        self.stranger = Authority(folder / "other")
        self.authority.leaf("server", "server", hosts=["127.0.0.1"])
        # A server whose certificate has another name than its address.
        self.authority.leaf("named", "named", hosts=["api.internal"])
        self.authority.leaf("user", "carol", groups=["team"])
        self.folder = folder / "pki"
        self.plain = ""
        self.named = ""
        self.writes: list[str] = []
        """The method and target of each request that was no GET."""

    def data(self, name: str) -> str:
        return base64.b64encode((self.folder / name).read_bytes()).decode()


@contextmanager
def peer(folder: Path) -> Iterator[Peer]:
    made = Peer(folder)
    with _serving(made, "server") as plain, _serving(made, "named") as named:
        made.plain, made.named = plain, named
        yield made


def jwt(seconds: float, subject: str) -> str:
    parts = ({"alg": "none"}, {"exp": int(time.time() + seconds), "sub": subject})
    texts = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*texts, "c2ln"])


class _Handler(BaseHTTPRequestHandler):
    """Answers with details of the request; 401 for a token that begins with ``stale``."""

    protocol_version = "HTTP/1.1"
    address = ""
    writes: list[str]

    def do_GET(self) -> None:
        if self.path.startswith("/.well-known/"):
            return self._reply(200, {"token_endpoint": f"{self.address}/token", "issuer": self.address})
        if self.path.startswith("/elsewhere"):
            address = self.address.replace("http", "ws") if self.headers.get("Upgrade") else self.address
            return self._reply(302, {"message": "log in there"}, {"Location": f"{address}/version"})
        if self.path.startswith("/page"):
            return self._reply(200, None)
        seen = {"authorization": self.headers.get("Authorization"), "subject": self._subject(), "sni": self._sni()}
        if "stale" in str(seen["authorization"]):
            return self._reply(401, {"message": "Unauthorized"})
        if self.headers.get("Upgrade"):
            return self._reply(403, {"message": json.dumps(seen)})
        return self._reply(200, seen)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/token":
            return self._reply(200, {"id_token": jwt(3600, "fresh"), "refresh_token": "next", "access_token": "a"})
        self.writes.append(f"{self.command} {self.path}")
        return self._reply(200, json.loads(body or b"{}"))

    do_PUT = do_PATCH = do_DELETE = do_POST  # noqa: N815  # the base class's names

    def _subject(self) -> str:
        certificate: Any = self.connection.getpeercert() if isinstance(self.connection, ssl.SSLSocket) else None
        pairs = [pair for part in (certificate or {}).get("subject", ()) for pair in part]
        return str(dict(pairs).get("commonName", ""))

    def _sni(self) -> str:
        return str(getattr(self.connection, "asked_name", ""))

    def _reply(self, status: int, body: object, headers: dict[str, str] | None = None) -> None:
        data = b"<html>please log in</html>" if body is None else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class _Line(ssl.SSLSocket):
    """The server's side of a connection, with the name that the client requested."""

    asked_name = ""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Ignore errors: clients that distrust the certificate hang up during the handshake."""


@contextmanager
def _serving(made: Peer, leaf: str) -> Iterator[str]:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(made.folder / "ca.crt"))
    tls.load_cert_chain(made.folder / f"{leaf}.crt", made.folder / f"{leaf}.key")
    tls.verify_mode = ssl.CERT_OPTIONAL
    tls.sslsocket_class = _Line
    tls.sni_callback = lambda line, name, _: setattr(line, "asked_name", name or "")
    server = _Server(("127.0.0.1", 0), _Handler)
    address = f"https://127.0.0.1:{server.server_address[1]}"
    server.RequestHandlerClass = type("Handler", (_Handler,), {"address": address, "writes": made.writes})
    server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield address
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def proxy() -> Iterator[tuple[str, list[str]]]:
    heads: list[str] = []
    listening = socket.create_server(("127.0.0.1", 0))

    def tunnel(caller: socket.socket) -> None:
        with caller:
            head = b""
            while b"\r\n\r\n" not in head and (piece := caller.recv(4096)):
                head += piece
            heads.append(head.decode())
            if base64.b64encode(b"user:word").decode() not in heads[-1]:
                caller.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
                return
            host, port = heads[-1].split()[1].rsplit(":", 1)
            with socket.create_connection((host, int(port))) as there:
                caller.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
                back = threading.Thread(target=_pump, args=(there, caller), daemon=True)
                back.start()
                _pump(caller, there)
                back.join()

    def accept() -> None:
        while True:
            try:
                caller, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=tunnel, args=(caller,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://user:word@127.0.0.1:{listening.getsockname()[1]}", heads
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
