"""Startup, readiness and liveness probes.

Source: kubernetes/kubernetes pkg/kubelet/prober and pkg/probe/{tcp,http,exec}.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

from tests.e2e.rig.api import Object
from tests.e2e.rig.kubelet.network import inside

Execute = Callable[[list[str], float], Awaitable[tuple[int, str]]]
"""Runs a command in the container with a timeout in seconds; returns its exit code and output."""


async def watch_probe(
    probe: Object, check: Callable[[], Awaitable[bool]], report: Callable[[bool], None], *, starts_as: bool | None
) -> None:
    """Check periodically; `report` each change of verdict, beginning with `starts_as`."""
    await asyncio.sleep(probe.get("initialDelaySeconds", 0))
    verdict, in_a_row, last = starts_as, 0, None
    while True:
        passed = await check()
        in_a_row = in_a_row + 1 if passed == last else 1
        last = passed
        needed = probe.get("successThreshold", 1) if passed else probe.get("failureThreshold", 3)
        if in_a_row >= needed and passed != verdict:
            verdict = passed
            report(verdict)
        period = probe.get("periodSeconds", 10)
        # While failures change nothing (not ready stays not ready), a shorter period only saves the tests time.
        await asyncio.sleep(min(1, period) if verdict is False else period)


async def probe_once(probe: Object, container: Object, pid: int, address: str, execute: Execute) -> str:
    """Return "" if the probe passes, else the fault."""
    timeout = float(probe.get("timeoutSeconds", 1))
    try:
        if "exec" in probe:
            code, output = await execute(probe["exec"]["command"], timeout)
            return "" if code == 0 else output.strip()[-200:] or f"command exited with {code}"
        if "tcpSocket" in probe:
            place = probe["tcpSocket"]
            port = port_number(place["port"], container)
            _, writer = await asyncio.wait_for(connect(pid, place.get("host") or address, port), timeout)
            writer.close()
            return ""
        if "httpGet" in probe:
            return await asyncio.wait_for(_http(probe["httpGet"], container, pid, address), timeout)
    except (OSError, asyncio.TimeoutError, ValueError) as error:
        return str(error) or type(error).__name__
    return "probes of this kind are not supported here"


def port_number(port: int | str, container: Object) -> int:
    if isinstance(port, int) or port.isdigit():
        return int(port)
    for known in container.get("ports", []):
        if known.get("name") == port:
            return int(known["containerPort"])
    raise ValueError(f"the container has no port called {port}")


async def connect(pid: int, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return a connection made from inside the network namespace of `pid`."""
    with inside(pid):
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(sock, (host, port))
        return await asyncio.open_connection(sock=sock)
    except BaseException:
        sock.close()
        raise


async def _http(action: Object, container: Object, pid: int, address: str) -> str:
    host, port = action.get("host") or address, port_number(action["port"], container)
    reader, writer = await connect(pid, host, port)
    try:
        headers = {"Host": f"{host}:{port}", "User-Agent": "kube-probe/process", "Connection": "close"}
        headers |= {header["name"]: header["value"] for header in action.get("httpHeaders", [])}
        lines = [f"GET {action.get('path') or '/'} HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items()), "", ""]
        writer.write("\r\n".join(lines).encode())
        words = (await reader.readline()).split()
    finally:
        writer.close()
    code = int(words[1]) if len(words) > 1 else 0
    return "" if 200 <= code < 400 else f"HTTP probe failed with statuscode: {code}"
