"""The pods' network: one router namespace, and a point-to-point link from it to each pod.

All namespaces live as long as a process of ours, so the machine's own network is untouched and nothing is left
behind. All traffic between pods passes the router, where Services are rewritten.
"""

from __future__ import annotations

import asyncio
import ctypes
import itertools
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from symphony_charts.errors import ToolFailed, ToolMissing
from tests.e2e.rig.control_plane import SERVICE_RANGE
from tests.e2e.rig.kubelet.channel import Launched, launch
from tests.e2e.rig.kubelet.services import API_ADDRESS, DNS_ADDRESS, GATEWAY, Forward, ruleset
from tests.e2e.tools.system import missing_programs

_POD_SYSCTLS = {
    "net/ipv4/ip_unprivileged_port_start": "0",
    "net/ipv4/ping_group_range": "0 2147483647",
    "net/ipv6/conf/all/disable_ipv6": "1",
}
_NEWNET = 0x40000000
_PATIENCE_S = 30.0
_libc = ctypes.CDLL(None, use_errno=True)


def check_tools() -> None:
    """Raise ToolMissing unless this machine can make pods: root, and the needed programs."""
    if os.geteuid() != 0:
        raise ToolMissing("the process kubelet makes namespaces and mounts: it needs root", next="run as root")
    missing = missing_programs()
    if missing:
        raise ToolMissing(f"the process kubelet needs {', '.join(missing)}", next="make e2e-tools")


@contextmanager
def inside(pid: int) -> Iterator[None]:
    """Run the block in the network namespace of `pid`; a socket made there stays there.

    Only the calling thread moves, and the block must not await.
    """
    home, there = os.open("/proc/thread-self/ns/net", os.O_RDONLY), os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        _setns(there)
        try:
            yield
        finally:
            _setns(home)
    finally:
        os.close(home)
        os.close(there)


class Network:
    """The router and the pods attached to it."""

    def __init__(self, router: Launched) -> None:
        self._router = router
        self._numbers = itertools.count(2)
        self._rules: list[Forward] | None = None

    @classmethod
    async def up(cls, scratch: str) -> Network:
        sysctls = {
            "net/ipv4/ip_forward": "1",
            "net/ipv4/conf/all/send_redirects": "0",
            "net/ipv4/conf/default/send_redirects": "0",
            **_POD_SYSCTLS,
        }
        spec = {"mode": "sandbox", "hostname": "router", "sysctls": sysctls, "memory": {scratch: ""}}
        router = await launch(spec)
        own = (GATEWAY, DNS_ADDRESS, API_ADDRESS)
        setup = ["link set lo up", *(f"addr add {address}/32 dev lo" for address in own)]
        await _ip(router.launcher_pid, setup)
        return cls(router)

    def socket_for_dns(self) -> socket.socket:
        with inside(self._router.launcher_pid):
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind((DNS_ADDRESS, 53))
        sock.setblocking(False)
        return sock

    def socket_for_api(self) -> socket.socket:
        with inside(self._router.launcher_pid):
            return socket.create_server((API_ADDRESS, 443))

    @staticmethod
    def pod_sysctls() -> dict[str, str]:
        return dict(_POD_SYSCTLS)

    async def attach(self, pid: int) -> str:
        """Link the namespace of `pid` to the router; return its new address."""
        number = next(self._numbers)
        address = f"10.244.{number >> 8 & 255}.{number & 255}"
        await _ip(
            self._router.launcher_pid,
            [
                f"link add p{number} type veth peer name eth0 netns {pid}",
                f"link set p{number} up",
                f"route add {address}/32 dev p{number}",
            ],
        )
        await _ip(
            pid,
            [
                f"addr add {address}/32 dev eth0",
                "link set lo up",
                "link set eth0 up",
                f"route add {GATEWAY}/32 dev eth0 scope link",
                f"route add default via {GATEWAY}",
            ],
        )
        return address

    async def forward(self, rules: list[Forward]) -> None:
        """Replace the rules of all Services by `rules`, in one step."""
        if rules != self._rules:
            await _run(self._router.launcher_pid, ["nft", "-f", "-"], ruleset(rules, SERVICE_RANGE))
            self._rules = rules

    async def down(self) -> None:
        await self._router.release()


async def _ip(pid: int, commands: list[str]) -> None:
    await _run(pid, ["ip", "-batch", "-"], "\n".join(commands) + "\n")


async def _run(pid: int, argv: list[str], text: str) -> None:
    """Run a program in the network namespace of `pid`; raises ToolFailed if it fails or does not end."""
    pipe = asyncio.subprocess.PIPE
    whole = ["nsenter", f"--net=/proc/{pid}/ns/net", "--", *argv]
    process = await asyncio.create_subprocess_exec(*whole, stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        out, err = await asyncio.wait_for(process.communicate(text.encode()), _PATIENCE_S)
    except asyncio.TimeoutError as error:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise ToolFailed(f"{argv[0]} took over {_PATIENCE_S:g} s", argv=whole) from error
    if process.returncode != 0:
        said = (err or out).decode(errors="replace").strip()
        raise ToolFailed(f"{argv[0]} failed: {said}", argv=whole, status=process.returncode, stderr=said)


def _setns(handle: int) -> None:
    if _libc.setns(handle, _NEWNET) == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"setns: {os.strerror(code)}")
