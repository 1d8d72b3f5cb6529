"""`waiting_for` says whose answer a command waits for, once that takes long: silence looks like a hanging command."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from symphony_charts.system.launching import launcher

__all__ = ["waiting_for"]

_PATIENCE_S = 2.0


@contextmanager
def waiting_for(whom: str) -> Iterator[None]:
    """Inside, an answer of `whom` is waited for; after two seconds whoever started us is told so."""
    tell = launcher().tell
    if tell is None:
        yield
        return
    timer = threading.Timer(_PATIENCE_S, tell, [f"waiting for {whom}"])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
