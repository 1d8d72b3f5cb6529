"""A host on this machine that accepts no connection, like one that is down or behind a firewall."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator


@contextlib.contextmanager
def silent_host() -> Iterator[tuple[str, int]]:
    """Yield host and port: the queue of its listener is full, as if packets were lost."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        address: tuple[str, int] = server.getsockname()
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(address)
        yield address
