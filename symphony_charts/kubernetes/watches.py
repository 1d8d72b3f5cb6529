"""`changes` waits for the cluster to say that something of an experiment changed: a watch for each kind, no poll."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator, Sequence

from symphony_charts.errors import SymphError
from symphony_charts.kubernetes.client import KubeApi

__all__ = ["Kind", "changes"]

Kind = tuple[str, str]

# Several changes come together; they are looked at once.
_SETTLE_S = 0.05
_BROKEN_S = 0.5


def changes(
    api: KubeApi, path_of: Callable[[Kind], str], watched: Sequence[tuple[Kind, str]], timeout_s: float | None
) -> Generator[None, None, None]:
    """One step at once and then whenever an object with kind and labels in `watched` changed, until `timeout_s`."""
    steps: queue.Queue[None] = queue.Queue()
    over = threading.Event()
    deadline = None if timeout_s is None else time.monotonic() + timeout_s

    def follow(kind: Kind, selector: str) -> None:
        while not over.is_set():
            try:
                for _ in api.watch(path_of(kind), selector, timeout_s, over):
                    steps.put(None)
                return
            except SymphError:
                # The next look meets the same cluster and says what is wrong, or nothing is.
                over.wait(_BROKEN_S)
                steps.put(None)

    for kind_and_selector in watched:
        threading.Thread(target=follow, args=kind_and_selector, daemon=True).start()
    try:
        while True:
            try:
                steps.get(timeout=None if deadline is None else max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                return
            time.sleep(_SETTLE_S)
            while not steps.empty():
                steps.get_nowait()
            yield None
    finally:
        over.set()
        api.interrupt()
