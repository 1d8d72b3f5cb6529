"""The kubelet's API, called by the API server: logs as plain HTTP, exec over SPDY, ports over WebSocket."""

from __future__ import annotations

import asyncio
import ssl
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.e2e.rig.kubelet import websocket
from tests.e2e.rig.kubelet.logs import LogRequest, read_log
from tests.e2e.rig.kubelet.spdy import Connection
from tests.e2e.rig.kubelet.streams import EXEC_PROTOCOL, run_exec

if TYPE_CHECKING:
    from tests.e2e.rig.kubelet.agent import Agent
    from tests.e2e.rig.kubelet.container import Container


_HEAD_LIMIT = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The head of an HTTP request; header names are in lower case."""

    verb: str
    parts: list[str]
    query: dict[str, list[str]]
    headers: Mapping[str, str]

    def one(self) -> dict[str, str]:
        return {name: values[0] for name, values in self.query.items()}


async def serve(agent: Agent, pki: Path, port: int) -> asyncio.Server:
    """Listen on loopback for callers with a certificate of the cluster's authority."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(pki / "ca.crt"))
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.load_cert_chain(pki / "kubelet.crt", pki / "kubelet.key")

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _answer(agent, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass  # the caller closed the connection
        finally:
            writer.close()

    return await asyncio.start_server(handle, "127.0.0.1", port, ssl=tls, limit=_HEAD_LIMIT)


async def _answer(agent: Agent, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    request = _parse((await reader.readuntil(b"\r\n\r\n")).decode("latin-1"))
    if request.parts[:1] == ["containerLogs"] and len(request.parts) == 4:
        await _logs(agent, request, writer)
    elif request.parts[:1] == ["exec"] and len(request.parts) == 4:
        await _exec(agent, request, reader, writer)
    elif request.parts[:1] == ["portForward"] and len(request.parts) == 3:
        await _port_forward(agent, request, reader, writer)
    else:
        _refuse(writer, 404, f"no such path: /{'/'.join(request.parts)}")
    await writer.drain()


async def _exec(agent: Agent, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    _, namespace, name, container_name = request.parts
    container = _find(agent, namespace, name, container_name)
    if container is None or container.run is None or not container.run.is_running:
        return _refuse(writer, 404, f"container {container_name} of pod {name} does not run")
    if EXEC_PROTOCOL not in request.headers.get("x-stream-protocol-version", ""):
        return _refuse(writer, 400, f"only SPDY/3.1 with {EXEC_PROTOCOL} is spoken here")
    _upgrade(writer, "SPDY/3.1", {"X-Stream-Protocol-Version": EXEC_PROTOCOL})
    flags = {name for name, value in request.one().items() if value in ("1", "true")}
    has_tty = "tty" in flags
    kinds = {kind for flag, kind in (("input", "stdin"), ("output", "stdout"), ("error", "stderr")) if flag in flags}
    kinds = (kinds - {"stderr"}) | {"resize"} if has_tty else kinds
    await run_exec(Connection(reader, writer), container, request.query["command"], kinds, has_tty=has_tty)
    return None


async def _port_forward(
    agent: Agent, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    pod = agent.find_pod(request.parts[1], request.parts[2])
    if pod is None or not pod.has_sandbox:
        return _refuse(writer, 404, f"pod {request.parts[2]} does not run here")
    if request.headers.get("upgrade", "").lower() != "websocket":
        return _refuse(writer, 400, "ports are forwarded over WebSocket only")
    key = websocket.accept_key(request.headers["sec-websocket-key"])
    protocol = {"Sec-WebSocket-Accept": key, "Sec-WebSocket-Protocol": websocket.FORWARD_PROTOCOL}
    _upgrade(writer, "websocket", protocol)
    await websocket.forward_over_websocket(reader, writer, pod, int(request.one()["port"]))
    return None


def _upgrade(writer: asyncio.StreamWriter, name: str, headers: Mapping[str, str]) -> None:
    lines = [f"{key}: {value}" for key, value in {"Connection": "Upgrade", "Upgrade": name, **headers}.items()]
    writer.write("\r\n".join(["HTTP/1.1 101 Switching Protocols", *lines, "", ""]).encode())


def _find(agent: Agent, namespace: str, name: str, container_name: str) -> Container | None:
    pod = agent.find_pod(namespace, name)
    return next((c for c in pod.containers if c.name == container_name), None) if pod else None


async def _logs(agent: Agent, request: Request, writer: asyncio.StreamWriter) -> None:
    _, namespace, name, container_name = request.parts
    wanted = LogRequest.parse(request.one())
    pod, container = agent.find_pod(namespace, name), _find(agent, namespace, name, container_name)
    if pod is None or container is None:
        return _refuse(writer, 404, f"container {container_name} of pod {name} does not run here")
    number = container.state.restarts - (1 if wanted.previous else 0)
    path = pod.container_folder(container_name) / f"{number}.log"
    if not path.exists():
        why = container.state.state.get("waiting", {}).get("reason", "")
        said = f"is waiting to start: {why}" if why and not wanted.previous else "not found"
        which = "previous terminated " if wanted.previous else ""
        return _refuse(writer, 400, f'{which}container "{container_name}" in pod "{name}" {said}')
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n")

    def is_over() -> bool:
        run = container.run
        return container.state.restarts != number or run is None or not run.is_running

    async for piece in read_log(path, wanted, is_over):
        if piece:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
    writer.write(b"0\r\n\r\n")
    return None


def _parse(head: str) -> Request:
    first, *lines = head.split("\r\n")
    verb, target, _ = first.split(" ", 2)
    url = urllib.parse.urlsplit(target)
    headers: dict[str, str] = {}
    for key, _, value in (line.partition(":") for line in lines if ":" in line):
        name = key.strip().lower()
        headers[name] = f"{headers[name]},{value.strip()}" if name in headers else value.strip()
    return Request(
        verb=verb,
        parts=[urllib.parse.unquote(part) for part in url.path.strip("/").split("/")],
        query=urllib.parse.parse_qs(url.query, keep_blank_values=True),
        headers=headers,
    )


def _refuse(writer: asyncio.StreamWriter, code: int, message: str) -> None:
    body = f"{message}\n".encode()
    head = f"HTTP/1.1 {code} Refused\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
    writer.write(f"{head}Connection: close\r\n\r\n".encode() + body)
