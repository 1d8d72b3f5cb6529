"""Ports for programs that are told where to listen before they do."""

from __future__ import annotations

import random
import socket

__all__ = ["free_ports"]

# Below the kernel's ephemeral range: a bind to port 0 or a connect() elsewhere never takes one of these meanwhile.
_PORTS = range(20000, 32768)


def free_ports(count: int) -> list[int]:
    """`count` different loopback ports, picked at random, that nobody listens on at this moment."""
    ports: list[int] = []
    # The system's randomness: tests that run at once may have seeded the usual one alike.
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        if len(ports) == count:
            break
        if _is_free(port):
            ports.append(port)
    return ports


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
