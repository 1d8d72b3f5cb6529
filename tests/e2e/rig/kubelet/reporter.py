"""Telling the API server what each pod is like: the newest status always arrives, and none is sent twice."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from http.client import HTTPException
from typing import Any

from symphony_charts.errors import SymphError
from tests.e2e.rig.api import Object

__all__ = ["Reporter"]


class Reporter:
    """Sends statuses by `send` (pod, status), one at a time for each pod; changes during a request are one."""

    def __init__(self, send: Callable[[Object, Object], Coroutine[Any, Any, None]]) -> None:
        self._send = send
        self._sent: dict[str, Object] = {}
        self._waiting: dict[str, Object] = {}
        self._sending: dict[str, asyncio.Task[None]] = {}

    def tell(self, pod: Object, status: Object) -> None:
        """Send `status` unless it is what was sent last."""
        uid = pod["metadata"]["uid"]
        self._waiting[uid] = status
        if uid not in self._sending:
            self._sending[uid] = asyncio.ensure_future(self._send_all(pod))

    async def finish(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if uid in self._sending:
            await asyncio.gather(self._sending[uid], return_exceptions=True)
        self._sent.pop(uid, None)

    async def _send_all(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        try:
            while uid in self._waiting:
                status = self._waiting.pop(uid)
                if status == self._sent.get(uid):
                    continue
                try:
                    await self._send(pod, status)
                    self._sent[uid] = status
                except (OSError, HTTPException, SymphError) as error:
                    # A newer status may wait, and may be taken.
                    print(f"status of pod {uid} not sent: {error}", file=sys.stderr, flush=True)
        finally:
            # Here and not when the task is done, which is a turn of the loop later: what is told in between would stay.
            del self._sending[uid]
