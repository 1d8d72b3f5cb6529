"""A reader of container log files for `kubectl logs`.

Source of the options: kubernetes/api core/v1 PodLogOptions; of the line format: kubernetes/cri-client pkg/logs.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

_POLL_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRequest:
    """The requested part of a log; `since` is a timestamp as in the log."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail: int | None = None
    since: str = ""

    @classmethod
    def parse(cls, query: Mapping[str, str]) -> LogRequest:
        since = query.get("sinceTime", "")
        if "sinceSeconds" in query:
            moment = dt.datetime.now(dt.timezone.utc) - dt.timedelta(seconds=int(query["sinceSeconds"]))
            since = moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return cls(
            follow=query.get("follow") == "true",
            previous=query.get("previous") == "true",
            timestamps=query.get("timestamps") == "true",
            tail=int(query["tailLines"]) if "tailLines" in query else None,
            since=since,
        )


def select_lines(text: bytes, request: LogRequest) -> bytes:
    """Return the part of the log `text`, whole lines in the runtime's format, that answers `request`."""
    lines = [line for line in text.split(b"\n") if line]
    if request.since:
        since = _comparable(request.since.encode())
        lines = [line for line in lines if _comparable(line.split(b" ", 1)[0]) >= since]
    if request.tail is not None:
        lines = lines[-request.tail :] if request.tail else []
    return b"".join(_plain(line, timestamps=request.timestamps) for line in lines)


async def read_log(path: Path, request: LogRequest, is_over: Callable[[], bool]) -> AsyncIterator[bytes]:
    """Yield the log's content; with `follow`, also later lines, until `is_over` returns True."""
    with path.open("rb") as file:
        done = is_over()
        text = file.read()
        rest = text[text.rfind(b"\n") + 1 :]
        yield select_lines(text[: len(text) - len(rest)], request)
        later = LogRequest(timestamps=request.timestamps)
        while request.follow and not done:
            await asyncio.sleep(_POLL_S)
            done = is_over()
            text = rest + file.read()
            rest = text[text.rfind(b"\n") + 1 :]
            more = select_lines(text[: len(text) - len(rest)], later)
            if more:
                yield more


def _comparable(moment: bytes) -> bytes:
    """Return a timestamp in UTC that sorts as text: the API server asks for whole seconds, "04Z"."""
    whole, _, fraction = moment.removesuffix(b"Z").partition(b".")
    return b"%s.%s" % (whole, fraction.ljust(9, b"0"))


def _plain(line: bytes, *, timestamps: bool) -> bytes:
    moment, _, flag, content = [*line.split(b" ", 3), b""][:4]
    end = b"\n" if flag == b"F" else b""
    return (moment + b" " if timestamps else b"") + content + end
